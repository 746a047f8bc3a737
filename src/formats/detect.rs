//! Which format a file has: by its name, its folder and what is in it.

use std::path::Path;

use super::Format;
use crate::checkpoint::Evidence;
use crate::json::{Document, Kind, Node};

/// The format of a file, with what speaks for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// What speaks for it.
    pub evidence: Evidence,
}

fn has(node: Node<'_>, member: &str, kind: Kind) -> bool {
    node.get(member).is_some_and(|node| node.kind() == kind)
}

/// A `task`: no protocol gives its file a name, so its content alone counts.
pub(super) fn task(document: Option<&Document>) -> Option<Evidence> {
    let root = document?.root();
    let members: Vec<_> = [
        "completedSteps",
        "pendingSteps",
        "currentStep",
        "decisions",
        "metadata",
    ]
    .into_iter()
    .filter(|member| root.get(member).is_some())
    .collect();
    // One member alone could be anybody's.
    let enough = members.len() >= 2 && members.iter().any(|member| member.ends_with("Steps"));
    enough.then(|| Evidence::gather(None, &members)).flatten()
}

/// A builder-state host file.
pub(super) fn builder_state(path: &Path, document: Option<&Document>) -> Option<Evidence> {
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
    Evidence::gather(name, &members)
}
