//! The evidence that a file is a sitebuilder's checkpoint.

use std::path::Path;

use super::layout::is_named_after;
use crate::checkpoint::Evidence;
use crate::json::Document;

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

/// Members that tell the format only of a file in its place.
const USUAL: &[&str] = &["agent", "status", "updated_at", "heartbeat"];

pub(super) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| {
        let mut all = DISTINCTIVE.iter().chain(USUAL);
        name.ends_with(".json")
            && !name.starts_with('.')
            && document
                .is_none_or(|document| all.any(|member| document.root().get(member).is_some()))
            && folder.ends_with("progress/checkpoints")
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
    // One member alone could be anybody's.
    if named.is_none() && members.len() < 2 {
        return None;
    }
    Evidence::gather(named.as_deref(), &members)
}
