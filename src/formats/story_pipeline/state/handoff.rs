//! Converts a pipeline's state to the hand-off that all formats share; its stories are its work.

use super::{InfraIssue, PipelineState, StoryState};
use crate::checkpoint::{DecisionItem, DoneItem, Handoff, OpenItem, ResumePlan, Status};

pub(super) fn status(state: &PipelineState) -> Status {
    let mut states = state.story_state.values();
    if state.complete == Some(true) {
        Status::Complete
    } else if states.clone().any(|state| state.stage().is_some()) {
        Status::InProgress
    } else if !state.story_state.is_empty() && states.all(|state| *state == StoryState::Paused) {
        Status::Paused
    } else if state.story_state.is_empty() && state.worker_map.is_empty() {
        Status::NotStarted
    } else {
        Status::InProgress
    }
}

pub(super) fn handoff(state: &PipelineState) -> Handoff {
    let mut handoff = Handoff {
        task: state.team_name.clone(),
        description: state
            .project_brief
            .as_ref()
            .and_then(|brief| brief.name.clone()),
        status: status(state),
        updated_at: state.last_check.clone(),
        // Each story in progress has a worker with its own checkpoint, so the lead itself left no step unfinished.
        stopped_in_order: true,
        ..Handoff::default()
    };
    for (story, at) in &state.story_state {
        match at {
            StoryState::Done => handoff.done.push(done(state, story)),
            StoryState::Paused => handoff.blockers.push(format!("{story} is PAUSED")),
            StoryState::Queued => handoff.pending.push(story.clone()),
            at => handoff.in_progress.push(in_progress(state, story, at)),
        }
    }
    // The queue gives the order; stories that only the table lists as queued follow.
    let table = std::mem::take(&mut handoff.pending);
    handoff.pending = state.priority_queue_ids.clone();
    handoff.pending.extend(
        table
            .into_iter()
            .filter(|story| !state.priority_queue_ids.contains(story)),
    );
    for (question, answer) in &state.business_answers {
        let mut item = DecisionItem::new(question);
        let text = answer.as_str().map(str::to_owned);
        item.rationale = Some(text.unwrap_or_else(|| answer.to_string()));
        handoff.decisions.push(item);
    }
    handoff.instructions = state.infra_issues.iter().map(trouble).collect();
    handoff
}

fn done(state: &PipelineState, story: &str) -> DoneItem {
    let mut item = DoneItem::new(story);
    let times = state.stage_timestamps.get(story);
    item.at = times.and_then(|times| times.stage_3_end.clone());
    item
}

fn in_progress(state: &PipelineState, story: &str, at: &StoryState) -> OpenItem {
    let mut item = OpenItem::new(story);
    let stage = at.stage();
    let times = state.stage_timestamps.get(story);
    item.started_at = times
        .zip(stage)
        .and_then(|(times, stage)| times.start(stage).cloned());
    item.note = Some(match state.worker_map.get(story) {
        Some(worker) => format!("{at}, worker {worker}"),
        None => at.to_string(),
    });
    item
}

fn trouble(issue: &InfraIssue) -> String {
    let phase = issue.phase.as_ref().map(|phase| match phase.as_str() {
        Some(text) => format!(" in {text}"),
        None => format!(" in phase {phase}"),
    });
    let kind = issue.kind.as_ref().map(|kind| format!(" ({kind})"));
    format!(
        "Infrastructure issue{}{}: {}",
        phase.unwrap_or_default(),
        kind.unwrap_or_default(),
        issue.message.as_deref().unwrap_or("no message"),
    )
}

/// A restarted lead continues with every story, and asks about paused ones.
pub(super) fn plan(state: &PipelineState) -> ResumePlan {
    let mut plan = ResumePlan::of(&handoff(state));
    if state.complete == Some(true) {
        plan.message = "The pipeline is complete; there is nothing to resume".to_owned();
    } else {
        "Resuming the pipeline from its state".clone_into(&mut plan.message);
    }
    plan
}
