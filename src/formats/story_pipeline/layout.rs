//! The names of a pipeline's files, and how one is recognised.

use std::path::{Path, PathBuf};

use super::is_story_id;
use super::spelling::{CAMEL_ONLY, SNAKE_MARKS};
use crate::checkpoint::{Error, ErrorKind, Evidence, FileRole, Key, Layout, Result};
use crate::json::Document;

/// The folder of a pipeline's files, in the project's root.
pub(super) const FOLDER: &str = ".pipeline";
/// The prefix of a story's checkpoint file.
pub(super) const PREFIX: &str = "checkpoint-";
/// The file of the pipeline's state.
pub(super) const STATE_FILE: &str = "state.json";
/// The key of the pipeline's state. A folder has one.
const STATE_KEY: &str = "state";
/// The longest name that every common file system takes, less room for the suffixes of files beside it.
const MAX_NAME: usize = 230;

/// A path that does not depend on the current directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::wrong_input(error.to_string()).with_path(path))
}

/// The root of the project whose `.pipeline` holds a file.
pub(super) fn root_of(file: &Path) -> Option<&Path> {
    let folder = file.parent().filter(|folder| folder.ends_with(FOLDER));
    folder.and_then(Path::parent)
}

/// `checkpoint-{storyId}.json`. The protocol defines no archives or backups.
pub(super) fn story() -> Layout {
    Layout {
        file_name: story_file,
        role: |name| match name.strip_prefix(PREFIX) {
            Some(rest) => (Layout::default().role)(rest),
            None => FileRole::Foreign,
        },
        ..Layout::default()
    }
}

fn story_file(story: &Key) -> Result<String> {
    let name = format!("{PREFIX}{}", (Layout::default().file_name)(story)?);
    if name.len() > MAX_NAME {
        return Err(invalid(
            story,
            "it makes a file name of more than 230 bytes",
        ));
    }
    Ok(name)
}

fn invalid(key: &Key, reason: &'static str) -> Error {
    Error::new(ErrorKind::InvalidKey {
        text: key.to_string(),
        reason,
    })
}

/// `state.json`, and no other file.
pub(super) fn state() -> Layout {
    Layout {
        file_name: |key| match key.as_str() {
            STATE_KEY => Ok(STATE_FILE.to_owned()),
            _ => Err(invalid(
                key,
                "a pipeline has one state, under the key \"state\"",
            )),
        },
        role: |name| match (Layout::default().role)(name) {
            FileRole::Current(Some(key)) if key.as_str() == STATE_KEY => {
                FileRole::Current(Some(key))
            }
            FileRole::Archive if name.starts_with("state%") => FileRole::Archive,
            _ => FileRole::Foreign,
        },
        only_file: Some(STATE_FILE),
        ..Layout::default()
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn is_in_pipeline(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|folder| folder == FOLDER)
}

fn present<'n>(
    document: Option<&Document>,
    names: impl IntoIterator<Item = &'n str>,
) -> Vec<&'n str> {
    let has = |name: &&str| document.is_some_and(|document| document.root().get(name).is_some());
    names.into_iter().filter(has).collect()
}

/// Recognises a story's checkpoint: `checkpoint-…json` in `.pipeline`, or in any folder with a story's id in its name.
pub(super) fn recognise_story(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = name_of(path).filter(|name| {
        let stem = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(".json"));
        stem.is_some_and(|stem| is_in_pipeline(path) || is_story_id(stem))
    });
    let names = CAMEL_ONLY.iter().chain(SNAKE_MARKS);
    let members = present(document, names.copied());
    let is_usual = || document.is_none() || !present(document, ["stage", "verdict"]).is_empty();
    let name = name.filter(|_| !members.is_empty() || is_usual());
    // Other formats may have one of these members, so one alone is not enough.
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

/// Recognises the pipeline's state: `state.json` in `.pipeline`, or a file with its members.
pub(super) fn recognise_state(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = name_of(path).filter(|name| *name == STATE_FILE && is_in_pipeline(path));
    // Many tools have a file of this name, so it is evidence only with one of the variables.
    let name = name.filter(|_| document.is_none() || !present(document, variables()).is_empty());
    Evidence::gather(name, &present(document, STATE_MARKS.iter().copied()))
}

/// The variables of a pipeline's state that other formats may have, too.
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
