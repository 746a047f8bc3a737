//! JSON objects of any shape around that of a type.

use std::sync::Arc;

use proptest::arbitrary::Arbitrary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::boundaries::{self, Near};
use super::examine::Examine;
use super::members::members;
use super::style::{Style, style_without_mark};
use super::tree::{Place, Tree};
use super::valid::valid;

/// Readers have a bound on how deep a text nests, the library and serde_json 128: below it stays what is
/// put inside one another.
const MOST_LEVELS: usize = 100;

/// One way in which a value leaves the shape of its type.
#[derive(Clone, Debug)]
enum Change {
    /// Another value, of any type, at any place.
    Replace(Tree),
    /// A number at an edge, where a number is.
    Number(String),
    /// A time or what is taken for one, where a time is.
    Time(&'static str),
    /// A text near the one that is there.
    Text(Near),
    /// One member or element is not there.
    Remove,
    /// One member more, that the type may have elsewhere or not at all.
    Add(String, Tree),
    /// A list or an object without what is in it.
    Empty,
    /// The value of another place.
    Copy(Index),
}

/// Texts of JSON objects around the shape of `C`, valid and not, for a test such as *the typed reading has
/// no violation exactly when the schema takes it*.
///
/// | share | the object is |
/// |---|---|
/// | 1 of 8 | a valid value as it is |
/// | 6 of 8 | a valid value with 1 (half), 2, 3 or 4 changes, at places drawn anew for each |
/// | 1 of 8 | 0 to 7 members with names and values that `C` has at any level, 1 of 4 values of another type |
///
/// Of the changes
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
/// Where a value has no time or no number, any place takes the new one. No object has two members of one
/// name, no text a byte order mark: what a JSON Schema cannot see, [`as_agents_write_it`] has. Layouts
/// are those of [`restyled`].
///
/// It shrinks towards valid values in one plain layout: fewer changes, simpler ones, and a simpler value
/// under them; every step is the text of a JSON object.
///
/// [`as_agents_write_it`]: super::as_agents_write_it()
/// [`restyled`]: super::restyled
pub fn any_shape<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let known = Arc::new(members::<C>());
    let changes = prop_oneof![
        1 => Just(Vec::new()),
        3 => vec((change(&known), any::<Index>()), 1),
        3 => vec((change(&known), any::<Index>()), 2..=4),
    ];
    let around = (valid::<C>(), changes).prop_map(|(value, changes)| {
        let mut tree = Tree::of(&value);
        for (change, at) in changes {
            let before = tree.clone();
            apply(&mut tree, change, at);
            if tree.depth() > MOST_LEVELS {
                tree = before;
            }
        }
        tree
    });
    let free = vec((member(&known), any::<Index>()), 0..8).prop_map(|members| {
        let mut tree = Tree::Object(Vec::new());
        for ((name, value), at) in members {
            tree.insert(name, value, at);
        }
        tree
    });
    let object = prop_oneof![7 => around, 1 => free];
    (object, style_without_mark()).prop_map(|(tree, style): (Tree, Style)| tree.write(&style))
}

fn change(known: &[(String, Tree)]) -> impl Strategy<Value = Change> + use<> {
    prop_oneof![
        5 => boundaries::near().prop_map(Change::Text),
        4 => boundaries::time().prop_map(Change::Time),
        3 => boundaries::scalar_or_deep().prop_map(Change::Replace),
        3 => boundaries::number().prop_map(Change::Number),
        2 => Just(Change::Remove),
        2 => prop_oneof![
            3 => member(known),
            1 => ("[a-z_]{1,8}|\\PC{0,6}", boundaries::scalar_or_deep()),
        ]
        .prop_map(|(name, value)| Change::Add(name, value)),
        1 => prop_oneof![Just(Change::Empty), any::<Index>().prop_map(Change::Copy)],
    ]
}

/// A member that the type has somewhere, 1 of 4 with a value of any type.
fn member(known: &[(String, Tree)]) -> impl Strategy<Value = (String, Tree)> + use<> {
    // A type without members still has objects.
    let mut known = known.to_vec();
    if known.is_empty() {
        known.push(("member".to_owned(), Tree::Null));
    }
    let other = prop_oneof![
        3 => Just(None),
        1 => boundaries::scalar_or_deep().prop_map(Some),
    ];
    (select(known), other).prop_map(|((name, value), other)| (name, other.unwrap_or(value)))
}

/// Makes a change at one of the places that it fits.
fn apply(tree: &mut Tree, change: Change, at: Index) {
    let mut places = tree.places_of(|value| fits(&change, value));
    // The root stays an object: another one is no document at all.
    if !matches!(change, Change::Add(..) | Change::Empty) {
        places.retain(|place| !place.is_empty());
    }
    if places.is_empty() {
        places = tree.places();
        places.retain(|place| !place.is_empty());
    }
    if places.is_empty() {
        return;
    }
    let place = at.get(&places).clone();
    match change {
        Change::Replace(value) => tree.put(&place, value),
        Change::Number(number) => tree.put(&place, Tree::Number(number)),
        Change::Time(time) => tree.put(&place, Tree::text(time)),
        Change::Text(near) => {
            let text = match tree.at(&place) {
                Some(Tree::Text(text)) => text.clone(),
                _ => String::new(),
            };
            tree.put(&place, Tree::Text(near.of(&text)));
        }
        Change::Remove => tree.remove(&place),
        Change::Add(name, value) => {
            if let Some(object) = tree.at_mut(&place) {
                object.insert(name, value, at);
            }
        }
        Change::Empty => match tree.at_mut(&place) {
            Some(Tree::List(elements)) => elements.clear(),
            Some(Tree::Object(members)) => members.clear(),
            _ => {}
        },
        Change::Copy(from) => {
            let places = tree.places();
            let from: &Place = from.get(&places);
            if let Some(value) = tree.at(from).cloned() {
                tree.put(&place, value);
            }
        }
    }
}

fn fits(change: &Change, value: &Tree) -> bool {
    match change {
        Change::Replace(_) | Change::Remove | Change::Copy(_) => true,
        Change::Number(_) => matches!(value, Tree::Number(_)),
        Change::Time(_) => value.is_time(),
        Change::Text(_) => matches!(value, Tree::Text(_)) && !value.is_time(),
        Change::Add(..) => value.is_object(),
        Change::Empty => matches!(value, Tree::List(_) | Tree::Object(_)),
    }
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
        let mut runner = TestRunner::deterministic();
        let strategy = change(&members::<TaskCheckpoint>());
        let mut counts = [0_usize; 7];
        for _ in 0..OF {
            let kind = match strategy.new_tree(&mut runner).unwrap().current() {
                Change::Text(_) => 0,
                Change::Time(_) => 1,
                Change::Replace(_) => 2,
                Change::Number(_) => 3,
                Change::Remove => 4,
                Change::Add(..) => 5,
                Change::Empty | Change::Copy(_) => 6,
            };
            counts[kind] += 1;
        }
        for (count, twentieths) in counts.into_iter().zip([5, 4, 3, 3, 2, 2, 1]) {
            let off = count.abs_diff(OF * twentieths / 20);
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
