//! What speaks for a file being a host file.

use std::path::Path;

use crate::checkpoint::Evidence;
use crate::json::{Document, Kind, Node};

fn has(node: Node<'_>, member: &str, kind: Kind) -> bool {
    node.get(member).is_some_and(|node| node.kind() == kind)
}

/// A builder-state host file.
pub(in crate::formats) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
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
