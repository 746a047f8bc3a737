//! Valid documents with members that nobody declared.

use proptest::arbitrary::Arbitrary;
use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::examine::Examine;
use super::style::{Style, style_without_mark};
use super::tree::{Place, Tree};
use super::valid::{reads_as, valid};
use crate::json::Document;

/// How an undeclared member is called.
#[derive(Clone, Debug)]
enum Name {
    Text(String),
    /// As a member of the same object, in the other case.
    OtherCase(Index),
}

/// Names that people gave, that have to be escaped in a text or in a pointer, or that mean something to
/// some reader.
const NAMES: &[&str] = &[
    "notes_for_next_agent",
    "current_tier",
    "_meta",
    "$ref",
    "__proto__",
    "",
    " ",
    "0",
    "-",
    "a/b~c",
    "~1",
    "with \"quotes\"",
    "back\\slash",
    "line\nend",
    "nul\0",
    "\u{7f}\u{2028}",
    "ключ",
    "😀",
    "e\u{301}",
];

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        3 => select(NAMES).prop_map(|name| Name::Text(name.to_owned())),
        1 => any::<Index>().prop_map(Name::OtherCase),
        1 => "\\PC{1,6}".prop_map(Name::Text),
    ]
}

/// The texts of valid documents with 1 to 4 members that the type does not declare, at the root or in any
/// object inside; in one text of four, every object that takes one has one.
///
/// What is read from such a text is what was read without those members, and no rule is broken; a save
/// keeps them. Where an object is a map, so that a new member is data, it gets none.
///
/// | share | the member is called |
/// |---|---|
/// | 3 of 5 | like one that people write, or so that it has to be escaped: `a/b~c`, quotes, line ends, controls, nothing |
/// | 1 of 5 | like a declared member of the same object, in the other case |
/// | 1 of 5 | 1 to 6 letters of any script |
///
/// The first member stands at the root in every other text; others, and their positions among their
/// siblings, are drawn from all. Values are those of [`json_value`](super::json_value), layouts those of
/// [`restyled`](super::restyled) without the byte order mark, which is a violation.
///
/// It shrinks towards one undeclared member at the root of a small valid value. A type of which no object
/// takes an undeclared member, such as one with `flatten` into a map, has no such text: proptest gives up
/// on it and says so.
pub fn with_unknown_fields<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let value = super::json_value().prop_map(|value| Tree::of(&value));
    let members = vec((any::<Index>(), name(), value), 1..=4);
    let choices = (weighted(0.5), weighted(0.25), style_without_mark());
    (valid::<C>(), members, choices).prop_filter_map(
        "no object takes an undeclared member",
        |(value, members, (anywhere, everywhere, style))| {
            Extended::of(value, style).with(members, anywhere, everywhere)
        },
    )
}

/// A value on its way to its text with undeclared members.
struct Extended<C> {
    value: C,
    tree: Tree,
    style: Style,
    count: usize,
}

impl<C: Examine> Extended<C> {
    fn of(value: C, style: Style) -> Self {
        let tree = Tree::of(&value);
        Extended {
            value,
            tree,
            style,
            count: 0,
        }
    }

    fn with(
        mut self,
        members: Vec<(Index, Name, Tree)>,
        anywhere: bool,
        everywhere: bool,
    ) -> Option<String> {
        if everywhere && let Some((at, name, value)) = members.first() {
            // From the last to the first, so that the places of the others stay.
            for place in self.objects().into_iter().rev() {
                self.add(&place, name, value, *at);
            }
        }
        for (number, (at, name, value)) in members.into_iter().enumerate() {
            let places = self.objects();
            let first = if number == 0 && !anywhere {
                0
            } else {
                at.index(places.len())
            };
            // Where one takes none, the next does; the root is one of them.
            let mut places = places.iter().cycle().skip(first).take(places.len());
            places.any(|place| self.add(place, &name, &value, at));
        }
        (self.count > 0).then(|| self.tree.write(&self.style))
    }

    fn objects(&self) -> Vec<Place> {
        self.tree.places_of(Tree::is_object)
    }

    /// Puts the member in where the type does not look at it; says whether it does not.
    fn add(&mut self, place: &Place, name: &Name, value: &Tree, at: Index) -> bool {
        let before = self.tree.clone();
        if let Some(Tree::Object(members)) = self.tree.at_mut(place) {
            let name = unused(members, name);
            members.insert(at.index(members.len() + 1), (name, value.clone()));
        }
        let is_unknown = Document::from_text(self.tree.write(&self.style)).is_ok_and(|document| {
            reads_as(&document, &self.value)
                && C::examine(&document).is_some_and(|violations| violations.is_empty())
        });
        if is_unknown {
            self.count += 1;
        } else {
            self.tree = before;
        }
        is_unknown
    }
}

/// The name, with `_` behind it as often as another member has it.
fn unused(members: &[(String, Tree)], name: &Name) -> String {
    let mut name = match name {
        Name::Text(name) => name.clone(),
        Name::OtherCase(_) if members.is_empty() => "Member".to_owned(),
        Name::OtherCase(of) => in_other_case(&of.get(members).0),
    };
    while members.iter().any(|(other, _)| *other == name) {
        name.push('_');
    }
    name
}

fn in_other_case(name: &str) -> String {
    let upper = name.to_uppercase();
    if upper == name {
        name.to_lowercase()
    } else {
        upper
    }
}
