//! A store in memory.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use super::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, DeleteOptions, EntryId,
    Exclusive, Heartbeat, History, HistoryEntry, Keep, LedgerLines, LedgerMark, Listed,
    ListedLedger, Outcome, Page, Put, Query, Recover, RecoverOptions, Recovered, RolledBack, Saved,
    Stored, check_expected, check_ledger_line,
};
use crate::checkpoint::{Claim, Clock, Dropped, Expect, Fence, Key, Result, Revision, SystemClock};

/// Keeps documents in memory, for tests and for work that need not survive.
///
/// A clone is the same store.
#[derive(Clone)]
pub struct MemoryStore {
    entries: Arc<Mutex<Entries>>,
    clock: Arc<dyn Clock>,
    keep: Keep,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("keys", &self.entries().by_key.keys())
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore {
            entries: Arc::default(),
            clock: Arc::new(SystemClock),
            keep: Keep::default(),
        }
    }
}

#[derive(Default)]
struct Entries {
    by_key: BTreeMap<Key, Entry>,
}

/// Everything under one key.
#[derive(Default)]
struct Entry {
    document: Option<Stored>,
    dropped: Vec<Dropped>,
    ledger: Vec<String>,
    claim: Option<Claim>,
    /// The fingerprints of the present document.
    fingerprints: Option<String>,
    /// Oldest first.
    history: VecDeque<Past>,
    last_number: u64,
    /// Counts the writes.
    writes: u64,
    /// The last entry number of each task that ended.
    ended: Vec<u64>,
}

struct Past {
    number: u64,
    stored: Stored,
    pinned: bool,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// Sets the clock for claims.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how much history is kept.
    #[must_use]
    pub fn with_history(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Entries are consistent at every point where a panic can occur, so a poisoned lock does no harm.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the expectation and the fence of a writer, and returns the entry of the key.
    fn checked<'e>(
        &self,
        entries: &'e mut Entries,
        key: &Key,
        expect: &Expect,
        fence: Option<Fence>,
    ) -> Result<&'e mut Entry> {
        let entry = entries.by_key.get(key);
        let claim = entry.and_then(|entry| entry.claim.as_ref());
        Claim::check(claim, fence, self.clock.now()).map_err(|error| error.with_key(key))?;
        check_expected(key, expect, entry.and_then(|entry| entry.document.as_ref()))?;
        Ok(entries.by_key.entry(key.clone()).or_default())
    }
}

impl CheckpointStore for MemoryStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let entries = self.entries();
        Ok(entries
            .by_key
            .get(key)
            .and_then(|entry| entry.document.clone()))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        let mut entries = self.entries();
        let entry = self.checked(&mut entries, key, &put.expect, put.fence)?;
        let now = SystemTime::from(self.clock.now());
        let keep = (!put.skips_history).then_some(&self.keep);
        Ok(entry.put(put, keep, now))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        None
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let mut entries = self.entries();
        let entry = self.checked(&mut entries, key, &options.expect, options.fence)?;
        Ok(entry.remember(&self.keep, SystemTime::from(self.clock.now())))
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let mut entries = self.entries();
        let entry = entries.by_key.entry(key.clone()).or_default();
        Claim::check_forget(entry.claim.as_ref(), options.fence, self.clock.now())
            .map_err(|error| error.with_key(key))?;
        check_expected(key, &options.expect, entry.document.as_ref())?;
        let Entry {
            document,
            dropped,
            ledger,
            history,
            claim,
            writes,
            ..
        } = std::mem::take(entry);
        entry.writes = writes + 1;
        let is_owned = claim.as_ref().is_some_and(|claim| !claim.is_only_fence());
        entry.claim = claim.map(|claim| Claim::only_fence(claim.fence));
        let was_beside = !dropped.is_empty() || !ledger.is_empty() || !history.is_empty();
        Ok(document.is_some() || was_beside || is_owned)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let entries = self.entries();
        let after = query.after.as_ref().map_or(Unbounded, Excluded);
        let there = entries.by_key.range::<Key, _>((after, Unbounded));
        let there = there.filter(|(key, entry)| entry.document.is_some() && query.takes(key));
        // One more than the page shows whether there is a next one.
        let most = query
            .limit
            .map_or(usize::MAX, |limit| limit.saturating_add(1));
        let listed = |(key, entry): (&Key, &Entry)| {
            let listed = Listed::from(key.clone())
                .with_version(entry.writes.to_string())
                .with_ledger(ListedLedger::of_lines(entry.ledger.len() as u64));
            match entry.document.clone().filter(|_| query.documents) {
                Some(stored) => listed.with_content(stored, entry.claim.clone()),
                None => listed,
            }
        };
        Ok(query.page(there.take(most).map(listed)))
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        Some(self)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ..Capabilities::default()
        }
    }
}

