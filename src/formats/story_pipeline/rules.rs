//! The rules of a story's checkpoint.

use super::spelling::{self, Name, Spelling, spelling_in};
use super::{Number, StoryCheckpoint, Verdict, inputs, is_said, is_story_id};
use crate::checkpoint::{Inspection, OpenEnum};
use crate::json::{Code, pointer};
use crate::quoted;

impl StoryCheckpoint {
    /// Members that must be there.
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
        if let Some(id) = id.as_deref().filter(|id| !is_story_id(id)) {
            let message = format!("{id} is no story id, such as PROJ-42", id = quoted(id));
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
            "the story is {id}, the checkpoint is kept under {key}",
            id = quoted(id)
        );
        inspection.report(&at, Code::KEY_MISMATCH, message);
    }
}

/// The pointer at which one of two spellings is read.
fn at<T>(name: Name, spelling: Spelling, camel: &Option<T>, snake: &Option<T>) -> String {
    pointer::join(
        "",
        name.read_from(spelling, camel.is_some(), snake.is_some()),
    )
}

/// Every value is judged, also one that the other revision's name hides.
fn ranges(story: &StoryCheckpoint, inspection: &mut Inspection<'_>) {
    if let Some(stage) = story.stage
        && story.stage_number().is_none()
    {
        let message = format!("{stage} is none of the stages 0 to 3");
        inspection.report("/stage", Code::OUT_OF_RANGE, message);
    }
    let mut within = |member: &str, number: Option<Number>, least, most| {
        if let Some(number) = number.filter(|number| !number.is_within(least, most)) {
            let message = format!("{number} is not within {least} to {most}");
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
    if stage == 0 {
        require_either(spelling::PLAN_SCORE, spelling, inspection);
    }
    if stage == 1 {
        inspection.require("readiness");
    }
    if stage == 2 {
        require_either(spelling::REMAINING, spelling, inspection);
    }
    if stage == 3 {
        require_either(spelling::QUALITY_SCORE, spelling, inspection);
    }
    let verdicts = Verdict::of_stage(stage);
    if !verdicts.is_empty() {
        inspection.require("verdict");
        if let Some(verdict) = story.verdict.as_ref()
            && verdict.is_known()
            && !verdicts.contains(verdict)
        {
            let names = Verdict::listed(stage);
            let message = format!("{verdict} is no verdict of stage {stage}: {names}");
            inspection.report("/verdict", Code::UNKNOWN_VALUE, message);
        }
        match (stage, &story.verdict) {
            (1, Some(Verdict::NoGo)) => refusal("reason", &story.reason, inspection),
            (3, Some(Verdict::Fail)) => refusal("issues", &story.issues, inspection),
            (1, Some(Verdict::Go)) => no_refusal("reason", &story.reason, inspection),
            (3, Some(Verdict::Pass | Verdict::Concerns | Verdict::Waived)) => {
                no_refusal("issues", &story.issues, inspection);
            }
            _ => {}
        }
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

/// A verdict that refuses has the text that says why, and the text says something.
fn refusal(member: &str, text: &Option<String>, inspection: &mut Inspection<'_>) {
    inspection.require(member);
    if text.is_some() && !is_said(text.as_deref()) {
        let message = format!("the verdict needs its {member}, and this says nothing");
        inspection.report(&pointer::join("", member), Code::STATUS_RULE, message);
    }
}

/// Why a verdict refuses stands only beside one that does: with another, one of both is not true.
fn no_refusal(member: &str, text: &Option<String>, inspection: &mut Inspection<'_>) {
    if is_said(text.as_deref()) {
        let message = format!("{member} is for a verdict that refuses, and this one does not");
        inspection.report(&pointer::join("", member), Code::STATUS_RULE, message);
    }
}

/// A field that a stage must have, under the name of the file's revision or the other's.
fn require_either(name: Name, spelling: Spelling, inspection: &mut Inspection<'_>) {
    if !inspection.is_present(name.camel) && !inspection.is_present(name.snake) {
        inspection.require(name.of(spelling));
    }
}

/// On recovery the pipeline's state of the story must fit the checkpoint's stage.
fn state_of_pipeline(story: &StoryCheckpoint, stage: u8, inspection: &mut Inspection<'_>) {
    let Some(state) = inputs::state(story, inspection.context()) else {
        return;
    };
    if !state.fits(stage) {
        let message = format!("stage {stage}, while the pipeline has the story as {state}");
        inspection.report("/stage", Code::STATUS_RULE, message);
    }
}
