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
use crate::ledger::{KnownLedgers, Ledger};
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

/// The typed view of a store: the checkpoints of one format.
///
/// An orchestrator works with this type. It loads typed checkpoints even from files that break the rules,
/// changes them with closures that are atomic with respect to all other writers, and tells whether a checkpoint
/// can be trusted and how to carry on. It applies limits, stamps and redaction.
///
/// `Checkpoints<()>` has the settings but no format yet: see
/// [`Format::checkpoints`](crate::formats::Format::checkpoints).
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
    ledgers: KnownLedgers,
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
    /// The view owns its store, so it can be moved to other threads and kept in a struct. Clones of this
    /// library's stores are cheap and share their contents; put any other store into an `Arc`.
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
            ledgers: KnownLedgers::default(),
            format: std::marker::PhantomData,
        }
    }

    /// Sets the limits of saves.
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

    /// Sets the redaction of texts before they are saved, for example of secrets.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = Some(redaction);
        self
    }

    /// Lets saves overwrite values that could not be read. This is off by default because it loses work.
    #[must_use]
    pub fn allowing_loss(mut self) -> Self {
        self.allow_loss = true;
        self
    }

    /// Sets the fence that every save states: see [`CheckpointStoreExt::claim`]. Without a fence, saves of a
    /// claimed key are refused.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Records fingerprints of the files that the checkpoint names, so that [`stale`](Checkpoints::stale) and
    /// [`resume`](Checkpoints::resume) compare contents. Without this, files are judged by their times alone.
    ///
    /// A save that reports work records the present state of the files; any other save keeps the recorded one. The
    /// fingerprints lie beside the checkpoint, not in it. Only files that changed since the last record are read.
    /// [`Saved::files`](crate::store::Saved::files) lists the changed files that a save recorded but did not name.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(tracking);
        self
    }

    /// Keeps the fingerprints with every save. Each file is then judged as before, if necessary by the previous
    /// stamp.
    pub(crate) fn keep_fingerprints(mut self) -> Self {
        self.keeps_fingerprints = true;
        self
    }

    /// The fence that saves state.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// A text after redaction, as a save would write it.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let redacted = self.redaction.as_ref().and_then(|it| it.redact("", text));
        redacted.unwrap_or_else(|| text.to_owned())
    }

    /// Archives the checkpoint that a save replaces, under the protocol's name for it, before it is replaced. This is
    /// for a task that starts over, in a store with archives: [`Saved::archive`](crate::store::Saved::archive) has
    /// the path. The ledger of the task continues; [`Ledger::end_with`] ends that of a complete task.
    #[must_use]
    pub fn archiving(mut self, archive: impl Into<Option<Archive>>) -> Self {
        self.archive = archive.into();
        self
    }

    fn archives(&self) -> Option<(Archive, DateTime<Utc>)> {
        Some((self.archive?, self.now()))
    }

    /// The present time, by the clock that stamps saves.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The store of this view.
    #[must_use]
    pub fn store(&self) -> &dyn CheckpointStore {
        &*self.store
    }

    /// The ledger of a task: its effects, proofs and approvals. `by` names the owner in new lines. A
    /// [`Recorder`](crate::recorder::Recorder) has a ledger of its own.
    #[must_use]
    pub fn ledger(&self, key: &Key, by: impl Into<String>) -> Ledger {
        Ledger::new(Arc::clone(&self.store), key, by)
            .fenced(self.fence)
            .with_clock(Arc::clone(&self.clock))
            .knowing(&self.ledgers)
    }

    /// The same settings for checkpoints of another format.
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
            ledgers: self.ledgers.clone(),
            format: std::marker::PhantomData,
        }
    }
}
