//! What the workstreams made.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::BuildCheckpoint;
use crate::checkpoint::{Error, Result};

impl BuildCheckpoint {
    /// The files that a workstream made, where its artifact is a list.
    pub fn files_of(&self, workstream: &str) -> impl Iterator<Item = &str> {
        let list = self.artifacts.get(workstream).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Why a workstream is dormant, where its artifact says so.
    #[must_use]
    pub fn dormant_reason(&self, workstream: &str) -> Option<&str> {
        self.artifacts.get(workstream)?.get("reason")?.as_str()
    }
}

/// The files that the build names: those of the workstreams, then those of the fixes. A pattern such as
/// `*.test.ts` names none.
pub(super) fn files(build: &BuildCheckpoint) -> Vec<&str> {
    let mut seen = HashSet::new();
    let made = build.artifacts.keys().flat_map(|id| build.files_of(id));
    let fixes = build.key_fixes.iter().chain(&build.eslint_fixes).flatten();
    made.chain(fixes.filter_map(|fix| fix.file.as_deref()))
        .filter(|file| !file.contains('*') && seen.insert(*file))
        .collect()
}

/// The artifact of a workstream with these files besides; `None` when nothing is added.
///
/// Refused when the artifact is no list.
pub(super) fn with_files(
    build: &BuildCheckpoint,
    workstream: &str,
    files: &[String],
) -> Result<Option<Value>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut list = match build.artifacts.get(workstream) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        Some(_) => {
            return Err(Error::refused(format!(
                "the artifact of {workstream} is no list of files; change it by hand"
            )));
        }
    };
    let count = list.len();
    for file in files {
        if !list.iter().any(|known| known == file) {
            list.push(Value::from(file.as_str()));
        }
    }
    Ok((list.len() > count).then_some(Value::Array(list)))
}

/// The artifact of a dormant workstream.
pub(super) fn dormant(reason: &str) -> Value {
    json!({"status": "dormant", "reason": reason})
}
