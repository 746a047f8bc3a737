//! What a save reports about the files that its checkpoint names.

use serde::Serialize;

/// What the caller of a save should know about the files that the checkpoint names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SavedFiles {
    /// Files that changed since they were recorded and that this save did not name. The save reported work, so
    /// the changes count as its own, and the files are recorded as they are now.
    pub taken_over: Vec<String>,
    /// Files that this save named and that do not exist.
    pub missing: Vec<String>,
    /// Files that this save named and that lie outside the project's folder, where nothing is read.
    pub outside: Vec<String>,
}

impl SavedFiles {
    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken_over.is_empty() && self.missing.is_empty() && self.outside.is_empty()
    }
}
