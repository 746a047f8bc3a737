//! Every place of a document, and what can be put there.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::json::{Document, EditError, Identity, Kind, Node, Reading, RewriteError, Unreadable};
use crate::testkit::rule::Stop;

/// Places of one document that are tried; a larger one proves nothing more.
const MOST: usize = 300;

impl From<EditError> for Stop {
    fn from(error: EditError) -> Stop {
        Stop::Failed(format!("the checkpoint cannot be written: {error}"))
    }
}

impl From<RewriteError> for Stop {
    fn from(error: RewriteError) -> Stop {
        Stop::Failed(format!(
            "the checkpoint cannot be written over its text: {error}"
        ))
    }
}

impl From<Unreadable> for Stop {
    fn from(error: Unreadable) -> Stop {
        Stop::Failed(format!("the whole checkpoint is lost: {error}"))
    }
}

/// The text of a checkpoint, and what it reads as: that is what a format has to do with.
pub(super) fn written<C: Checkpoint>(sample: &C) -> Result<(Document, Reading<C>), Stop> {
    let document = Document::new(sample)?;
    let reading = document.read::<C>()?;
    Ok((document, reading))
}

/// The samples, and what `{}` reads as.
pub(super) fn with_empty<C: Checkpoint>(samples: &[C]) -> Result<Vec<C>, Stop> {
    if samples.is_empty() {
        return Err(Stop::failed("there are no samples: give at least one"));
    }
    let empty = Document::from_text("{}")?.read::<C>()?.value;
    Ok(std::iter::once(empty)
        .chain(samples.iter().cloned())
        .collect())
}

/// The pointers to all values, without the root.
pub(super) fn places(document: &Document) -> Vec<String> {
    let mut found = Vec::new();
    walk(document.root(), &mut found);
    found.truncate(MOST);
    found
}

fn walk(node: Node<'_>, found: &mut Vec<String>) {
    let children: Vec<Node<'_>> = match node.kind() {
        Kind::Object => node.members().map(|(_, child)| child).collect(),
        Kind::Array => node.elements().collect(),
        _ => Vec::new(),
    };
    for child in children {
        found.push(child.pointer());
        walk(child, found);
    }
}

/// Values of each type there is.
pub(super) fn any_type() -> [Value; 6] {
    [
        Value::Null,
        json!(true),
        json!(7),
        json!("no such text"),
        json!([]),
        json!({}),
    ]
}

/// Another value of the same type; `None` for what has values inside.
pub(super) fn another(node: &Node<'_>) -> Option<Value> {
    match node.kind() {
        Kind::Bool => node.as_bool().map(|is| json!(!is)),
        Kind::String => node.as_str().map(|text| json!(format!("{text}x"))),
        Kind::Number => match node.as_i64() {
            Some(number) => Some(json!(number.checked_add(1)?)),
            None => node.as_f64().map(|number| json!(number + 0.5)),
        },
        _ => None,
    }
}

/// Whether a place is what elements of a list are recognised by: changed, it is another element.
pub(super) fn is_identity(pointer: &str, identities: &[Identity]) -> bool {
    let mut tokens = pointer.rsplit('/');
    let (name, _, list) = (tokens.next(), tokens.next(), tokens.next());
    identities.iter().any(|identity| {
        Some(identity.list) == list && identity.by.iter().any(|by| Some(*by) == name)
    })
}
