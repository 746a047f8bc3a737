//! The rules of a story's checkpoint.

use super::spelling::{self, Name, Spelling, spelling_in};
use super::{Number, StoryCheckpoint, Verdict, inputs, no_story_id};
use crate::checkpoint::{Inspection, OpenEnum};
use crate::formats::steps::said;
use crate::json::{Code, pointer};
use crate::quoted;

impl StoryCheckpoint {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["stage"];
}

pub(super) fn inspect(story: &StoryCheckpoint, inspection: &mut Inspection<'_>) {
    let spelling = spelling_in(inspection);
    required(spelling, inspection);
    ids(story, spelling, inspection);
    ranges(story, inspection);
    inspection.known("/verdict", story.verdict.as_ref());
    lists(story, spelling, inspection);
    if let Some(stage) = story.stage_number() {
        of_stage(story, stage, spelling, inspection);
        state_of_pipeline(story, stage, inspection);
    }
}

fn required(spelling: Spelling, inspection: &mut Inspection<'_>) {
    inspection.require_all(StoryCheckpoint::REQUIRED);
    inspection.require(spelling::LAST_ACTION.of(spelling));
    match spelling {
        Spelling::CamelCase => {
            inspection.require("storyId");
            inspection.require("agentId");
            inspection.require("timestamp");
        }
        Spelling::SnakeCase => {
            if !inspection.is_present("started_at") {
                inspection.require("completed_at");
            }
        }
    }
}

fn ids(story: &StoryCheckpoint, spelling: Spelling, inspection: &mut Inspection<'_>) {
    for (name, id) in [
        (spelling::STORY_ID.camel, &story.story_id),
        (spelling::STORY_ID.snake, &story.snake_story_id),
    ] {
        if let Some(message) = id.as_deref().and_then(no_story_id) {
            inspection.report(&pointer::join("", name), Code::BAD_ID, message);
        }
    }
    let Some(id) = story.story() else { return };
    let at = at(
        spelling::STORY_ID,
        spelling,
        &story.story_id,
        &story.snake_story_id,
    );
    if let Some(key) = inspection.context().key
        && key.as_str() != id
    {
        let message = format!(
            "the checkpoint is of the story {id}, but it is stored under {key}",
            id = quoted(id)
        );
        inspection.report(&at, Code::KEY_MISMATCH, message);
    }
}

/// The pointer of the spelling that is read.
fn at<T>(name: Name, spelling: Spelling, camel: &Option<T>, snake: &Option<T>) -> String {
    pointer::join(
        "",
        name.read_from(spelling, camel.is_some(), snake.is_some()),
    )
}

/// Checks every value, including one that is hidden by the name of the other revision.
fn ranges(story: &StoryCheckpoint, inspection: &mut Inspection<'_>) {
    if let Some(stage) = story.stage
        && story.stage_number().is_none()
    {
        let message = format!("{stage} is none of the stages 0 to 3");
        inspection.report("/stage", Code::OUT_OF_RANGE, message);
    }
    let mut within = |member: &str, number: Option<Number>, least, most| {
        if let Some(message) = number.and_then(|number| number.outside(least, most)) {
            inspection.report(member, Code::OUT_OF_RANGE, message);
        }
    };
    within("/planScore", story.plan_score, 0, 4);
    within("/plan_score", story.snake_plan_score, 0, 4);
    within("/readiness", story.readiness, 1, 10);
    within("/qualityScore", story.quality_score, 0, 100);
    within("/quality_score", story.snake_quality_score, 0, 100);
    inspection.timestamp("/timestamp", story.timestamp.as_ref());
    inspection.timestamp("/started_at", story.started_at.as_ref());
    inspection.timestamp("/completed_at", story.completed_at.as_ref());
}

fn completed_at(story: &StoryCheckpoint, spelling: Spelling) -> String {
    let (camel, snake) = (&story.tasks_completed, &story.snake_tasks_completed);
    at(spelling::COMPLETED, spelling, camel, snake)
}

