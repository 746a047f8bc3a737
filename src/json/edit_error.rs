//! Why an edit of a document was refused.

use super::corrupt::{Corrupt, CorruptCode};
use crate::quoted;

/// Why an edit was refused; the document is then as it was.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EditError(pub(super) EditProblem);

/// Pointers begin at the root of the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditProblem {
    /// The text is not a JSON pointer.
    #[error(
        "{pointer} is not a JSON pointer: it must be empty or begin with `/`, and write `~` as `~0`", pointer = quoted(pointer))]
    BadPointer {
        /// The text.
        pointer: String,
    },
    /// There is no object or array that could hold the value.
    #[error("nothing at {pointer} to edit: the document ends at {deepest}, which is {kind}", pointer = quoted(pointer), deepest = quoted(deepest))]
    NotFound {
        /// Where the edit was to be.
        pointer: String,
        /// The deepest existing value on the way.
        deepest: String,
        /// What that value is, such as `a string`.
        kind: &'static str,
    },
    /// The index is beyond the end of the array, or the token is no index.
    #[error("no index for {pointer}: the array has {length} elements", pointer = quoted(pointer))]
    BadIndex {
        /// Where the edit was to be.
        pointer: String,
        /// How many elements the array has.
        length: usize,
    },
    /// The value is no array, so it takes no elements.
    #[error("the value at {pointer} is {kind}, not an array", pointer = quoted(pointer))]
    NotAnArray {
        /// The pointer.
        pointer: String,
        /// What the value is, such as `an object`.
        kind: &'static str,
    },
    /// The object already has a member of this name.
    #[error("there is a value at {pointer} already", pointer = quoted(pointer))]
    AlreadyThere {
        /// The pointer.
        pointer: String,
    },
    /// The root of a document must be an object.
    #[error("the root of a document must be an object")]
    RootNotObject,
    /// The value cannot be serialized.
    #[error("the value for {pointer} cannot be written as JSON", pointer = quoted(pointer))]
    Serialize {
        /// Where the value was to be.
        pointer: String,
        /// The error of the serializer.
        source: serde_json::Error,
    },
    /// The value has a NaN or an infinity, which JSON cannot represent.
    #[error("the value for {pointer} has a number that is not finite", pointer = quoted(pointer))]
    NotFinite {
        /// Where the value was to be.
        pointer: String,
    },
    /// The value would nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("the value for {pointer} would nest too deep", pointer = quoted(pointer))]
    TooDeep {
        /// Where the value was to be.
        pointer: String,
    },
    /// The resulting text would be no document.
    #[error("the edit at {pointer} would not give a document", pointer = quoted(pointer))]
    Corrupt {
        /// Where the value was to be.
        pointer: String,
        /// What would be wrong with the text.
        source: Corrupt,
    },
}

impl EditError {
    /// The error for a value or a text that is no valid document.
    pub(super) fn refused(pointer: &str, source: Corrupt) -> EditError {
        let pointer = pointer.to_owned();
        match source.code {
            CorruptCode::TooDeep => EditError(EditProblem::TooDeep { pointer }),
            _ => EditError(EditProblem::Corrupt { pointer, source }),
        }
    }
}
