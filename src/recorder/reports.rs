//! The calls that each report one thing.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Operation, Result, StepDone};
use crate::resume::Resume;

impl<C: Checkpoint> Recorder<C> {
    /// Reports that a step begins; it stays in the plan until it is done. Another step in progress returns to
    /// the plan.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_started(&self, text: &str) -> Result<Recorded> {
        self.report(Operation::StepStart {
            text: text.to_owned(),
        })
    }

    /// Reports that a step is finished: it leaves the plan and is no longer in progress. Files that are not
    /// source files are not recorded: see [`Recorded::left_out`].
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_done(&self, done: &StepDone) -> Result<Recorded> {
        self.report(Operation::StepDone(done.clone()))
    }

    /// Adds a step to the plan, before another planned one or at its end.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_added(&self, text: &str, before: Option<&str>) -> Result<Recorded> {
        self.report(Operation::StepAdd {
            text: text.to_owned(),
            before: before.map(str::to_owned),
        })
    }

    /// Reports that a planned step is not to be done, and why.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_dropped(&self, text: &str, because: &str) -> Result<Recorded> {
        self.report(Operation::StepDrop {
            text: text.to_owned(),
            because: because.to_owned(),
        })
    }

    /// Changes the text of a planned step.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_reworded(&self, text: &str, to: &str) -> Result<Recorded> {
        self.report(Operation::StepEdit {
            text: text.to_owned(),
            to: to.to_owned(),
        })
    }

    /// Moves a planned step before another one.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_moved(&self, text: &str, before: &str) -> Result<Recorded> {
        self.report(Operation::StepMove {
            text: text.to_owned(),
            before: before.to_owned(),
        })
    }

    /// Records a decision that the next agent must respect, and its reason.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn decide(&self, text: &str, rationale: Option<&str>) -> Result<Recorded> {
        self.report(Operation::Decide {
            text: text.to_owned(),
            rationale: rationale.map(str::to_owned),
        })
    }

    /// Records how far the work in progress is; for an `agent-session`, how to resume from here.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn note_partial(&self, text: &str) -> Result<Recorded> {
        self.report(Operation::Note {
            text: text.to_owned(),
        })
    }

    /// Reports a blocker.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn block(&self, text: &str) -> Result<Recorded> {
        self.report(Operation::Block {
            text: text.to_owned(),
            kind: None,
        })
    }

    /// Reports that the blockers are resolved.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn unblock(&self) -> Result<Recorded> {
        self.report(Operation::Unblock)
    }

    /// Reports that the task enters a phase, by name or number.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn phase(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Phase {
            name: name.to_owned(),
        })
    }

    /// Reports that the task enters a stage, by name or number.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn stage(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Stage {
            name: name.to_owned(),
        })
    }

    /// Reports that the agent is at a sync point and waits there.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn sync(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Sync {
            name: name.to_owned(),
        })
    }

    /// Records the result of a verification activity, as the format spells it.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn verification(&self, activity: &str, status: &str) -> Result<Recorded> {
        self.report(Operation::Verify {
            activity: activity.to_owned(),
            status: status.to_owned(),
        })
    }

    /// Reports that a gate was passed.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn gate_passed(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::GatePass {
            name: name.to_owned(),
            phase: None,
        })
    }

    /// Reports that the task waits for a decision.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn pause(&self) -> Result<Recorded> {
        self.report(Operation::Pause { until: None })
    }

    /// Reports that the task is complete.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn complete(&self) -> Result<Recorded> {
        self.report(Operation::Complete)
    }

    /// Reports that the model's service asked to wait: a full checkpoint, with how far the work in progress is.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn rate_limited(&self, note: Option<&str>) -> Result<Recorded> {
        self.report(Operation::RateLimit {
            note: note.map(str::to_owned),
            until: None,
        })
    }

    /// Reports that the task failed after everything was tried: a full checkpoint, with the reason as a
    /// blocker. Call it before the failure is reported to anyone else.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn failed(&self, because: &str) -> Result<Recorded> {
        self.report(Operation::Fail {
            text: because.to_owned(),
        })
    }
}

/// The result of handing a task over to another agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandedOver {
    /// The checkpoint that was saved.
    pub recorded: Recorded,
    /// How the other agent carries on: the plan, and with the feature `template` the prompt.
    pub resume: Resume,
}

impl<C: Checkpoint> Recorder<C> {
    /// Hands the task over to another agent. It saves a full checkpoint, which lists this agent among the
    /// previous ones if the format has such a list. The claim ends, and every later call is refused.
    ///
    /// # Errors
    ///
    /// As every call. After the checkpoint was saved, those of
    /// [`Checkpoints::resume`](crate::Checkpoints::resume) and of releasing the claim: the task belongs to the
    /// other agent even then, and [`plan`](Recorder::plan) gives the prompt.
    pub fn reassign(&self, to: &str) -> Result<HandedOver> {
        let mut state = self.state();
        let operation = Operation::Reassign { to: to.to_owned() };
        let recorded = self.change_in(&mut state, None, &mut |checkpoint, context| {
            checkpoint.apply(&operation, context)
        })?;
        state.given_to = Some(to.to_owned());
        let mut resume = self.plan()?;
        if resume.handoff.previous_agents.is_empty() {
            // The format has no list of previous agents, and already names the other agent, which did none of
            // the work.
            resume.handoff.agent = Some(self.options.owner.agent.clone());
        }
        state.hold.release(self.checkpoints.store(), &self.key)?;
        Ok(HandedOver { recorded, resume })
    }
}
