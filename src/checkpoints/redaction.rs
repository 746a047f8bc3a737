//! Changing texts before they are saved.

use std::fmt;
use std::sync::Arc;

use crate::json::{Document, EditError, Kind, Node};

/// Changes texts that a save sets, such as secrets in a note.
///
/// Called with the JSON pointer and the text of every string value whose text was nowhere in the
/// checkpoint before; a `Some` takes its place. What was in the file before is not touched, and neither
/// are the names of members.
#[derive(Clone)]
pub struct Redaction(Arc<Redact>);

type Redact = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

impl Redaction {
    /// Redacts with `redact(pointer, text)`.
    pub fn new(redact: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        Redaction(Arc::new(redact))
    }

    /// Redacts the strings of `wanted` that are not in `before`; says whether any was changed.
    pub(super) fn apply(
        &self,
        wanted: &mut Document,
        before: Option<&Document>,
    ) -> Result<bool, EditError> {
        let mut known = std::collections::HashSet::new();
        if let Some(before) = before {
            walk(before.root(), &mut |node| {
                known.insert(node.raw().to_owned());
            });
        }
        let mut changes = Vec::new();
        walk(wanted.root(), &mut |node| {
            if known.contains(node.raw()) {
                return;
            }
            if let Some(text) = node.as_str() {
                let pointer = node.pointer();
                if let Some(redacted) = (self.0)(&pointer, &text) {
                    changes.push((pointer, redacted));
                }
            }
        });
        let mut changed = false;
        for (pointer, redacted) in changes {
            changed |= wanted.set(&pointer, &redacted)?;
        }
        Ok(changed)
    }
}

fn walk<'d>(node: Node<'d>, visit: &mut dyn FnMut(Node<'d>)) {
    match node.kind() {
        Kind::String => visit(node),
        Kind::Array => node.elements().for_each(|child| walk(child, visit)),
        Kind::Object => node.members().for_each(|(_, child)| walk(child, visit)),
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}
