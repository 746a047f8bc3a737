//! What is larger than a checkpoint should be.

use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::examine::Examine;
use super::tree::{Place, Tree};
use super::valid::{reads_as, valid};
use crate::checkpoint::Limits;
use crate::json::{Code, Document};

/// Where a value becomes larger.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth {
    /// One text grows.
    Text,
    /// One list or map grows.
    List,
    /// Several of either, each by a part.
    Several,
}

/// What texts grow by: ASCII words, letters of two bytes, and clusters of many code points.
const FILLERS: &[&str] = &[" and so on", "é", "👩‍👩‍👧 "];

/// By how much of what is missing one of several places grows, in parts.
const PARTS: usize = 4;

/// Values that keep every rule of their format but the lengths, and whose compact form is larger than
/// [`Limits::total_bytes`] of the default limits: over 2,048 bytes, at least up to a size drawn evenly from
/// 2,049 to 8,192.
///
/// A valid value grows, each as often, in one text (by ASCII, by letters of two bytes, or by emoji of
/// several code points), in one list or map (by more elements like those it has), or in several
/// places, each by a fourth of what is missing. What the rules of the format do not let grow, such as an
/// id or a time, stays: then another place grows. So no violation is in it but `too-long`, and a save of
/// a format with limits has to cut or to report that it is over.
///
/// It shrinks towards 2,049 bytes and a small valid value below the growth, never to one that is within the
/// size. A value in which nothing can grow is left out.
pub fn oversized<C: Arbitrary + Examine>() -> impl Strategy<Value = C> {
    let limit = Limits::default().total_bytes.unwrap_or_default();
    let growth = select(vec![Growth::Text, Growth::List, Growth::Several]);
    let wanted = limit + 1..=limit * 4;
    (
        valid::<C>(),
        growth,
        wanted,
        any::<Index>(),
        select(FILLERS),
    )
        .prop_filter_map(
            "nothing in the value can grow",
            |(value, growth, wanted, at, filler)| {
                let growing = Growing {
                    tree: Tree::of(&value),
                    value,
                    wanted,
                    filler,
                };
                growing.grown(growth, at)
            },
        )
}

/// A value on its way to its size.
struct Growing<C> {
    value: C,
    tree: Tree,
    wanted: usize,
    filler: &'static str,
}

impl<C: Examine> Growing<C> {
    fn grown(mut self, growth: Growth, at: Index) -> Option<C> {
        let texts = self
            .tree
            .places_of(|value| matches!(value, Tree::Text(_)) && !value.is_time());
        let lists = self.tree.places_of(|value| match value {
            Tree::List(elements) => !elements.is_empty(),
            Tree::Object(members) => !members.is_empty(),
            _ => false,
        });
        // Those of the wanted kind first; the others where these cannot grow.
        let mut places: Vec<Place> = match growth {
            Growth::Text => from(texts, at).chain(lists).collect(),
            Growth::List => from(lists, at).chain(texts).collect(),
            Growth::Several => from(texts.into_iter().chain(lists).collect(), at).collect(),
        };
        if growth == Growth::Several {
            // All grow at their ends, so what lies in one of them stays where it is.
            for place in places.iter().take(PARTS) {
                self.grow(place, self.missing().div_ceil(PARTS));
            }
            let grown = PARTS.min(places.len());
            places.rotate_left(grown);
        }
        for place in &places {
            let missing = self.missing();
            if missing == 0 {
                break;
            }
            self.grow(place, missing);
        }
        (self.missing() == 0).then_some(self.value)
    }

    /// How many bytes are missing.
    fn missing(&self) -> usize {
        self.wanted.saturating_sub(size(&self.value))
    }

    /// Lets the value at the place grow by at least so many bytes, where its format does.
    fn grow(&mut self, place: &Place, bytes: usize) {
        let Some(here) = self.tree.at(place) else {
            return;
        };
        let ways = match here {
            Tree::Text(text) => vec![Tree::Text(longer(text, self.filler, bytes))],
            Tree::List(elements) => [false, true]
                .map(|varied| Tree::List(more_elements(elements, varied, bytes)))
                .to_vec(),
            Tree::Object(members) => vec![Tree::Object(more_members(members, bytes))],
            _ => Vec::new(),
        };
        for way in ways {
            let mut tree = self.tree.clone();
            tree.put(place, way);
            if let Some(value) = read::<C>(&tree) {
                (self.tree, self.value) = (tree, value);
                return;
            }
        }
    }
}

/// The places from one of them on, then those before it.
fn from(mut places: Vec<Place>, at: Index) -> impl Iterator<Item = Place> {
    if !places.is_empty() {
        let first = at.index(places.len());
        places.rotate_left(first);
    }
    places.into_iter()
}

/// The value that the tree is, whole and with no rule broken but the lengths.
fn read<C: Examine>(tree: &Tree) -> Option<C> {
    let document = Document::from_text(tree.write(&super::style::COMPACT)).ok()?;
    let violations = C::examine(&document)?;
    if violations.iter().any(|found| found.code != Code::TOO_LONG) {
        return None;
    }
    let value = document.read::<C>().ok()?.value;
    // What the type does not hold is not there to be cut.
    let written = Document::new(&value).ok()?;
    (written.same_value(&document) && reads_as(&written, &value)).then_some(value)
}

/// The bytes of the compact form.
fn size<C: Examine>(value: &C) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

fn longer(text: &str, filler: &str, bytes: usize) -> String {
    format!("{text}{}", filler.repeat(bytes.div_ceil(filler.len())))
}

/// The list with copies of its elements after them; varied, each copy has texts of its own.
fn more_elements(elements: &[Tree], varied: bool, bytes: usize) -> Vec<Tree> {
    let mut all = elements.to_vec();
    let mut added = 0;
    let copies = elements.iter().cycle().zip(1_usize..);
    for (element, number) in copies.take_while(|(_, number)| *number <= bytes) {
        if added >= bytes {
            break;
        }
        let copy = if varied {
            another(element, number)
        } else {
            element.clone()
        };
        added += copy.write(&super::style::COMPACT).len() + 1;
        all.push(copy);
    }
    all
}

/// The object with copies of its members under other names: it has more data if it is a map.
fn more_members(members: &[(String, Tree)], bytes: usize) -> Vec<(String, Tree)> {
    let mut all = members.to_vec();
    let mut added = 0;
    let copies = members.iter().cycle().zip(1_usize..);
    for ((name, member), number) in copies.take_while(|(_, number)| *number <= bytes) {
        if added >= bytes {
            break;
        }
        let name = another_text(name, number);
        if all.iter().any(|(other, _)| *other == name) {
            continue;
        }
        added += name.len() + member.write(&super::style::COMPACT).len() + 4;
        all.push((name, member.clone()));
    }
    all
}

/// The same value with other texts.
fn another(tree: &Tree, number: usize) -> Tree {
    match tree {
        Tree::Text(text) if !tree.is_time() => Tree::Text(another_text(text, number)),
        Tree::Object(members) => {
            let members = members.iter();
            Tree::Object(
                members
                    .map(|(name, member)| (name.clone(), another(member, number)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// The text with more at its end: digits behind digits, so that an id stays one.
///
/// Digits are always as many: no two numbers make the same text of different ones.
fn another_text(text: &str, number: usize) -> String {
    if text.ends_with(|letter: char| letter.is_ascii_digit()) {
        format!("{text}{number:04}")
    } else {
        format!("{text} {number}")
    }
}
