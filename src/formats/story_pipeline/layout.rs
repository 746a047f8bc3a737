//! The names of a pipeline's files.

use std::path::{Path, PathBuf};

use crate::checkpoint::{Error, ErrorKind, FileRole, Key, Layout, Result};

/// The folder of a pipeline's files, in the project's root.
pub(super) const FOLDER: &str = ".pipeline";
/// What the name of a story's checkpoint begins with.
pub(super) const PREFIX: &str = "checkpoint-";
/// The file of the pipeline's state.
pub(super) const STATE_FILE: &str = "state.json";
/// The key of the pipeline's state: there is one in a folder.
const STATE_KEY: &str = "state";
/// The longest name that every common file system takes, less room for the names of sidecars.
const MAX_NAME: usize = 230;

/// A path that no longer depends on the present folder.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::wrong_input(error.to_string()).with_path(path))
}

/// The root of the project in whose `.pipeline` a file lies.
pub(super) fn root_of(file: &Path) -> Option<&Path> {
    let folder = file.parent().filter(|folder| folder.ends_with(FOLDER));
    folder.and_then(Path::parent)
}

/// `checkpoint-{storyId}.json`. The protocol has no archives or backups of its own.
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

/// `state.json`, and nothing else.
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
