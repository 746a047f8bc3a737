//! Resuming: the plan by which another agent resumes from a checkpoint, and the prompt for that agent.

#[cfg(feature = "template")]
mod budget;
pub(crate) mod foreign;
mod options;
mod plan;
#[cfg(feature = "template")]
mod prompts;
#[cfg(feature = "template")]
mod view;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "template")]
pub use budget::Budget;
pub use foreign::ForeignMember;
pub use options::{ContractReader, ResumeOptions};
#[cfg(feature = "template")]
pub use prompts::{PromptOptions, Prompts, Rendered};

pub use crate::checkpoint::{NewWorker, ResumeDecision, ResumePlan, ResumeReason};

use crate::checkpoint::{Claim, DoneItem, Handoff, Key};
use crate::json::{Corrupt, Violation};
use crate::ledger::{LedgerState, Proofs};
use crate::staleness::Staleness;
use crate::store::{EntryId, TaskContext};

/// What was found in the checkpoint and beside it.
pub(crate) struct Found<'l> {
    pub(crate) format: &'static str,
    pub(crate) now: DateTime<Utc>,
    pub(crate) context: &'l TaskContext,
    pub(crate) violations: &'l [Violation],
    /// Whether parts of the checkpoint could not be read.
    pub(crate) is_partial: bool,
    pub(crate) handoff: Handoff,
    /// Whether its steps are named by ids.
    pub(crate) work_has_ids: bool,
    pub(crate) own: Value,
    pub(crate) foreign: Vec<ForeignMember>,
    pub(crate) earlier: Vec<DoneItem>,
    pub(crate) staleness: Staleness,
    /// A claim of another owner that is in force.
    pub(crate) held: Option<Claim>,
    /// The last claim, if its owner may still be at work.
    pub(crate) at_work: Option<Claim>,
    /// The state of the task's ledger, or why it cannot be read.
    pub(crate) ledger: Result<LedgerState, String>,
    /// The status of its proofs; empty if there are none.
    pub(crate) proofs: Proofs,
    pub(crate) newer: Option<plan::Newer>,
    pub(crate) damage: Option<Corrupt>,
    pub(crate) recover_with: Option<EntryId>,
}

pub(crate) use plan::{Newer, heed_waiting};

/// Everything needed to resume from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Resume {
    /// The name of the task.
    pub format: &'static str,
    /// What the task is called.
    pub task: String,
    /// The description of the task, if there is one.
    pub description: Option<String>,
    /// Whether and how to resume.
    pub plan: ResumePlan,
    /// Whether the files changed.
    pub staleness: Staleness,
    /// The hand-off of the previous agent.
    pub handoff: Handoff,
    /// Finished work that was moved out of the checkpoint to keep it within its limits, oldest first: the newest
    /// thousand items. [`Handoff::done_elsewhere`] counts all.
    pub earlier: Vec<DoneItem>,
    /// What success looks like, if the contract that the checkpoint names could be read.
    pub criteria: Vec<String>,
    /// Members that the format does not declare, with the notes among them for the next agent.
    pub foreign: Vec<ForeignMember>,
    /// The file of the checkpoint, if [`ResumeOptions::with_file`] named it.
    pub file: Option<String>,
    /// How the next agent records its work; see [`ResumeOptions::with_recording`].
    pub recording: Vec<String>,
    /// The state of the task's ledger; empty if it cannot be read.
    pub ledger: LedgerState,
    /// The status of the proofs of finished work, judged by the present files; empty if nothing was ever proven.
    pub proofs: Proofs,
    /// The violations of the checkpoint.
    pub violations: Vec<Violation>,
    /// What is wrong with the document, if it cannot be read at all.
    pub damage: Option<Corrupt>,
    /// The earlier state that replaces a document that cannot be read. Everything else here describes that state, and
    /// [`CheckpointStoreExt::recover`](crate::CheckpointStoreExt::recover) restores it.
    pub recover_with: Option<EntryId>,
    /// The time for which this was judged.
    pub now: DateTime<Utc>,
    /// The values for templates of the format's own messages.
    pub own: Value,
    /// Whether its steps are named by ids, so that a prompt omits pending ones that are also listed as done.
    #[serde(skip)]
    work_has_ids: bool,
}

