//! The evidence that a file is one of a pipeline.

use std::path::Path;

use super::spelling::{CAMEL_ONLY, SNAKE_MARKS};
use super::{is_story_id, layout};
use crate::checkpoint::Evidence;
use crate::json::Document;

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn is_in_pipeline(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|folder| folder == layout::FOLDER)
}

fn present<'n>(
    document: Option<&Document>,
    names: impl IntoIterator<Item = &'n str>,
) -> Vec<&'n str> {
    let has = |name: &&str| document.is_some_and(|document| document.root().get(name).is_some());
    names.into_iter().filter(has).collect()
}

/// A story's checkpoint: `checkpoint-…json` in `.pipeline`, or anywhere with a story's id.
pub(super) fn story(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = name_of(path).filter(|name| {
        let stem = name
            .strip_prefix(layout::PREFIX)
            .and_then(|rest| rest.strip_suffix(".json"));
        stem.is_some_and(|stem| is_in_pipeline(path) || is_story_id(stem))
    });
    let names = CAMEL_ONLY.iter().chain(SNAKE_MARKS);
    let members = present(document, names.copied());
    let is_usual = document.is_none() || !present(document, ["stage", "verdict"]).is_empty();
    let name = name.filter(|_| is_usual || !members.is_empty());
    // One member alone could be anybody's.
    let members = if members.len() >= 2 || name.is_some() {
        members
    } else {
        Vec::new()
    };
    Evidence::gather(name, &members)
}

/// The members that only the pipeline's state has.
const STATE_MARKS: &[&str] = &[
    "stories_remaining",
    "active_workers",
    "story_state",
    "worker_map",
    "quality_cycles",
    "validation_retries",
    "crash_count",
    "priority_queue_ids",
    "story_results",
    "infra_issues",
    "worktree_map",
    "stage_timestamps",
    "readiness_scores",
    "pipeline_start_time",
    "story_briefs",
    "business_answers",
    "skill_repo_path",
];

/// The pipeline's state: `state.json` in `.pipeline`, or what is in it.
pub(super) fn state(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = name_of(path).filter(|name| *name == layout::STATE_FILE && is_in_pipeline(path));
    // The name of so many pipelines is no evidence without one of the variables.
    let name = name.filter(|_| document.is_none() || !present(document, variables()).is_empty());
    Evidence::gather(name, &present(document, STATE_MARKS.iter().copied()))
}

/// The variables of a pipeline's state that others may have, too.
const OTHER_VARIABLES: &[&str] = &[
    "complete",
    "last_check",
    "depends_on",
    "status_cache",
    "git_stats",
    "team_name",
    "storage_mode",
    "project_brief",
];

/// All variables of a pipeline's state.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    STATE_MARKS.iter().chain(OTHER_VARIABLES).copied()
}
