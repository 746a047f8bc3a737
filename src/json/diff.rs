//! Computes how a text must change to read as the wanted value, from what its type wrote before and writes now.
//!
//! Only the two typed texts are compared with each other, never with the text of the file. So values that the type does
//! not know, spells differently or could not read are no differences.

use std::collections::{HashMap, VecDeque};

use super::relay::{Change, Item};
use super::tree::{Index, Kind, Lookup, ROOT, Tree};
use super::typed::Typed;

/// Which members identify an element of a list, so that a changed element is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name of the member that holds the list.
    pub list: &'static str,
    /// The names of the members that together identify an element.
    pub by: &'static [&'static str],
}

/// A comparison of the typed texts before and after, guided by the text of the file.
pub(super) struct Diff<'t> {
    pub(super) text: &'t Tree,
    pub(super) old: &'t Tree,
    pub(super) new: &'t Typed,
    /// The values of the text that could not be read and so are not in `old`, in order.
    pub(super) left_out: &'t [Index],
    pub(super) identities: &'t [Identity],
    /// The unreadable values that the change replaces or removes.
    pub(super) lost: Vec<Index>,
}

impl Diff<'_> {
    /// The change that makes the value `text`, which reads as `old`, read as the root of the new text.
    pub(super) fn run(&mut self, text: Index, old: Index) -> Option<Change> {
        self.value(text, Some(old), ROOT, "")
    }

    fn is_left_out(&self, index: Index) -> bool {
        self.left_out.binary_search(&index).is_ok()
    }

    /// Records the unreadable values inside a value that is removed.
    fn lose(&mut self, index: Index) {
        let end = self.text.span(index).next;
        let first = self.left_out.partition_point(|&left| left < index);
        let inside = self.left_out[first..].iter();
        self.lost.extend(inside.take_while(|&&left| left < end));
    }

    fn unchanged(&self, old: Index, new: Index) -> bool {
        self.old.raw(old) == self.new.tree.raw(new) || self.old.same(old, &self.new.tree, new)
    }

    fn replace(&mut self, text: Index, new: Index) -> Option<Change> {
        self.lose(text);
        Some(Change::Replace(new))
    }

    /// `old` is none if the typed text lacks a value of the file, such as an empty list. `list` is the name of the
    /// member that holds the value.
    fn value(&mut self, text: Index, old: Option<Index>, new: Index, list: &str) -> Option<Change> {
        let kind = self.text.kind(text);
        let old_kind = old.map_or(kind, |old| self.old.kind(old));
        let is_alike =
            !self.is_left_out(text) && kind == old_kind && kind == self.new.tree.kind(new);
        // Objects are compared member by member below.
        let is_unchanged = old.is_some_and(|old| match is_alike && kind == Kind::Object {
            true => self.old.raw(old) == self.new.tree.raw(new),
            false => self.unchanged(old, new),
        });
        if is_unchanged {
            return None;
        }
        if !is_alike {
            return self.replace(text, new);
        }
        match kind {
            Kind::Object => self.object(text, old, new),
            Kind::Array => self.array(text, old, new, list),
            _ => Some(Change::Replace(new)),
        }
    }

    fn object(&mut self, text: Index, old: Option<Index>, new: Index) -> Option<Change> {
        let mut items = Vec::new();
        let mut changed = false;
        let mut old_members = old.map(|old| Lookup::new(self.old, old));
        let mut new_members = Lookup::new(&self.new.tree, new);
        for child in self.text.children(text) {
            let name = self.text.name(child);
            let old_member = old_members.as_mut().and_then(|old| old.find(&name));
            let new_member = new_members.find(&name);
            let removed = old_member.is_some() && new_member.is_none();
            if removed {
                // Shadowed members of this name are removed too; otherwise the last of them would count.
                changed = true;
                self.lose(child);
                continue;
            }
            let change = match new_member {
                Some(new) if !self.text.span(child).is_shadowed() => {
                    self.value(child, old_member, new, &name)
                }
                _ => None,
            };
            changed |= change.is_some();
            items.push(Item::Kept(child, change));
        }
        changed |= self.add_members(text, old, new, &mut items);
        changed.then_some(Change::Inside(items))
    }

    /// Adds the members that the text lacks. Members of a struct are placed beside their neighbours in the order of the
    /// type; entries of a map are added at the end.
    fn add_members(
        &self,
        text: Index,
        old: Option<Index>,
        new: Index,
        items: &mut Vec<Item>,
    ) -> bool {
        let is_map = self.new.is_map(new);
        let mut old_members = old.map(|old| Lookup::new(self.old, old));
        let mut text_members = Lookup::new(self.text, text);
        let mut added = false;
        // Where the next member goes: after the previous one, or before the first existing one.
        let mut place = None;
        for member in self.new.tree.children(new) {
            let name = self.new.tree.name(member);
            if let Some(there) = text_members.find(&name) {
                if is_map {
                    continue;
                }
                let position = items.iter().position(|item| match item {
                    Item::Kept(child, _) => *child == there,
                    Item::New(_) => false,
                });
                if let Some(position) = position {
                    if place.is_none() && added {
                        // New items so far were added at the end; they belong before this member.
                        let new_ones = items.iter().rev();
                        let count = new_ones.take_while(|i| matches!(i, Item::New(_))).count();
                        items[position..].rotate_right(count);
                        place = Some(position + count + 1);
                    } else {
                        place = Some(position + 1);
                    }
                }
                continue;
            }
            let before = old_members.as_mut().and_then(|old| old.find(&name));
            if before.is_some_and(|before| self.unchanged(before, member)) {
                // The type writes a member that the text omits, such as a default.
                continue;
            }
            added = true;
            match place {
                Some(position) => {
                    items.insert(position, Item::New(member));
                    place = Some(position + 1);
                }
                None => items.push(Item::New(member)),
            }
        }
        added
    }

    fn array(&mut self, text: Index, old: Option<Index>, new: Index, list: &str) -> Option<Change> {
        let elements: Vec<Index> = self.text.children(text).collect();
        let read = elements.iter().copied();
        let read: Vec<Index> = read.filter(|&e| !self.is_left_out(e)).collect();
        let before: Vec<Index> = match old {
            Some(old) => self.old.children(old).collect(),
            None => Vec::new(),
        };
        if read.len() != before.len() {
            // Positions do not correspond, so the elements cannot be matched.
            return self.replace(text, new);
        }
        let after: Vec<Index> = self.new.tree.children(new).collect();
        if after.is_empty() && before.is_empty() {
            return None;
        }
        let origins = self.origins(&before, &after, list);

        let mut kept = vec![false; read.len()];
        for &position in origins.iter().flatten() {
            kept[position] = true;
        }
        let mut items = Vec::with_capacity(elements.len() + after.len());
        let mut followers = Followers::new(&elements, &read, &kept);
        items.extend(followers.take(0));
        for (&element, origin) in after.iter().zip(&origins) {
            match *origin {
                Some(position) => {
                    let change = self.value(read[position], Some(before[position]), element, "");
                    items.push(Item::Kept(read[position], change));
                    items.extend(followers.take(position + 1));
                }
                None => items.push(Item::New(element)),
            }
        }
        for (&element, kept) in read.iter().zip(kept) {
            if !kept {
                self.lose(element);
            }
        }
        Some(Change::Inside(items))
    }

    /// For each new element, the position of the old element that it was.
    fn origins(&self, before: &[Index], after: &[Index], list: &str) -> Vec<Option<usize>> {
        let identity = self
            .identities
            .iter()
            .find(|identity| identity.list == list);
        let by = identity.map_or(&[][..], |identity| identity.by);
        let mut origins = equal_elements(
            before.iter().map(|&e| self.old.raw(e)),
            after.iter().map(|&e| self.new.tree.raw(e)),
        );
        self.identify(before, after, by, &mut origins);
        self.pair_holes(before, after, by, &mut origins);
        origins
    }

    /// Matches changed elements by their identity.
    fn identify(
        &self,
        before: &[Index],
        after: &[Index],
        by: &[&str],
        origins: &mut [Option<usize>],
    ) {
        let taken = taken_of(before, origins);
        let mut free = HashMap::new();
        for (position, &element) in before.iter().enumerate().rev() {
            if let (false, Some(id)) = (taken[position], id_of(self.old, element, by)) {
                // Of several elements with one identity, the first is kept.
                free.insert(id, position);
            }
        }
        for (&element, origin) in after.iter().zip(origins) {
            if origin.is_none() {
                let id = id_of(&self.new.tree, element, by);
                *origin = id.and_then(|id| free.remove(&id));
            }
        }
    }

    /// Matches runs of unmatched elements in place: as many new elements as old ones between two matched neighbours,
    /// each of which resembles its predecessor.
    fn pair_holes(
        &self,
        before: &[Index],
        after: &[Index],
        by: &[&str],
        origins: &mut [Option<usize>],
    ) {
        let taken = taken_of(before, origins);
        let mut start = 0;
        while start < after.len() {
            let length = origins[start..].iter().take_while(|o| o.is_none()).count();
            if length == 0 {
                start += 1;
                continue;
            }
            let end = start + length;
            let from = match start.checked_sub(1).and_then(|previous| origins[previous]) {
                Some(previous) => previous + 1,
                None => 0,
            };
            let until = match origins.get(end) {
                Some(Some(next)) => *next,
                _ => before.len(),
            };
            let hole = from..until;
            let fits = hole.len() == length
                && !taken[hole.clone()].contains(&true)
                && hole
                    .clone()
                    .zip(start..end)
                    .all(|(i, j)| self.resembles(before[i], after[j], by));
            if fits {
                for (origin, position) in origins[start..end].iter_mut().zip(hole) {
                    *origin = Some(position);
                }
            }
            start = end;
        }
    }

    fn resembles(&self, old: Index, new: Index, by: &[&str]) -> bool {
        let new_tree = &self.new.tree;
        let kinds = (self.old.kind(old), new_tree.kind(new));
        if kinds != (Kind::Object, Kind::Object) {
            return kinds.0.is_container() == kinds.1.is_container();
        }
        if id_of(self.old, old, by).is_some() && id_of(new_tree, new, by).is_some() {
            // Elements with an identity match only by it.
            return false;
        }
        let mut counterparts = Lookup::new(new_tree, new);
        let mut members = self.old.children(old);
        members.clone().count() <= 1
            || members.any(|member| {
                let name = self.old.name(member);
                let counterpart = counterparts.find(&name);
                counterpart.is_some_and(|counterpart| self.unchanged(member, counterpart))
            })
    }
}

