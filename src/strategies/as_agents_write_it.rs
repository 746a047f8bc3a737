//! Checkpoints bent the way agents and people bend them.

use proptest::arbitrary::Arbitrary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::examine::Examine;
use super::style::style;
use super::tree::Tree;
use super::valid::valid;
use super::vocabulary::respelled;

/// One way in which real files differ from their format.
#[derive(Clone, Debug)]
enum Deviation {
    /// A member that nobody declared.
    Foreign(&'static str, Tree),
    /// A sentence or a word where another text, an id or a state belongs.
    Text(&'static str),
    /// What stands where a time belongs.
    Time(&'static str),
    /// A text in another spelling.
    Spelled(u8),
    /// A list where an object belongs, and the other way round.
    OtherContainer,
    /// An element of a list wrapped in an object.
    Wrapped,
    /// A number or a boolean as a text.
    Quoted,
    /// Nothing where something was.
    Null,
    /// A member that is not there.
    Removed,
    /// An element that stands twice.
    Twice,
}

/// Texts that stood in real files where an id, a status or a sentence belongs.
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

/// Texts that stood in real files where a time belongs.
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

fn foreign() -> impl Strategy<Value = Deviation> {
    let number = |text: &str| Tree::Number(text.to_owned());
    let object = |name: &str, value| Tree::Object(vec![(name.to_owned(), value)]);
    let deep = Tree::List(vec![Tree::List(vec![Tree::Object(Vec::new())])]);
    select(vec![
        ("notes_for_next_agent", Tree::text("see the branch")),
        ("current_tier", Tree::text("T3")),
        ("_meta", object("deep", deep)),
        ("metrics", object("tokens", number("123456789012"))),
        ("cost", number("1.50")),
        ("", Tree::Null),
        ("a/b~c", Tree::Bool(true)),
    ])
    .prop_map(|(name, value)| Deviation::Foreign(name, value))
}

fn deviation() -> impl Strategy<Value = Deviation> {
    prop_oneof![
        6 => foreign(),
        3 => select(TEXTS).prop_map(Deviation::Text),
        3 => select(TIMES).prop_map(Deviation::Time),
        2 => (0..6_u8).prop_map(Deviation::Spelled),
        1 => Just(Deviation::OtherContainer),
        1 => Just(Deviation::Wrapped),
        1 => Just(Deviation::Quoted),
        1 => Just(Deviation::Null),
        1 => Just(Deviation::Removed),
        1 => Just(Deviation::Twice),
    ]
}

/// The texts of checkpoints as real agents leave them: JSON objects that a lenient reader must take,
/// mostly with violations.
///
/// A valid value is bent in 0 (1 of 5) to 4 places, each drawn anew:
///
/// | share | deviation |
/// |---|---|
/// | 6 of 20 | a member that nobody declared, in any object |
/// | 3 of 20 | a text that belongs elsewhere: `N/A`, a sentence, a path, nothing |
/// | 3 of 20 | in place of a time: `pending`, a date alone, no zone, 30 February, a far future |
/// | 2 of 20 | a text in another spelling: the other case, blanks, `-` for `_`, a sentence after it |
/// | 1 of 20 each | a list for an object or an object for a list; an element wrapped in an object; a number or a boolean in quotes; `null`; a member or element missing; an element twice |
///
/// One text in four has a second member of a name of its root at its end, which counts from then on. The
/// layout is that of [`restyled`](super::restyled): tabs, CRLF, byte order mark, all on one line.
///
/// It shrinks towards a valid value in a plain layout; every step is the text of a JSON object.
pub fn as_agents_write_it<C: Arbitrary + Examine>() -> impl Strategy<Value = String> {
    let second = prop_oneof![
        3 => Just(None),
        1 => (any::<Index>(), select(TEXTS)).prop_map(Some),
    ];
    let deviations = vec((deviation(), any::<Index>()), 0..=4);
    (valid::<C>(), deviations, second, style()).prop_map(|(value, deviations, second, style)| {
        let mut tree = Tree::of(&value);
        for (deviation, at) in deviations {
            bend(&mut tree, deviation, at);
        }
        if let (Tree::Object(members), Some((at, text))) = (&mut tree, second)
            && !members.is_empty()
        {
            let name = at.get(members).0.clone();
            members.push((name, Tree::text(text)));
        }
        tree.write(&style)
    })
}

/// Bends the value at one of the places that fit; leaves it where none does.
fn bend(tree: &mut Tree, deviation: Deviation, at: Index) {
    let mut places = tree.places_of(|value| fits(&deviation, value));
    // The root stays an object: another one is no document at all.
    if !matches!(deviation, Deviation::Foreign(..)) {
        places.retain(|place| !place.is_empty());
    }
    if places.is_empty() {
        return;
    }
    let place = at.get(&places).clone();
    if matches!(deviation, Deviation::Removed) {
        tree.remove(&place);
    } else if let Some(value) = tree.at_mut(&place) {
        change(value, deviation, at);
    }
}

fn change(value: &mut Tree, deviation: Deviation, at: Index) {
    match (deviation, &mut *value) {
        (Deviation::Foreign(name, foreign), object) => object.insert(name.to_owned(), foreign, at),
        (Deviation::Text(text) | Deviation::Time(text), value) => *value = Tree::text(text),
        (Deviation::Spelled(how), Tree::Text(text)) => *text = respelled(text, how),
        (Deviation::OtherContainer, Tree::List(elements)) => {
            let members = std::mem::take(elements).into_iter().enumerate();
            let named = members.map(|(position, element)| (position.to_string(), element));
            *value = Tree::Object(named.collect());
        }
        (Deviation::OtherContainer, Tree::Object(members)) => {
            let elements = std::mem::take(members).into_iter();
            *value = Tree::List(elements.map(|(_, member)| member).collect());
        }
        (Deviation::Wrapped, Tree::List(elements)) => {
            if let Some(first) = elements.first_mut() {
                let id = std::mem::replace(first, Tree::Null);
                let note = ("note".to_owned(), Tree::text("wrapped"));
                *first = Tree::Object(vec![("id".to_owned(), id), note]);
            }
        }
        (Deviation::Quoted, Tree::Number(number)) => *value = Tree::text(number.as_str()),
        (Deviation::Quoted, Tree::Bool(truth)) => *value = Tree::text(truth.to_string()),
        (Deviation::Null, value) => *value = Tree::Null,
        (Deviation::Twice, Tree::List(elements)) => elements.extend(elements.first().cloned()),
        _ => {}
    }
}

fn fits(deviation: &Deviation, value: &Tree) -> bool {
    match deviation {
        Deviation::Foreign(..) => value.is_object(),
        Deviation::Text(_) | Deviation::Spelled(_) => {
            matches!(value, Tree::Text(_)) && !value.is_time()
        }
        Deviation::Time(_) => value.is_time(),
        Deviation::OtherContainer => matches!(value, Tree::List(_) | Tree::Object(_)),
        Deviation::Wrapped | Deviation::Twice => {
            matches!(value, Tree::List(elements) if !elements.is_empty())
        }
        Deviation::Quoted => matches!(value, Tree::Number(_) | Tree::Bool(_)),
        Deviation::Null | Deviation::Removed => true,
    }
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
            let kind = match strategy.new_tree(&mut runner).unwrap().current() {
                Deviation::Foreign(..) => 0,
                Deviation::Text(_) => 1,
                Deviation::Time(_) => 2,
                Deviation::Spelled(_) => 3,
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
