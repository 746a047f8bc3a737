//! Converts between a story's checkpoint and the hand-off that all formats share.

use chrono::{DateTime, Utc};

use super::{Counters, NextStep, Number, StoryCheckpoint, Verdict};
use crate::checkpoint::{DoneItem, Handoff, OpenEnum, Status, Timestamp, VerificationItem};

const ONCE_ONLY: &str = "DO NOT re-execute completed work.";
const REMAINING_ONLY: &str = "Continue from remaining tasks only.";

/// The protocol has no status, so it is derived from stage and verdict.
pub(super) fn status(story: &StoryCheckpoint) -> Status {
    let nothing = story.completed().is_empty() && story.remaining().is_empty();
    match (story.stage_number(), &story.verdict) {
        (Some(1), Some(Verdict::NoGo)) | (Some(3), Some(Verdict::Fail)) => Status::Failed,
        (Some(3), _) if story.next_step(Counters::default()) == NextStep::Finish => {
            Status::Complete
        }
        (None, _) if nothing => Status::NotStarted,
        _ => Status::InProgress,
    }
}

pub(super) fn handoff(story: &StoryCheckpoint) -> Handoff {
    // Issues that a failed gate sent back to stage 2 are work to do there, not blockers.
    let mend = story.issues.as_ref().filter(|_| story.is_in_rework());
    let refusal = match story.verdict {
        _ if mend.is_some() => &None,
        Some(Verdict::NoGo) => &story.reason,
        Some(Verdict::Fail) => &story.issues,
        _ => &None,
    };
    let mut instructions = Vec::new();
    instructions.push(ONCE_ONLY.to_owned());
    instructions.extend(
        story
            .action()
            .map(|action| format!("Last action: {action}")),
    );
    instructions.extend(mend.map(|issues| format!("The quality gate failed; fix this: {issues}")));
    instructions.push(REMAINING_ONLY.to_owned());
    Handoff {
        task: story.story().map(str::to_owned),
        status: status(story),
        phase: story.stage_number().map(|stage| format!("STAGE_{stage}")),
        agent: story.agent_id.clone(),
        updated_at: story.written_at().cloned(),
        done: story.completed().iter().map(DoneItem::new).collect(),
        pending: story.remaining().to_vec(),
        blockers: refusal.iter().cloned().collect(),
        verification: verification(story),
        instructions,
        ..Handoff::default()
    }
}

fn verification(story: &StoryCheckpoint) -> Option<VerificationItem> {
    let number = |name: &str, number: Option<Number>| {
        number.map(|number| (name.to_owned(), number.to_string()))
    };
    let verdict = story.verdict.as_ref();
    let results: Vec<_> = [
        number("planScore", story.plan_score()),
        number("readiness", story.readiness),
        number("qualityScore", story.quality_score()),
        verdict.map(|verdict| ("verdict".to_owned(), verdict.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!results.is_empty()).then_some(VerificationItem {
        contract: None,
        results,
    })
}

/// Builds a checkpoint from a hand-off. Without a stage it is in stage 2, the only one that has finished and open
/// tasks. The texts of steps become ids of tasks.
pub(super) fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> StoryCheckpoint {
    let stage = handoff
        .phase
        .as_deref()
        .and_then(|phase| phase.strip_prefix("STAGE_")?.parse::<u8>().ok())
        .filter(|stage| *stage <= 3);
    let done: Vec<String> = handoff.done.iter().map(|item| item.text.clone()).collect();
    let begun = handoff.in_progress.iter().map(|item| &item.text);
    let mut remaining: Vec<String> = Vec::new();
    for text in begun.chain(&handoff.pending) {
        if !remaining.contains(text) && !done.contains(text) {
            remaining.push(text.clone());
        }
    }
    let action = done.last().map(String::as_str);
    let action = action.unwrap_or("Taken over from another checkpoint");
    let mut story = StoryCheckpoint {
        story_id: handoff.task.clone(),
        stage: Some(Number::from(stage.unwrap_or(2))),
        agent_id: handoff.agent.clone(),
        last_action: Some(action.to_owned()),
        tasks_completed: Some(done),
        tasks_remaining: Some(remaining),
        timestamp: Some(match &handoff.updated_at {
            Some(stamp) => stamp.clone(),
            None => Timestamp::like(None, now),
        }),
        ..StoryCheckpoint::default()
    };
    if let Some(shown) = &handoff.verification {
        for (activity, result) in &shown.results {
            take_result(&mut story, activity, result);
        }
    }
    let refusal = (!handoff.blockers.is_empty()).then(|| handoff.blockers.join("; "));
    match story.verdict {
        Some(Verdict::NoGo) => story.reason = refusal,
        Some(Verdict::Fail) => story.issues = refusal,
        _ => {}
    }
    story
}

fn take_result(story: &mut StoryCheckpoint, activity: &str, result: &str) {
    let number = result.parse::<f64>().ok().map(Number::from);
    match activity {
        "planScore" => story.plan_score = number,
        "readiness" => story.readiness = number,
        "qualityScore" => story.quality_score = number,
        "verdict" => {
            story.verdict = Some(Verdict::from(result)).filter(OpenEnum::is_known);
        }
        _ => {}
    }
}
