//! The evidence that a file is the checkpoint of a build.

use std::path::Path;

use super::is_build_id;
use crate::checkpoint::Evidence;
use crate::json::Document;

/// Members that no other format has.
const MEMBERS: &[&str] = &[
    "prd",
    "completed_workstreams",
    "in_progress_workstreams",
    "pending_workstreams",
    "dormant_workstreams",
    "skipped_workstreams",
    "gates_passed",
    "gates_pending",
    "adversarial_review",
    "gate_a_fidelity",
    "gate_b_classification",
    "gate_b_presence",
    "render_proof_waiver",
];

/// Members that tell the format only of a file in its place.
const USUAL: &[&str] = &[
    "status",
    "timestamp",
    "created_at",
    "updated_at",
    "current_phase",
    "artifacts",
];

pub(super) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let members: Vec<&str> = document.map_or_else(Vec::new, |document| {
        let root = document.root();
        let there = |member: &&str| root.get(member).is_some();
        MEMBERS.iter().copied().filter(there).collect()
    });
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".json");
    // A project may name other files by the same ids: alone, a name is evidence only for a file that cannot be read.
    let named = stem.is_some_and(is_build_id) && (document.is_none() || !members.is_empty());
    let is_usual = document.is_none_or(|document| {
        let mut all = MEMBERS.iter().chain(USUAL);
        all.any(|member| document.root().get(member).is_some())
    });
    let place = if stem.is_some() && is_in_folder(path) && is_usual {
        Some("build-pipeline/checkpoints")
    } else {
        named.then_some(name)
    };
    Evidence::gather(place, &members)
}

fn is_in_folder(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with("build-pipeline/checkpoints"))
}
