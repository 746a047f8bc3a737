//! How a recorder gets its task: begin, find, carry on, start over.

use super::hold::{Hold, Holder, give_back};
use super::{Recorder, RecorderOptions};
use crate::CheckpointStoreExt;
use crate::checkpoint::{Archive, Checkpoint, Claim, Error, ErrorKind, Expect, Key, Result};
use crate::checkpoints::{Begun, Checkpoints, Loaded, PutMode};
use crate::resume::{Resume, ResumeDecision};
use crate::store::EntryId;

/// The result of [`Recorder::begin`].
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "made once for a task and matched at once"
)]
pub enum Opened<C: Checkpoint> {
    /// There was no checkpoint. The first one is saved.
    Begun(Recorder<C>),
    /// There is a checkpoint. It was not changed.
    Found(Box<Found<C>>),
    /// There is a checkpoint whose task is complete. It was not changed.
    Complete(Box<Found<C>>),
}

impl<C: Checkpoint> Opened<C> {
    fn found(found: Found<C>) -> Self {
        match found.resume.is_complete() {
            true => Opened::Complete(Box::new(found)),
            false => Opened::Found(Box::new(found)),
        }
    }
}

/// A checkpoint that exists already. The caller decides: [carry on](Found::carry_on),
/// [start over](Found::start_over), or drop this and leave the checkpoint as it is.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Found<C: Checkpoint> {
    /// The checkpoint, as it was loaded.
    pub loaded: Loaded<C>,
    /// Whether and how to resume it, with all that the prompt needs.
    pub resume: Resume,
    /// Its claim, if that is still valid.
    pub claimed: Option<Claim>,
    /// Its last claim, even if that expired or was released.
    last_claim: Option<Claim>,
    /// Why the plan does not let any agent resume it, apart from claims.
    refused: Option<String>,
    checkpoints: Checkpoints<C>,
    key: Key,
    options: RecorderOptions,
}

impl<C: Checkpoint> Recorder<C> {
    /// Begins a task with its first checkpoint. An existing checkpoint is never overwritten: the caller gets it with
    /// its resume plan, and decides.
    ///
    /// If the store has claims, the task is claimed before its first checkpoint is saved. A checkpoint that was found
    /// is claimed only by [`Found::carry_on`] and [`Found::start_over`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] if there is no checkpoint yet and another owner has claimed the task;
    /// [`ErrorKind::Corrupt`] if the checkpoint cannot be read: see
    /// [`CheckpointStoreExt::recover`]; those of
    /// [`Checkpoints::begin`](crate::Checkpoints::begin) and
    /// [`Checkpoints::resume`](crate::Checkpoints::resume).
    pub fn begin(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: impl Into<RecorderOptions>,
        first: &C,
    ) -> Result<Opened<C>> {
        let options = options.into();
        if let Some(loaded) = checkpoints.load(key)? {
            return Found::new(checkpoints, key, options, loaded).map(Opened::found);
        }
        let store = checkpoints.store();
        let claim = Hold::claim(checkpoints, key, &options, None)?;
        let given = checkpoints.fence();
        let fence = claim.as_ref().map(|claim| claim.fence).or(given);
        match checkpoints.clone().fenced(fence).begin(key, first) {
            Ok(Begun::Created(_)) => {
                let hold = Hold::new(claim, given, Holder::of(first));
                Ok(Opened::Begun(Recorder::holding(
                    checkpoints,
                    key,
                    options,
                    hold,
                )))
            }
            Ok(Begun::Found(loaded)) => {
                give_back(store, key, claim.as_ref());
                Found::new(checkpoints, key, options, *loaded).map(Opened::found)
            }
            Err(error) => {
                give_back(store, key, claim.as_ref());
                Err(error)
            }
        }
    }

    /// Finds the checkpoint of a task that was begun before, to carry on from it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no checkpoint, and those of
    /// [`Checkpoints::resume`](crate::Checkpoints::resume).
    pub fn resume(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: impl Into<RecorderOptions>,
    ) -> Result<Found<C>> {
        let loaded = checkpoints.get(key)?;
        Found::new(checkpoints, key, options.into(), loaded)
    }
}

impl<C: Checkpoint> Found<C> {
    fn new(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: RecorderOptions,
        loaded: Loaded<C>,
    ) -> Result<Self> {
        let owner = options.owner.to_string();
        let asked = options.resume.clone().with_asker(&owner);
        let mut resume = checkpoints.resume(key, &asked.clone().ignoring_claims())?;
        let refused =
            (resume.plan.decision >= ResumeDecision::Restart).then(|| resume.plan.message.clone());
        let store = checkpoints.store();
        let last_claim = match store.claims() {
            Some(claims) => claims.claimed(key)?,
            None => None,
        };
        let stands = |claim: &&Claim| claim.stands(checkpoints.now());
        let claimed = last_claim.as_ref().filter(stands).cloned();
        let is_anothers = |claim: &Claim| {
            claim.owner != owner
                && !options.take_over
                && Some(claim.fence) != checkpoints.fence()
                && !claim.is_left_by_dead(&options.owner.agent)
        };
        if claimed.as_ref().is_some_and(is_anothers) {
            // This plan names the owner. The plan without the claim counts once the claim is gone.
            resume = checkpoints.resume(key, &asked)?;
        }
        Ok(Found {
            loaded,
            resume,
            refused,
            claimed,
            last_claim,
            checkpoints: checkpoints.clone(),
            key: key.clone(),
            options,
        })
    }

