//! A task checkpoint in the words all formats share.

use super::{
    CompletedStep, CurrentStep, Decision, Reason, ResultStatus, TaskCheckpoint, Verification,
    VerificationResult,
};
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
    let metadata = &checkpoint.metadata;
    let mut handoff = Handoff {
        status: status(checkpoint),
        phase: checkpoint.phase.as_ref().map(ToString::to_string),
        agent: metadata.created_by.clone(),
        previous_agents: metadata.previous_agents.clone(),
        updated_at: metadata.last_updated_at.clone(),
        done: checkpoint.completed_steps.iter().map(done).collect(),
        in_progress: checkpoint.current_step.iter().map(open).collect(),
        pending: checkpoint.pending_steps.clone(),
        decisions: checkpoint.decisions.iter().map(decision).collect(),
        blockers: checkpoint.blockers.clone(),
        verification: checkpoint.verification.as_ref().map(verification),
        ..Handoff::default()
    };
    handoff.gather_files();
    handoff
}

fn done(step: &CompletedStep) -> DoneItem {
    DoneItem {
        text: step.step.clone().unwrap_or_default(),
        files_created: step.files_created.clone(),
        files_modified: step.files_modified.clone(),
        at: step.timestamp.clone(),
    }
}

fn open(step: &CurrentStep) -> OpenItem {
    OpenItem {
        text: step.description.clone().unwrap_or_default(),
        started_at: step.started_at.clone(),
        note: step.partial_work.clone(),
    }
}

fn decision(decision: &Decision) -> DecisionItem {
    DecisionItem {
        text: decision.decision.clone().unwrap_or_default(),
        rationale: decision.rationale.clone(),
        at: decision.timestamp.clone(),
    }
}

fn verification(verification: &Verification) -> VerificationItem {
    let result = |result: &VerificationResult| {
        let status = result.status.as_ref().map(ToString::to_string);
        (
            result.activity.clone().unwrap_or_default(),
            status.unwrap_or_default(),
        )
    };
    VerificationItem {
        contract: verification.contract_ref.clone(),
        results: verification.results.iter().map(result).collect(),
    }
}
