//! Generates checkpoints with the deviations of real files.

use proptest::arbitrary::Arbitrary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edit::{Edit, is_inside, is_number, is_text, is_time, quoted};
use super::layout::layout;
use super::spelling::respelled;
use super::valid::{Examine, valid_with_document};
use crate::json::{Kind, Node};

/// Undeclared members seen in real files.
const UNDECLARED: &[(&str, &str)] = &[
    ("notes_for_next_agent", "\"see the branch\""),
    ("current_tier", "\"T3\""),
    ("_meta", "{\"deep\":[[{}]]}"),
    ("metrics", "{\"tokens\":123456789012}"),
    ("cost", "1.50"),
    ("", "null"),
    ("a/b~c", "true"),
];

/// Texts seen in real files in place of an id, a status or a sentence.
const TEXTS: &[&str] = &[
    "N/A",
    "pending",
    "in-progress",
    "COMPLETE",
    "approved",
    "done - all tests green, see the report",
    "../../elsewhere/x",
    "",
    "👩‍👩‍👧 e\u{301}",
];

/// Texts seen in real files in place of a time.
const TIMES: &[&str] = &[
    "N/A",
    "pending",
    "2026-03-04",
    "2026-03-04T09:15:42",
    "2026-03-04 09:15:42Z",
    "2026-02-30T00:00:00Z",
    "2026-03-04T09:15:42.1234567+01:00",
    "2031-01-01T00:00:00Z (estimated)",
    "2131-01-01T00:00:00Z",
];

/// The texts of checkpoints as real agents leave them: JSON objects that a lenient reader must accept, mostly with
/// violations.
///
/// A valid value is changed in 0 (1 of 5) to 4 places, each drawn separately:
///
/// | share | deviation |
/// |---|---|
/// | 6 of 20 | an undeclared member, in any object |
/// | 3 of 20 | a text that belongs elsewhere: `N/A`, a sentence, a path, nothing |
/// | 3 of 20 | in place of a time: `pending`, a date alone, no zone, 30 February, a far future |
/// | 2 of 20 | a text in another spelling: the other case, blanks, `-` for `_`, a sentence after it |
/// | 1 of 20 each | a list for an object or an object for a list; an element wrapped in an object; a number or a boolean in quotes; `null`; a member or element missing; an element twice |
///
/// One text in four has a duplicate of a root member at its end, which counts from then on. The layout is that of
/// [`restyled`](super::restyled): tabs, CRLF, byte order mark, or all on one line.
///
/// It shrinks towards a valid value in a plain layout; every step is the text of a JSON object.
pub fn as_agents_write_it<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let second = prop_oneof![
        3 => Just(None),
        1 => (any::<Index>(), select(TEXTS)).prop_map(Some),
    ];
    let deviations = vec((deviation(), any::<Index>()), 0..=4);
    (valid_with_document::<C>(), deviations, second, layout()).prop_map(
        |((_, document), deviations, second, layout)| {
            let document = deviations
                .into_iter()
                .fold(document, |document, (edit, at)| {
                    edit.apply(&document, at).unwrap_or(document)
                });
            let mut json = document.text().to_owned();
            let names: Vec<_> = document.root().members().map(|(name, _)| name).collect();
            if let Some((at, text)) = second
                && !names.is_empty()
            {
                json.pop();
                json += &format!(
                    ",{}:{}}}",
                    quoted(&names[at.index(names.len())]),
                    quoted(text)
                );
            }
            layout.of(&json)
        },
    )
}

/// One deviation of real files from their format.
fn deviation() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => select(UNDECLARED).prop_map(|(name, json)| {
            Edit::add("undeclared", name.to_owned(), json.to_owned())
        }),
        3 => select(TEXTS).prop_map(|text| Edit::put("text", is_text, quoted(text))),
        3 => select(TIMES).prop_map(|text| Edit::put("time", is_time, quoted(text))),
        2 => (0..6_u8).prop_map(|how| {
            Edit::of("spelled", is_text, move |value| {
                quoted(&respelled(&value.as_str().unwrap_or_default(), how))
            })
        }),
        1 => Just(Edit::of("other container", is_container, as_other_container)),
        1 => Just(Edit::of("wrapped", is_list, |list| {
            list_with(list, |first| vec![format!("{{\"id\":{first},\"note\":\"wrapped\"}}")])
        })),
        1 => Just(Edit::of("quoted", is_number_or_bool, |value| quoted(value.raw()))),
        1 => Just(Edit::put("null", is_inside, "null".to_owned())),
        1 => Just(Edit::remove("missing")),
        1 => Just(Edit::of("twice", is_list, |list| {
            list_with(list, |first| vec![first.to_owned(), first.to_owned()])
        })),
    ]
}

/// A list becomes an object of its elements by index, an object the list of its members.
fn as_other_container(value: Node<'_>) -> String {
    if value.kind() == Kind::Array {
        let elements = value.elements().enumerate();
        let members = elements.map(|(index, element)| format!("\"{index}\":{}", element.raw()));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    } else {
        let elements = value.members().map(|(_, member)| member.raw());
        format!("[{}]", elements.collect::<Vec<_>>().join(","))
    }
}

/// Replaces the first element of a list by other elements.
fn list_with(list: Node<'_>, first: impl Fn(&str) -> Vec<String>) -> String {
    let elements = list.elements().enumerate();
    let elements = elements.flat_map(|(index, element)| match index {
        0 => first(element.raw()),
        _ => vec![element.raw().to_owned()],
    });
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

fn is_container(value: Node<'_>) -> bool {
    is_inside(value) && matches!(value.kind(), Kind::Array | Kind::Object)
}

/// Whether the value is a list with at least one element.
fn is_list(value: Node<'_>) -> bool {
    value.elements().next().is_some()
}

fn is_number_or_bool(value: Node<'_>) -> bool {
    is_number(value) || value.kind() == Kind::Bool
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn the_shares_of_the_deviations_are_those_of_the_page() {
        const OF: usize = 2000;
        let mut runner = TestRunner::deterministic();
        let strategy = deviation();
        let mut counts = [0_usize; 5];
        for _ in 0..OF {
            let kind = match strategy.new_tree(&mut runner).unwrap().current().what {
                "undeclared" => 0,
                "text" => 1,
                "time" => 2,
                "spelled" => 3,
                _ => 4,
            };
            counts[kind] += 1;
        }
        for (count, twentieths) in counts.into_iter().zip([6, 3, 3, 2, 6]) {
            let off = count.abs_diff(OF * twentieths / 20);
            assert!(off < OF / 33, "{counts:?}");
        }
    }
}
