//! Generates JSON objects of any shape, based on that of a type.

use std::collections::{BTreeMap, BTreeSet};

use proptest::arbitrary::Arbitrary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::boundaries;
use super::edit::{Edit, is_inside, is_number, is_object, is_time, replaced, values, with_member};
use super::layout::layout_without_mark;
use super::valid::{Examine, valid_with_document};
use crate::json::{Document, Kind, Node};

/// The deepest nesting of generated texts. Readers have a limit, which is 128 for the library and serde_json.
const MOST_LEVELS: usize = 100;

/// Texts of JSON objects based on the shape of `C`, valid and invalid, for a test such as *the typed reading has no
/// violation exactly when the schema accepts the text*.
///
/// | share | the object is |
/// |---|---|
/// | 1 of 8 | a valid value, unchanged |
/// | 6 of 8 | a valid value with 1 (half), 2, 3 or 4 changes, each at a place drawn separately |
/// | 1 of 8 | 0 to 7 members with names and values that `C` has at any level, 1 of 4 values of another type |
///
/// The changes are:
///
/// | share | change |
/// |---|---|
/// | 5 of 20 | a text becomes one near it: empty, exactly 100, 101, 200 or 201 code points (also outside the basic plane), in another case, with blanks or more at an end, in other digits, one letter more or less |
/// | 4 of 20 | a time becomes another spelling at the edges of RFC 3339: space or `t` for `T`, leap seconds, offsets to `+24:00` and `-00:00`, 30 February, leap years, no zone, up to 30 digits, years 0000 and 9999 |
/// | 3 of 20 | a value becomes one of any type: `null`, a number, a text, empty, up to 60 levels deep |
/// | 3 of 20 | a number becomes one at an edge: `-0`, `-1`, `1.0`, `1e2`, one beyond a range, the limits of `i64` and `u64`, beyond `f64` (1 of 20 numbers, such as `1e400`; readers that keep numbers as `f64`, serde_json among them, refuse the whole text) |
/// | 2 of 20 | a member or an element is removed |
/// | 2 of 20 | a member is added: one that the type has elsewhere, or an undeclared one |
/// | 1 of 20 | a list or an object is emptied, or a value takes that of another place |
///
/// If the value has no time or no number, the change is made at any place. No object has duplicate names and no text
/// has a byte order mark, since a JSON Schema cannot see these; [`as_agents_write_it`] generates them. Layouts are
/// those of [`restyled`].
///
/// It shrinks towards valid values in one plain layout: fewer and simpler changes, and a simpler value under them.
/// Every step is the text of a JSON object.
///
/// [`as_agents_write_it`]: super::as_agents_write_it()
/// [`restyled`]: super::restyled
pub fn any_shape<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let known = members::<C>();
    let edits = |count| vec((edit(&known), any::<Index>()), count);
    let edits = prop_oneof![
        1 => Just(Vec::new()),
        3 => edits(1..=1),
        3 => edits(2..=4),
    ];
    let around = (valid_with_document::<C>(), edits).prop_map(|((_, document), edits)| {
        edits.into_iter().fold(document, |document, (edit, at)| {
            let changed = edit.apply(&document, at);
            let changed = changed.or_else(|| edit.anywhere().apply(&document, at));
            changed.filter(is_shallow).unwrap_or(document)
        })
    });
    let members = vec((member(&known), any::<Index>()), 0..8);
    let free = members.prop_filter_map("an empty object is a document", |members| {
        let empty = Document::from_text("{}").ok()?;
        members
            .into_iter()
            .try_fold(empty, |object, ((name, json), at)| {
                with_member(&object, object.root(), &name, &json, at)
            })
    });
    let document = prop_oneof![7 => around, 1 => free];
    (document, layout_without_mark()).prop_map(|(document, layout)| layout.of(document.text()))
}

