//! Converts between a task checkpoint and the hand-off that all formats share.

use chrono::{DateTime, Utc};

use super::{
    CompletedStep, CurrentStep, Decision, DroppedSteps, Metadata, Phase, Reason, ResultStatus,
    TaskCheckpoint, Verification, VerificationResult,
};
use crate::checkpoint::{
    DecisionItem, DoneItem, Handoff, OpenEnum, OpenItem, Status, Timestamp, VerificationItem,
};

/// The status, derived from the steps: the format has no status member.
pub(super) fn status(checkpoint: &TaskCheckpoint) -> Status {
    let work_is_left = checkpoint.current_step.is_some() || !checkpoint.pending_steps.is_empty();
    let passed = |result: &VerificationResult| {
        matches!(
            result.status,
            Some(ResultStatus::Passed | ResultStatus::Skipped)
        )
    };
    // A contract without results is not fulfilled.
    let unverified = checkpoint.verification.as_ref().is_some_and(|shown| {
        (shown.contract_ref.is_some() && shown.results.is_empty())
            || !shown.results.iter().all(passed)
    });
    // A plan that is still being made has no end to reach.
    let is_planning = checkpoint.phase == Some(Phase::Planning);
    if checkpoint.metadata.reason == Some(Reason::Failure) {
        Status::Failed
    } else if !checkpoint.blockers.is_empty() {
        Status::Blocked
    } else if checkpoint.completed_steps.is_empty()
        && checkpoint.current_step.is_none()
        && dropped_steps(checkpoint) == 0
    {
        Status::NotStarted
    } else if work_is_left || unverified || is_planning {
        Status::InProgress
    } else {
        Status::Complete
    }
}

/// The number of finished steps that are only in the dropped log.
fn dropped_steps(checkpoint: &TaskCheckpoint) -> u64 {
    let dropped = checkpoint.dropped.as_ref();
    dropped
        .and_then(|dropped| dropped.completed_steps)
        .unwrap_or(0)
}

pub(super) fn handoff(checkpoint: &TaskCheckpoint) -> Handoff {
    let mut handoff = Handoff {
        done: checkpoint.completed_steps.iter().map(done).collect(),
        done_elsewhere: dropped_steps(checkpoint),
        ..outline(checkpoint)
    };
    handoff.gather_files();
    handoff
}

/// The hand-off with only the newest finished step.
pub(super) fn outline(checkpoint: &TaskCheckpoint) -> Handoff {
    let metadata = &checkpoint.metadata;
    let older = checkpoint.completed_steps.len().saturating_sub(1);
    let older = u64::try_from(older).unwrap_or(u64::MAX);
    Handoff {
        status: status(checkpoint),
        phase: checkpoint.phase.as_ref().map(ToString::to_string),
        agent: metadata.created_by.clone(),
        previous_agents: metadata.previous_agents.clone(),
        updated_at: metadata.last_updated_at.clone(),
        reason: metadata.reason.as_ref().map(ToString::to_string),
        done: checkpoint
            .completed_steps
            .last()
            .map(done)
            .into_iter()
            .collect(),
        done_elsewhere: dropped_steps(checkpoint).saturating_add(older),
        elsewhere: checkpoint
            .dropped
            .as_ref()
            .and_then(|dropped| dropped.place.clone()),
        in_progress: checkpoint.current_step.iter().map(open).collect(),
        pending: checkpoint.pending_steps.clone(),
        decisions: checkpoint.decisions.iter().map(decision).collect(),
        blockers: checkpoint.blockers.clone(),
        verification: checkpoint.verification.as_ref().map(verification),
        stopped_in_order: match metadata.reason {
            Some(Reason::ContextLimit | Reason::RateLimit | Reason::Manual) => true,
            // If another agent has taken it over since, that agent is at work.
            Some(Reason::Reassignment) => {
                metadata.previous_agents.last() == metadata.created_by.as_ref()
            }
            _ => false,
        },
        ..Handoff::default()
    }
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

/// Builds a checkpoint from a hand-off. The format has no member for a task's name, description and instructions: those
/// belong to the key and to the caller that renders the prompt.
pub(super) fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> TaskCheckpoint {
    let phase = handoff.phase.as_deref().map(Phase::from);
    let phase = phase.filter(OpenEnum::is_known);
    let stamp = || Timestamp::like(handoff.updated_at.as_ref(), now);
    let completed = handoff.done.iter().map(|item| CompletedStep {
        step: Some(item.text.clone()),
        files_created: item.files_created.clone(),
        files_modified: item.files_modified.clone(),
        timestamp: Some(item.at.clone().unwrap_or_else(stamp)),
    });
    let current = handoff.in_progress.first().map(|item| CurrentStep {
        description: Some(item.text.clone()),
        started_at: Some(item.started_at.clone().unwrap_or_else(stamp)),
        partial_work: item.note.clone(),
    });
    // Only one step can be current; other begun steps become the first pending ones.
    let begun = handoff.in_progress.iter().map(|item| item.text.clone());
    let mut pending: Vec<String> = begun
        .filter(|step| !handoff.pending.contains(step))
        .collect();
    pending.extend(handoff.pending.iter().cloned());
    let decisions = handoff.decisions.iter().map(|made| Decision {
        decision: Some(made.text.clone()),
        rationale: made.rationale.clone(),
        timestamp: Some(made.at.clone().unwrap_or_else(stamp)),
    });
    let reason = match handoff.status {
        Status::Failed => Reason::Failure,
        Status::Paused => Reason::Manual,
        // There is no evidence that the agent stopped in order, so its begun step may have taken effect.
        _ if !handoff.in_progress.is_empty() && !handoff.stopped_in_order => Reason::Periodic,
        _ => Reason::Manual,
    };
    TaskCheckpoint {
        schema_version: None,
        phase: phase.or(Some(Phase::Implementation)),
        completed_steps: completed.collect(),
        pending_steps: pending,
        current_step: current,
        decisions: decisions.collect(),
        blockers: handoff.blockers.clone(),
        verification: handoff.verification.as_ref().map(|shown| Verification {
            contract_ref: shown.contract.clone(),
            results: shown.results.iter().map(from_result).collect(),
        }),
        dropped: (handoff.done_elsewhere > 0).then(|| DroppedSteps {
            completed_steps: Some(handoff.done_elsewhere),
            place: handoff.elsewhere.clone(),
        }),
        metadata: Metadata {
            created_by: handoff.agent.clone(),
            last_updated_at: Some(stamp()),
            reason: Some(reason),
            previous_agents: handoff.previous_agents.clone(),
        },
    }
}

fn from_result((activity, status): &(String, String)) -> VerificationResult {
    VerificationResult::new(activity.clone(), ResultStatus::from(status.as_str()))
}
