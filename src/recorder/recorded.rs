//! The result of a call of the recorder.

use crate::checkpoint::OpenItem;
use crate::store::{Outcome, Saved};

/// The result of a call: it was saved, or it changed nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recorded {
    /// What was written, dropped and violated; [`Outcome::Unchanged`] if there was nothing to write.
    pub saved: Saved,
    /// Files of finished steps that are not source files and therefore are not in the checkpoint.
    pub left_out: Vec<String>,
    /// The step that returned to the plan because another one was started, with its note.
    pub superseded: Option<OpenItem>,
    /// The message that the protocol wants the agent to post after a checkpoint, such as
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