/// A change of a document; `known` are the members of its type.
fn edit(known: &[(String, String)]) -> impl Strategy<Value = Edit> + use<> {
    let undeclared = ("[a-z_]{1,8}|\\PC{0,6}", boundaries::scalar_or_deep());
    prop_oneof![
        5 => boundaries::near_text(),
        4 => boundaries::time().prop_map(|json| Edit::put("time", is_time, json)),
        3 => boundaries::scalar_or_deep().prop_map(|json| Edit::put("any", is_inside, json)),
        3 => boundaries::number().prop_map(|json| Edit::put("number", is_number, json)),
        2 => Just(Edit::remove("removed")),
        2 => prop_oneof![3 => member(known), 1 => undeclared]
            .prop_map(|(name, json)| Edit::add("added", name, json)),
        1 => prop_oneof![Just(emptied()), any::<Index>().prop_map(copied)],
    ]
}

/// Empties a list or an object.
fn emptied() -> Edit {
    let is_container = |value: Node<'_>| is_object(value) || value.kind() == Kind::Array;
    Edit::of("emptied or copied", is_container, |value| {
        let empty = if is_object(value) { "{}" } else { "[]" };
        empty.to_owned()
    })
}

/// Copies a value from another place.
fn copied(from: Index) -> Edit {
    Edit::new("emptied or copied", is_inside, move |document, value, _| {
        let all = values(document.root());
        replaced(document, value, from.get(&all).raw())
    })
}

fn is_shallow(document: &Document) -> bool {
    let all = values(document.root());
    let depths = all.iter().map(|value| value.pointer().matches('/').count());
    depths.max().is_none_or(|deepest| deepest < MOST_LEVELS)
}

/// A member that the type has at some level, 1 of 4 with a value of any type.
fn member(known: &[(String, String)]) -> impl Strategy<Value = (String, String)> + use<> {
    // A type without members still has objects.
    let mut known = known.to_vec();
    if known.is_empty() {
        known.push(("member".to_owned(), "null".to_owned()));
    }
    let other = prop_oneof![
        3 => Just(None),
        1 => boundaries::scalar_or_deep().prop_map(Some),
    ];
    (select(known), other).prop_map(|((name, json), other)| (name, other.unwrap_or(json)))
}

/// The members of a type, each with up to 8 of its values, from 64 valid values that are the same on every run.
fn members<C: Arbitrary + Examine>() -> Vec<(String, String)> {
    let mut runner = TestRunner::deterministic();
    let strategy = valid_with_document::<C>();
    let mut seen: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for _ in 0..64 {
        let Ok(drawn) = strategy.new_tree(&mut runner) else {
            continue;
        };
        let (_, document) = drawn.current();
        let mut names = BTreeSet::new();
        for object in values(document.root()) {
            for (name, member) in object.members() {
                let (_, values) = seen.entry(name.to_string()).or_default();
                values.insert(member.raw().to_owned());
                names.insert(name.into_owned());
            }
        }
        for name in names {
            seen.entry(name).or_default().0 += 1;
        }
    }
    // A name that occurs in only one value is a key of a map, not a member.
    seen.retain(|_, (count, _)| *count > 1);
    let members = seen.into_iter().flat_map(|(name, (_, values))| {
        let kept = values.into_iter().take(8);
        kept.map(move |json| (name.clone(), json))
    });
    members.collect()
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::formats::TaskCheckpoint;

    #[test]
    fn the_shares_of_the_changes_are_those_of_the_page() {
        const OF: usize = 2000;
        const SHARES: [(&str, usize); 7] = [
            ("text", 5),
            ("time", 4),
            ("any", 3),
            ("number", 3),
            ("removed", 2),
            ("added", 2),
            ("emptied or copied", 1),
        ];
        let mut runner = TestRunner::deterministic();
        let strategy = edit(&members::<TaskCheckpoint>());
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for _ in 0..OF {
            let kind = strategy.new_tree(&mut runner).unwrap().current().what;
            *counts.entry(kind).or_insert(0) += 1;
        }
        for (kind, twentieths) in SHARES {
            let off = counts[kind].abs_diff(OF * twentieths / 20);
            assert!(off < OF / 33, "{counts:?}");
        }
    }

    #[test]
    fn all_members_of_a_type_are_found() {
        let found = members::<TaskCheckpoint>();
        for name in [
            "partialWork",
            "rationale",
            "contractRef",
            "runAt",
            "previousAgents",
        ] {
            assert!(found.iter().any(|(member, _)| member == name), "{name}");
        }
    }
}
