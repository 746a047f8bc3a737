//! The recorder: what an orchestrator holds while an agent works on a task.
//!
//! A [`Recorder`] is bound to one checkpoint and one [`Owner`]. Each report of the agent becomes one change of
//! the stored checkpoint, whole or not at all. Once another owner has the task, reports are refused: by the
//! claim's fence if the store has claims, otherwise by the agent and session that the checkpoint names.
//!
//! # Example
//!
//! ```
//! use agent_checkpoint::{Operation, StepDone};
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::recorder::{ContextAdvice, Opened, Recorder};
//! use agent_checkpoint::store::MemoryStore;
//! use agent_checkpoint::{CheckpointStoreExt, Key};
//!
//! # fn main() -> agent_checkpoint::Result<()> {
//! let store = MemoryStore::new();
//! let tasks = store.checkpoints::<TaskCheckpoint>();
//! let key = Key::new("US-003")?;
//!
//! // An existing checkpoint is never overwritten: the caller gets it and decides.
//! let first = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], tasks.now());
//! let recorder = match Recorder::begin(&tasks, &key, "ui-dev", &first)? {
//!     Opened::Begun(recorder) => recorder,
//!     Opened::Found(found) => found.carry_on()?,
//!     Opened::Complete(_) => return Ok(()),
//! };
//!
//! recorder.step_started("Wire toggle")?;
//! recorder.batch([
//!     Operation::Decide { text: "Use CSS variables".into(), rationale: None },
//!     StepDone::current().with_modified("src/toggle.rs").into(),
//! ])?;
//! if let ContextAdvice::Stop(..) = recorder.context_used(0.92)? {
//!     // A new session carries on from here.
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is not here
//!
//! The recorder does nothing without a call of the agent, except for heartbeats, and those only if a format
//! keeps them apart from progress: see [`Recorder::beating`].

mod beat;
mod begin;
mod context;
mod effects;
mod hold;
#[cfg(feature = "tokio")]
mod nonblocking;
mod options;
mod owner;
mod proofs;
mod reports;
mod run;
mod scope;
#[cfg(all(feature = "signals", unix))]
mod signals;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use hold::{Hold, Holder};

pub use begin::{Found, Opened};
pub use context::ContextAdvice;
#[cfg(feature = "tokio")]
pub use nonblocking::{AsyncRecorder, AsyncStep};
pub use options::RecorderOptions;
pub use owner::Owner;
pub use proofs::Proved;
pub use reports::HandedOver;
pub use run::{Ran, RunError, Step};
pub use scope::Broken;

use crate::checkpoint::{
    Archive, Checkpoint, Claim, ContextLevel, Error, ErrorKind, Fence, Key, OpenItem,
    OperationContext, Report, Result,
};
use crate::checkpoints::{Batch, Checkpoints};
use crate::resume::Resume;
use crate::store::{Outcome, Saved};

/// Records what an agent does in the checkpoint of its task.
///
/// Get one from [`begin`](Recorder::begin) or [`resume`](Recorder::resume).
///
/// # Writing
///
/// Every call is one change of the stored checkpoint, as made by
/// [`Checkpoints::try_update`](crate::Checkpoints::try_update): one write, or none if the checkpoint already
/// states what the call reports. Calls from several threads run one after the other.
///
/// # Its claim
///
/// If the store has claims, a recorder takes one and gives it back when it [leaves](Recorder::leave) or is
/// dropped. A killed process does neither, so its claim expires. A recorder whose view has a
/// [fence](Checkpoints::fenced) writes with that fence, and one [without a
/// claim](RecorderOptions::without_claim) writes without a fence; neither takes a claim or gives one back.
///
/// # Errors
///
/// Every call may return, besides the errors it names: [`ErrorKind::Unsupported`] with the list of the format's
/// operations, if the format cannot express the call; [`ErrorKind::TakenOver`], [`ErrorKind::Claimed`] and
/// [`ErrorKind::Fenced`] once another owner has the task ([`Error::is_taken_over`]); those of
/// [`Checkpoints::try_update`](crate::Checkpoints::try_update). After each of them the checkpoint is unchanged.
pub struct Recorder<C: Checkpoint> {
    checkpoints: Checkpoints<C>,
    key: Key,
    options: RecorderOptions,
    state: Mutex<State>,
}

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

