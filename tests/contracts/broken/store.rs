//! A broken store: each method does what the correct one does, except for the faults.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, DeleteOptions, EntryId,
    Exclusive, Heartbeat, History, HistoryEntry, Keep, LedgerLines, LedgerMark, ListedLedger,
    Outcome, Page, Put, Query, Recover, RecoverOptions, Recovered, Recovery, RolledBack, Saved,
    Stored, check_ledger_line,
};
use agent_checkpoint::{Claim, Dropped, ErrorKind, Expect, Fence, Key, Result, Revision};
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

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        match self.fault {
            ForgetsTheDocument => self.right.delete(key, options),
            ForgetsNoFile => {
                // A copy from some earlier time.
                let file = self.right.beside().document_file(key);
                let file = file.filter(|file| file.exists());
                let copy = file.as_ref().map(|file| std::fs::read(file).unwrap());
                let forgotten = self.right.forget(key, options)?;
                if let (Some(file), Some(copy)) = (file, copy) {
                    std::fs::write(file.with_extension("bak"), copy).unwrap();
                }
                Ok(forgotten)
            }
            _ => self.right.forget(key, options),
        }
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let mut page = self.right.list(query)?;
        match self.fault {
            ListsBackwards => page.entries.reverse(),
            // An empty page that is not the last one.
            PagesWithoutEnd if query.after.is_some() => {
                page.entries.clear();
                page.next.clone_from(&query.after);
            }
            GivesAnotherDocument => {
                for listed in &mut page.entries {
                    let other = Stored::new(Document::from_text("{}").unwrap());
                    *listed = listed.clone().with_content(other, None);
                }
            }
            ListsNoLedgers => {
                for listed in &mut page.entries {
                    listed.ledger = ListedLedger::Empty;
                }
            }
            VersionsAreRevisions => {
                for listed in &mut page.entries {
                    let stored = self.right.load(&listed.key)?;
                    listed.version = stored.map(|stored| stored.revision.to_string());
                }
            }
            _ => {}
        }
        Ok(page)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        self.right.claims().map(|_| self as &dyn Claims)
    }

    fn history(&self) -> Option<&dyn History> {
        self.right.history().map(|_| self as &dyn History)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        self.right.recovery().map(|_| self as &dyn Recover)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        let is_offered = self.fault == BeatsInTheDocument || self.right.heartbeat().is_some();
        is_offered.then_some(self as &dyn Heartbeat)
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        self.right.capabilities()
    }
}

/// How many lines wait in the process that added them; enough that nearly every kill loses some.
const MOST_WAITING: usize = 6;

impl Beside for Broken {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.right.beside().dropped(&self.name(key))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let mut all = self.dropped(key)?;
        Ok(all.split_off(all.len().saturating_sub(most)))
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        self.right.beside().dropped_log(key)
    }

    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        self.right.beside().document_file(key)
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        match self.fault {
            TextOfAnyRevision => Ok(self.shared.beside.lock().unwrap().clone()),
            _ => self.right.beside().fingerprints(key, revision),
        }
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        if let (BelievesMarks, Some(mark)) = (self.fault, mark) {
            let mut lines = self.right.beside().ledger(key)?;
            let before = mark.lines().min(lines.len());
            let behind = lines.split_off(before);
            let mark = LedgerMark::new(before + behind.len(), mark.token());
            return Ok(LedgerLines::new(before, behind, Some(mark)));
        }
        let mut lines = self.right.beside().ledger(key)?;
        match self.fault {
            ReversesLedgers => lines.reverse(),
            ForgetsNoLedger if lines.is_empty() => {
                lines.extend(self.shared.beside.lock().unwrap().clone());
            }
            EndsLedgers if self.right.load(key)?.is_none() => lines.clear(),
            AddsLinesLater => {
                let waiting = self.own.lines.lock().unwrap();
                let of_key = waiting.iter().filter(|(of, _)| of == key);
                lines.extend(of_key.map(|(_, line)| line.clone()));
            }
            _ => {}
        }
        LedgerLines::since(mark, |from| {
            Ok(lines.get(from..).unwrap_or_default().to_vec())
        })
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        let (beside, fence) = (self.right.beside(), self.fence(key, fence));
        let add = |line: &str, at| beside.append_to_ledger(key, line, at, fence);
        match self.fault {
            AddsLinesAnywhere => {
                let mut added = false;
                while !added {
                    added = add(line, beside.ledger(key)?.len())?;
                }
                Ok(added)
            }
            AddsLinesLater => {
                check_ledger_line(line)?;
                let mut waiting = self.own.lines.lock().unwrap();
                let there = beside.ledger(key)?.len();
                let of_key = waiting.iter().filter(|(of, _)| of == key);
                if there + of_key.count() != at {
                    return Ok(false);
                }
                waiting.push_back((key.clone(), line.to_owned()));
                if waiting.len() > MOST_WAITING
                    && let Some((_, first)) = waiting.pop_front()
                {
                    add(&first, there)?;
                }
                Ok(true)
            }
            AddsNoLines => Ok(true),
            ForgetsNoLedger => {
                *self.shared.beside.lock().unwrap() = Some(line.to_owned());
                add(line, at)
            }
            HidesFailures => add(line, at).or(Ok(true)),
            _ => add(line, at),
        }
    }
}

