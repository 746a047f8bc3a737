//! The checkpoints of a store, for a format that is known only at run time.

use std::fmt;
use std::path::Path;

use crate::checkpoint::{
    Checkpoint, DoneItem, Handoff, Key, Operation, OperationContext, Report, Result, read,
};
use crate::checkpoints::{Begun, Checkpoints, ReportEffect, Reported};
use crate::json::Document;
use crate::ledger::{Proof, ProofRecord, ProofRunner, Proofs};
use crate::resume::{Resume, ResumeOptions};
use crate::staleness::Staleness;
use crate::store::Saved;

/// The checkpoints of one format in a store, without their type: the operations of [`Checkpoints`] that need no type.
///
/// Only [`Checkpoints`] implements it.
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
/// let any = formats.get("task")?.checkpoints(&Checkpoints::new(store));
/// let resume = any.resume(&key, &ResumeOptions::new("."))?;
/// assert_eq!(resume.plan.start_at.as_deref(), Some("Wire toggle"));
/// # Ok::<(), agent_checkpoint::Error>(())
/// ```
pub trait AnyCheckpoints: sealed::Reports + fmt::Debug + Send + Sync {
    /// Saves a first checkpoint, such as [`Format::start`](crate::formats::Format::start) makes it. `None` if there
    /// already is one, which is left unchanged.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::begin`].
    fn begin(&self, key: &Key, first: &Document) -> Result<Option<Saved>>;

    /// Assigns the task to the agent and session of this context, if the format names them: see
    /// [`Checkpoint::take_up`]. The caller must have claimed the task and followed its plan.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::take_up`] and of [`Checkpoints::try_update`].
    fn take_up(&self, key: &Key, context: &OperationContext<'_>) -> Result<Saved>;

    /// Plans how another agent resumes from a checkpoint: see [`Checkpoints::resume`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::resume`].
    fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume>;

    /// Checks whether the files that a checkpoint names changed: see [`Checkpoints::stale`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::stale`].
    fn stale(&self, key: &Key, root: &Path) -> Result<Staleness>;

    /// The finished work that saves dropped from a checkpoint: see [`Checkpoints::earlier`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::earlier`].
    fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>>;

    /// Completes the hand-off of a checkpoint with its dropped items: see [`Checkpoints::complete_handoff`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::complete_handoff`] and of [`Checkpoints::get`].
    fn complete_handoff(&self, key: &Key, handoff: Handoff) -> Result<Handoff>;

    /// The finished work of a checkpoint, each with the status of its newest proof: see [`Checkpoints::proofs`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::proofs`].
    fn proofs(&self, key: &Key, root: &Path) -> Result<Proofs>;

    /// Runs a proof and records its result: see [`Checkpoints::prove`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::prove`].
    fn prove(
        &self,
        key: &Key,
        by: &str,
        of: &[String],
        proof: &Proof,
        root: &Path,
        run: &mut ProofRunner<'_>,
    ) -> Result<ProofRecord>;

    /// The reports that tell the format of a proof: see [`Checkpoints::proof_reports`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::proof_reports`].
    fn proof_reports(&self, key: &Key, item: &str, proof: &ProofRecord) -> Result<Vec<Operation>>;
}

mod sealed {
    use super::{Key, OperationContext, Report, ReportEffect, Result, Saved};

    /// The object-safe part of [`report`](super::AnyCheckpoints); private, so that no other crate can implement it.
    pub trait Reports {
        /// Like `report`, with a callback that collects the observations; also returns the files that are no sources.
        fn report_observed(
            &self,
            key: &Key,
            reports: &[Report],
            context: &OperationContext<'_>,
            observe: &mut dyn FnMut(&ReportEffect<'_>),
        ) -> Result<(Saved, Vec<String>)>;
    }
}

impl<C: Checkpoint> sealed::Reports for Checkpoints<C> {
    fn report_observed(
        &self,
        key: &Key,
        reports: &[Report],
        context: &OperationContext<'_>,
        observe: &mut dyn FnMut(&ReportEffect<'_>),
    ) -> Result<(Saved, Vec<String>)> {
        self.report_observed(key, reports, context, observe)
    }
}

impl dyn AnyCheckpoints {
    /// Saves reports of an agent or a supervisor as one change: see [`Checkpoints::report`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::report`].
    pub fn report<T>(
        &self,
        key: &Key,
        reports: &[Report],
        context: &OperationContext<'_>,
        observe: impl FnMut(&ReportEffect<'_>) -> T,
    ) -> Result<Reported<T>> {
        Reported::collect(observe, |observe| {
            self.report_observed(key, reports, context, observe)
        })
    }
}

impl<C: Checkpoint> AnyCheckpoints for Checkpoints<C> {
    fn begin(&self, key: &Key, first: &Document) -> Result<Option<Saved>> {
        let first = read::<C>(first)?.reading.value;
        Ok(match self.begin(key, &first)? {
            Begun::Created(saved) => Some(saved),
            Begun::Found(_) => None,
        })
    }

    fn take_up(&self, key: &Key, context: &OperationContext<'_>) -> Result<Saved> {
        self.take_up(key, context)
    }

    fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume> {
        self.resume(key, options)
    }

    fn stale(&self, key: &Key, root: &Path) -> Result<Staleness> {
        self.stale(key, root)
    }

    fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>> {
        self.earlier(key)
    }

    fn complete_handoff(&self, key: &Key, handoff: Handoff) -> Result<Handoff> {
        let loaded = self.get(key)?;
        self.complete_handoff(key, &loaded.checkpoint, handoff)
    }

    fn proofs(&self, key: &Key, root: &Path) -> Result<Proofs> {
        self.proofs(key, root)
    }

    fn prove(
        &self,
        key: &Key,
        by: &str,
        of: &[String],
        proof: &Proof,
        root: &Path,
        run: &mut ProofRunner<'_>,
    ) -> Result<ProofRecord> {
        self.prove(key, by, of, proof, root, run)
    }

    fn proof_reports(&self, key: &Key, item: &str, proof: &ProofRecord) -> Result<Vec<Operation>> {
        self.proof_reports(key, item, proof)
    }
}
