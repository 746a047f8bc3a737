//! Which values the changes of the common view tell already.
//!
//! A changed text is told if two things hold: one of those changes says it, letter by letter, and the hand-off was
//! read from this very place. The second is found out by reading the document once more with a mark in every such
//! place, and looking for the marks in the hand-off. A value for which either does not hold is listed by its pointer,
//! so a doubt never hides a change. Of an element that is told, an empty list in it says nothing more.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::values::Delta;
use super::{Change, Side};
use crate::checkpoint::{Handoff, RuleContext};
use crate::json::{Document, Kind, Node, pointer};

/// The values that differ and that the `changes` do not tell.
pub(super) fn besides(
    deltas: &[Delta<'_, '_>],
    before: &Side<'_>,
    after: &Side<'_>,
    changes: &[Change],
) -> Vec<Change> {
    let texts: HashSet<&str> = changes.iter().flat_map(Change::texts).collect();
    let old = deltas.iter().map(|delta| delta.before);
    let new = deltas.iter().map(|delta| delta.after);
    let old = leaves(deltas, old, before, &texts);
    let new = leaves(deltas, new, after, &texts);
    let mut besides = Vec::new();
    for ((delta, old), new) in deltas.iter().zip(old).zip(new) {
        let told = old.iter().chain(&new).filter(|leaf| leaf.told).count();
        // What is told to be gone may leave a null, and the other way round.
        let rest = |leaves: Vec<Leaf>| -> Vec<Leaf> {
            let null = matches!(leaves.as_slice(), [only] if only.json == "null" && only.pointer == delta.pointer);
            // What has nothing in it says no more of a thing that is told to be there.
            let says_nothing = |leaf: &Leaf| {
                leaf.pointer != delta.pointer
                    && (leaf.json == "null" || leaf.json.starts_with(['[', '{']))
            };
            let rest = leaves
                .into_iter()
                .filter(|leaf| !leaf.told && !null && (told == 0 || !says_nothing(leaf)));
            rest.collect()
        };
        let whole = |node: Option<Node<'_>>| node.map(|node| node.raw().to_owned());
        let is_scalar = |node: Option<Node<'_>>| {
            node.is_some_and(|node| !matches!(node.kind(), Kind::Array | Kind::Object))
        };
        let scalars = is_scalar(delta.before) && is_scalar(delta.after);
        let (old, new) = (rest(old), rest(new));
        if told == 0 || scalars && !(old.is_empty() && new.is_empty()) {
            besides.push(Change::Value {
                pointer: delta.pointer.clone(),
                before: whole(delta.before),
                after: whole(delta.after),
            });
            continue;
        }
        besides.extend(old.into_iter().map(|leaf| Change::Value {
            pointer: leaf.pointer,
            before: Some(leaf.json),
            after: None,
        }));
        besides.extend(new.into_iter().map(|leaf| Change::Value {
            pointer: leaf.pointer,
            before: None,
            after: Some(leaf.json),
        }));
    }
    besides
}

/// Gives the changed status the words that the format has for it, where it is read from one of these values; that value
/// is told with it.
pub(super) fn tell_status(
    deltas: &mut Vec<Delta<'_, '_>>,
    before: &Side<'_>,
    after: &Side<'_>,
    changes: &mut [Change],
) {
    let status = changes.iter_mut().find_map(|change| match change {
        Change::Status { from, to, written } => Some((from.as_str(), to.as_str(), written)),
        _ => None,
    });
    let Some((from, to, written)) = status else {
        return;
    };
    let of_before = status_in(before, deltas.iter().filter_map(|delta| delta.before));
    let of_after = status_in(after, deltas.iter().filter_map(|delta| delta.after));
    let text = |node: Option<Node<'_>>, start: Option<usize>| {
        let node = node.filter(|node| Some(node.range().start) == start)?;
        node.as_str().map(Cow::into_owned)
    };
    let words = |delta: &Delta<'_, '_>| {
        Some((text(delta.before, of_before)?, text(delta.after, of_after)?))
    };
    let mut found = deltas.iter().enumerate();
    if let Some((at, words)) = found.find_map(|(at, delta)| Some((at, words(delta)?))) {
        deltas.remove(at);
        *written = Some(words).filter(|(old, new)| (old.as_str(), new.as_str()) != (from, to));
    }
}

