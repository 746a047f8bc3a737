//! Generates values that keep every rule of their format.

use std::fmt::Debug;

use proptest::arbitrary::{Arbitrary, any};
use proptest::strategy::Strategy;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::{Checkpoint, RuleContext};
use crate::formats::Format;
use crate::formats::builder_state::BuilderState;
use crate::json::{Document, Violation};

/// A type whose documents can be read and checked: every [`Checkpoint`], and the host file [`BuilderState`].
pub trait Examine:
    Serialize + DeserializeOwned + Clone + PartialEq + Debug + sealed::Sealed + 'static
{
    /// Returns the violations of the format's rules in the document, without any context.
    ///
    /// `None` when the document cannot be read as this type.
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

/// Values without violations whose text reads back as the same value.
///
/// This is `any::<C>()` with a check of each value. The library's own types always pass it; their [`Arbitrary`]
/// implementations document the values. A value of your own type that breaks a rule of its `inspect` is skipped, so a
/// derived `Arbitrary` that mostly keeps the rules is enough; one that mostly breaks them makes proptest give up with a
/// message.
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

/// Whether the document reads as this value.
pub(super) fn reads_as<C: Examine>(document: &Document, value: &C) -> bool {
    let reading = document.read::<C>();
    reading.is_ok_and(|reading| reading.value == *value)
}

/// The document of the value, on one line.
pub(super) fn document_of<C: Examine>(value: &C) -> Option<Document> {
    Document::from_text(serde_json::to_string(value).ok()?).ok()
}
