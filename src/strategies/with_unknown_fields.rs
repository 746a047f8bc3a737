//! Generates valid documents with members that the type does not declare.

use proptest::arbitrary::Arbitrary;
use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edit::{is_object, pointers, with_member};
use super::layout::layout_without_mark;
use super::valid::{Examine, is_document_of, valid_with_document};
use crate::json::{Document, Node};

/// The name of an undeclared member.
#[derive(Clone, Debug)]
enum Name {
    Text(String),
    /// The name of a member of the same object, in the other case.
    OtherCase(Index),
}

/// Names that people use, that must be escaped in a text or in a pointer, or that have a special meaning for some
/// reader.
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

/// The texts of valid documents with 1 to 4 undeclared members, at the root or in any object inside. In 1 of 4 texts,
/// every object that accepts an undeclared member has one.
///
/// Such a text reads as the same value as without these members, and breaks no rule; a save keeps them. An object that
/// is a map gets none, since a new member would be data.
///
/// | share | the name of the member |
/// |---|---|
/// | 3 of 5 | one that people use, or that must be escaped: `a/b~c`, quotes, line ends, controls, empty |
/// | 1 of 5 | a declared member of the same object, in the other case |
/// | 1 of 5 | 1 to 6 letters of any script |
///
/// The first member is at the root in 1 of 2 texts; otherwise the object is drawn from all, and the position among the
/// siblings too. Values are those of [`json_value`](crate::strategies::json_value), layouts those of
/// [`restyled`](super::restyled) without the byte order mark, which is a violation.
///
/// It shrinks towards one undeclared member at the root of a small valid value. For a type of which no object accepts
/// an undeclared member, such as one with `flatten` into a map, proptest gives up with a message.
pub fn with_unknown_fields<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let json = crate::checkpoint::arbitrary::json_value().prop_map(|value| value.to_string());
    let member = (any::<Index>(), name(), json);
    let member = member.prop_map(|(at, name, json)| Undeclared { name, json, at });
    let choices = (weighted(0.5), weighted(0.25), layout_without_mark());
    (valid_with_document::<C>(), vec(member, 1..=4), choices).prop_filter_map(
        "no object takes an undeclared member",
        |((value, document), members, (anywhere, everywhere, layout))| {
            let mut extended = Extended {
                document,
                value,
                count: 0,
            };
            if everywhere {
                for pointer in extended.objects() {
                    extended.add(&pointer, &members[0]);
                }
            }
            for (number, member) in members.iter().enumerate() {
                let mut objects = extended.objects();
                if number > 0 || anywhere {
                    let first = member.at.index(objects.len());
                    objects.rotate_left(first);
                }
                // If one object accepts none, the next one is tried; the root is among them.
                let _ = objects.iter().any(|pointer| extended.add(pointer, member));
            }
            (extended.count > 0).then(|| layout.of(extended.document.text()))
        },
    )
}

/// A member to add at any position among its siblings.
#[derive(Clone, Debug)]
struct Undeclared {
    name: Name,
    json: String,
    at: Index,
}

/// A document with undeclared members, and its value without them.
struct Extended<C> {
    document: Document,
    value: C,
    count: usize,
}

impl<C: Examine> Extended<C> {
    fn objects(&self) -> Vec<String> {
        pointers(&self.document, is_object)
    }

    /// Adds the member to an object if the type ignores it there; returns whether it does.
    fn add(&mut self, pointer: &str, member: &Undeclared) -> bool {
        let Some(object) = self.document.get(pointer) else {
            return false;
        };
        let name = unused(object, &member.name);
        let extended = with_member(&self.document, object, &name, &member.json, member.at)
            .filter(|extended| is_document_of(extended, &self.value));
        let is_undeclared = extended.is_some();
        if let Some(document) = extended {
            self.document = document;
            self.count += 1;
        }
        is_undeclared
    }
}

/// The name, with `_` appended until no other member has it.
fn unused(object: Node<'_>, name: &Name) -> String {
    let names: Vec<_> = object.members().map(|(name, _)| name).collect();
    let mut name = match name {
        Name::Text(name) => name.clone(),
        Name::OtherCase(_) if names.is_empty() => "Member".to_owned(),
        Name::OtherCase(of) => in_other_case(&names[of.index(names.len())]),
    };
    while object.get(&name).is_some() {
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
