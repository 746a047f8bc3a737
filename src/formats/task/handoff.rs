//! A task checkpoint in the words all formats share.

use super::{Reason, ResultStatus, TaskCheckpoint};
use crate::checkpoint::{DecisionItem, DoneItem, Handoff, OpenItem, Status, VerificationItem};

/// The state that follows from the steps: the format has no status of its own.
pub(super) fn status(checkpoint: &TaskCheckpoint) -> Status {
    let work_is_left = checkpoint.current_step.is_some() || !checkpoint.pending_steps.is_empty();
    let unverified = checkpoint
        .verification
        .iter()
        .flat_map(|verification| &verification.results)
        .any(|result| {
            !matches!(
                result.status,
                Some(ResultStatus::Passed | ResultStatus::Skipped)
            )
        });
    if checkpoint.metadata.reason == Some(Reason::Failure) {
        Status::Failed
    } else if !checkpoint.blockers.is_empty() {
        Status::Blocked
    } else if checkpoint.completed_steps.is_empty() && checkpoint.current_step.is_none() {
        Status::NotStarted
    } else if work_is_left || unverified {
        Status::InProgress
    } else {
        Status::Complete
    }
}

pub(super) fn handoff(checkpoint: &TaskCheckpoint) -> Handoff {
    let mut handoff = Handoff::default();
    handoff.status = status(checkpoint);
    handoff.phase = checkpoint.phase.as_ref().map(ToString::to_string);
    handoff.agent.clone_from(&checkpoint.metadata.created_by);
    handoff
        .previous_agents
        .clone_from(&checkpoint.metadata.previous_agents);
    handoff
        .updated_at
        .clone_from(&checkpoint.metadata.last_updated_at);
    handoff.done = checkpoint
        .completed_steps
        .iter()
        .map(|step| {
            let mut item = DoneItem::new(step.step.clone().unwrap_or_default());
            item.files_created.clone_from(&step.files_created);
            item.files_modified.clone_from(&step.files_modified);
            item.at.clone_from(&step.timestamp);
            item
        })
        .collect();
    handoff.in_progress = checkpoint
        .current_step
        .iter()
        .map(|step| {
            let mut item = OpenItem::new(step.description.clone().unwrap_or_default());
            item.started_at.clone_from(&step.started_at);
            item.note.clone_from(&step.partial_work);
            item
        })
        .collect();
    handoff.pending.clone_from(&checkpoint.pending_steps);
    handoff.decisions = checkpoint
        .decisions
        .iter()
        .map(|decision| {
            let mut item = DecisionItem::new(decision.decision.clone().unwrap_or_default());
            item.rationale.clone_from(&decision.rationale);
            item.at.clone_from(&decision.timestamp);
            item
        })
        .collect();
    handoff.blockers.clone_from(&checkpoint.blockers);
    handoff.verification = checkpoint.verification.as_ref().map(|verification| {
        let mut item = VerificationItem::default();
        item.contract.clone_from(&verification.contract_ref);
        item.results = verification
            .results
            .iter()
            .map(|result| {
                let status = result.status.as_ref().map(ToString::to_string);
                (
                    result.activity.clone().unwrap_or_default(),
                    status.unwrap_or_default(),
                )
            })
            .collect();
        item
    });
    handoff.gather_files();
    handoff
}
