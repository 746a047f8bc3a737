//! The artifacts of workstreams: the files that each made.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::BuildCheckpoint;
use super::paths::{certain_path_in, is_pattern, path_in};
use crate::checkpoint::{Error, Result};

/// Members of an artifact whose list takes more files.
const LISTS: [&str; 2] = ["files", "outputs"];

impl BuildCheckpoint {
    /// The files that a workstream made, each once: the paths in its artifact, which may be a list, a text or an object
    /// such as `{"outputs": […]}`. Patterns such as `*.test.ts` are included; prose and deleted files are not.
    pub(super) fn files_of(&self, workstream: &str) -> impl Iterator<Item = &str> {
        let mut files = Vec::new();
        if let Some(artifact) = self.artifacts.get(workstream) {
            gather(artifact, path_in, &mut files);
        }
        let mut seen = HashSet::new();
        files.into_iter().filter(move |file| seen.insert(*file))
    }

    /// Why a workstream is dormant, if its artifact says so.
    pub(super) fn dormant_reason(&self, workstream: &str) -> Option<&str> {
        self.artifacts.get(workstream)?.get("reason")?.as_str()
    }
}

/// Gathers the paths in a part of an artifact; `path` extracts the path from a text.
fn gather<'v>(part: &'v Value, path: fn(&str) -> Option<&str>, files: &mut Vec<&'v str>) {
    match part {
        Value::String(text) => files.extend(path(text)),
        Value::Array(list) => list.iter().for_each(|item| gather(item, path, files)),
        Value::Object(members) if !speaks_of_nothing_made(members) => {
            // Sorted, so that the result does not depend on the order of the map.
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            for name in names {
                let value = &members[name];
                if says_deleted(name) || value.as_str().is_some_and(says_deleted) {
                    continue;
                }
                // `{"src/a.rs": "the router"}`.
                files.extend(certain_path_in(name));
                gather(value, certain_path_in, files);
            }
        }
        _ => {}
    }
}

/// Whether an object describes a dormant workstream or a deleted file.
fn speaks_of_nothing_made(members: &Map<String, Value>) -> bool {
    is_dormant(members)
        || ["action", "change", "status", "type"]
            .iter()
            .filter_map(|name| members.get(*name)?.as_str())
            .any(says_deleted)
}

fn is_dormant(members: &Map<String, Value>) -> bool {
    members
        .get("status")
        .is_some_and(|status| status == "dormant")
}

fn says_deleted(text: &str) -> bool {
    let words = text.to_ascii_lowercase();
    let mut words = words.split(|letter: char| !letter.is_ascii_alphanumeric());
    // A path may contain such a word.
    !text.contains(['/', '.']) && words.any(|word| matches!(word, "deleted" | "removed"))
}

/// The files that the build names: first those of the workstreams, then those of the fixes. Patterns such as
/// `*.test.ts` are left out.
pub(super) fn files(build: &BuildCheckpoint) -> Vec<&str> {
    let mut seen = HashSet::new();
    let made = build.artifacts.keys().flat_map(|id| build.files_of(id));
    let fixes = build.key_fixes.iter().chain(&build.eslint_fixes).flatten();
    made.chain(fixes.filter_map(|fix| path_in(fix.file.as_deref()?)))
        .filter(|file| !is_pattern(file) && seen.insert(*file))
        .collect()
}

/// The artifact of a workstream with these files added; `None` when all are there already.
///
/// Refused when the artifact has no list of files.
pub(super) fn with_files(
    build: &BuildCheckpoint,
    workstream: &str,
    files: &[String],
) -> Result<Option<Value>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut artifact = match build.artifacts.get(workstream) {
        None | Some(Value::Null) => json!([]),
        Some(text @ Value::String(_)) => json!([text]),
        Some(artifact) => artifact.clone(),
    };
    let Some(list) = list_in(&mut artifact) else {
        return Err(Error::refused(format!(
            "the artifact of {workstream} has no list of files; change it by hand"
        )));
    };
    let count = list.len();
    for file in files {
        if !list.iter().any(|known| known == file) {
            list.push(Value::from(file.as_str()));
        }
    }
    Ok((list.len() > count).then_some(artifact))
}

/// The list of files that an artifact is or contains.
fn list_in(artifact: &mut Value) -> Option<&mut Vec<Value>> {
    match artifact {
        Value::Array(list) => Some(list),
        Value::Object(members) => {
            let name = LISTS.into_iter().find(|name| members.contains_key(*name))?;
            members.get_mut(name)?.as_array_mut()
        }
        _ => None,
    }
}

/// The artifact of a dormant workstream.
pub(super) fn dormant(reason: &str) -> Value {
    json!({"status": "dormant", "reason": reason})
}

/// Removes the artifact that only marked the workstream as dormant.
pub(super) fn forget_dormant(build: &mut BuildCheckpoint, workstream: &str) {
    let artifact = build.artifacts.get(workstream).and_then(Value::as_object);
    if artifact.is_some_and(is_dormant) {
        build.artifacts.remove(workstream);
    }
}
