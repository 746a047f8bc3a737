//! The checkpoints of a store, of a format that is known only when the program runs.

use std::fmt;
use std::path::Path;

use super::erased::Erased;
use crate::checkpoint::{DoneItem, Handoff, Key, OperationContext, Report, Result};
use crate::checkpoints::{Checkpoints, Effect, Reported};
use crate::json::Document;
use crate::resume::{Resume, ResumeOptions};
use crate::staleness::Staleness;
use crate::store::Saved;

/// The checkpoints of one format in a store, whatever type they have: what [`Checkpoints`] does that needs no type.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::formats::{Formats, task::TaskCheckpoint};
/// use agent_checkpoint::resume::ResumeOptions;
/// use agent_checkpoint::store::MemoryStore;
/// use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Key};
///
/// let store = MemoryStore::new();
/// let key = Key::new("US-003")?;
/// let task = TaskCheckpoint::begin("ui-dev", ["Wire toggle"], chrono::Utc::now());
/// store.checkpoints::<TaskCheckpoint>().create(&key, &task)?;
///
/// let formats = Formats::default();
/// let any = formats.get("task")?.checkpoints(Checkpoints::new(store));
/// let resume = any.resume(&key, &ResumeOptions::new("."))?;
/// assert_eq!(resume.plan.start_at.as_deref(), Some("Wire toggle"));
/// # Ok::<(), agent_checkpoint::Error>(())
/// ```
pub struct AnyCheckpoints {
    view: Checkpoints<()>,
    checkpoint: &'static dyn Erased,
}

impl fmt::Debug for AnyCheckpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyCheckpoints").finish_non_exhaustive()
    }
}

impl AnyCheckpoints {
    pub(super) fn new(view: Checkpoints<()>, checkpoint: &'static dyn Erased) -> Self {
        AnyCheckpoints { view, checkpoint }
    }

    /// Saves a first checkpoint, such as [`Format::start`](crate::formats::Format::start) makes it; `None` where one is
    /// already, which stays as it is.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::begin`].
    pub fn begin(&self, key: &Key, first: &Document) -> Result<Option<Saved>> {
        self.checkpoint.begin(&self.view, key, first)
    }

    /// Saves what an agent or a supervisor reports as one change: see [`Checkpoints::report`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::report`].
    pub fn report<T>(
        &self,
        key: &Key,
        reports: &[Report],
        context: &OperationContext<'_>,
        observe: impl FnMut(&Effect<'_>) -> T,
    ) -> Result<Reported<T>> {
        Reported::collect(observe, |observe| {
            self.checkpoint
                .report(&self.view, key, reports, context, observe)
        })
    }

    /// How another agent goes on from a checkpoint: see [`Checkpoints::resume`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::resume`].
    pub fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume> {
        self.checkpoint.resume(&self.view, key, options)
    }

    /// Whether the files that a checkpoint names are as they were: see [`Checkpoints::stale`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::stale`].
    pub fn stale(&self, key: &Key, root: impl AsRef<Path>) -> Result<Staleness> {
        self.checkpoint.stale(&self.view, key, root.as_ref())
    }

    /// Finished work that saves cut from a checkpoint: see [`Checkpoints::earlier`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::earlier`].
    pub fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>> {
        self.checkpoint.earlier(&self.view, key)
    }

    /// The hand-off of a checkpoint with what the dropped log has of it: see [`Checkpoints::complete_handoff`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::complete_handoff`] and of [`Checkpoints::get`].
    pub fn complete_handoff(&self, key: &Key, handoff: Handoff) -> Result<Handoff> {
        self.checkpoint.complete_handoff(&self.view, key, handoff)
    }
}