/// The state that changes from call to call.
struct State {
    hold: Hold,
    /// The level of the last report on the context.
    level: ContextLevel,
    /// The agent that the task was handed over to.
    given_to: Option<String>,
}

/// What a change left for its caller.
struct After {
    holder: Holder,
    superseded: Option<OpenItem>,
    message: Option<String>,
}

/// A change of the checkpoint.
type ChangeOf<'c, C> = dyn FnMut(&mut C, &OperationContext<'_>) -> Result<()> + 'c;

impl<C: Checkpoint> fmt::Debug for Recorder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("format", &C::FORMAT)
            .field("key", &self.key)
            .field("owner", &self.options.owner)
            .finish_non_exhaustive()
    }
}

impl<C: Checkpoint> Recorder<C> {
    fn holding(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: RecorderOptions,
        hold: Hold,
    ) -> Self {
        Recorder {
            checkpoints: checkpoints.clone(),
            key: key.clone(),
            options,
            state: Mutex::new(State {
                hold,
                level: ContextLevel::Enough,
                given_to: None,
            }),
        }
    }

    /// The key of the checkpoint.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The owner in whose name it records.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.options.owner
    }

    /// The typed view of the store, with the fence of the recorder's claim.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints<C> {
        self.checkpoints.clone().fenced(self.fence())
    }

    /// The fence of the claim; `None` if the store has no claims or the options ask for none.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.state().hold.fence()
    }

    /// The claim as it was last granted or renewed.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        self.state().hold.claimed().cloned()
    }

    /// The step to do next: the one in progress, else the first planned one. `None` if no readable step is
    /// left. Unlike [`plan`](Recorder::plan), it does not judge files.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::get`](crate::Checkpoints::get).
    pub fn next_step(&self) -> Result<Option<String>> {
        let mut handoff = self.checkpoint()?.handoff();
        handoff.only_what_is_left(C::WORK_HAS_IDS);
        Ok(handoff.start_at().map(str::to_owned))
    }

    /// The checkpoint as it is stored now.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::get`](crate::Checkpoints::get).
    pub fn checkpoint(&self) -> Result<C> {
        Ok(self.checkpoints.get(&self.key)?.checkpoint)
    }

    /// How another agent would carry on from here: the plan and the prompt.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::resume`](crate::Checkpoints::resume).
    pub fn plan(&self) -> Result<Resume> {
        // The valid claim belongs to the owner itself, which is about to hand the task over.
        let options = self.options.resume.clone().ignoring_claims();
        let options = options.with_asker(self.options.owner.to_string());
        self.checkpoints.resume(&self.key, &options)
    }

    /// Reports one thing: an [`Operation`](crate::Operation), or a forced [`Report`].
    ///
    /// # Errors
    ///
    /// As every call, and those of [`Checkpoint::apply`].
    pub fn report(&self, report: impl Into<Report>) -> Result<Recorded> {
        self.report_all(vec![report.into()])
    }

    /// Reports several things in one write: all of them or, when one is refused, none.
    ///
    /// # Errors
    ///
    /// As [`report`](Recorder::report).
    pub fn batch<R: Into<Report>>(&self, reports: impl IntoIterator<Item = R>) -> Result<Recorded> {
        self.report_all(reports.into_iter().map(Into::into).collect())
    }

    fn report_all(&self, reports: Vec<Report>) -> Result<Recorded> {
        let batch = Batch::new(&self.checkpoints, reports, Some(&self.options.sources));
        let waits = batch.wait().map(|_| self.context(self.checkpoints.now()));
        if let Some(context) = &waits {
            self.as_owner(|checkpoints| checkpoints.record_wait(&self.key, &batch, context))?;
        }
        let recorded = self.change_in(
            &mut self.state(),
            batch.archive,
            &mut |checkpoint, context| batch.apply(checkpoint, context),
        )?;
        if let Some(context) = &waits {
            self.as_owner(|checkpoints| checkpoints.complete_wait(&self.key, &batch, context))?;
        }
        Ok(Recorded {
            left_out: batch.left_out,
            ..recorded
        })
    }

    /// Changes the checkpoint through its own type, for what no operation expresses, such as the scores at the
    /// end of a story's stage.
    ///
    /// `change` may run more than once, with what a faster writer left, and must not call the recorder.
    ///
    /// # Errors
    ///
    /// As every call, and those of `change`.
    pub fn update(&self, mut change: impl FnMut(&mut C) -> Result<()>) -> Result<Recorded> {
        self.change(&mut |checkpoint, _| change(checkpoint))
    }

    /// Gives the claim back, so that another agent may begin at once. It writes nothing else.
    ///
    /// Dropping the recorder does the same, but cannot report a failure.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when another owner has claimed the task since.
    pub fn leave(self) -> Result<()> {
        self.give_back()
    }

    fn give_back(&self) -> Result<()> {
        let store = self.checkpoints.store();
        self.state().hold.release(store, &self.key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a caller's closure leaves the state consistent, because it only changes after a save.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one change of the stored checkpoint in the name of the owner.
    fn change(&self, change: &mut ChangeOf<'_, C>) -> Result<Recorded> {
        self.change_in(&mut self.state(), None, change)
    }

    fn change_in(
        &self,
        state: &mut State,
        archive: Option<Archive>,
        change: &mut ChangeOf<'_, C>,
    ) -> Result<Recorded> {
        if let Some(to) = &state.given_to {
            let by = Some(to.clone());
            return Err(Error::new(ErrorKind::TakenOver { by }).with_key(&self.key));
        }
        let (store, claim_for) = (self.checkpoints.store(), self.options.claim_for);
        let now = self.checkpoints.now();
        state.hold.keep(store, &self.key, claim_for, now)?;
        let (saved, after) = match self.save(&state.hold, archive, change) {
            // The claim expired because the owner was away for longer than it lasts.
            Err(error) if state.hold.revive(&error, store, &self.key, claim_for)? => {
                self.save(&state.hold, archive, change)?
            }
            saved => saved?,
        };
        if saved.outcome == Outcome::Unchanged {
            state.hold.check_claim(store, &self.key, now)?;
        }
        state.hold.holder = after.holder;
        Ok(Recorded {
            saved,
            left_out: Vec::new(),
            superseded: after.superseded,
            message: after.message,
        })
    }

    /// The reporting owner, with what is known from outside the checkpoint.
    fn context(&self, now: DateTime<Utc>) -> OperationContext<'_> {
        let owner = &self.options.owner;
        OperationContext::at(now)
            .by(Some(&owner.agent), Some(&owner.session))
            .with_sources(&self.options.sources)
            .with_rules(self.options.resume.context(now, None))
    }

    fn save(
        &self,
        hold: &Hold,
        archive: Option<Archive>,
        change: &mut ChangeOf<'_, C>,
    ) -> Result<(Saved, After)> {
        let context = self.context(self.checkpoints.now());
        let mut after = None;
        let mut fenced = self.checkpoints.clone().fenced(hold.fence());
        if archive.is_some() {
            fenced = fenced.archiving(archive);
        }
        let saved = fenced.update_by_report(&self.key, |checkpoint, unreadable| {
            let before = checkpoint.outline();
            hold.check(&Holder::of_outline(checkpoint, &before))?;
            let context = context.with_rules(context.rules.with_unreadable(unreadable));
            change(checkpoint, &context)?;
            after = Some(After::of(checkpoint, before.in_progress));
            Ok(())
        })?;
        // The store always calls the closure before it reports a save.
        let after = after.ok_or_else(|| Error::new(ErrorKind::ChangedMeanwhile))?;
        Ok((saved, after))
    }
}

impl<C: Checkpoint> Drop for Recorder<C> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.hold.drop_claim(self.checkpoints.store(), &self.key);
    }
}

impl After {
    fn of<C: Checkpoint>(checkpoint: &C, before: Vec<OpenItem>) -> After {
        let now = checkpoint.outline();
        let goes_on = |item: &OpenItem| now.in_progress.iter().any(|open| open.text == item.text);
        let is_superseded = |item: &OpenItem| !goes_on(item) && now.pending.contains(&item.text);
        After {
            holder: Holder::of_outline(checkpoint, &now),
            superseded: before.into_iter().find(is_superseded),
            message: checkpoint.progress_report(),
        }
    }
}
