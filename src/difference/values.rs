//! Finds the values in which two documents differ.

use std::collections::{HashMap, VecDeque};

use crate::json::{Document, Kind, Node, pointer};

/// The innermost differing value; one side is none if the value was added or removed.
pub(super) struct Delta<'b, 'a> {
    /// The pointer in the later document; in the earlier one if the value was removed.
    pub(super) pointer: String,
    pub(super) before: Option<Node<'b>>,
    pub(super) after: Option<Node<'a>>,
}

impl Delta<'_, '_> {
    /// Whether both states exist and are scalars.
    pub(super) fn is_scalar(&self) -> bool {
        let is_scalar = |node: Node<'_>| !matches!(node.kind(), Kind::Array | Kind::Object);
        self.before.is_some_and(is_scalar) && self.after.is_some_and(is_scalar)
    }
}

/// All values that differ; none if and only if the documents have the same value. Members are compared by name, and
/// elements of arrays are matched even when others were added or removed.
pub(super) fn deltas<'b, 'a>(before: &'b Document, after: &'a Document) -> Vec<Delta<'b, 'a>> {
    let mut walk = Walk {
        old: before.at().to_owned(),
        new: after.at().to_owned(),
        deltas: Vec::new(),
    };
    walk.values(before.root(), after.root());
    walk.deltas
}

struct Walk<'b, 'a> {
    /// The pointers to the two values that are compared.
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

    /// Compares the values at these two tokens.
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
        // Two names that differ only in half of a surrogate pair can read the same.
        let mut by_name: HashMap<_, VecDeque<_>> = HashMap::new();
        for (position, (name, member)) in before.members().enumerate() {
            by_name
                .entry(name)
                .or_default()
                .push_back((position, member));
        }
        for (name, member) in after.members() {
            match by_name.get_mut(&name).and_then(VecDeque::pop_front) {
                Some((_, counterpart)) => self.step(&name, counterpart, &name, member),
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

    /// Compares the elements between matched ones: elements in the same position are compared if they look like the
    /// same one.
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

/// Whether two elements in the same position are worth comparing. Two objects are if both are empty, or if one of their
/// first members, which usually identify them, is equal.
fn is_another_state(before: Node<'_>, after: Node<'_>) -> bool {
    const COMPARED: usize = 16;
    if before.kind() != Kind::Object || after.kind() != Kind::Object {
        return before.kind() == after.kind();
    }
    let is_empty = |object: Node<'_>| object.members().next().is_none();
    let mut first = before.members().take(COMPARED);
    is_empty(before) && is_empty(after)
        || first.any(|(name, member)| {
            let counterpart = after.get(&name);
            counterpart.is_some_and(|counterpart| member.same_value(&counterpart))
        })
}

/// Pairs of elements with equal texts. Equal texts are paired in order; of these pairs the longest sequence that is in
/// the order of both arrays.
fn common_run(old: &[Node<'_>], new: &[Node<'_>]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (i, node) in old.iter().enumerate() {
        places.entry(node.raw()).or_default().push_back(i);
    }
    let counterparts = new.iter().enumerate().filter_map(|(j, node)| {
        let counterpart = places.get_mut(node.raw())?.pop_front()?;
        Some((counterpart, j))
    });
    longest_ascending(&counterparts.collect::<Vec<_>>())
}

/// The longest sequence of these pairs whose first numbers ascend.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length the pair that ends its sequence, and for each pair the previous one in its sequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (at, (first, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *first);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut run = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        run.push(pairs[at]);
        next = before[at];
    }
    run.reverse();
    run
}
