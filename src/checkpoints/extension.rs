//! Convenience methods for every store.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Checkpoints;
use crate::checkpoint::{
    Checkpoint, Claim, ClaimRequest, Error, ErrorKind, Expect, Fence, Key, Result,
};
use crate::store::{
    CheckpointStore, ClaimChange, EntryId, HistoryEntry, Keep, Put, RecoverOptions, Recovered,
    Saved, Stored,
};

/// Convenience methods for every store. All stores have them; no store implements them.
///
/// Some share their names with methods of [`Claims`](crate::store::Claims) and [`History`](crate::store::History),
/// which authors of stores implement. If those traits are imported too, a call on a concrete store is ambiguous
/// (`E0034`): write `Claims::claimed(&store, &key)`, or call `store.claims()` first.
pub trait CheckpointStoreExt: CheckpointStore {
    /// The checkpoints of one format in this store. The view holds a clone of the store; put a store that
    /// cannot be cloned into an `Arc`.
    fn checkpoints<C: Checkpoint>(&self) -> Checkpoints<C>
    where
        Self: Clone + Sized + 'static,
    {
        Checkpoints::new(self.clone())
    }

    /// Reads the document, lets `decide` choose, and writes the result, atomically with respect to other
    /// writers. `None` leaves the document as it is.
    ///
    /// `decide` may run more than once, with what a faster writer left. So it must depend only on its argument,
    /// and must have no effects that cannot be repeated.
    ///
    /// # Errors
    ///
    /// Those of [`load`](CheckpointStore::load) and [`put`](CheckpointStore::put); the errors of `decide`,
    /// after which nothing was written; [`ErrorKind::NotFound`] when it returns `None` and there is no
    /// document; [`ErrorKind::Conflict`] when other writers were faster again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::json::Document;
    /// use agent_checkpoint::store::{MemoryStore, Put};
    /// use agent_checkpoint::{CheckpointStoreExt, Key};
    ///
    /// # fn main() -> agent_checkpoint::Result<()> {
    /// let store = MemoryStore::new();
    /// let saved = store.transact(&Key::new("US-003")?, |stored| {
    ///     let mut document = match stored {
    ///         Some(stored) => stored.document.clone(),
    ///         None => Document::new(&serde_json::json!({}))?,
    ///     };
    ///     document.set("/status", &"in_progress")?;
    ///     Ok(Some(Put::new(document)))
    /// })?;
    /// assert!(saved.previous.is_none());
    /// # Ok(())
    /// # }
    /// ```
    fn transact(
        &self,
        key: &Key,
        mut decide: impl FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        let (saved, ()) = crate::store::transact(self, key, |stored| Ok((decide(stored)?, ())))?;
        Ok(saved)
    }

    /// As [`transact`](CheckpointStoreExt::transact), and also returns the value of the last call of `decide`.
    ///
    /// # Errors
    ///
    /// Those of [`transact`](CheckpointStoreExt::transact).
    fn transact_with<T>(
        &self,
        key: &Key,
        decide: impl FnMut(Option<&Stored>) -> Result<(Option<Put>, T)>,
    ) -> Result<(Saved, T)> {
        crate::store::transact(self, key, decide)
    }

    /// Claims a key: until the claim expires or is released, only writes with its fence are accepted.
    ///
    /// The owner of a valid claim gets the same claim again, extended to at least the time it asks for. The key
    /// need not have a checkpoint yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] while the claim of another owner is valid; [`ErrorKind::NotOffered`] in a store
    /// without claims, as for all calls on claims.
    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        let change = ClaimChange::Claim(request.clone());
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// Extends a claim from now on. This also works for an expired claim, as long as no other owner has claimed
    /// the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when the claim was given back or another owner has claimed the key since.
    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        let change = ClaimChange::Renew {
            fence,
            time_to_live,
        };
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// Releases a claim. Releasing it again changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when another owner has claimed the key since.
    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        let change = ClaimChange::Release { fence };
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// The last claim on a key: see [`Claims::claimed`](crate::store::Claims::claimed).
    ///
    /// # Errors
    ///
    /// Any failure to read it.
    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        crate::store::claims_of(self)?.claimed(key)
    }

    /// The states of a key, newest first: see [`History::states`](crate::store::History::states).
    ///
    /// # Errors
    ///
    /// Any failure to list the history; [`ErrorKind::NotOffered`] in a store without history, as for all calls on
    /// history.
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        crate::store::history_of(self)?.states(key)
    }

    /// One state of a key: see [`History::load_revision`](crate::store::History::load_revision).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is no entry of this name; [`ErrorKind::Corrupt`] when it cannot
    /// be read.
    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        crate::store::history_of(self)?.load_revision(key, entry)
    }

    /// Pins an entry or unpins it: see [`History::pin`](crate::store::History::pin).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is no entry of this name.
    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        crate::store::history_of(self)?.pin(key, entry, pinned)
    }

    /// Removes entries beyond these limits: see [`History::prune`](crate::store::History::prune).
    ///
    /// # Errors
    ///
    /// Any failure to list the history.
    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        crate::store::history_of(self)?.prune(key, keep)
    }

    /// Recovers from a document that cannot be read: see [`Recover::recover`](crate::store::Recover::recover).
    ///
    /// # Errors
    ///
    /// Those of [`Recover::recover`](crate::store::Recover::recover); [`ErrorKind::NotOffered`] in a store without
    /// recovery.
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        crate::store::recovery_of(self)?.recover(key, options)
    }

    /// Records that the agent of this key is alive: see [`Heartbeat::beat`](crate::store::Heartbeat::beat).
    ///
    /// # Errors
    ///
    /// Those of [`Heartbeat::beat`](crate::store::Heartbeat::beat); [`ErrorKind::NotOffered`] in a store without a
    /// heartbeat.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        let what = "heartbeat";
        let heartbeat = self
            .heartbeat()
            .ok_or_else(|| Error::new(ErrorKind::NotOffered { what }))?;
        heartbeat.beat(key, now, fence)
    }

    /// Puts an earlier state of a key in place again, byte for byte, if the present state is as expected. The
    /// present state becomes an entry of the history. Restoring a state of the deleted task brings that task
    /// back, with its dropped items.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStoreExt::load_revision`] and of [`CheckpointStore::put`].
    fn restore(
        &self,
        key: &Key,
        entry: &EntryId,
        expect: Expect,
        fence: Option<Fence>,
    ) -> Result<Saved> {
        let history = crate::store::history_of(self)?;
        let stored = history.load_revision(key, entry)?;
        let states = history.states(key)?;
        let mut states = states.iter();
        let mut put = Put::new(stored.document)
            .with_expect(expect)
            .with_fence(fence);
        if states.any(|known| known.id == *entry && known.tasks_since == 0) {
            put = put.continue_task();
        }
        self.put(key, put)
    }
}

impl<S: CheckpointStore + ?Sized> CheckpointStoreExt for S {}
