//! What came of a call.

use crate::checkpoint::OpenItem;
use crate::store::{Outcome, Saved};

/// What came of a call: it is saved, or it changed nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recorded {
    /// What was written, cut and violated; [`Outcome::Unchanged`] where nothing was to be written.
    pub saved: Saved,
    /// Files of finished steps that are no sources, and so are not in the checkpoint.
    pub left_out: Vec<String>,
    /// The step that went back to the plan for the one that was started, with its note.
    pub superseded: Option<OpenItem>,
    /// What the protocol has the agent post after a checkpoint, such as
    /// `@orchestrator: Task T060 progress: 65%`.
    pub message: Option<String>,
}

impl Recorded {
    /// Whether anything was written.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.saved.outcome != Outcome::Unchanged
    }
}