impl Beside for MemoryStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        let entries = self.entries();
        let entry = entries.by_key.get(key);
        Ok(entry.map(|entry| entry.dropped.clone()).unwrap_or_default())
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let entries = self.entries();
        let entry = entries.by_key.get(key);
        let is_it = |stored: &Stored| stored.revision == *revision;
        let there = entry.filter(|entry| entry.document.as_ref().is_some_and(is_it));
        Ok(there.and_then(|entry| entry.fingerprints.clone()))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let entries = self.entries();
        let all = entries.by_key.get(key).map(|entry| &entry.dropped);
        Ok(all.map_or_else(Vec::new, |all| {
            all.iter()
                .skip(all.len().saturating_sub(most))
                .cloned()
                .collect()
        }))
    }

    fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
        Ok(None)
    }

    fn document_file(&self, _: &Key) -> Option<PathBuf> {
        None
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        let entries = self.entries();
        let ledger = entries.by_key.get(key).map(|entry| &*entry.ledger);
        let ledger = ledger.unwrap_or_default();
        LedgerLines::since(mark, |from| {
            Ok(ledger.get(from..).unwrap_or_default().to_vec())
        })
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        check_ledger_line(line).map_err(|error| error.with_key(key))?;
        let mut entries = self.entries();
        let entry = self.checked(&mut entries, key, &Expect::Any, fence)?;
        let is_next = entry.ledger.len() == at;
        if is_next {
            entry.ledger.push(line.to_owned());
        }
        Ok(is_next)
    }
}

impl Claims for MemoryStore {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        let mut entries = self.entries();
        let entry = entries.by_key.get(key);
        let last = entry.and_then(|entry| entry.claim.as_ref());
        let claim = change.apply(last, self.clock.now());
        let claim = claim.map_err(|error| error.with_key(key))?;
        let entry = entries.by_key.entry(key.clone()).or_default();
        entry.claim = Some(claim.clone());
        entry.writes += 1;
        Ok(claim)
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        let entries = self.entries();
        Ok(entries
            .by_key
            .get(key)
            .and_then(|entry| entry.claim.clone()))
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let entries = self.entries();
        let is_held = |claim: &Claim| !claim.released;
        let held = entries.by_key.iter().filter(|(_, entry)| {
            entry.document.is_none() && entry.claim.as_ref().is_some_and(is_held)
        });
        Ok(held.map(|(key, _)| key.clone()).collect())
    }
}

