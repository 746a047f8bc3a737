//! What keeps every rule of its format.

use proptest::arbitrary::{Arbitrary, any};
use proptest::strategy::Strategy;

use super::examine::Examine;
use crate::json::Document;

/// Values without any violation, and whose text reads back as the same value.
///
/// It is `any::<C>()` with a look at each value. The library's own types never have any other, and what
/// each one's values are like stands at its [`Arbitrary`]. One of a type of yours that breaks a rule of
/// its `inspect` is left out, so that a derived `Arbitrary` that mostly keeps the rules will do; one that
/// mostly breaks them makes proptest give up and say so.
///
/// It shrinks as `any::<C>()` does, through valid values only.
pub fn valid<C: Arbitrary + Examine>() -> impl Strategy<Value = C> {
    any::<C>().prop_filter("the value breaks the rules of its format", is_valid)
}

/// Whether the value keeps the rules and comes back from its text.
pub(super) fn is_valid<C: Examine>(value: &C) -> bool {
    Document::new(value).is_ok_and(|document| {
        C::examine(&document).is_some_and(|violations| violations.is_empty())
            && reads_as(&document, value)
    })
}

/// Whether the document is this value when it is read.
pub(super) fn reads_as<C: Examine>(document: &Document, value: &C) -> bool {
    document
        .read::<C>()
        .is_ok_and(|reading| reading.value == *value)
}