/// Whether each element of `before` has a match already.
fn taken_of(before: &[Index], origins: &[Option<usize>]) -> Vec<bool> {
    let mut taken = vec![false; before.len()];
    for position in origins.iter().flatten() {
        taken[*position] = true;
    }
    taken
}

/// The identity of an element: the texts of its identifying members; none if one is missing.
fn id_of<'t>(tree: &'t Tree, element: Index, by: &[&str]) -> Option<Vec<&'t str>> {
    if by.is_empty() || tree.kind(element) != Kind::Object {
        return None;
    }
    by.iter()
        .map(|name| {
            let member = tree.member(element, name)?;
            (tree.kind(member) != Kind::Null).then(|| tree.raw(member))
        })
        .collect()
}

/// Matches equal texts in order: the first with the first, the second with the second and so on.
fn equal_elements<'t>(
    before: impl Iterator<Item = &'t str>,
    after: impl ExactSizeIterator<Item = &'t str> + DoubleEndedIterator,
) -> Vec<Option<usize>> {
    let before: Vec<&str> = before.collect();
    let after: Vec<&str> = after.collect();
    let mut origins = vec![None; after.len()];
    let head = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let ends = before[head..].iter().rev().zip(after[head..].iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    for (position, origin) in origins.iter_mut().take(head).enumerate() {
        *origin = Some(position);
    }
    for back in 1..=tail {
        origins[after.len() - back] = Some(before.len() - back);
    }
    let mut positions: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let middle = before.iter().enumerate().take(before.len() - tail);
    for (position, text) in middle.skip(head) {
        positions.entry(text).or_default().push_back(position);
    }
    for position in head..after.len() - tail {
        let same = positions.get_mut(after[position]);
        origins[position] = same.and_then(VecDeque::pop_front);
    }
    origins
}

/// The unreadable elements of a list; each stays behind the element that it followed.
struct Followers {
    /// Grouped by the readable element that they follow, counted from 1. Group 0 comes before all elements.
    groups: Vec<Vec<Index>>,
}

impl Followers {
    /// Groups the elements. If the element before is removed, an unreadable one follows the last kept element.
    fn new(elements: &[Index], read: &[Index], kept: &[bool]) -> Followers {
        let mut groups = vec![Vec::new(); read.len() + 1];
        let (mut passed, mut group) = (0, 0);
        for &element in elements {
            if read.get(passed) == Some(&element) {
                passed += 1;
                if kept[passed - 1] {
                    group = passed;
                }
            } else {
                groups[group].push(element);
            }
        }
        Followers { groups }
    }

    fn take(&mut self, group: usize) -> impl Iterator<Item = Item> + use<> {
        let taken = std::mem::take(&mut self.groups[group]);
        taken.into_iter().map(|element| Item::Kept(element, None))
    }
}
