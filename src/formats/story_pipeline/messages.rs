//! The protocol's messages.

use serde_json::Value;

use super::StoryCheckpoint;
use crate::checkpoint::{ItemState, UnreadableItem};

/// The templates of the protocol's own messages, by name.
#[cfg(feature = "template")]
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    ("story-pipeline/block", include_str!("templates/block.md")),
    (
        "story-pipeline/take-over",
        include_str!("templates/take-over.md"),
    ),
];

/// The `CHECKPOINT RESUME` block in a new worker's prompt: what is done and what is left. It names unreadable items,
/// since an empty list would state that nothing is left.
#[cfg(feature = "template")]
pub(super) fn block(story: &StoryCheckpoint, unreadable: &[UnreadableItem]) -> String {
    let text = crate::template::message(
        TEMPLATES,
        "story-pipeline/block",
        &values(story, unreadable),
    );
    text.trim_end().to_owned()
}

/// The values that templates see as `own`.
pub(super) fn values(story: &StoryCheckpoint, unreadable: &[UnreadableItem]) -> Value {
    let stage = story.stage_number();
    let worker = story.story().zip(stage);
    let done = story.completed();
    let left = story.remaining().iter();
    let left = left.filter(|task| !done.contains(task)).cloned();
    let hidden = |finished: bool| {
        let items = unreadable.iter().filter(move |item| {
            item.state.is_work() && (item.state == ItemState::Finished) == finished
        });
        items.map(|item| format!("({}, which could not be read)", item.name()))
    };
    let completed: Vec<String> = done.iter().cloned().chain(hidden(true)).collect();
    let remaining: Vec<String> = left.chain(hidden(false)).collect();
    serde_json::json!({
        "completed": completed,
        "remaining": remaining,
        "last_action": story.action(),
        "stage": stage,
        "worker": worker.map(|(id, stage)| retry_name(id, stage)),
    })
}

/// The name of a story's worker in a stage, such as `story-SHOP-12-s2`.
pub(super) fn worker_name(story: &str, stage: u8) -> String {
    format!("story-{story}-s{stage}")
}

/// The name of the worker that takes a story over after a crash, such as `story-SHOP-12-s2-retry`.
pub(super) fn retry_name(story: &str, stage: u8) -> String {
    format!("{}-retry", worker_name(story, stage))
}

/// The name of the team of a pipeline that began on this day, such as `pipeline-2026-02-15`.
pub(super) fn pipeline_name(day: chrono::NaiveDate) -> String {
    format!("pipeline-{day}")
}
