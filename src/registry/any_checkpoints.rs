//! The checkpoints of a store, of a format that is known only when the program runs.

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

/// The checkpoints of one format in a store, whatever type they have: what [`Checkpoints`] does that needs no type.
///
/// Only [`Checkpoints`] are such.
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
    /// Saves a first checkpoint, such as [`Format::start`](crate::formats::Format::start) makes it; `None` where one is
    /// already, which stays as it is.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::begin`].
    fn begin(&self, key: &Key, first: &Document) -> Result<Option<Saved>>;

    /// Makes the task that of the agent and the session of this context, where the format names them: see
    /// [`Checkpoint::take_up`]. The caller has claimed the task and has heeded its plan.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::take_up`] and of [`Checkpoints::try_update`].
    fn take_up(&self, key: &Key, context: &OperationContext<'_>) -> Result<Saved>;

    /// How another agent goes on from a checkpoint: see [`Checkpoints::resume`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::resume`].
    fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume>;

    /// Whether the files that a checkpoint names are as they were: see [`Checkpoints::stale`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::stale`].
    fn stale(&self, key: &Key, root: &Path) -> Result<Staleness>;

    /// Finished work that saves cut from a checkpoint: see [`Checkpoints::earlier`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::earlier`].
    fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>>;

    /// The hand-off of a checkpoint with what the dropped log has of it: see [`Checkpoints::complete_handoff`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::complete_handoff`] and of [`Checkpoints::get`].
    fn complete_handoff(&self, key: &Key, handoff: Handoff) -> Result<Handoff>;

    /// The finished work of a checkpoint, each with what its newest proof is worth: see [`Checkpoints::proofs`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::proofs`].
    fn proofs(&self, key: &Key, root: &Path) -> Result<Proofs>;

    /// Runs a proof and records what it showed: see [`Checkpoints::prove`].
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

    /// The reports by which the format may learn of a proof: see [`Checkpoints::proof_reports`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::proof_reports`].
    fn proof_reports(&self, key: &Key, item: &str, proof: &ProofRecord) -> Result<Vec<Operation>>;
}

mod sealed {
    use super::{Key, OperationContext, Report, ReportEffect, Result, Saved};

    /// What the trait object gives [`report`](super::AnyCheckpoints); no type of another crate has it.
    pub trait Reports {
        /// As `report`, for a caller that collects what is observed; gives the files that are no sources, too.
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
