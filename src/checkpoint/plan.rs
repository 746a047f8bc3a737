//! The resume plan: whether and how to carry on from a checkpoint.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Handoff, ItemState, Status, UnreadableItem};
use crate::{is_blank, shown};

/// Whether and how to carry on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct ResumePlan {
    /// The decision.
    pub decision: ResumeDecision,
    /// The reasons, each once; empty if nothing speaks against continuing.
    pub reasons: Vec<ResumeReason>,
    /// Where to begin: the work in progress, else the first pending item.
    pub start_at: Option<String>,
    /// The phase to continue with: the checkpoint's, unless the protocol derives another from the pending work.
    pub phase: Option<String>,
    /// The agent to resume first, if the protocol names one that still has its context.
    pub resume_agent: Option<String>,
    /// The worker to start if that agent cannot be resumed, if the protocol has one.
    pub new_worker: Option<NewWorker>,
    /// A message for a person: the protocol's resume message if work goes on, also after checks and answers;
    /// otherwise why it does not.
    pub message: String,
    /// What the next agent must know before it begins.
    pub warnings: Vec<String>,
    /// Information that does not change the decision.
    pub notes: Vec<String>,
    /// Questions to answer before the next agent begins.
    pub questions: Vec<String>,
    /// The files to check first: they changed since the checkpoint, are missing, or are indeterminate. These
    /// are all files of the checkpoint if they were not compared.
    pub files_to_review: Vec<String>,
    /// The files that did not change since the previous agent left them.
    pub files_unchanged: Vec<String>,
}

/// Why a plan is not simply to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ResumeReason {
    /// Files changed since the checkpoint, or the project is on another branch.
    Stale {
        /// The files, as the checkpoint names them.
        files: Vec<String>,
    },
    /// Some files are indeterminate, or the project is at another commit.
    Indeterminate {
        /// The files, as the checkpoint names them.
        files: Vec<String>,
    },
    /// The checkpoint breaks rules of its format.
    Violations,
    /// Other sources, such as a host file, contradict the checkpoint.
    Mismatch,
    /// The slot of the checkpoint now belongs to another task.
    OfAnotherTask {
        /// The id of that task.
        place_is_for: String,
    },
    /// The previous agent failed.
    Failed,
    /// The task has a blocker.
    Blocked,
    /// The task was paused, or its agent waits for others.
    Waiting,
    /// Another agent may be working on it.
    InProgress,
    /// The task was tried as often as the protocol allows.
    TriedEnough,
    /// The format does not list the status, or there is none.
    UnknownStatus,
    /// Some items could not be read.
    Unreadable {
        /// Their pointers.
        items: Vec<String>,
    },
    /// Steps are recorded both as done and as planned.
    DoneAndPlanned {
        /// Their texts.
        steps: Vec<String>,
    },
    /// Work was begun, and the checkpoint does not say how far it came: it may have taken effect. It is a
    /// question only if the agent did not stop in order. An agent that continues the step answers the question.
    StepInFlight {
        /// The texts of these steps.
        steps: Vec<String>,
    },
    /// Effects outside the checkpoint were begun, and it is unknown whether they took place. Each is a question.
    EffectsInDoubt {
        /// Their ids.
        effects: Vec<String>,
    },
    /// The ledger of effects cannot be read.
    EffectsUnknown,
    /// Work is recorded as finished, but its newest proof does not confirm it.
    Proofs {
        /// The steps, criteria and gates whose proof failed.
        failed: Vec<String>,
        /// Those whose proof covers files that have changed since.
        outdated: Vec<String>,
    },
    /// A person must decide first. Each approval is a question.
    AwaitsApproval {
        /// The ids of the pending approvals.
        approvals: Vec<String>,
    },
    /// The task is complete except for these criteria.
    OpenCriteria {
        /// Their names.
        criteria: Vec<String>,
    },
    /// So little was done that starting over loses nothing.
    HardlyBegun,
    /// The checkpoint cannot be read.
    Corrupt,
    /// Nothing is left to do.
    Complete,
    /// The checkpoint states that it cannot be resumed.
    NotResumable,
    /// Another owner has claimed the task.
    Held {
        /// The other owner.
        owner: String,
        /// When its claim expires, in RFC 3339.
        until: String,
    },
    /// The task must not go on before a time that is still in the future.
    NotBefore {
        /// That time, in RFC 3339.
        until: String,
    },
    /// Several attempts in a row ended without progress.
    Poisoned {
        /// How many in a row.
        attempts: usize,
        /// How they ended, oldest first, each error once.
        errors: Vec<String>,
    },
    /// A later version of the format wrote the checkpoint.
    NewerSchema {
        /// That version, if it can be read.
        found: Option<u64>,
        /// The latest version that this program knows.
        known: u64,
    },
}

