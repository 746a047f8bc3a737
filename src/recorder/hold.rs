//! What keeps the task the recorder's own: the claim, and whose the checkpoint is.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

use super::RecorderOptions;
use crate::CheckpointStoreExt;
use crate::checkpoint::{
    Checkpoint, Claim, ClaimRequest, Error, ErrorKind, Fence, Fenced, Key, ProcessId, Result,
};
use crate::checkpoints::Checkpoints;
use crate::event;
use crate::store::CheckpointStore;

/// Whose a checkpoint is, by its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    agent: Option<String>,
    session: Option<String>,
}

impl Holder {
    pub(super) fn of<C: Checkpoint>(checkpoint: &C) -> Holder {
        Holder {
            agent: checkpoint.handoff().agent,
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

/// The claim of a recorder, and whose the checkpoint was when it last looked.
#[derive(Debug)]
pub(super) struct Hold {
    /// What the recorder took, and gives back.
    claim: Option<Claim>,
    /// What it was given, and leaves to whoever claimed it.
    given: Option<Fence>,
    pub(super) holder: Holder,
}

impl Hold {
    /// Claims the task, where the store has claims, the options want one, and the view has no fence already. `found` is
    /// the claim that stood when the task was found.
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

    /// Renews the claim when the half of its time is over: seldom enough that a call is one write, and long
    /// before it runs out.
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

    /// Renews a claim that ran out while its owner was away, if nobody else has the task; `false` where the
    /// error is about something else.
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

    /// Refuses a checkpoint that is another's than when this recorder last looked.
    pub(super) fn check<C: Checkpoint>(&self, checkpoint: &C) -> Result<()> {
        let is = Holder::of(checkpoint);
        if is == self.holder {
            return Ok(());
        }
        Err(Error::new(ErrorKind::TakenOver { by: is.name() }))
    }

    /// Refuses a call that writes nothing, and so is not checked by the store, once another has the task.
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
            // Whoever still reports through another handle is told that the claim was given back.
            self.given = Some(claim.fence);
            store.release(key, claim.fence)?;
        }
        Ok(())
    }

    /// Gives the claim back where no caller can be told of a failure.
    pub(super) fn drop_claim(&mut self, store: &dyn CheckpointStore, key: &Key) {
        give_back(store, key, self.claim.take().as_ref());
    }
}

/// Gives a claim back after the call it was made for failed. That one's error is the one to tell; a claim that
/// stays runs out by itself.
pub(super) fn give_back(store: &dyn CheckpointStore, key: &Key, claim: Option<&Claim>) {
    if let Some(claim) = claim
        && let Err(error) = store.release(key, claim.fence)
        // Once another has the task there is nothing to give back.
        && !error.is_taken_over()
    {
        tracing::warn!(%key, %error, "a claim stays until it runs out");
    }
}
