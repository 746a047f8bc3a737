//! What a save found of the files that its checkpoint names.

use serde::Serialize;

/// What the saving program should know about the files that the checkpoint names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilesTold {
    /// Files that had changed since they were recorded, and that this save did not name. It told of work, so
    /// they count as its own: they are recorded as they are now.
    pub taken_over: Vec<String>,
    /// Files that this save named and that are not there.
    pub missing: Vec<String>,
    /// Files that this save named and that lie outside of the project's folder, where nothing is looked at.
    pub outside: Vec<String>,
}

impl FilesTold {
    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken_over.is_empty() && self.missing.is_empty() && self.outside.is_empty()
    }
}
