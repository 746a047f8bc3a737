//! Whether and how to go on from a checkpoint.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Handoff, ItemState, Status, UnreadableItem};
use crate::{is_blank, shown};

/// Whether and how to go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct ResumePlan {
    /// What to do.
    pub decision: ResumeDecision,
    /// Why, each reason once; none where all is well.
    pub reasons: Vec<ResumeReason>,
    /// Where to begin: the work in progress, else the first that is pending.
    pub start_at: Option<String>,
    /// The phase to go on with: the checkpoint's, unless the protocol derives another from the pending work.
    pub phase: Option<String>,
    /// The agent to resume first, if the protocol has one that still has its context.
    pub resume_agent: Option<String>,
    /// The worker to start when that agent cannot be resumed, where the protocol has one.
    pub new_worker: Option<NewWorker>,
    /// For a person: the protocol's message of the resume where work goes on, also after checks and answers; else why it
    /// does not.
    pub message: String,
    /// What the next agent must know before it begins.
    pub warnings: Vec<String>,
    /// What is good to know, and changes nothing of the decision.
    pub notes: Vec<String>,
    /// Questions to be answered before the next agent begins.
    pub questions: Vec<String>,
    /// The files to check first: they changed since the checkpoint, are missing, or are indeterminate.
    /// All files of the checkpoint, if they were not compared.
    pub files_to_review: Vec<String>,
    /// The files that are as the agent before left them.
    pub files_unchanged: Vec<String>,
}

/// Why a plan is not simply to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ResumeReason {
    /// Files changed since the checkpoint, or the project is elsewhere.
    Stale {
        /// These, as the checkpoint names them.
        files: Vec<String>,
    },
    /// Some files are indeterminate, or the project is at another commit.
    Indeterminate {
        /// These, as the checkpoint names them.
        files: Vec<String>,
    },
    /// The checkpoint breaks rules of its format.
    Violations,
    /// What is around the checkpoint says something else.
    Mismatch,
    /// The checkpoint's place is for this task by now, and the checkpoint is of another.
    OfAnotherTask {
        /// Its id.
        place_is_for: String,
    },
    /// The agent before failed.
    Failed,
    /// Something is in the way.
    Blocked,
    /// The task was paused, or its agent waits for others.
    Waiting,
    /// Another agent may be at work on it.
    InProgress,
    /// It was tried as often as the protocol has it.
    TriedEnough,
    /// The status is none of the format's, or there is none.
    UnknownStatus,
    /// Items could not be read.
    Unreadable {
        /// Their pointers.
        items: Vec<String>,
    },
    /// Steps are recorded as done, and planned.
    DoneAndPlanned {
        /// Their texts.
        steps: Vec<String>,
    },
    /// Work was begun, and nothing says how far it came: it may have taken effect. It is a question only where
    /// the agent did not stop in order. Going on with the step answers that question.
    StepInFlight {
        /// What was begun.
        steps: Vec<String>,
    },
    /// Effects outside of the checkpoint were begun, and nothing says whether they took place. Each is a question.
    EffectsInDoubt {
        /// Their ids.
        effects: Vec<String>,
    },
    /// The ledger of effects cannot be read.
    EffectsUnknown,
    /// Work is recorded as finished, and its newest proof does not show that.
    Proofs {
        /// The steps, criteria and gates whose proof failed.
        failed: Vec<String>,
        /// Those whose proof is of other files than those that are there.
        outdated: Vec<String>,
    },
    /// A person is to decide first. Each is a question.
    AwaitsApproval {
        /// The ids of what is to be approved.
        approvals: Vec<String>,
    },
    /// The task is complete but for these criteria.
    OpenCriteria {
        /// Their names.
        criteria: Vec<String>,
    },
    /// So little was done that beginning anew loses nothing.
    HardlyBegun,
    /// The checkpoint cannot be read.
    Corrupt,
    /// Nothing is left to do.
    Complete,
    /// The checkpoint says that it cannot be resumed.
    NotResumable,
    /// Another owner has claimed the task.
    Held {
        /// Who.
        owner: String,
        /// Until when, in RFC 3339.
        until: String,
    },
    /// It is to go on at a time that is still to come.
    NotBefore {
        /// That time, in RFC 3339.
        until: String,
    },
    /// Attempt after attempt ended without progress.
    Poisoned {
        /// How many in a row.
        attempts: usize,
        /// How they ended, oldest first, each error once.
        errors: Vec<String>,
    },
    /// A later version of the format wrote it.
    NewerSchema {
        /// That version, where it can be read.
        found: Option<u64>,
        /// The latest that is known here.
        known: u64,
    },
}