fn remaining_at(story: &StoryCheckpoint, spelling: Spelling) -> String {
    let (camel, snake) = (&story.tasks_remaining, &story.snake_tasks_remaining);
    at(spelling::REMAINING, spelling, camel, snake)
}

fn lists(story: &StoryCheckpoint, spelling: Spelling, inspection: &mut Inspection<'_>) {
    for (name, ids) in [
        (spelling::COMPLETED.camel, &story.tasks_completed),
        (spelling::COMPLETED.snake, &story.snake_tasks_completed),
        (spelling::REMAINING.camel, &story.tasks_remaining),
        (spelling::REMAINING.snake, &story.snake_tasks_remaining),
    ] {
        inspection.numbers(name);
        inspection.each_once(name, ids.iter().flatten().map(|id| Some(id.as_str())), "");
    }
    let done: std::collections::HashSet<&String> = story.completed().iter().collect();
    let list = remaining_at(story, spelling);
    for (index, id) in story.remaining().iter().enumerate() {
        if done.contains(id) {
            inspection.report(
                &format!("{list}/{index}"),
                Code::NOT_DISJOINT,
                format!("{id} is finished already", id = quoted(id)),
            );
        }
    }
}

fn of_stage(
    story: &StoryCheckpoint,
    stage: u8,
    spelling: Spelling,
    inspection: &mut Inspection<'_>,
) {
    let own = match stage {
        0 => spelling::PLAN_SCORE,
        1 => spelling::READINESS,
        2 => spelling::REMAINING,
        _ => spelling::QUALITY_SCORE,
    };
    require_either(own, spelling, inspection);
    if !Verdict::of_stage(stage).is_empty() {
        verdict(story, stage, inspection);
    }
    let mut empty = |list: String, ids: &[String], message: &str| {
        if !ids.is_empty() {
            inspection.report(&list, Code::STATUS_RULE, message);
        }
    };
    if stage <= 1 {
        let list = completed_at(story, spelling);
        let message = "no task is finished before stage 2";
        empty(list, story.completed(), message);
    }
    if stage == 1 || stage == 3 {
        let list = remaining_at(story, spelling);
        let message = format!("no task is left in stage {stage}");
        empty(list, story.remaining(), &message);
    }
}

fn verdict(story: &StoryCheckpoint, stage: u8, inspection: &mut Inspection<'_>) {
    inspection.require("verdict");
    let Some(verdict) = story.verdict.as_ref().filter(|verdict| verdict.is_known()) else {
        return;
    };
    if !Verdict::of_stage(stage).contains(verdict) {
        let names = Verdict::listed(stage);
        let message = format!("{verdict} is not a verdict of stage {stage}: {names}");
        return inspection.report("/verdict", Code::UNKNOWN_VALUE, message);
    }
    let (member, text) = match stage {
        1 => ("reason", &story.reason),
        _ => ("issues", &story.issues),
    };
    let refuses = matches!(verdict, Verdict::NoGo | Verdict::Fail);
    let is_said = said(text.as_deref()).is_some();
    let message = if refuses && inspection.require(member) && text.is_some() && !is_said {
        format!("the verdict needs its {member}, but this one is empty")
    } else if !refuses && is_said {
        // Reason or issues contradict a verdict that does not refuse.
        format!("{member} belongs to a verdict that refuses, and this verdict does not refuse")
    } else {
        return;
    };
    inspection.report(&pointer::join("", member), Code::STATUS_RULE, message);
}

/// Requires a field of a stage, under the name of either revision.
fn require_either(name: Name, spelling: Spelling, inspection: &mut Inspection<'_>) {
    if !inspection.is_present(name.camel) && !inspection.is_present(name.snake) {
        inspection.require(name.of(spelling));
    }
}

/// The story's state in the pipeline must fit the checkpoint's stage.
fn state_of_pipeline(story: &StoryCheckpoint, stage: u8, inspection: &mut Inspection<'_>) {
    let Some(state) = inputs::state(story, inspection.context()) else {
        return;
    };
    if !state.fits(stage) {
        let message = format!("the stage is {stage}, but the pipeline has the story as {state}");
        inspection.report("/stage", Code::STATUS_RULE, message);
    }
}
