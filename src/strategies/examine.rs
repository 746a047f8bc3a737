//! What a strategy has to know of a type.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::{Checkpoint, RuleContext};
use crate::formats::{BuilderState, Format};
use crate::json::{Document, Violation};

/// A type whose documents can be read and judged: every [`Checkpoint`], and the host file
/// [`BuilderState`].
///
/// A checkpoint of your own has it already. Implement it for what is no checkpoint, such as a host file
/// of your own.
pub trait Examine: Serialize + DeserializeOwned + Clone + PartialEq + Debug + 'static {
    /// What in the document breaks the format's rules, with no more known than the document.
    ///
    /// `None` when the document cannot be read as this type at all.
    fn examine(document: &Document) -> Option<Vec<Violation>>;
}

impl<C: Checkpoint + Debug> Examine for C {
    fn examine(document: &Document) -> Option<Vec<Violation>> {
        (Format::of::<C>().examine)(document, &RuleContext::none()).ok()
    }
}

impl Examine for BuilderState {
    fn examine(document: &Document) -> Option<Vec<Violation>> {
        (Format::builder_state().examine)(document, &RuleContext::none()).ok()
    }
}
