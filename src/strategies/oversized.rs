//! What is larger than a checkpoint should be.

use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edit::{is_text, pointers, quoted, replaced};
use super::valid::{Examine, document_of, reads_as, valid_with_document};
use crate::checkpoint::Limits;
use crate::json::{Code, Document, Kind, Node};

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
/// size. A value in which nothing can grow is skipped.
pub fn oversized<C: Arbitrary + Examine>() -> impl Strategy<Value = C> {
    let limit = Limits::default().total_bytes.unwrap_or_default();
    let growth = select(vec![Growth::Text, Growth::List, Growth::Several]);
    let wanted = limit + 1..=limit * 4;
    let choices = (growth, wanted, any::<Index>(), select(FILLERS));
    (valid_with_document::<C>(), choices).prop_filter_map(
        "nothing in the value can grow",
        |((value, document), (growth, wanted, at, filler))| {
            let growing = Growing {
                value,
                document,
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
    document: Document,
    wanted: usize,
    filler: &'static str,
}

impl<C: Examine> Growing<C> {
    fn grown(mut self, growth: Growth, at: Index) -> Option<C> {
        let texts = pointers(&self.document, is_text);
        let lists = pointers(&self.document, |value| {
            value.elements().next().is_some() || value.members().next().is_some()
        });
        // Those of the wanted kind first; the others where these cannot grow.
        let mut places = match growth {
            Growth::Text => [beginning_at(at, texts), lists].concat(),
            Growth::List => [beginning_at(at, lists), texts].concat(),
            Growth::Several => beginning_at(at, [texts, lists].concat()),
        };
        if growth == Growth::Several {
            let several = PARTS.min(places.len());
            for pointer in &places[..several] {
                self.grow(pointer, self.missing().div_ceil(PARTS));
            }
            places.rotate_left(several);
        }
        for pointer in &places {
            self.grow(pointer, self.missing());
        }
        (self.missing() == 0).then_some(self.value)
    }

    /// How many bytes are missing.
    fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.document.text().len())
    }

    /// Lets the value at the pointer grow at its end by at least so many bytes, where its format does.
    fn grow(&mut self, pointer: &str, bytes: usize) {
        let Some(here) = self.document.get(pointer).filter(|_| bytes > 0) else {
            return;
        };
        for other_texts in [false, true] {
            let (inside, end) = here.raw().split_at(here.raw().len() - 1);
            let json = format!("{inside}{}{end}", self.more(here, other_texts, bytes));
            let grown =
                replaced(&self.document, here, &json).and_then(|document| read::<C>(&document));
            if let Some((value, document)) = grown {
                (self.value, self.document) = (value, document);
                return;
            }
        }
    }

    /// What goes before the end of the value so that it has so many bytes more: more of a text, or copies of what is
    /// in a list or map, in a list as they are or with other texts.
    fn more(&self, value: Node<'_>, other_texts: bool, bytes: usize) -> String {
        let elements = value.elements().map(|element| (None, element));
        let members = value.members().map(|(name, member)| (Some(name), member));
        let inside: Vec<_> = elements.chain(members).collect();
        let mut more = String::new();
        for ((name, value), number) in inside.iter().cycle().zip(1..) {
            more += &match name {
                Some(name) => format!(",{}:{}", quoted(&other_text(name, number)), value.raw()),
                None if other_texts => format!(",{}", with_other_texts(*value, number)),
                None => format!(",{}", value.raw()),
            };
            if more.len() >= bytes {
                return more;
            }
        }
        self.filler.repeat(bytes.div_ceil(self.filler.len()))
    }
}

/// The pointers from one of them on, then those before it.
fn beginning_at(at: Index, mut pointers: Vec<String>) -> Vec<String> {
    if !pointers.is_empty() {
        let first = at.index(pointers.len());
        pointers.rotate_left(first);
    }
    pointers
}

/// The value that the document is, whole and with no rule broken but the lengths; with its own document.
fn read<C: Examine>(document: &Document) -> Option<(C, Document)> {
    let violations = C::examine(document)?;
    if violations.iter().any(|found| found.code != Code::TOO_LONG) {
        return None;
    }
    let value = document.read::<C>().ok()?.value;
    // What the type does not hold is not there to be cut.
    let written = document_of(&value)?;
    (written.same_value(document) && reads_as(&written, &value)).then_some((value, written))
}

/// The same value with other texts.
fn with_other_texts(value: Node<'_>, number: usize) -> String {
    match value.kind() {
        Kind::String if is_text(value) => {
            quoted(&other_text(&value.as_str().unwrap_or_default(), number))
        }
        Kind::Object => {
            let members = value.members().map(|(name, member)| {
                format!("{}:{}", quoted(&name), with_other_texts(member, number))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        _ => value.raw().to_owned(),
    }
}

/// The text with more at its end: digits behind digits, so that an id stays one.
///
/// Digits are always as many: no two numbers make the same text of different ones.
fn other_text(text: &str, number: usize) -> String {
    if text.ends_with(|letter: char| letter.is_ascii_digit()) {
        format!("{text}{number:04}")
    } else {
        format!("{text} {number}")
    }
}
