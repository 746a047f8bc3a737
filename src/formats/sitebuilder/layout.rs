//! The protocol's file names, `{agent}-{task_id}.json` and `…-complete.json` for an archive, and how a sitebuilder's
//! checkpoint is recognised.

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::checkpoint::{Archive, Evidence, FileRole, Key, Layout, Result, is_unique_number};
use crate::json::{Document, Kind};

const ENDING: &str = ".json";
const COMPLETE: &str = "-complete";

pub(super) fn layout() -> Layout {
    Layout {
        file_name,
        role,
        key_in: Some(key_in),
        archive_stem,
        backups: None,
        only_file: None,
    }
}

/// The id of a run of a task that began at this time.
pub(super) fn checkpoint_id(agent: &str, task_id: &str, at: DateTime<Utc>) -> String {
    format!("{agent}-{task_id}-{}", at.format("%Y%m%d-%H%M%S"))
}

/// The file name of a key. If it would read like an archive, its last character is encoded.
fn file_name(key: &Key) -> Result<String> {
    let name = (Layout::default().file_name)(key)?;
    let Some(stem) = name.strip_suffix(ENDING).filter(|stem| is_complete(stem)) else {
        return Ok(name);
    };
    let (start, last) = stem.split_at(stem.len() - 1);
    Ok(format!("{start}%{:02X}{ENDING}", last.as_bytes()[0]))
}

fn role(name: &str) -> FileRole {
    let Some(stem) = name.strip_suffix(ENDING) else {
        return FileRole::Foreign;
    };
    if stem.is_empty() || stem.starts_with('.') {
        FileRole::Foreign
    } else if is_complete(stem) {
        FileRole::Archive
    } else if let FileRole::Archive = (Layout::default().role)(name) {
        FileRole::Archive
    } else {
        // Agent and task are joined by `-`, which both may contain, so only the content states which is which.
        FileRole::Current(None)
    }
}

/// Whether a stem names a completed checkpoint, with or without the store's counter.
fn is_complete(stem: &str) -> bool {
    stem_of_complete(stem).is_some()
}

/// The stem of the checkpoint that was archived under this stem.
fn stem_of_complete(stem: &str) -> Option<&str> {
    let (start, tail) = match stem.strip_suffix(COMPLETE) {
        Some(start) => (start, ""),
        None => stem.rsplit_once("-complete-")?,
    };
    let counted = tail.is_empty() || (!tail.contains('-') && is_unique_number(tail));
    (!start.is_empty() && counted).then_some(start)
}

fn key_in(document: &Document) -> Option<Key> {
    let text = |name: &str| {
        let node = document.root().get(name)?;
        // An id written as a number is read by its digits.
        let digits = || matches!(node.kind(), Kind::Number).then(|| node.raw().to_owned());
        node.as_str().map(|text| text.into_owned()).or_else(digits)
    };
    Key::new(format!("{}-{}", text("agent")?, text("task_id")?)).ok()
}

fn archive_stem(stem: &str, archive: Archive, now: DateTime<Utc>) -> String {
    match archive {
        Archive::Complete => format!("{stem}{COMPLETE}"),
        // The protocol archives only complete tasks, so other archives get the library's names.
        other => (Layout::default().archive_stem)(stem, other, now),
    }
}

/// Whether the file name fits the agent and task in the content.
fn is_named_after(name: &str, document: &Document) -> bool {
    let Some(key) = key_in(document) else {
        return false;
    };
    let stem = name.strip_suffix(ENDING).unwrap_or(name);
    let own = file_name(&key).unwrap_or_default();
    own == name
        || (stem_of_complete(stem).is_some() && own.strip_suffix(ENDING) == stem_of_complete(stem))
}

/// Members that no other format has.
const DISTINCTIVE: &[&str] = &[
    "checkpoint_id",
    "task_id",
    "task_title",
    "progress_percent",
    "subtasks",
    "acceptance_criteria_met",
    "review_scores",
    "resumable",
    "resume_instructions",
];

/// Members that identify the format only for a file in its usual folder.
const USUAL: &[&str] = &["agent", "status", "updated_at", "heartbeat"];

pub(super) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| {
        let mut all = DISTINCTIVE.iter().chain(USUAL);
        name.ends_with(".json")
            && !name.starts_with('.')
            && folder.ends_with("progress/checkpoints")
            && document
                .is_none_or(|document| all.any(|member| document.root().get(member).is_some()))
    });
    let named = match (folder, document) {
        (Some(_), _) => Some(format!("progress/checkpoints/{name}")),
        (None, Some(document)) if is_named_after(name, document) => Some(name.to_owned()),
        _ => None,
    };
    let members: Vec<_> = document.map_or_else(Vec::new, |document| {
        let root = document.root();
        let there = DISTINCTIVE.iter().filter(|name| root.get(name).is_some());
        there.copied().collect()
    });
    // Other formats may have one of these members, so one alone is not enough.
    if named.is_none() && members.len() < 2 {
        return None;
    }
    Evidence::gather(named.as_deref(), &members)
}
