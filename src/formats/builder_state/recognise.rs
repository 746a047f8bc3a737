//! Recognises the host file of a builder.

use std::path::Path;

use crate::checkpoint::{Checkpoint, Evidence};
use crate::formats::TaskCheckpoint;
use crate::json::{Document, Kind, Node};

fn has(node: Node<'_>, member: &str, kind: Kind) -> bool {
    node.get(member).is_some_and(|node| node.kind() == kind)
}

/// The evidence that a file is a `builder-state` host file.
pub(crate) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| *name == "builder-state.json");
    let mut members = Vec::new();
    if let Some(document) = document {
        let root = document.root();
        for (member, kind) in [
            ("activePrd", Kind::Object),
            ("activeWork", Kind::Object),
            ("adhocQueue", Kind::Array),
            ("checkpoint", Kind::Object),
        ] {
            if has(root, member, kind) {
                members.push(member);
            }
        }
        if !members.is_empty() || name.is_some() {
            for member in ["sessionId", "lastHeartbeat", "uncommittedWork"] {
                if root.get(member).is_some() {
                    members.push(member);
                }
            }
        }
    }
    // For a readable file the name alone is no evidence.
    let is_empty = |member: &str| root_of(document).is_some_and(|root| root.get(member).is_none());
    let name = name.filter(|_| !members.is_empty() || !SLOTS.into_iter().all(is_empty));
    let mut evidence = Evidence::gather(name, &members)?;
    // A checkpoint in one of the slots outweighs any members of a task checkpoint at the top level, unless these are a
    // complete checkpoint too: then the file is ambiguous.
    if let Some(document) = document.filter(|document| has_checkpoint(document.root()))
        && let Some(other) = TaskCheckpoint::recognise(path, Some(document))
    {
        let is_whole = TaskCheckpoint::REQUIRED
            .iter()
            .all(|name| document.root().get(name).is_some());
        let wanted = other.strength + u32::from(!is_whole);
        evidence.strength = match is_whole && name.is_none() {
            true => wanted,
            false => evidence.strength.max(wanted),
        };
    }
    Some(evidence)
}

/// The members that can hold a checkpoint; between two tasks they are null.
const SLOTS: [&str; 4] = ["activePrd", "activeWork", "adhocQueue", "checkpoint"];

fn root_of(document: Option<&Document>) -> Option<Node<'_>> {
    document.map(Document::root)
}

/// Whether one of the slots of a host file holds a checkpoint.
fn has_checkpoint(root: Node<'_>) -> bool {
    let holds = |node: Node<'_>| has(node, "checkpoint", Kind::Object);
    let queue = root.get("adhocQueue");
    ["activePrd", "activeWork"]
        .iter()
        .filter_map(|slot| root.get(slot))
        .any(holds)
        || queue.is_some_and(|queue| queue.elements().any(holds))
}
