//! A broken store: each method does what the right one does, but for the faults.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    Capabilities, CheckpointStore, DeleteOptions, EntryId, Exclusive, HistoryEntry, Keep, Outcome,
    Page, Put, Query, RecoverOptions, Recovered, Recovery, Saved, Stored,
};
use agent_checkpoint::{
    Claim, ClaimRequest, Dropped, ErrorKind, Expect, Fence, Key, Result, Revision,
};
use chrono::{DateTime, Utc};

use super::Broken;
use super::Fault::*;

impl Exclusive for Broken {
    fn with_lock(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        self.transact_wrongly(key, decide)
    }
}

impl CheckpointStore for Broken {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        if let Some((_, document)) = self.waiting(key) {
            return Ok(Some(Stored::new(document)));
        }
        let found = self.right.load(&self.name(key));
        match (self.fault, found) {
            (DefaultForNothing, Ok(None)) => {
                Ok(Some(Stored::new(Document::from_text("{}").unwrap())))
            }
            (CorruptIsNothing, Err(error)) if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
                Ok(None)
            }
            (HidesFailures, Err(_)) => Ok(None),
            (CountsRevisions, Ok(Some(mut stored))) => {
                let count = self.shared.puts.load(Ordering::Relaxed);
                stored.revision = Revision::of(count.to_string().as_bytes());
                Ok(Some(stored))
            }
            (_, found) => found,
        }
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.put_wrongly(key, put)
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let key = &self.name(key);
        let fence = self.fence(key, options.fence());
        let mut asked = options.clone().with_fence(fence);
        if self.fault == IgnoresExpectations {
            asked = asked.with_expect(Expect::Any);
        }
        let deleted = self.right.delete(key, &asked);
        match self.fault {
            DeletesAlways => deleted.map(|_| true),
            HidesFailures => Ok(deleted.unwrap_or(true)),
            _ => deleted,
        }
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let mut page = self.right.list(query)?;
        match self.fault {
            ListsBackwards => page.keys.reverse(),
            // Nothing on it, and yet there is more.
            PagesWithoutEnd if query.after.is_some() => {
                page.keys.clear();
                page.next.clone_from(&query.after);
            }
            _ => {}
        }
        Ok(page)
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.right.overflow(&self.name(key))
    }

    fn companion(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        match self.fault {
            TextOfAnyRevision => Ok(self.shared.beside.lock().unwrap().clone()),
            _ => self.right.companion(key, revision),
        }
    }

    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        if self.fault != BeatsInTheDocument {
            return self.right.beat(key, now, fence);
        }
        let beat = Document::from_text(format!("{{\"beat\":{}}}", now.timestamp())).unwrap();
        self.right.put(key, Put::new(beat))
    }

    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        self.claim_wrongly(key, request)
    }

    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        let renewed = self.right.renew(key, fence, time_to_live);
        match self.fault {
            RenewsForEveryone => renewed.or_else(|_| Ok(self.right.claimed(key)?.unwrap())),
            _ => renewed,
        }
    }

    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        self.release_wrongly(key, fence)
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.right.claimed(key)
    }

    fn history(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        let mut entries = self.right.history(key)?;
        if self.fault == HistoryOldestFirst {
            let past = usize::from(entries.first().is_some_and(HistoryEntry::is_current));
            entries[past..].reverse();
        }
        if self.fault == PrunesEverything && self.shared.pruned.load(Ordering::Relaxed) {
            entries.retain(HistoryEntry::is_current);
        }
        Ok(entries)
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let stored = self.right.load_revision(key, entry);
        match self.fault {
            GivesAnotherState => stored.or_else(|error| self.right.load(key)?.ok_or(error)),
            _ => stored,
        }
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.right.pin(key, entry, pinned)
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.shared.pruned.store(true, Ordering::Relaxed);
        self.right.prune(key, keep)
    }

    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let mut asked = options.clone();
        match self.fault {
            RecoversWithNothing => asked.with = Recovery::Fresh,
            IgnoresFences => asked.fence = self.last_fence(key),
            RecoversWhatIsGood => drop(self.right.delete(key, &DeleteOptions::new())?),
            _ => {}
        }
        self.right.recover(key, &asked)
    }

    fn capabilities(&self) -> Capabilities {
        let mut offered = self.right.capabilities();
        match self.fault {
            HasMoreThanItSays => offered = Capabilities::none(),
            BeatsInTheDocument => offered.heartbeat = true,
            _ => {}
        }
        offered
    }
}

impl Broken {
    /// The key under which a document is kept.
    pub(super) fn name(&self, key: &Key) -> Key {
        match self.fault {
            OneDocumentForAll => Key::new("all").unwrap(),
            _ => key.clone(),
        }
    }

    /// What is not written yet.
    fn waiting(&self, key: &Key) -> Option<(Key, Document)> {
        let waiting = self.own.waiting.lock().unwrap().clone();
        waiting.filter(|(waits, _)| waits == key)
    }

    /// Writes what waits.
    pub(super) fn write_waiting(&self) -> Result<()> {
        let waiting = self.own.waiting.lock().unwrap().take();
        if let Some((key, document)) = waiting {
            self.right.put(&key, Put::new(document))?;
        }
        Ok(())
    }
}

/// What a put says that was not done.
pub(super) fn as_if_done(present: Option<&Stored>, document: &Document, outcome: Outcome) -> Saved {
    let revision = Revision::of(document.text().as_bytes());
    Saved::new(
        outcome,
        revision,
        present.map(|stored| stored.revision.clone()),
    )
}
