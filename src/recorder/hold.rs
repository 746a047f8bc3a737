//! The ownership of a task: the claim, and the agent and session that the checkpoint names.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

use super::RecorderOptions;
use crate::CheckpointStoreExt;
use crate::checkpoint::{
    Checkpoint, Claim, ClaimRequest, Error, ErrorKind, Fence, Fenced, Handoff, Key, ProcessId,
    Result,
};
use crate::checkpoints::Checkpoints;
use crate::event;
use crate::store::CheckpointStore;

/// The agent and session that a checkpoint names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    agent: Option<String>,
    session: Option<String>,
}

impl Holder {
    pub(super) fn of<C: Checkpoint>(checkpoint: &C) -> Holder {
        Holder::of_outline(checkpoint, &checkpoint.outline())
    }

    pub(super) fn of_outline<C: Checkpoint>(checkpoint: &C, outline: &Handoff) -> Holder {
        Holder {
            agent: outline.agent.clone(),
            session: checkpoint.session().map(str::to_owned),
        }
    }

    fn name(&self) -> Option<String> {
        match (&self.agent, &self.session) {
            (Some(agent), Some(session)) => Some(format!("{agent}, session {session}")),
            (Some(name), None) | (None, Some(name)) => Some(name.clone()),
            (None, None) => None,
        }
    }
}

/// The claim of a recorder, and the holder of the checkpoint after its last call.
#[derive(Debug)]
pub(super) struct Hold {
    /// The claim that the recorder made. It gives this one back.
    claim: Option<Claim>,
    /// The fence of a claim that the caller made. The recorder does not give that one back.
    given: Option<Fence>,
    pub(super) holder: Holder,
}

impl Hold {
    /// Claims the task, if the store has claims, the options ask for one, and the view has no fence yet. `found` is the
    /// claim that stood when the task was found.
    pub(super) fn claim<C: Checkpoint>(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: &RecorderOptions,
        found: Option<&Claim>,
    ) -> Result<Option<Claim>> {
        let store = checkpoints.store();
        let is_wanted = checkpoints.fence().is_none() && store.claims().is_some();
        let Some(time_to_live) = options.claim_for.filter(|_| is_wanted) else {
            return Ok(None);
        };
        let mut request = ClaimRequest::new(options.owner.to_string(), time_to_live)
            .of_agent(&options.owner.agent)
            .in_process(ProcessId::current());
        request.take_over = options.take_over;
        let began = Instant::now();
        let claim = store.claim(key, &request)?;
        let is_anothers = |found: &Claim| found.owner != claim.owner && found.fence != claim.fence;
        let event = if found.is_some_and(is_anothers) {
            "taken over"
        } else {
            "claimed"
        };
        event::happened(event, key, None, Some(&options.owner.agent), began);
        Ok(Some(claim))
    }

    pub(super) fn new(claim: Option<Claim>, given: Option<Fence>, holder: Holder) -> Hold {
        Hold {
            claim,
            given,
            holder,
        }
    }

    pub(super) fn claimed(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    pub(super) fn fence(&self) -> Option<Fence> {
        self.claim.as_ref().map(|claim| claim.fence).or(self.given)
    }

    /// Renews the claim after half of its time: long before it expires, and seldom enough that most calls write only
    /// the checkpoint.
    pub(super) fn keep(
        &mut self,
        store: &dyn CheckpointStore,
        key: &Key,
        time_to_live: Option<Duration>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let Some((claim, time_to_live)) = self.claim.as_ref().zip(time_to_live) else {
            return Ok(());
        };
        let half = TimeDelta::from_std(time_to_live / 2).unwrap_or(TimeDelta::MAX);
        if claim.expires.signed_duration_since(now) > half {
            return Ok(());
        }
        self.renew(store, key, time_to_live)
    }

    /// Renews an expired claim, if no other owner has the task. `false` if the error has another cause.
    pub(super) fn revive(
        &mut self,
        error: &Error,
        store: &dyn CheckpointStore,
        key: &Key,
        time_to_live: Option<Duration>,
    ) -> Result<bool> {
        let ran_out = matches!(
            error.kind(),
            ErrorKind::Fenced {
                why: Fenced::Expired { .. },
                ..
            }
        );
        match time_to_live.filter(|_| ran_out && self.claim.is_some()) {
            Some(time_to_live) => self.renew(store, key, time_to_live).map(|()| true),
            None => Ok(false),
        }
    }

    fn renew(
        &mut self,
        store: &dyn CheckpointStore,
        key: &Key,
        time_to_live: Duration,
    ) -> Result<()> {
        if let Some(claim) = &mut self.claim {
            *claim = store.renew(key, claim.fence, time_to_live)?;
        }
        Ok(())
    }

    /// Fails if the checkpoint names another holder than after the last call.
    pub(super) fn check(&self, is: &Holder) -> Result<()> {
        if *is == self.holder {
            return Ok(());
        }
        Err(Error::new(ErrorKind::TakenOver { by: is.name() }))
    }

    /// Fails if another owner has the task. The store does not check this for a call that writes nothing.
    pub(super) fn check_claim(
        &self,
        store: &dyn CheckpointStore,
        key: &Key,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let Some(fence) = self.fence() else {
            return Ok(());
        };
        let last = store.claimed(key)?;
        match Claim::check(last.as_ref(), Some(fence), now) {
            Err(error) if error.is_taken_over() => Err(error.with_key(key)),
            _ => Ok(()),
        }
    }

    /// Gives the claim back.
    pub(super) fn release(&mut self, store: &dyn CheckpointStore, key: &Key) -> Result<()> {
        if let Some(claim) = self.claim.take() {
            // Later calls state this fence, so the store says that the claim was given back.
            self.given = Some(claim.fence);
            store.release(key, claim.fence)?;
        }
        Ok(())
    }

    /// Gives the claim back on drop. A failure is logged.
    pub(super) fn drop_claim(&mut self, store: &dyn CheckpointStore, key: &Key) {
        give_back(store, key, self.claim.take().as_ref());
    }
}

/// Gives a claim back after the call that needed it failed. The caller gets that call's error; a claim that could not be
/// given back expires.
pub(super) fn give_back(store: &dyn CheckpointStore, key: &Key, claim: Option<&Claim>) {
    if let Some(claim) = claim
        && let Err(error) = store.release(key, claim.fence)
        // If another owner has the task, there is nothing to give back.
        && !error.is_taken_over()
    {
        tracing::warn!(%key, %error, "the claim was not released; it lasts until it expires");
    }
}
