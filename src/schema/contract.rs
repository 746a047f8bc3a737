//! For which side a schema is.

use std::fmt;

/// For which side a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Contract {
    /// What is read without a violation of shape.
    Read,
    /// What this library writes: the same. A new text has every list, if empty; but a save edits the text that is
    /// there, and adds nothing that it lacks.
    Write,
    /// What a model gives as input of a tool. Strict, as tools ask for it: every member is required (and `null`
    /// where the reader takes that for absent), none besides is allowed. Maps are lists of a name and a value, which
    /// [`value_of_tool_input`](super::value_of_tool_input) makes maps again; limits are told in words, since most
    /// models' tools do not take their keywords.
    Tool,
}

impl Contract {
    /// All of them.
    pub const ALL: &'static [Contract] = &[Contract::Read, Contract::Write, Contract::Tool];

    /// The word for it in file names and ids: `read`, `write`, `tool`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Contract::Read => "read",
            Contract::Write => "write",
            Contract::Tool => "tool",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
