//! What a save found of the files that its checkpoint names.

use serde::Serialize;

/// What the caller of a save should know of the files that the checkpoint names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SavedFiles {
    /// Files that had changed since they were recorded, and that this save did not name. It reported work, so
    /// they count as its own: they are recorded as they are now.
    pub taken_over: Vec<String>,
    /// Files that this save named and that are not there.
    pub missing: Vec<String>,
    /// Files that this save named and that lie outside of the project's folder, where nothing is looked at.
    pub outside: Vec<String>,
}

impl SavedFiles {
    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken_over.is_empty() && self.missing.is_empty() && self.outside.is_empty()
    }
}
