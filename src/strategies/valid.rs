//! What keeps every rule of its format.

use std::fmt::Debug;

use proptest::arbitrary::{Arbitrary, any};
use proptest::strategy::Strategy;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::{Checkpoint, RuleContext};
use crate::formats::Format;
use crate::formats::builder_state::BuilderState;
use crate::json::{Document, Violation};

/// A type whose documents can be read and judged: every [`Checkpoint`], and the host file [`BuilderState`].
pub trait Examine:
    Serialize + DeserializeOwned + Clone + PartialEq + Debug + sealed::Sealed + 'static
{
    /// What in the document breaks the format's rules, from the document alone.
    ///
    /// `None` when the document cannot be read as this type at all.
    fn examine(document: &Document) -> Option<Vec<Violation>>;
}

mod sealed {
    pub trait Sealed {}

    impl<C: super::Checkpoint> Sealed for C {}

    impl Sealed for super::BuilderState {}
}

impl<C: Checkpoint + Debug> Examine for C {
    fn examine(document: &Document) -> Option<Vec<Violation>> {
        Format::of::<C>()
            .violations(document, &RuleContext::none())
            .ok()
    }
}

impl Examine for BuilderState {
    fn examine(document: &Document) -> Option<Vec<Violation>> {
        Format::builder_state()
            .violations(document, &RuleContext::none())
            .ok()
    }
}

/// Values without any violation, and whose text reads back as the same value.
///
/// It is `any::<C>()` with a look at each value. The library's own types never have any other, and what
/// each one's values are like stands at its [`Arbitrary`]. One of a type of yours that breaks a rule of
/// its `inspect` is skipped, so that a derived `Arbitrary` that mostly keeps the rules will do; one that
/// mostly breaks them makes proptest give up and say so.
///
/// It shrinks as `any::<C>()` does, through valid values only.
pub fn valid<C: Arbitrary + Examine>() -> impl Strategy<Value = C> {
    valid_with_document().prop_map(|(value, _)| value)
}

/// Valid values, each with its document on one line.
pub(super) fn valid_with_document<C: Arbitrary + Examine>() -> impl Strategy<Value = (C, Document)>
{
    any::<C>().prop_filter_map("the value breaks the rules of its format", |value| {
        let document = document_of(&value)?;
        is_document_of(&document, &value).then_some((value, document))
    })
}

/// Whether the document keeps the rules and reads as this value.
pub(super) fn is_document_of<C: Examine>(document: &Document, value: &C) -> bool {
    C::examine(document).is_some_and(|violations| violations.is_empty())
        && reads_as(document, value)
}

/// Whether the document is this value when it is read.
pub(super) fn reads_as<C: Examine>(document: &Document, value: &C) -> bool {
    let reading = document.read::<C>();
    reading.is_ok_and(|reading| reading.value == *value)
}

/// The value on one line.
pub(super) fn document_of<C: Examine>(value: &C) -> Option<Document> {
    Document::from_text(serde_json::to_string(value).ok()?).ok()
}