impl History for MemoryStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        let entries = self.entries();
        let Some(entry) = entries.by_key.get(key) else {
            return Ok(Vec::new());
        };
        let entry_of = |id, stored: &Stored, pinned, tasks_since| HistoryEntry {
            id,
            tasks_since,
            revision: Ok(stored.revision.clone()),
            saved: stored.modified,
            bytes: stored.document.text().len() as u64,
            pinned,
        };
        let current = entry
            .document
            .iter()
            .map(|now| entry_of(EntryId::current(), now, false, 0));
        let past = entry.history.iter().rev();
        let past = past.map(|past| {
            entry_of(
                past.id(),
                &past.stored,
                past.pinned,
                entry.tasks_since(past),
            )
        });
        Ok(current.chain(past).collect())
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let entries = self.entries();
        let found = entries.by_key.get(key).and_then(|of_key| {
            if entry.is_current() {
                return of_key.document.clone();
            }
            let mut past = of_key.history.iter();
            past.find(|past| past.id() == *entry)
                .map(|past| past.stored.clone())
        });
        found.ok_or_else(|| entry.no_such().with_key(key))
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        let mut entries = self.entries();
        let of_key = entries.by_key.entry(key.clone()).or_default();
        if entry.is_current()
            && let Some(stored) = of_key.document.clone()
        {
            of_key.keep(stored);
            if let Some(past) = of_key.history.back_mut() {
                past.pinned = pinned;
                return Ok(past.id());
            }
        }
        match of_key.history.iter_mut().find(|past| past.id() == *entry) {
            Some(past) => {
                past.pinned = pinned;
                Ok(past.id())
            }
            None => Err(entry.no_such().with_key(key)),
        }
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        let mut entries = self.entries();
        let now = SystemTime::from(self.clock.now());
        let entry = entries.by_key.get_mut(key);
        Ok(entry
            .map(|entry| entry.prune(keep, now))
            .unwrap_or_default())
    }

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        let mut entries = self.entries();
        let entry = self.checked(&mut entries, key, &Expect::Absent, None)?;
        entry.push(state.clone());
        let number = entry.last_number;
        entry.ended.extend(std::iter::repeat_n(number, tasks_ended));
        Ok(EntryId::from(number))
    }

    fn changed_without(&self, _: &Key, _: &Revision) -> Result<Option<SystemTime>> {
        Ok(None)
    }

    fn rolled_back(&self, _: &Key, _: &Revision) -> Result<Option<RolledBack>> {
        Ok(None)
    }
}

impl Recover for MemoryStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let mut entries = self.entries();
        let any = Expect::Any;
        let entry = self.checked(&mut entries, key, &any, options.fence)?;
        // A document in memory is never damaged, so only a deleted one can be brought back.
        let past = entry.history.iter().rev();
        let past = past.map(|past| (past.id(), entry.tasks_since(past), past));
        let read = |past: &Past| Ok(Some(past.stored.clone()));
        let decided = Recovered::decide(options.with, Ok(entry.document.clone()), b"", past, read);
        let Some(mut recovered) = decided.map_err(|error| error.with_key(key))? else {
            return Ok(Recovered::healthy(options.with));
        };
        let Some(document) = recovered.document.clone() else {
            entry.end_task();
            return Ok(recovered);
        };
        let now = SystemTime::from(self.clock.now());
        let put = Put::new(document)
            .continue_task()
            .with_fingerprints(entry.fingerprints.clone());
        recovered.saved = Some(entry.put(put, Some(&self.keep), now));
        recovered.report(key, began);
        Ok(recovered)
    }
}

impl Past {
    fn id(&self) -> EntryId {
        EntryId::from(self.number)
    }
}

impl Entry {
    fn put(&mut self, put: Put, keep: Option<&Keep>, now: SystemTime) -> Saved {
        let mut saved = put.saved(self.document.as_ref());
        // An archive ends the task even though this store keeps no archives.
        let begins = put.begins_task(saved.outcome);
        if begins {
            self.dropped.clear();
        }
        if saved.outcome != Outcome::Unchanged {
            if !put.dropped.is_empty() {
                saved.truncation.kept_in = Some("memory".to_owned());
            }
            for item in put.dropped {
                if !self.dropped.contains(&item) {
                    self.dropped.push(item);
                }
            }
            if let Some(keep) = keep {
                self.remember(keep, now);
            }
            if begins {
                self.end_task();
            }
            self.writes += 1;
            self.document = Some(Stored {
                modified: Some(now),
                ..Stored::of_revision(put.document, saved.revision.clone())
            });
            self.fingerprints = put.fingerprints;
        }
        saved
    }

