//! Decides which changed values the words report, so that no change is listed twice. "Words" are the changes between
//! the hand-offs.
//!
//! Words and values are matched by their texts, since a hand-off does not keep where a text was read. A value is
//! omitted from the list only if the words report its texts as often as they changed. A format may derive its status
//! and phase, so these words only account for members with such a name.

use std::collections::{HashMap, HashSet};

use super::values::Delta;
use super::{Change, ChangeKind};
use crate::json::{Kind, Node, pointer};

/// A text of the earlier state, and the text of the later state that replaced it.
type Texts = (Option<String>, Option<String>);

/// The changes for the values that the words do not report.
pub(super) fn rest(deltas: &[Delta<'_, '_>], words: &[Change]) -> Vec<Change> {
    let mut reported: HashMap<Texts, usize> = HashMap::new();
    let mut of_state: HashSet<Texts> = HashSet::new();
    let is_of_state =
        |word: &&Change| matches!(word.kind(), ChangeKind::Status | ChangeKind::Phase);
    for word in words.iter().filter(is_of_state) {
        of_state.extend(word.texts().map(owned));
    }
    for word in words {
        for texts in word.texts().map(owned) {
            if !is_of_state(&word) {
                of_state.remove(&texts);
            }
            *reported.entry(texts).or_default() += 1;
        }
    }
    let applicable = |part: &Part<'_, '_>| {
        let texts = part.texts()?;
        (!of_state.contains(&texts) || names_a_state(&part.pointer)).then_some(texts)
    };
    let is_in_words =
        |part: &Part<'_, '_>| applicable(part).is_some_and(|texts| reported.contains_key(&texts));
    let parts: Vec<Vec<Part<'_, '_>>> = deltas
        .iter()
        .map(|delta| parts(delta, &is_in_words))
        .collect();
    let mut found: HashMap<Texts, usize> = HashMap::new();
    for texts in parts.iter().flatten().filter_map(&applicable) {
        *found.entry(texts).or_default() += 1;
    }
    let is_reported = |part: &Part<'_, '_>| {
        applicable(part).is_some_and(|texts| reported.get(&texts) >= found.get(&texts))
    };
    let mut changes = Vec::new();
    for (delta, mut parts) in deltas.iter().zip(parts) {
        let count = parts.len();
        parts.retain(|part| !is_reported(part));
        if parts.len() == count || delta.is_scalar() && !parts.is_empty() {
            changes.push(value(&delta.pointer, delta.before, delta.after));
            continue;
        }
        // If other parts of an element are reported, its empty members add nothing.
        parts.retain(|part| part.pointer == delta.pointer || !part.is_empty());
        let rest = parts.iter();
        changes.extend(rest.map(|part| value(&part.pointer, part.before, part.after)));
    }
    changes
}

fn owned((before, after): (Option<&str>, Option<&str>)) -> Texts {
    (before.map(str::to_owned), after.map(str::to_owned))
}

/// Whether the name of the member at this pointer suggests a status or a phase.
fn names_a_state(pointer: &str) -> bool {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    ["status", "state", "phase", "stage"]
        .iter()
        .any(|word| name.contains(word))
}

fn value(pointer: &str, before: Option<Node<'_>>, after: Option<Node<'_>>) -> Change {
    let (before, after) = (
        before.as_ref().map(Node::raw),
        after.as_ref().map(Node::raw),
    );
    Change::value(pointer, before, after)
}

/// A part of a changed value that contains no other values.
struct Part<'b, 'a> {
    pointer: String,
    before: Option<Node<'b>>,
    after: Option<Node<'a>>,
}

impl Part<'_, '_> {
    /// The texts of both states. None unless each is a text, a number, `null` or absent.
    fn texts(&self) -> Option<Texts> {
        Some((text(self.before)?, text(self.after)?))
    }

    fn is_null(&self) -> bool {
        self.texts() == Some((None, None))
    }

    fn is_empty(&self) -> bool {
        let node = self.before.as_ref().map(Node::kind);
        let node = node.or(self.after.as_ref().map(Node::kind));
        matches!(node, Some(Kind::Array | Kind::Object))
    }
}

fn text(node: Option<Node<'_>>) -> Option<Option<String>> {
    match node {
        Some(node) if node.kind() == Kind::Null => Some(None),
        Some(node) if node.kind() == Kind::Number => Some(Some(node.raw().to_owned())),
        Some(node) => Some(Some(node.as_str()?.into_owned())),
        None => Some(None),
    }
}

/// The parts of a value. Two scalars form one part, unless the words report each of them separately.
fn parts<'b, 'a>(
    delta: &Delta<'b, 'a>,
    is_in_words: &dyn Fn(&Part<'b, 'a>) -> bool,
) -> Vec<Part<'b, 'a>> {
    let mut parts = Vec::new();
    if let Some(before) = delta.before {
        leaves(before, &delta.pointer, &mut |pointer, node| {
            parts.push(Part {
                pointer,
                before: Some(node),
                after: None,
            });
        });
    }
    if let Some(after) = delta.after {
        leaves(after, &delta.pointer, &mut |pointer, node| {
            parts.push(Part {
                pointer,
                before: None,
                after: Some(node),
            });
        });
    }
    let whole = Part {
        pointer: delta.pointer.clone(),
        before: delta.before,
        after: delta.after,
    };
    let is_each_in_words = || parts.iter().all(|part| part.is_null() || is_in_words(part));
    if delta.is_scalar() && (is_in_words(&whole) || !is_each_in_words()) {
        return vec![whole];
    }
    if parts.len() > 1 {
        parts.retain(|part| !part.is_null());
    }
    parts
}

/// Visits the values inside a value that contain no others, or the value itself.
fn leaves<'n>(node: Node<'n>, at: &str, visit: &mut dyn FnMut(String, Node<'n>)) {
    let mut is_leaf = true;
    for (name, member) in node.members() {
        is_leaf = false;
        leaves(member, &pointer::join(at, &name), visit);
    }
    for (position, element) in node.elements().enumerate() {
        is_leaf = false;
        leaves(element, &pointer::join(at, &position.to_string()), visit);
    }
    if is_leaf {
        visit(at.to_owned(), node);
    }
}
