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
}

impl Contract {
    /// All of them.
    pub const ALL: &'static [Contract] = &[Contract::Read, Contract::Write];

    /// The word for it in file names and ids: `read`, `write`.
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