    /// Ends the present task: the states now in the history belong to an earlier one.
    fn end_task(&mut self) {
        let newest = self.history.back().map(|past| past.number);
        self.ended
            .extend(newest.filter(|newest| self.ended.last() != Some(newest)));
        let oldest = self.history.front().map(|past| past.number);
        let is_gone = |ended: &u64| oldest.is_none_or(|oldest| *ended < oldest);
        let gone = self.ended.partition_point(is_gone);
        self.ended.drain(..gone);
    }

    fn tasks_since(&self, past: &Past) -> usize {
        // The numbers are sorted.
        let before = self.ended.partition_point(|ended| *ended < past.number);
        self.ended.len() - before
    }

    /// Moves the present document into the history; `false` when there is none.
    fn remember(&mut self, keep: &Keep, now: SystemTime) -> bool {
        let Some(present) = self.document.take() else {
            return false;
        };
        self.keep(present);
        self.prune(keep, now);
        true
    }

    /// Makes an entry, unless the newest entry already is this state, for example because it was pinned.
    fn keep(&mut self, stored: Stored) {
        let is_newest = self.history.back().is_some_and(|newest| {
            newest.stored.revision == stored.revision
                && newest.stored.modified == stored.modified
                && self.tasks_since(newest) == 0
        });
        if !is_newest {
            self.push(stored);
        }
    }

    fn push(&mut self, stored: Stored) {
        self.last_number += 1;
        self.history.push_back(Past {
            number: self.last_number,
            stored,
            pinned: false,
        });
    }

    fn prune(&mut self, keep: &Keep, now: SystemTime) -> Vec<EntryId> {
        if keep.keeps_any(Keep::COUNT, self.history.len()) {
            return Vec::new();
        }
        let loose: Vec<&Past> = self
            .history
            .iter()
            .rev()
            .filter(|past| !past.pinned)
            .collect();
        let sizes = loose.iter().map(|past| &past.stored);
        let sizes = sizes.map(|stored| (stored.modified, stored.document.text().len() as u64));
        let beyond = keep.beyond(Keep::COUNT, sizes, now);
        // The numbers are in descending order, because entries are listed newest first.
        let gone: Vec<u64> = beyond.into_iter().map(|at| loose[at].number).collect();
        let is_gone = |past: &Past| gone.binary_search_by(|it| past.number.cmp(it)).is_ok();
        self.history.retain(|past| !is_gone(past));
        gone.into_iter().map(EntryId::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;
    use crate::checkpoint::Archive;
    use crate::json::Document;

    /// Measures a history of this many states, each of which ends a task, and a list of as many keys.
    fn time_of(many: usize) -> Duration {
        let began = Instant::now();
        let store = MemoryStore::new().with_history(Keep::newest(many));
        let put = |key: &str, text: String, ends: bool| {
            let document = Document::from_text(text).unwrap();
            let ending = ends.then_some((Archive::Complete, DateTime::UNIX_EPOCH));
            let put = Put::new(document).with_archive(ending);
            store.put(&Key::new(key).unwrap(), put).unwrap()
        };
        for number in 0..many {
            put("one", format!(r#"{{"number": {number}}}"#), true);
            put(&format!("of-many-{number}"), "{}".to_owned(), false);
        }
        let one = Key::new("one").unwrap();
        assert_eq!(store.states(&one).unwrap().len(), many);
        let (mut query, mut found) = (Query::all().with_limit(7), 0);
        loop {
            let page = store.list(&query).unwrap();
            found += page.entries.len();
            let Some(next) = page.next else { break };
            query = query.after(next);
        }
        assert_eq!(found, many + 1);
        assert!(store.prune(&one, &Keep::newest(1)).unwrap().len() > many / 2);
        began.elapsed()
    }

    #[test]
    fn long_histories_and_lists_take_linear_time() {
        // Take the fastest of several runs, so that other load counts only if it lasts through all of them.
        let fastest = |many| (0..3).map(|_| time_of(many)).min().unwrap();
        let (few, many) = (fastest(5_000), fastest(20_000));
        assert!(many < few * 10, "{few:?} for 5,000, {many:?} for 20,000");
    }
}
