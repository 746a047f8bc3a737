//! Where the checkpoints of builds lie, how they are named, and how one is recognised.

use std::path::Path;

use crate::checkpoint::{Evidence, Key, Layout};
use crate::json::Document;

/// The folder in which a project keeps the checkpoints of its builds: one file for each document, `{id}.json`.
pub const FOLDER: &str = ".claude/skills/build-pipeline/checkpoints";

#[cfg(feature = "schema")]
pub(super) const ID_PATTERN: &str = "^(PRD-[0-9]{3}|(EXEC|ADR|FIB|GAP|PERF|ISS)-[A-Za-z0-9._-]+)$";

/// Whether a text is the id of a document: `PRD-` and three digits, or one of the other prefixes and then letters,
/// digits, `.`, `_` and `-`.
pub(super) fn is_build_id(text: &str) -> bool {
    let Some((prefix, rest)) = text.split_once('-') else {
        return false;
    };
    match prefix {
        "PRD" => rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_digit()),
        "EXEC" | "ADR" | "FIB" | "GAP" | "PERF" | "ISS" => {
            !rest.is_empty()
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        }
        _ => false,
    }
}

/// Files are named `{id}.json`. The protocol has neither archives nor backups, so the library's names are used for
/// both.
pub(super) fn layout() -> Layout {
    Layout {
        key_in: Some(key_in),
        ..Layout::default()
    }
}

fn key_in(document: &Document) -> Option<Key> {
    let id = document.root().get("prd")?;
    Key::new(id.as_str()?).ok()
}

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

/// Members that identify the format only for a file in its usual folder.
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
    // A project may use the same ids for other files, so a name alone is evidence only for a file that cannot be read.
    let named = stem.is_some_and(is_build_id) && (document.is_none() || !members.is_empty());
    let is_usual = |document: &Document| {
        let mut usual = USUAL.iter();
        !members.is_empty() || usual.any(|member| document.root().get(member).is_some())
    };
    let place = if stem.is_some() && is_in_folder(path) && document.is_none_or(is_usual) {
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

#[cfg(test)]
mod tests {
    use super::is_build_id;

    #[test]
    fn ids_have_a_prefix_of_the_protocol() {
        for good in ["PRD-041", "EXEC-012", "ADR-7.b_c-d", "ISS-x"] {
            assert!(is_build_id(good), "{good}");
        }
        for bad in [
            "PRD-41",
            "PRD-0411",
            "PRD-04a",
            "prd-041",
            "PRD-",
            "EXEC-",
            "ADR-a/b",
            "XYZ-1",
            "PRD041",
            "FIB-ä",
            " PRD-041",
            "PRD-041\n",
            "PRD-٠٤١",
            "",
        ] {
            assert!(!is_build_id(bad), "{bad:?}");
        }
    }
}
