//! How another agent goes on from a checkpoint: the plan, and the prompt that carries it.

#[cfg(feature = "template")]
mod budget;
mod contract;
pub(crate) mod foreign;
mod options;
#[cfg(feature = "template")]
mod plain;
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
pub use contract::ContractReader;
pub use foreign::ForeignMember;
pub use options::ResumeOptions;
#[cfg(feature = "template")]
pub use prompts::{PromptOptions, Prompts, Rendered};

pub use crate::checkpoint::{NewWorker, ResumeDecision, ResumePlan, ResumeReason};

use crate::checkpoint::{Claim, DoneItem, Handoff, Key};
use crate::json::{Corrupt, Violation};
use crate::ledger::{LedgerState, Proofs};
use crate::staleness::Staleness;
use crate::store::{EntryId, TaskContext};

/// What was found with the checkpoint and beside it.
pub(crate) struct Found<'l> {
    pub(crate) format: &'static str,
    pub(crate) now: DateTime<Utc>,
    pub(crate) context: &'l TaskContext,
    pub(crate) violations: &'l [Violation],
    /// Whether parts of the checkpoint could not be read.
    pub(crate) is_partial: bool,
    pub(crate) handoff: Handoff,
    /// Whether the texts of its work are ids.
    pub(crate) work_has_ids: bool,
    pub(crate) own: Value,
    pub(crate) foreign: Vec<ForeignMember>,
    pub(crate) earlier: Vec<DoneItem>,
    pub(crate) staleness: Staleness,
    /// The claim of another owner that stands.
    pub(crate) held: Option<Claim>,
    /// The last claim, as far as it counts: its owner may be at work.
    pub(crate) at_work: Option<Claim>,
    /// What the ledger of the task says; why that is unknown where it is.
    pub(crate) ledger: Result<LedgerState, String>,
    /// What its proofs are worth; none where there are none.
    pub(crate) proofs: Proofs,
    pub(crate) newer: Option<plan::Newer>,
    pub(crate) damage: Option<Corrupt>,
    pub(crate) recover_with: Option<EntryId>,
}

pub(crate) use plan::{Newer, heed_waiting};

/// All that is known for going on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Resume {
    /// The format of the checkpoint.
    pub format: &'static str,
    /// What the task is called.
    pub task: String,
    /// The description of the task, if there is one.
    pub description: Option<String>,
    /// Whether and how to go on.
    pub plan: ResumePlan,
    /// Whether the files are as they were.
    pub staleness: Staleness,
    /// What the agent before left.
    pub handoff: Handoff,
    /// Finished work that was moved out of the checkpoint to keep within its limits, oldest first: the newest
    /// thousand of it. [`Handoff::done_elsewhere`] counts all.
    pub earlier: Vec<DoneItem>,
    /// What success looks like, where the contract that the checkpoint names could be read.
    pub criteria: Vec<String>,
    /// Members that the format does not declare, with what those say that are for the next agent.
    pub foreign: Vec<ForeignMember>,
    /// The file that the checkpoint is in, where [`ResumeOptions::with_file`] named it.
    pub file: Option<String>,
    /// How the next agent records its work: [`ResumeOptions::with_recording`].
    pub recording: Vec<String>,
    /// What the ledger of the task says: nothing where it cannot be read.
    pub ledger: LedgerState,
    /// What the proofs of finished work are worth by the files as they are; none where nothing was ever proven.
    pub proofs: Proofs,
    /// What is wrong with the checkpoint.
    pub violations: Vec<Violation>,
    /// What is wrong with the document, where it cannot be read at all.
    pub damage: Option<Corrupt>,
    /// The earlier state that stands in for a document that cannot be read: all else here is of that one, and
    /// [`CheckpointStoreExt::recover`](crate::CheckpointStoreExt::recover) brings it back.
    pub recover_with: Option<EntryId>,
    /// The time of the judgement.
    pub now: DateTime<Utc>,
    /// What templates of the format's own messages are made of.
    pub own: Value,
    /// Whether the texts of its work are ids, so that a prompt omits what stands as done as well.
    #[serde(skip)]
    work_has_ids: bool,
}

impl Resume {
    /// Completes a format's own plan with all that was found.
    pub(crate) fn new(
        key: &Key,
        mut plan: ResumePlan,
        found: Found<'_>,
        options: &ResumeOptions,
    ) -> Resume {
        let handoff = found.handoff;
        let criteria = contract::criteria(options.contract_reader.as_ref(), &handoff, &mut plan);
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
        let first = |choices: [&Option<String>; 3]| choices.into_iter().flatten().next().cloned();
        let task = first([&options.task, &found.context.task, &handoff.task]);
        Resume {
            format: found.format,
            task: task.unwrap_or_else(|| key.to_string()),
            description: first([
                &options.description,
                &found.context.description,
                &handoff.description,
            ]),
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

    /// Whether the agent can go on without anybody else: what is asked, if anything, is how far the step came that
    /// was begun, and whether effects took place that the ledger lets nobody repeat. The next agent finds out.
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

    /// How many finished steps the checkpoint no longer holds.
    #[cfg(feature = "template")]
    fn done_elsewhere(&self) -> usize {
        usize::try_from(self.handoff.done_elsewhere).unwrap_or(usize::MAX)
    }

    /// The agents that worked on the task, for a sentence: the earlier ones, else the checkpoint's agent.
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

    /// The prompt for the next agent, from the built-in template, without secrets.
    ///
    /// # Errors
    ///
    /// The code `template`, should the template not render.
    #[cfg(feature = "template")]
    pub fn prompt(&self) -> crate::Result<String> {
        let rendered = Prompts::default().render("resume", self, &PromptOptions::default())?;
        Ok(rendered.text)
    }
}