/// What to do with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResumeDecision {
    /// Go on.
    Continue,
    /// Go on after the files were compared with the checkpoint.
    Verify,
    /// Go on after the questions are answered.
    Ask,
    /// Do not go on yet: at a time that is named, or when a person has decided.
    Wait,
    /// Begin anew: what is there is not worth going on from.
    Restart,
    /// Do not go on.
    Refuse,
}

impl ResumeDecision {
    /// The decision in a word.
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

/// A worker that goes on where another cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NewWorker {
    /// What it is to be called.
    pub name: String,
    /// What its prompt says of the work that is done; empty without the feature `template`, which renders it.
    pub block: String,
    /// What the protocol's prompt for such a worker takes besides, by name.
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

    /// Has this in its prompt.
    #[must_use]
    pub fn with_block(mut self, block: impl Into<String>) -> Self {
        self.block = block.into();
        self
    }

    /// Adds what its prompt takes.
    #[must_use]
    pub fn with_input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inputs.insert(name.into(), value.into());
        self
    }
}

impl ResumePlan {
    /// The plan that follows from a hand-off alone: a complete task is refused, a blocker or a failure
    /// asks a question, all else goes on.
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
                plan.ask("The agent before failed and left no reason. Is it mended?");
            }
        }
        if handoff.status == Status::Complete {
            plan.refuse("The task is complete; there is nothing to resume");
            plan.because(ResumeReason::Complete);
        }
        plan
    }

    /// Adds a reason, unless it is among them.
    pub fn because(&mut self, reason: ResumeReason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Makes the decision at least as grave as this one.
    pub fn raise(&mut self, decision: ResumeDecision) {
        self.decision = self.decision.max(decision);
    }

    /// Warns the next agent, which then verifies before it goes on.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
        self.raise(ResumeDecision::Verify);
    }

    /// Notes what changes nothing of the decision.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Asks before the next agent goes on.
    pub fn ask(&mut self, question: impl Into<String>) {
        self.questions.push(question.into());
        self.raise(ResumeDecision::Ask);
    }

    /// Says to wait, and for what.
    pub fn wait(&mut self, message: impl Into<String>) {
        if self.decision <= ResumeDecision::Wait {
            self.raise(ResumeDecision::Wait);
            self.message = message.into();
        }
    }

    /// Advises to begin anew, and says why.
    pub fn restart(&mut self, message: impl Into<String>) {
        if self.decision <= ResumeDecision::Restart {
            self.raise(ResumeDecision::Restart);
            self.message = message.into();
        }
    }

    /// Refuses, and says why.
    pub fn refuse(&mut self, message: impl Into<String>) {
        self.raise(ResumeDecision::Refuse);
        self.message = message.into();
    }

    /// What could not be read counts: the next agent has to know of it, and is asked what may be in the way.
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
            "These could not be read, and count all the same; look them up in the checkpoint itself:\n{}",
            listed.join("\n")
        ));
        self.because(ResumeReason::Unreadable {
            items: unreadable.iter().map(|it| it.pointer.clone()).collect(),
        });
    }

    /// A complete task with pending work is reported: agents call their work complete too early.
    pub(crate) fn name_what_is_left(&mut self, handoff: &Handoff) {
        let left = handoff.count_left();
        let is_refused = self.decision == ResumeDecision::Refuse;
        if left > 0 && is_refused && self.reasons.contains(&ResumeReason::Complete) {
            let left = left_in_words(left, handoff);
            self.message = format!("{}; it is finished with {left}", self.message);
        }
    }

    /// A step that is both done and planned is decided first, and never begun. Ids are each of one piece of work, and
    /// that is done; a step in words may well be meant to come twice.
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
                "Recorded as done, and planned: {listed}. Is it to be done once more?"
            ));
        }
        self.because(ResumeReason::DoneAndPlanned { steps });
    }

    /// Work that was begun may have taken effect, as a payment that was made before the agent could say so.
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
            "Begun, and may have taken effect in part or whole: {}. Look at what it changes (files, data, what it \
             sends) before it is done again",
            some(&steps)
        );
        if handoff.was_left_in_order() {
            // Its agent had the time to note how far it came.
            self.warnings.push(format!("{sentence}."));
        } else {
            self.ask(format!("{sentence}: how far did it come?"));
        }
        self.because(ResumeReason::StepInFlight { steps });
    }
}

/// The most steps that a sentence lists.
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

/// How much work is left, with the names of what is listed: `3 steps left: a, b, c`.
pub(crate) fn left_in_words(left: u64, handoff: &Handoff) -> String {
    let steps = if left == 1 { "step" } else { "steps" };
    let names = handoff.open_names();
    if names.is_empty() {
        return format!("{left} {steps} left");
    }
    format!("{left} {steps} left: {}", some(&names))
}