impl Heartbeat for Broken {
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        if self.fault != BeatsInTheDocument {
            return self.right.beat(key, now, fence);
        }
        let beat = Document::from_text(format!("{{\"beat\":{}}}", now.timestamp())).unwrap();
        self.right.put(key, Put::new(beat))
    }
}

impl Claims for Broken {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        match change {
            ClaimChange::Claim(request) => self.claim_wrongly(key, request),
            ClaimChange::Release { fence } => self.release_wrongly(key, *fence),
            ClaimChange::Renew {
                fence,
                time_to_live,
            } => {
                let renewed = self.right.renew(key, *fence, *time_to_live);
                match self.fault {
                    RenewsForEveryone => renewed.or_else(|_| Ok(self.right.claimed(key)?.unwrap())),
                    _ => renewed,
                }
            }
            other => self.right.claims().unwrap().change_claim(key, other),
        }
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.right.claimed(key)
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        match self.fault {
            GivesClaimsToAll => Ok(Vec::new()),
            _ => self.right.claims().unwrap().claimed_without_document(),
        }
    }
}

impl History for Broken {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        let mut entries = self.right.states(key)?;
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

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        match self.fault {
            AppendsWithoutTasks => self.right.history().unwrap().append(key, state, 0),
            _ => self
                .right
                .history()
                .unwrap()
                .append(key, state, tasks_ended),
        }
    }

    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        self.right.history().unwrap().changed_without(key, present)
    }

    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        self.right.history().unwrap().rolled_back(key, present)
    }
}

impl Recover for Broken {
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
}

impl Broken {
    /// The key under which a document is kept.
    pub(super) fn name(&self, key: &Key) -> Key {
        match self.fault {
            OneDocumentForAll => Key::new("all").unwrap(),
            _ => key.clone(),
        }
    }

    /// The document that is not written yet.
    fn waiting(&self, key: &Key) -> Option<(Key, Document)> {
        let waiting = self.own.waiting.lock().unwrap().clone();
        waiting.filter(|(waits, _)| waits == key)
    }

    /// Writes the waiting document.
    pub(super) fn write_waiting(&self) -> Result<()> {
        let waiting = self.own.waiting.lock().unwrap().take();
        if let Some((key, document)) = waiting {
            self.right.put(&key, Put::new(document))?;
        }
        Ok(())
    }
}

/// The answer to a put that was not done.
pub(super) fn as_if_done(present: Option<&Stored>, document: &Document, outcome: Outcome) -> Saved {
    let revision = Revision::of(document.text().as_bytes());
    Saved::new(
        outcome,
        revision,
        present.map(|stored| stored.revision.clone()),
    )
}