/// Where the member of the checkpoint starts, among these, that the status of the hand-off is read from.
fn status_in<'n>(side: &Side<'_>, nodes: impl Iterator<Item = Node<'n>>) -> Option<usize> {
    let members = side.document.root().members();
    let members: HashSet<usize> = members.map(|(_, member)| member.range().start).collect();
    let mut places: Vec<_> = nodes
        .filter(|node| node.kind() == Kind::String && members.contains(&node.range().start))
        .map(|node| (node.range(), Kind::String))
        .collect();
    places.sort_by_key(|(range, _)| range.start);
    let (mark, handoff) = marked(side, &places)?;
    let (number, _) = handoff
        .status
        .as_str()
        .strip_prefix(&mark)?
        .split_once(';')?;
    let (place, _) = places.get(number.parse::<usize>().ok()?)?;
    Some(place.start)
}

/// A value with no values in it.
struct Leaf {
    pointer: String,
    json: String,
    told: bool,
}

/// The leaves of each delta on one side, and which are told.
fn leaves<'n>(
    deltas: &[Delta<'_, '_>],
    nodes: impl Iterator<Item = Option<Node<'n>>>,
    side: &Side<'_>,
    texts: &HashSet<&str>,
) -> Vec<Vec<Leaf>> {
    let mut all: Vec<Vec<(String, Node<'n>)>> = Vec::new();
    let mut candidates = Vec::new();
    for (node, delta) in nodes.zip(deltas) {
        let mut leaves = Vec::new();
        if let Some(node) = node {
            collect(node, &delta.pointer, &mut leaves);
        }
        let said = leaves.iter().filter(|(_, node)| match node.as_str() {
            Some(text) => texts.contains(text.as_ref()),
            None => node.kind() == Kind::Number && texts.contains(node.raw()),
        });
        candidates.extend(said.map(|(_, node)| (node.range(), node.kind())));
        all.push(leaves);
    }
    candidates.sort_by_key(|(range, _)| range.start);
    let shown = shown(side, &candidates);
    let leaf = |(pointer, node): (String, Node<'n>)| Leaf {
        pointer,
        json: node.raw().to_owned(),
        told: shown.contains(&node.range().start),
    };
    let each = |leaves: Vec<_>| leaves.into_iter().map(leaf).collect();
    all.into_iter().map(each).collect()
}

fn collect<'n>(node: Node<'n>, at: &str, into: &mut Vec<(String, Node<'n>)>) {
    let length = into.len();
    for (name, member) in node.members() {
        collect(member, &pointer::join(at, &name), into);
    }
    for (position, element) in node.elements().enumerate() {
        collect(element, &pointer::join(at, &position.to_string()), into);
    }
    if into.len() == length {
        into.push((at.to_owned(), node));
    }
}

/// The first number that stands for a number: none that an agent writes.
const FIRST_NUMBER: usize = 7_201_934_000_000;

/// The hand-off with each of the `places` (strings and numbers, in the order of the text) marked by its number, and
/// what marks a text. All in one reading: one for each would take the square of the time.
fn marked(side: &Side<'_>, places: &[(Range<usize>, Kind)]) -> Option<(String, Handoff)> {
    let text = side.document.text();
    let mut mark = '\u{f8ff}'.to_string();
    while text.contains(&mark) {
        mark.push('\u{f8fe}');
    }
    let mut marked = String::with_capacity(text.len());
    let mut at = 0;
    for (number, (place, kind)) in places.iter().enumerate() {
        marked.push_str(&text[at..place.start]);
        if *kind == Kind::Number {
            marked.push_str(&(FIRST_NUMBER + number).to_string());
        } else {
            // The text stays behind the mark: what looks like a file still does.
            let text = text.get(place.start + 1..place.end).unwrap_or_default();
            marked.push_str(&format!("\"{mark}{number};{text}"));
        }
        at = place.end;
    }
    marked.push_str(&text[at..]);
    let marked = Document::from_text(marked).ok()?;
    let examined = side.open?(&marked, &RuleContext::none()).ok()?;
    Some((mark, examined.handoff))
}

/// The starts of those of the `places` that the hand-off is read from.
fn shown(side: &Side<'_>, places: &[(Range<usize>, Kind)]) -> HashSet<usize> {
    let Some((mark, handoff)) = marked(side, places) else {
        return HashSet::new();
    };
    let handoff = serde_json::to_string(&handoff).unwrap_or_default();
    let digits: HashSet<&str> = handoff.split(|it: char| !it.is_ascii_digit()).collect();
    let numbers = handoff.split(&mark).skip(1).filter_map(|after| {
        let (number, _) = after.split_once(';')?;
        number.parse::<usize>().ok()
    });
    let of_numbers = (0..places.len()).filter(|number| {
        let is_number = places
            .get(*number)
            .is_some_and(|(_, kind)| *kind == Kind::Number);
        is_number && digits.contains((FIRST_NUMBER + number).to_string().as_str())
    });
    numbers
        .chain(of_numbers)
        .filter_map(|number| Some(places.get(number)?.0.start))
        .collect()
}
