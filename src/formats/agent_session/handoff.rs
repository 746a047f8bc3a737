//! Converts between an agent's checkpoint and the hand-off that all formats share.

use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, AgentStatus, AgentType};
use crate::checkpoint::{Checkpoint, DoneItem, Handoff, OpenItem, Status};

pub(super) fn status(agent: &AgentCheckpoint) -> Status {
    let Some(status) = &agent.status else {
        let begun = agent.current_step.is_some() || !agent.completed_steps.is_empty();
        return if begun {
            Status::InProgress
        } else {
            Status::NotStarted
        };
    };
    match status.meaning() {
        Some(AgentStatus::InProgress) => Status::InProgress,
        Some(AgentStatus::Waiting) => Status::Paused,
        Some(AgentStatus::Blocked) => Status::Blocked,
        Some(AgentStatus::Complete) => Status::Complete,
        _ => Status::Other(status.as_str().to_owned()),
    }
}

pub(super) fn handoff(agent: &AgentCheckpoint) -> Handoff {
    let phase = match (agent.named_stage(), agent.named_phase()) {
        (Some(stage), Some(phase)) => Some(format!("{stage}: {phase}")),
        (stage, phase) => stage.or(phase).map(str::to_owned),
    };
    let instructions = agent.recovery_instructions.iter();
    Handoff {
        task: agent.feature.clone(),
        status: status(agent),
        phase,
        agent: agent.agent_id.clone(),
        previous_agents: agent.previous_agent.iter().cloned().collect(),
        updated_at: agent.last_checkpoint.clone(),
        done: agent.completed_steps.iter().map(DoneItem::new).collect(),
        in_progress: agent.current_step.iter().map(OpenItem::new).collect(),
        pending: agent.next_steps.clone(),
        blockers: agent.blockers.clone(),
        files: agent.files().into_iter().map(str::to_owned).collect(),
        instructions: instructions.chain(&agent.recovery_notes).cloned().collect(),
        ..Handoff::default()
    }
}

/// Builds a checkpoint from a hand-off. The format has no member for a description, decisions and verification, and it
/// keeps one previous agent.
pub(super) fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> AgentCheckpoint {
    let mut open = handoff.in_progress.iter().map(|item| item.text.clone());
    let current_step = open.next();
    // Only one step can be current; other begun steps become the first next steps.
    let mut next_steps: Vec<String> = open
        .filter(|text| !handoff.pending.contains(text))
        .collect();
    next_steps.extend(handoff.pending.iter().cloned());
    let mut instructions = handoff.instructions.iter().cloned();
    let mut agent = AgentCheckpoint {
        agent_id: handoff.agent.clone(),
        agent_type: handoff.agent.as_deref().map(AgentType::of),
        feature: handoff.task.clone(),
        phase: handoff.phase.clone(),
        last_checkpoint: handoff.updated_at.clone(),
        status: Some(from_status(handoff)),
        can_resume: Some(handoff.status != Status::Complete),
        blockers: handoff.blockers.clone(),
        files_modified: handoff.files.clone(),
        recovery_instructions: instructions.next(),
        current_step,
        completed_steps: handoff.done.iter().map(|item| item.text.clone()).collect(),
        next_steps,
        previous_agent: handoff.previous_agents.last().cloned(),
        recovery_notes: instructions.next(),
        ..AgentCheckpoint::default()
    };
    agent.stamp(now);
    agent
}

/// A blocked checkpoint must name a blocker, so without one the status is `WAITING`.
fn from_status(handoff: &Handoff) -> AgentStatus {
    match &handoff.status {
        Status::Complete => AgentStatus::Complete,
        Status::Blocked | Status::Failed if handoff.blockers.is_empty() => AgentStatus::Waiting,
        Status::Blocked | Status::Failed => AgentStatus::Blocked,
        Status::Paused => AgentStatus::Waiting,
        Status::Other(text) => {
            let status = AgentStatus::from(text.as_str()).meaning();
            status.unwrap_or(AgentStatus::InProgress)
        }
        Status::NotStarted | Status::InProgress => AgentStatus::InProgress,
    }
}
