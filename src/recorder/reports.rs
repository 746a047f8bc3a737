//! The calls that report one thing.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Operation, Result, StepDone};

impl<C: Checkpoint> Recorder<C> {
    /// A step begins; it stays in the plan until it is done. Another that was in progress goes back to the plan.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_started(&self, text: &str) -> Result<Recorded> {
        self.report(Operation::StepStart {
            text: text.to_owned(),
        })
    }

    /// A step is finished: it leaves the plan, and is no longer in progress. Files that are no sources are
    /// not recorded: see [`Recorded::left_out`].
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn step_done(&self, done: &StepDone) -> Result<Recorded> {
        self.report(Operation::StepDone(done.clone()))
    }

    /// A step joins the plan, before another planned one or at its end.
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

    /// A planned step is not to be done, and why.
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

    /// A planned step gets another text.
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

    /// A planned step comes before another.
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

    /// A decision that the next agent must respect, and why.
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

    /// How far the work in progress is; of an `agent-session`, how to resume from here.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn note_partial(&self, text: &str) -> Result<Recorded> {
        self.report(Operation::Note {
            text: text.to_owned(),
        })
    }

    /// Something is in the way.
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

    /// Nothing is in the way any more.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn unblock(&self) -> Result<Recorded> {
        self.report(Operation::Unblock)
    }

    /// The task enters a phase, by name or number.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn phase(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Phase {
            name: name.to_owned(),
        })
    }

    /// The task enters a stage, by name or number.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn stage(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Stage {
            name: name.to_owned(),
        })
    }

    /// The agent is at a sync point, and waits there.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn sync(&self, name: &str) -> Result<Recorded> {
        self.report(Operation::Sync {
            name: name.to_owned(),
        })
    }

    /// An activity of verification has a result, as the format spells it.
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

    /// A gate was passed.
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

    /// The task waits for a decision.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn pause(&self) -> Result<Recorded> {
        self.report(Operation::Pause { until: None })
    }

    /// The task is complete.
    ///
    /// # Errors
    ///
    /// As every call, and where the state of the checkpoint does not allow it.
    pub fn complete(&self) -> Result<Recorded> {
        self.report(Operation::Complete)
    }

    /// The model's service asked to wait: a full checkpoint, with how far the work in progress is.
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

    /// The task failed, after all that could be tried: a full checkpoint, with the reason in the way. Call it
    /// before the failure is reported to anyone else.
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
