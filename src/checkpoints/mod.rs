//! The typed view of a store.

mod dropped;
mod extension;
mod judging;
mod loading;
mod proving;
mod reporting;
mod resuming;
mod rollback;
mod saving;
mod updating;
mod waiting;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::checkpoint::{Archive, Clock, Fence, Key, Limits, SystemClock};
use crate::ledger::Ledger;
use crate::redaction::Redaction;
use crate::staleness::Tracking;
use crate::store::CheckpointStore;

pub(crate) use dropped::{NEWEST, count_cut};
pub use extension::CheckpointStoreExt;
pub use loading::Loaded;
pub(crate) use reporting::Batch;
pub use reporting::{ReportEffect, Reported};
pub(crate) use rollback::came_back;
pub use saving::PutMode;
pub use updating::Begun;

/// The checkpoints of one format in a store.
///
/// `Checkpoints<()>` has the settings and no format yet: see [`Format::checkpoints`](crate::formats::Format::checkpoints).
///
/// This is where an orchestrator works: it loads typed checkpoints whatever their files look like,
/// changes them with closures that are one step against all other writers, and asks whether they can
/// be trusted and how to go on. Limits, stamps and redaction are applied here.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::formats::task::TaskCheckpoint;
/// use agent_checkpoint::store::MemoryStore;
/// use agent_checkpoint::{
///     Checkpoint, CheckpointStoreExt, Key, Operation, OperationContext, StepDone,
/// };
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let store = MemoryStore::new();
/// let tasks = store.checkpoints::<TaskCheckpoint>();
/// let key = Key::new("US-003")?;
///
/// let now = chrono::Utc::now();
/// tasks.create(&key, &TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], now))?;
/// let context = OperationContext::at(now);
/// let saved = tasks.try_update(&key, |task| {
///     task.apply(&Operation::StepStart { text: "Wire toggle".into() }, &context)?;
///     task.apply(&StepDone::current().with_modified("src/toggle.rs").into(), &context)
/// })?;
/// assert!(saved.truncation.is_empty());
///
/// let loaded = tasks.load(&key)?.expect("it was just saved");
/// assert_eq!(loaded.checkpoint.pending_steps, ["Test it"]);
/// # Ok(())
/// # }
/// ```
pub struct Checkpoints<C> {
    store: Arc<dyn CheckpointStore>,
    limits: Limits,
    clock: Arc<dyn Clock>,
    redaction: Option<Redaction>,
    allow_loss: bool,
    fence: Option<Fence>,
    tracking: Option<Tracking>,
    keeps_fingerprints: bool,
    archive: Option<Archive>,
    format: std::marker::PhantomData<fn() -> C>,
}

impl<C> Clone for Checkpoints<C> {
    fn clone(&self) -> Self {
        self.of()
    }
}

impl<C> fmt::Debug for Checkpoints<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints")
            .field("limits", &self.limits)
            .field("redaction", &self.redaction.is_some())
            .finish_non_exhaustive()
    }
}

impl<C> Checkpoints<C> {
    /// The checkpoints of this format in `store`, with the default limits and the machine's clock.
    ///
    /// The view owns its store, so it can be moved to other threads and kept in a struct. The stores of this
    /// library are cheap to clone, and a clone is the same store; any other is shared as an `Arc`.
    #[must_use]
    pub fn new(store: impl CheckpointStore + 'static) -> Self {
        Checkpoints {
            store: Arc::new(store),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            redaction: None,
            allow_loss: false,
            fence: None,
            tracking: None,
            keeps_fingerprints: false,
            archive: None,
            format: std::marker::PhantomData,
        }
    }

    /// Sets the limits that saves keep.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Changes texts before they are saved, such as secrets.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = Some(redaction);
        self
    }

    /// Lets saves overwrite values that could not be read. Off by default: that is how work is lost.
    #[must_use]
    pub fn allowing_loss(mut self) -> Self {
        self.allow_loss = true;
        self
    }

    /// Shows the fence of a claim with every save: see [`CheckpointStoreExt::claim`]. Without one, saves of a
    /// key that is claimed are refused.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Records the files that the checkpoint names, so that [`stale`](Checkpoints::stale) and
    /// [`resume`](Checkpoints::resume) compare contents. Without it files are judged by their times alone.
    ///
    /// A save that reports work records the files as they are then; any other save keeps the record. The record
    /// lies beside the checkpoint, not in it. Only contents of files that changed since the record are read.
    /// [`Saved::files`](crate::store::Saved::files) lists the changed files that a save recorded and did not name.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(tracking);
        self
    }

    /// Keeps the record of the files with every save: each file is judged as before, if need be by the stamp before.
    pub(crate) fn keep_fingerprints(mut self) -> Self {
        self.keeps_fingerprints = true;
        self
    }

    /// The fence that saves show.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// A text as a save would write it.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let redacted = self.redaction.as_ref().and_then(|it| it.redact("", text));
        redacted.unwrap_or_else(|| text.to_owned())
    }

    /// Archives the checkpoint that a save replaces, under the protocol's name for that and before it goes, where
    /// the store has archives: [`Saved::archive`](crate::store::Saved::archive) says where. For a task that begins anew in
    /// its place. The effects of the task go on with it; [`Ledger::end_with`] ends those of a complete one.
    #[must_use]
    pub fn archiving(mut self, archive: impl Into<Option<Archive>>) -> Self {
        self.archive = archive.into();
        self
    }

    fn archives(&self) -> Option<(Archive, DateTime<Utc>)> {
        Some((self.archive?, self.now()))
    }

    /// The present time, by the clock that saves are stamped from.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The store beneath.
    #[must_use]
    pub fn store(&self) -> &dyn CheckpointStore {
        &*self.store
    }

    /// The ledger of a task: its effects, proofs and approvals. `by` names the owner in what is added; a
    /// [`Recorder`](crate::recorder::Recorder) has its own.
    #[must_use]
    pub fn ledger(&self, key: &Key, by: impl Into<String>) -> Ledger {
        Ledger::new(Arc::clone(&self.store), key, by)
            .fenced(self.fence)
            .with_clock(Arc::clone(&self.clock))
    }

    /// The same view of checkpoints of another format.
    pub(crate) fn of<D>(&self) -> Checkpoints<D> {
        Checkpoints {
            store: Arc::clone(&self.store),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            redaction: self.redaction.clone(),
            allow_loss: self.allow_loss,
            fence: self.fence,
            tracking: self.tracking.clone(),
            keeps_fingerprints: self.keeps_fingerprints,
            archive: self.archive,
            format: std::marker::PhantomData,
        }
    }
}
