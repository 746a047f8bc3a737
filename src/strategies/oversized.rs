//! Generates values that are larger than a checkpoint should be.

use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edit::{is_text, pointers, quoted, replaced};
use super::valid::{Examine, document_of, reads_as, valid_with_document};
use crate::checkpoint::Limits;
use crate::json::{Code, Document, Kind, Node};

/// Which part of a value grows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth {
    /// One text grows.
    Text,
    /// One list or map grows.
    List,
    /// Several texts, lists or maps, each by a part.
    Several,
}

/// The fillers of growing texts: ASCII words, letters of two bytes, and clusters of many code points.
const FILLERS: &[&str] = &[" and so on", "é", "👩‍👩‍👧 "];

/// Each of several places grows by one of this many parts of what is missing.
const PARTS: usize = 4;

/// Values that keep every rule of their format except lengths, and whose compact form exceeds [`Limits::total_bytes`]
/// of the default limits: it has more than 2,048 bytes, at least a size drawn evenly from 2,049 to 8,192.
///
/// A valid value grows, each way equally frequent, in one text (by ASCII, by letters of two bytes, or by emoji of
/// several code points), in one list or map (by more elements like its own), or in several places, each by a fourth of
/// what is missing. If the rules of the format do not let a place grow, such as an id or a time, another place grows.
/// So the only violations are `too-long`, and a save of a format with limits has to cut, or to report that the
/// checkpoint is over its limit.
///
/// It shrinks towards 2,049 bytes and a small valid value before the growth, never below that size. A value in which
/// nothing can grow is skipped.
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

/// A value that is growing to its size.
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
        // Places of the wanted kind come first, then the others.
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

    /// Lets the value at the pointer grow by at least `bytes` bytes, if the rules of its format allow it.
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

    /// The JSON to insert before the end of the value so that it grows by `bytes` bytes: more text, or copies of the
    /// content of a list or map. The elements of a list are copied unchanged or with other texts.
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

/// The pointers from a chosen one on, followed by those before it.
fn beginning_at(at: Index, mut pointers: Vec<String>) -> Vec<String> {
    if !pointers.is_empty() {
        let first = at.index(pointers.len());
        pointers.rotate_left(first);
    }
    pointers
}

/// Reads the document as a value, if it is complete and breaks no rule but lengths; returns it with its own document.
fn read<C: Examine>(document: &Document) -> Option<(C, Document)> {
    let violations = C::examine(document)?;
    if violations.iter().any(|found| found.code != Code::TOO_LONG) {
        return None;
    }
    let value = document.read::<C>().ok()?.value;
    // Members that the type does not hold could not be cut.
    let written = document_of(&value)?;
    (written.same_value(document) && reads_as(&written, &value)).then_some((value, written))
}

/// The value with other texts in it.
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

/// The text with an addition at its end: digits after digits, so that an id stays an id.
///
/// The number of digits is fixed, so that different texts and numbers never give the same text.
fn other_text(text: &str, number: usize) -> String {
    if text.ends_with(|letter: char| letter.is_ascii_digit()) {
        format!("{text}{number:04}")
    } else {
        format!("{text} {number}")
    }
}
