//! The contract of a schema: whether it describes what is read or what is written.

use std::fmt;

/// The contract of a schema: whether it describes what is read or what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Contract {
    /// The documents that are read without a violation of shape.
    Read,
    /// The documents that this library writes: the same. A new text has every list, even an empty one; but a save edits
    /// the existing text, and adds nothing that it lacks.
    Write,
}

impl Contract {
    /// Both contracts.
    pub const ALL: &'static [Contract] = &[Contract::Read, Contract::Write];

    /// Its name in file names and ids: `read`, `write`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Contract::Read => "read",
            Contract::Write => "write",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