impl Resume {
    /// Completes the plan of the format with everything that was found.
    pub(crate) fn new(
        key: &Key,
        mut plan: ResumePlan,
        found: Found<'_>,
        options: &ResumeOptions,
    ) -> Resume {
        let handoff = found.handoff;
        let criteria = options::criteria(options.contract_reader.as_ref(), &handoff, &mut plan);
        plan::complete(
            &mut plan,
            &found.staleness,
            found.violations,
            &handoff.unreadable,
            found.is_partial,
        );
        if let Some(damage) = &found.damage {
            plan::heed_damage(&mut plan, damage, found.recover_with.as_ref());
        }
        plan::heed_ledger(&mut plan, &found.ledger);
        plan::heed_proofs(&mut plan, &found.proofs);
        if let Ok(ledger) = &found.ledger {
            plan::heed_waiting(&mut plan, ledger, &handoff, found.now);
            let failed = ledger.failed_attempts(&handoff, found.at_work.as_ref(), found.now);
            plan::heed_attempts(&mut plan, failed, options.most_attempts());
        }
        plan::heed_holder(&mut plan, found.held.as_ref());
        plan::heed_version(&mut plan, found.newer);
        if plan.decision >= ResumeDecision::Restart {
            (plan.resume_agent, plan.new_worker) = (None, None);
        }
        let context = &found.context;
        let task = context.task.as_ref().or(handoff.task.as_ref());
        let own = options.description.as_ref();
        let description = own.or(context.description.as_ref());
        Resume {
            format: found.format,
            task: task.map_or_else(|| key.to_string(), Clone::clone),
            description: description.or(handoff.description.as_ref()).cloned(),
            plan,
            staleness: found.staleness,
            handoff,
            earlier: found.earlier,
            criteria,
            foreign: found.foreign,
            file: options.file.clone(),
            recording: options.recording.clone(),
            ledger: found.ledger.unwrap_or_default(),
            proofs: found.proofs,
            violations: found.violations.to_vec(),
            damage: found.damage,
            recover_with: found.recover_with,
            now: found.now,
            own: found.own,
            work_has_ids: found.work_has_ids,
        }
    }

    /// Whether the agent can continue without a person. The only questions may be how far the begun step came, and
    /// whether effects took place that the ledger does not allow to repeat; the next agent can answer both.
    pub(crate) fn is_for_the_agent_alone(&self) -> bool {
        let plan = &self.plan;
        let questions = |reason: &ResumeReason| match reason {
            ResumeReason::StepInFlight { .. } => usize::from(!self.handoff.was_left_in_order()),
            ResumeReason::EffectsInDoubt { effects } => effects.len(),
            _ => 0,
        };
        match plan.decision {
            ResumeDecision::Continue | ResumeDecision::Verify => true,
            ResumeDecision::Ask => {
                plan.questions.len() == plan.reasons.iter().map(questions).sum::<usize>()
            }
            ResumeDecision::Wait | ResumeDecision::Restart | ResumeDecision::Refuse => false,
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_complete(&self) -> bool {
        self.plan.decision == ResumeDecision::Refuse
            && self.plan.reasons.contains(&ResumeReason::Complete)
    }

    /// The number of finished steps that were moved out of the checkpoint.
    #[cfg(feature = "template")]
    fn done_elsewhere(&self) -> usize {
        usize::try_from(self.handoff.done_elsewhere).unwrap_or(usize::MAX)
    }

    /// The agents that worked on the task, for a sentence: the previous ones, else the checkpoint's agent.
    #[must_use]
    pub fn worked_on_by(&self) -> String {
        let previous = &self.handoff.previous_agents;
        if previous.is_empty() {
            let maker = self.handoff.agent.clone();
            maker.unwrap_or_else(|| "another agent".to_owned())
        } else {
            previous.join(", ")
        }
    }

    /// Renders the prompt for the next agent from the built-in template, with secrets redacted.
    ///
    /// # Errors
    ///
    /// The code `template` if the template cannot be rendered.
    #[cfg(feature = "template")]
    pub fn prompt(&self) -> crate::Result<String> {
        let rendered = Prompts::default().render("resume", self, &PromptOptions::default())?;
        Ok(rendered.text)
    }
}