/// What to do with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResumeDecision {
    /// Carry on.
    Continue,
    /// Carry on after comparing the files with the checkpoint.
    Verify,
    /// Carry on after the questions are answered.
    Ask,
    /// Do not carry on yet: wait for a stated time or a person's decision.
    Wait,
    /// Start over: the present state is not worth continuing.
    Restart,
    /// Do not carry on.
    Refuse,
}

impl ResumeDecision {
    /// The decision as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ResumeDecision::Continue => "continue",
            ResumeDecision::Verify => "verify",
            ResumeDecision::Ask => "ask",
            ResumeDecision::Wait => "wait",
            ResumeDecision::Restart => "restart",
            ResumeDecision::Refuse => "refuse",
        }
    }
}

/// A worker that carries on if the named agent cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NewWorker {
    /// The name that it is to get.
    pub name: String,
    /// The part of its prompt about the finished work; empty without the feature `template`, which renders it.
    pub block: String,
    /// Further inputs of the protocol's prompt for such a worker, by name.
    pub inputs: BTreeMap<String, Value>,
}

impl NewWorker {
    /// A worker with this name.
    pub fn new(name: impl Into<String>) -> Self {
        NewWorker {
            name: name.into(),
            block: String::new(),
            inputs: BTreeMap::new(),
        }
    }

    /// Sets the part of its prompt about the finished work.
    #[must_use]
    pub fn with_block(mut self, block: impl Into<String>) -> Self {
        self.block = block.into();
        self
    }

    /// Adds an input of its prompt.
    #[must_use]
    pub fn with_input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inputs.insert(name.into(), value.into());
        self
    }
}

impl ResumePlan {
    /// The plan that follows from a hand-off alone: a complete task is refused, a blocker or a failure asks a
    /// question, everything else continues.
    pub fn of(handoff: &Handoff) -> ResumePlan {
        let maker = handoff.agent.as_deref().unwrap_or("another agent");
        let mut plan = ResumePlan {
            decision: ResumeDecision::Continue,
            reasons: Vec::new(),
            start_at: handoff.start_at().map(str::to_owned),
            phase: handoff.phase.clone(),
            resume_agent: None,
            new_worker: None,
            message: format!("Resuming from checkpoint (created by {maker})"),
            warnings: Vec::new(),
            notes: Vec::new(),
            questions: Vec::new(),
            files_to_review: handoff.files.clone(),
            files_unchanged: Vec::new(),
        };
        for blocker in &handoff.blockers {
            plan.ask(format!("Is this still in the way: {blocker}"));
            plan.because(ResumeReason::Blocked);
        }
        if handoff.status == Status::Failed {
            plan.because(ResumeReason::Failed);
            if plan.questions.is_empty() {
                plan.ask("The previous agent failed and recorded no reason. Is the cause fixed?");
            }
        }
        if handoff.status == Status::Complete {
            plan.refuse("The task is complete; there is nothing to resume");
            plan.because(ResumeReason::Complete);
        }
        plan
    }

    /// Adds a reason, unless it is in the list already.
    pub fn because(&mut self, reason: ResumeReason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Raises the decision to this one if it is graver.
    pub fn raise(&mut self, decision: ResumeDecision) {
        self.decision = self.decision.max(decision);
    }

    /// Warns the next agent, which must then verify before it carries on.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
        self.raise(ResumeDecision::Verify);
    }

    /// Adds information that does not change the decision.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Asks a question that must be answered before the next agent carries on.
    pub fn ask(&mut self, question: impl Into<String>) {
        self.questions.push(question.into());
        self.raise(ResumeDecision::Ask);
    }

    /// Decides to wait, with the reason as the message.
    pub fn wait(&mut self, message: impl Into<String>) {
        if self.decision <= ResumeDecision::Wait {
            self.raise(ResumeDecision::Wait);
            self.message = message.into();
        }
    }

    /// Advises to start over, with the reason as the message.
    pub fn restart(&mut self, message: impl Into<String>) {
        if self.decision <= ResumeDecision::Restart {
            self.raise(ResumeDecision::Restart);
            self.message = message.into();
        }
    }