    /// Claims the task, if the options and the store have claims.
    fn claim(&self) -> Result<Option<Claim>> {
        let (checkpoints, key) = (&self.checkpoints, &self.key);
        Hold::claim(checkpoints, key, &self.options, self.claimed.as_ref())
    }

    /// Counts the attempt that ended before this claim. A failure to record it is only logged: it must not keep
    /// the agent from its task.
    fn count_take_over(&self, claim: &Claim) {
        let (key, owner) = (&self.key, self.options.owner.to_string());
        let ledger = self.checkpoints.ledger(key, owner);
        let before = self.last_claim.as_ref();
        if let Err(error) = ledger.count_take_over(before, claim, &self.resume.handoff) {
            tracing::warn!(%key, %error, "an attempt that ended is not counted");
        }
    }

    /// Carries on from the checkpoint. If the protocol names an agent, the task is the owner's from now on, in its
    /// session. The [plan](Found::resume) lists what must be verified or answered first: do that before this call.
    ///
    /// The call writes nothing if the same owner carries on its own work.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the plan says to refuse or to restart, or the protocol does not let this agent carry
    /// on; [`ErrorKind::Claimed`] while the claim of another owner is valid ([`RecorderOptions::taking_over`]);
    /// [`ErrorKind::Conflict`] if the checkpoint changed since it was found: its agent is still at work.
    pub fn carry_on(self) -> Result<Recorder<C>> {
        if let Some(why) = self.refused {
            return Err(Error::refused(why).with_key(&self.key));
        }
        let claim = self.claim()?;
        if let Some(claim) = &claim {
            self.count_take_over(claim);
        }
        let given = self.checkpoints.fence();
        let hold = Hold::new(claim, given, Holder::of(&self.loaded.checkpoint));
        let recorder = Recorder::holding(&self.checkpoints, &self.key, self.options, hold);
        let found = &self.loaded.checkpoint;
        let mut changed = false;
        let taken_up = recorder.change(&mut |checkpoint, context| {
            changed = *checkpoint != *found;
            if changed {
                return Err(Error::new(ErrorKind::ChangedMeanwhile));
            }
            checkpoint.take_up(context)
        });
        match taken_up {
            Ok(_) => Ok(recorder),
            Err(error) => {
                drop(recorder);
                let is_conflict = changed && *error.kind() == ErrorKind::ChangedMeanwhile;
                Err(if is_conflict {
                    conflict(&self.checkpoints, &self.key, &self.loaded)?
                } else {
                    error
                })
            }
        }
    }

    /// Begins the task anew with this first checkpoint. The old checkpoint is pinned in the history before it is
    /// replaced, and archived as aborted if the store has archives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotOffered`] if the store keeps no history; [`ErrorKind::Claimed`] while the claim of another
    /// owner is valid; [`ErrorKind::Conflict`] if the checkpoint changed since it was found; those of
    /// [`Checkpoints::put`](crate::Checkpoints::put).
    pub fn start_over(self, first: &C) -> Result<Recorder<C>> {
        let store = self.checkpoints.store();
        let claim = self.claim()?;
        let given = self.checkpoints.fence();
        let fence = claim.as_ref().map(|claim| claim.fence).or(given);
        let present = Expect::Revision(self.loaded.revision.clone());
        let replace = || {
            let current = EntryId::current();
            store.pin(&self.key, &current, true)?;
            // The pinned state keeps the values that could not be read.
            let checkpoints = self.checkpoints.clone().allowing_loss().fenced(fence);
            let checkpoints = checkpoints.archiving(Archive::Aborted);
            checkpoints.put(&self.key, first, PutMode::Replace, &present)
        };
        match replace() {
            Ok(_) => {
                let hold = Hold::new(claim, given, Holder::of(first));
                let (checkpoints, key) = (&self.checkpoints, &self.key);
                Ok(Recorder::holding(checkpoints, key, self.options, hold))
            }
            Err(error) => {
                give_back(store, &self.key, claim.as_ref());
                Err(error)
            }
        }
    }
}

/// The error for a checkpoint that changed since it was found.
fn conflict<C: Checkpoint>(
    checkpoints: &Checkpoints<C>,
    key: &Key,
    found: &Loaded<C>,
) -> Result<Error> {
    let now = checkpoints.store().load(key)?;
    Ok(Error::new(ErrorKind::Conflict {
        expected: Expect::Revision(found.revision.clone()),
        found: now.map(|stored| stored.revision),
    })
    .with_key(key))
}
