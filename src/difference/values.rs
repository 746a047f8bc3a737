//! Which values of two documents differ.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::json::{Document, Kind, Node, pointer};

/// A value that differs, as far down as both have something in common; one side has none where it is new or gone.
pub(super) struct Delta<'b, 'a> {
    /// Where it is in the later document; where it was in the earlier one if it is gone.
    pub(super) pointer: String,
    pub(super) before: Option<Node<'b>>,
    pub(super) after: Option<Node<'a>>,
}

/// All values that differ, none if and only if the documents have the same value. Members are compared by name, and
/// elements of arrays are found again where others came or went.
pub(super) fn deltas<'b, 'a>(before: &'b Document, after: &'a Document) -> Vec<Delta<'b, 'a>> {
    let mut walk = Walk {
        old: before.at().to_owned(),
        new: after.at().to_owned(),
        deltas: Vec::new(),
    };
    walk.values(before.root(), after.root());
    walk.deltas
}

/// So many pairs of elements are compared to find the longest run that two arrays have in common.
const MAX_PAIRS: usize = 1 << 20;

struct Walk<'b, 'a> {
    /// Pointers to the two values that are compared.
    old: String,
    new: String,
    deltas: Vec<Delta<'b, 'a>>,
}

impl<'b, 'a> Walk<'b, 'a> {
    fn values(&mut self, before: Node<'b>, after: Node<'a>) {
        match (before.kind(), after.kind()) {
            (Kind::Object, Kind::Object) => self.objects(before, after),
            (Kind::Array, Kind::Array) => self.arrays(before, after),
            _ if before.same_value(&after) => {}
            _ => self.deltas.push(Delta {
                pointer: self.new.clone(),
                before: Some(before),
                after: Some(after),
            }),
        }
    }

    /// Compares what stands under these two tokens.
    fn step(&mut self, old: &str, before: Node<'b>, new: &str, after: Node<'a>) {
        let lengths = (self.old.len(), self.new.len());
        self.old = pointer::join(&self.old, old);
        self.new = pointer::join(&self.new, new);
        self.values(before, after);
        self.old.truncate(lengths.0);
        self.new.truncate(lengths.1);
    }

    fn gone(&mut self, token: &str, before: Node<'b>) {
        self.deltas.push(Delta {
            pointer: pointer::join(&self.old, token),
            before: Some(before),
            after: None,
        });
    }

    fn come(&mut self, token: &str, after: Node<'a>) {
        self.deltas.push(Delta {
            pointer: pointer::join(&self.new, token),
            before: None,
            after: Some(after),
        });
    }

    fn objects(&mut self, before: Node<'b>, after: Node<'a>) {
        // Two names that differ only where they have half of a surrogate pair can read the same.
        let mut by_name: HashMap<_, VecDeque<_>> = HashMap::new();
        for (position, (name, member)) in before.members().enumerate() {
            by_name
                .entry(name)
                .or_default()
                .push_back((position, member));
        }
        for (name, member) in after.members() {
            match by_name.get_mut(&name).and_then(VecDeque::pop_front) {
                Some((_, twin)) => self.step(&name, twin, &name, member),
                None => self.come(&name, member),
            }
        }
        let left = by_name.into_iter().flat_map(|(name, members)| {
            let named = move |(position, member)| (position, name.clone(), member);
            members.into_iter().map(named)
        });
        let mut left: Vec<_> = left.collect();
        left.sort_by_key(|(position, ..)| *position);
        for (_, name, member) in left {
            self.gone(&name, member);
        }
    }

    fn arrays(&mut self, before: Node<'b>, after: Node<'a>) {
        let before: Vec<_> = before.elements().collect();
        let after: Vec<_> = after.elements().collect();
        let same = |(a, b): &(&Node<'b>, &Node<'a>)| a.same_value(b);
        let start = before.iter().zip(&after).take_while(same).count();
        let (old, new) = (&before[start..], &after[start..]);
        let end = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(same)
            .count();
        let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);