    /// Refuses, with the reason as the message.
    pub fn refuse(&mut self, message: impl Into<String>) {
        self.raise(ResumeDecision::Refuse);
        self.message = message.into();
    }

    /// Lists the unreadable items for the next agent, and asks about possible blockers among them.
    pub(crate) fn heed_unreadable(&mut self, handoff: &Handoff) {
        let unreadable = &handoff.unreadable;
        if unreadable.is_empty() {
            return;
        }
        for blocker in unreadable
            .iter()
            .filter(|it| it.state == ItemState::Blocker)
        {
            self.ask(format!("Is this still in the way: {blocker}"));
            self.because(ResumeReason::Blocked);
        }
        let listed: Vec<String> = unreadable.iter().map(|item| format!("- {item}")).collect();
        self.warn(format!(
            "These items could not be read, but they are still part of the checkpoint; look them up in its file:\n{}",
            listed.join("\n")
        ));
        self.because(ResumeReason::Unreadable {
            items: unreadable.iter().map(|it| it.pointer.clone()).collect(),
        });
    }

    /// Adds the pending work to the message of a complete task: agents often call their work complete too early.
    pub(crate) fn name_what_is_left(&mut self, handoff: &Handoff) {
        let left = handoff.count_left();
        let is_refused = self.decision == ResumeDecision::Refuse;
        if left > 0 && is_refused && self.reasons.contains(&ResumeReason::Complete) {
            let left = left_in_words(left, handoff);
            self.message = format!("{}; it was finished with {left}", self.message);
        }
    }

    /// Handles steps that are recorded both as done and as planned: the plan does not begin with one of them. An id
    /// stands for one item, which is done; a step with a free text may be meant to occur twice, so the plan asks.
    pub(crate) fn heed_done_and_planned(
        &mut self,
        handoff: &Handoff,
        left: &Handoff,
        work_has_ids: bool,
    ) {
        let steps = handoff.done_and_planned(left);
        if steps.is_empty() {
            return;
        }
        if self
            .start_at
            .as_ref()
            .is_some_and(|start| steps.contains(start))
        {
            self.start_at = left.start_at().map(str::to_owned);
        }
        let listed = some(&steps);
        if work_has_ids {
            self.warn(format!(
                "Recorded as done and as left to do, and taken for done: {listed}"
            ));
        } else {
            self.ask(format!(
                "Recorded as done, but also planned: {listed}. Should it be done again?"
            ));
        }
        self.because(ResumeReason::DoneAndPlanned { steps });
    }

    /// Warns of work that was begun: it may have taken effect, like a payment that was made before the agent
    /// could record it.
    pub(crate) fn heed_step_in_flight(&mut self, handoff: &Handoff) {
        if self.decision >= ResumeDecision::Restart {
            return;
        }
        let begun = handoff.in_progress.iter().map(|item| item.text.clone());
        let mut steps: Vec<String> = begun.filter(|text| !is_blank(text)).collect();
        let hidden = handoff.unreadable.iter();
        let hidden = hidden.filter(|item| item.state == ItemState::Begun);
        steps.extend(hidden.map(UnreadableItem::name));
        if steps.is_empty() {
            return;
        }
        let sentence = format!(
            "Begun, and may have taken effect in part or in whole: {}. Check what it changes (files, data, messages) \
             before you do it again",
            some(&steps)
        );
        if handoff.was_left_in_order() {
            // The agent had time to note how far it came, so this is no question.
            self.warnings.push(format!("{sentence}."));
        } else {
            self.ask(format!("{sentence}: how far did it get?"));
        }
        self.because(ResumeReason::StepInFlight { steps });
    }
}

/// The most steps that one sentence lists.
const MOST_LISTED: usize = 20;

fn some(steps: &[String]) -> String {
    let listed: Vec<String> = steps
        .iter()
        .take(MOST_LISTED)
        .map(|step| shown::line(step))
        .collect();
    match steps.len().saturating_sub(MOST_LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// How much work is left, with the names of the listed items: `3 steps left: a, b, c`.
pub(crate) fn left_in_words(left: u64, handoff: &Handoff) -> String {
    let steps = if left == 1 { "step" } else { "steps" };
    let names = handoff.open_names();
    if names.is_empty() {
        return format!("{left} {steps} left");
    }
    format!("{left} {steps} left: {}", some(&names))
}