        let mut at = (0, 0);
        let all = (old.len(), new.len());
        for (i, j) in common_run(old, new).into_iter().chain([all]) {
            self.gap(start, (at.0, &old[at.0..i]), (at.1, &new[at.1..j]));
            at = (i + 1, j + 1);
        }
    }

    /// Elements between others that both arrays have: those that look like the same element are compared.
    fn gap(&mut self, start: usize, old: (usize, &[Node<'b>]), new: (usize, &[Node<'a>])) {
        let mut gone = old.1.iter().enumerate();
        let mut come = new.1.iter().enumerate();
        loop {
            let (before, after) = (gone.next(), come.next());
            let place = |at: usize, k: usize| (start + at + k).to_string();
            match (before, after) {
                (Some((i, before)), Some((j, after))) if is_another_state(*before, *after) => {
                    self.step(&place(old.0, i), *before, &place(new.0, j), *after);
                }
                (None, None) => return,
                (before, after) => {
                    if let Some((i, before)) = before {
                        self.gone(&place(old.0, i), *before);
                    }
                    if let Some((j, after)) = after {
                        self.come(&place(new.0, j), *after);
                    }
                }
            }
        }
    }
}

/// Whether two elements in the same place are worth comparing: of objects, those that have one of the first members in
/// common, or a part of it; the first ones say what it is.
fn is_another_state(before: Node<'_>, after: Node<'_>) -> bool {
    let same_kind = before.kind() == after.kind();
    same_kind && (before.kind() != Kind::Object || share(before, after))
}

/// Whether two values have something in common, among what comes first, or last in an array.
fn share(before: Node<'_>, after: Node<'_>) -> bool {
    const COMPARED: usize = 16;
    match (before.kind(), after.kind()) {
        (Kind::Object, Kind::Object) => {
            let in_both = |(name, member): (Cow<'_, str>, Node<'_>)| {
                after.get(&name).is_some_and(|twin| share(member, twin))
            };
            is_empty(before) && is_empty(after) || before.members().take(COMPARED).any(in_both)
        }
        (Kind::Array, Kind::Array) => {
            let old: Vec<_> = before.elements().collect();
            let new: Vec<_> = after.elements().collect();
            let first = old.iter().zip(&new).take(COMPARED);
            let last = old.iter().rev().zip(new.iter().rev()).take(COMPARED);
            let mut pairs = first.chain(last);
            old.is_empty() && new.is_empty() || pairs.any(|(one, other)| share(*one, *other))
        }
        _ => before.same_value(&after),
    }
}

fn is_empty(object: Node<'_>) -> bool {
    object.members().next().is_none()
}

/// Pairs of the same elements, in the order of both arrays: as many as possible, or, in long arrays, the next of each.
fn common_run(old: &[Node<'_>], new: &[Node<'_>]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut numbers = HashMap::new();
    let mut number = |node: &Node<'_>| {
        let next = numbers.len();
        *numbers.entry(key(*node)).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return next_of_each(&old, &new);
    }
    // The longest run from each pair of places onwards.
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = if old[i] == new[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

fn next_of_each(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let mut places: HashMap<usize, VecDeque<usize>> = HashMap::new();
    for (i, number) in old.iter().enumerate() {
        places.entry(*number).or_default().push_back(i);
    }
    let mut from = 0;
    let mut pairs = Vec::new();
    for (j, number) in new.iter().enumerate() {
        let Some(places) = places.get_mut(number) else {
            continue;
        };
        while places.front().is_some_and(|&i| i < from) {
            places.pop_front();
        }
        if let Some(i) = places.pop_front() {
            pairs.push((i, j));
            from = i + 1;
        }
    }
    pairs
}

/// A text that two values share only if they are the same value.
fn key(node: Node<'_>) -> String {
    match node.kind() {
        Kind::Object => {
            let named =
                |(name, member): (Cow<'_, str>, Node<'_>)| format!("{name:?}:{}", key(member));
            let mut members: Vec<String> = node.members().map(named).collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        Kind::Array => {
            let elements: Vec<String> = node.elements().map(key).collect();
            format!("[{}]", elements.join(","))
        }
        Kind::String => match node.as_str() {
            Some(text) => format!("{text:?}"),
            None => node.raw().to_owned(),
        },
        _ => node.raw().to_owned(),
    }
}
