//! The checkpoints inside a builder-state host file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};

use super::file::{
    DroppedLines, DroppedLog, DurableFile, Entry, FileHistory, FileOptions, Next, OnAbsent, Owner,
    Undo, entry_named, listed, no_history, no_such, not_recoverable, recover_with,
};
use super::{
    Beside, Capabilities, CheckpointStore, ClaimChange, Claims, Decide, DeleteOptions, EntryId,
    Exclusive, Heartbeat, History, HistoryEntry, Keep, Outcome, Page, Put, Query, Recover,
    RecoverOptions, Recovered, Recovery, RolledBack, Saved, Stored, check_expected,
};
use crate::checkpoint::{
    Archive, Claim, Dropped, Error, ErrorKind, Expect, Fence, Key, Result, Revision, Timestamp,
};
use crate::formats::builder_state::{Slot, SlotPlace};
use crate::fsio;
use crate::json::{Document, Kind};

/// Where a host shows that its session is alive.
const HEARTBEAT: &str = "/lastHeartbeat";

/// Keeps checkpoints inside a host file; keys are the host's slots: `active`, `adhoc:ID`, `top`.
///
/// A revision is that of one slot, so what the builder changes elsewhere in the file is no
/// conflict; the lock is that of the file. Everything outside the slot is left as it is. Deleting
/// writes `null`, as the protocol does.
///
/// # Durability
///
/// As [`FileStore`](super::FileStore).
#[derive(Clone, Debug)]
pub struct BuilderStateStore {
    path: PathBuf,
    options: Arc<FileOptions>,
}

impl BuilderStateStore {
    /// The store of a host file, usually `docs/builder-state.json`. Opening creates nothing.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        BuilderStateStore::with_options(path, FileOptions::default())
    }

    /// The store of a host file, with options.
    pub fn with_options(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        BuilderStateStore {
            path: path.into(),
            options: Arc::new(options),
        }
    }

    /// The places of the host file, as it is now; none when there is no file.
    ///
    /// # Errors
    ///
    /// As [`load`](CheckpointStore::load).
    pub fn places(&self) -> Result<Vec<SlotPlace>> {
        let host = self.file().load()?;
        Ok(host.map_or_else(Vec::new, |host| Slot::places(&host.document)))
    }

    fn file(&self) -> DurableFile<'_> {
        DurableFile::new(self.path.clone(), &self.options)
    }

    fn file_of(&self, key: &Key) -> DurableFile<'_> {
        self.file().on_slot(key.as_str()).named(key)
    }

    /// Works on the history of a slot.
    fn past<T>(
        &self,
        key: &Key,
        work: impl FnOnce(&Slot, &DurableFile<'_>, &FileHistory<'_>) -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(key)?;
        let file = self.file_of(key);
        let history = file.history()?.ok_or_else(no_history)?;
        work(&slot, &file, &history).map_err(|error| self.with_place(error, key))
    }

    /// Works on the dropped log of the task that is in a slot.
    fn with_log<T>(
        &self,
        key: &Key,
        work: impl FnOnce(&DroppedLog, Owner<'_>) -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(key)?;
        let host = self.file().load()?;
        let place = host.map_or(Ok(None), |host| find(&slot, &host.document));
        let place = place.map_err(|error| self.with_place(error, key))?;
        let owner = Owner {
            slot: Some(key.as_str()),
            task: place.as_ref().and_then(|place| place.task.as_deref()),
        };
        work(&self.file().dropped_log()?, owner)
    }

    fn with_place(&self, error: Error, key: &Key) -> Error {
        error.with_path(&self.path).with_key(key)
    }

    /// The task that the checkpoint of this revision was saved for. Of one that came back without us, the host of its
    /// entry in the history tells.
    fn saved_for(&self, key: &Key, slot: &Slot, revision: &Revision) -> Result<Option<String>> {
        let file = self.file_of(key);
        if let Some(kept) = file.fingerprints(revision)? {
            return Ok(of_beside_text(&kept).0);
        }
        let Ok(Some(history)) = file.history() else {
            return Ok(None);
        };
        let entries = history.entries().unwrap_or_default();
        let of_entry = |entry: &Entry| in_slot(slot, file.read_entry(&entry.path).ok()?).ok()?;
        let mut states = entries.iter().filter_map(of_entry);
        let found = states.find(|state| state.revision == *revision);
        Ok(found.and_then(|state| state.context.task))
    }

    /// A host goes on to its next story, and may leave the checkpoint of the last one in its place: that stays the
    /// last one's. By the story whose contract it names, else by the one that it was saved for.
    fn say_former_task(
        &self,
        key: &Key,
        slot: &Slot,
        host: &Document,
        stored: &mut Stored,
    ) -> Result<()> {
        // The other places are found by the id of their task, or are nobody's.
        if !matches!(slot, Slot::Active | Slot::FormerActive) {
            return Ok(());
        }
        let Some(task) = stored.context.task.clone() else {
            return Ok(());
        };
        let own = match story_of_contract(&stored.document, &task) {
            Some(story) => Some(story),
            None => self.saved_for(key, slot, &stored.revision)?,
        };
        // Before its first story a document stands for all of them.
        let is_document = |own: &String| {
            let id = host.get("/activePrd/id").and_then(|id| id.as_str());
            id.is_some_and(|id| id == own.as_str())
        };
        if let Some(own) = own.filter(|own| *own != task && !is_document(own)) {
            stored.context.task = Some(own);
            stored.context.description = None;
            stored.context.place_is_for = Some(task);
        }
        Ok(())
    }

    /// Archives the checkpoint of a slot, and says where: its text in a file of our own folder, on disk before the
    /// slot becomes `null`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none; those of [`delete`](CheckpointStore::delete).
    pub fn archive(
        &self,
        key: &Key,
        archive: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<PathBuf> {
        let emptied = self.empty(key, options, Some((archive, now)))?;
        emptied
            .flatten()
            .ok_or_else(|| self.with_place(Error::new(ErrorKind::NotFound), key))
    }

    /// Makes a slot `null`, and archives its text first where that is asked for, under the lock. Gives where the
    /// archive is; `None` when the slot was empty.
    fn empty(
        &self,
        key: &Key,
        options: &DeleteOptions,
        archive: Option<(Archive, DateTime<Utc>)>,
    ) -> Result<Option<Option<PathBuf>>> {
        let slot = self.slot(key)?;
        let file = self.file_of(key);
        let emptied = file.transact(&mut |host, beside| {
            let place = match host {
                Some(host) => find(&slot, &host.document)?,
                None => None,
            };
            let (Some(host), Some(place)) = (host, place) else {
                check_expected(key, &options.expect, None)?;
                return Ok((None, None));
            };
            // What is no object can be deleted too: it holds no checkpoint.
            let is_object = host
                .document
                .get(&place.pointer)
                .is_none_or(|node| node.kind() == Kind::Object);
            if is_object || options.expect != Expect::Any {
                check_expected(key, &options.expect, stored(host, &place)?.as_ref())?;
            }
            if !place.occupied {
                return Ok((None, None));
            }
            beside
                .claims
                .check(Some(key.as_str()), options.fence, beside.now)?;
            let mut changed = host.document.clone();
            changed.set(&place.pointer, &())?;
            let mut undo = Undo::default();
            if let (Some((why, at)), Some(node)) = (archive, host.document.get(&place.pointer)) {
                undo.archive = Some(file.archive_text(node.raw(), &archive_name(why, at))?);
            }
            let next = Next {
                text: changed.into_text(),
                revision: None,
                record: DroppedLines::default(),
                fingerprints: None,
                skips_history: false,
                continues_task: false,
                undo,
            };
            Ok((Some(next.undo.archive.clone()), Some(next)))
        });
        emptied.map_err(|error| self.with_place(error, key))
    }

    fn slot(&self, key: &Key) -> Result<Slot> {
        key.as_str()
            .parse()
            .map_err(|error| self.with_place(error, key))
    }
}

/// The task that a checkpoint was saved for, and what its caller keeps beside it: one file.
fn beside_text(task: Option<&str>, fingerprints: Option<&str>) -> String {
    let task = serde_json::Value::from(task).to_string();
    fingerprints.map_or(task.clone(), |text| format!("{task}\n{text}"))
}

/// Takes [`beside_text`] apart. Earlier versions kept the caller's text alone, an object.
fn of_beside_text(kept: &str) -> (Option<String>, Option<&str>) {
    let (first, rest) = match kept.split_once('\n') {
        Some((first, rest)) => (first, Some(rest)),
        None => (kept, None),
    };
    match serde_json::from_str::<Option<String>>(first) {
        Ok(task) => (task, rest),
        Err(_) => (None, Some(kept)),
    }
}

/// The story whose contract a checkpoint names, such as `US-003.verificationContract`, where the slot is for one of
/// the same kind.
fn story_of_contract(checkpoint: &Document, task: &str) -> Option<String> {
    let contract = checkpoint.get("/verification/contractRef")?.as_str()?;
    let story = contract.strip_suffix(".verificationContract")?;
    let kind = |id: &str| id.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let is_numbered = kind(story) != story;
    (is_numbered && kind(story) == kind(task)).then(|| story.to_owned())
}

/// The place of a slot; `None` where the host has none, as an idle one has no active task.
fn find(slot: &Slot, host: &Document) -> Result<Option<SlotPlace>> {
    match slot.find(host) {
        Ok(place) => Ok(Some(place)),
        Err(error) if matches!(error.kind(), ErrorKind::NoSuchSlot { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a slot of a host has.
fn stored(host: &Stored, place: &SlotPlace) -> Result<Option<Stored>> {
    if !place.occupied {
        return Ok(None);
    }
    let Some(document) = host.document.extract(&place.pointer) else {
        let found = host.document.get(&place.pointer);
        let kind = found.map_or("nothing", |node| node.kind().describe());
        return Err(Error::new(ErrorKind::Unreadable {
            detail: format!(
                "{} holds {kind} where a checkpoint object belongs; \
                 mend it, or set it to null and start again",
                place.pointer
            ),
        }));
    };
    let mut stored = Stored::new(document);
    stored.modified = host.modified;
    stored.context.task.clone_from(&place.task);
    stored.context.description.clone_from(&place.description);
    stored.context.heartbeat = host
        .document
        .get(HEARTBEAT)
        .and_then(|node| node.as_str())
        .map(Timestamp::parse);
    Ok(Some(stored))
}

/// What a slot of an earlier host has; `None` where that host had no such slot.
fn in_slot(slot: &Slot, host: Option<Stored>) -> Result<Option<Stored>> {
    let Some(host) = host else {
        return Ok(None);
    };
    let place = find(slot, &host.document)?;
    place.map_or(Ok(None), |place| stored(&host, &place))
}

impl Exclusive for BuilderStateStore {
    fn with_lock(&self, key: &Key, decide: &mut Decide<'_>) -> Result<Saved> {
        let slot = self.slot(key)?;
        let _span = tracing::debug_span!("transact", %key).entered();
        let mut on_absent = OnAbsent::default();
        let file = self.file_of(key);
        let saved = file.transact(&mut |host, beside| {
            let is_host = host.is_some();
            let empty;
            let host = match host {
                Some(host) => host,
                None if slot == Slot::Top => {
                    empty = Stored::new(Document::from_text("{}\n")?);
                    &empty
                }
                None => return Err(no_host(&slot)),
            };
            let place = slot.find(&host.document)?;
            let mut present = stored(host, &place)?;
            if let Some(present) = &mut present {
                self.say_former_task(key, &slot, &host.document, present)?;
                let changed = beside.noted.changed_without(&present.revision);
                present.changed_without = Some(changed.is_some());
            }
            let present = present.as_ref();
            let put = match is_host {
                true => decide(present)?,
                false => on_absent.decide(None, decide)?,
            };
            let Some(put) = put else {
                return Ok((Saved::unchanged(key, present)?, None));
            };
            check_expected(key, &put.expect, present)?;
            beside
                .claims
                .check(Some(key.as_str()), put.fence, beside.now)?;
            let mut changed = host.document.clone();
            let is_new_text = changed.graft(&place.pointer, &put.document)?;
            let previous = present.map(|present| present.revision.clone());
            // Grafting reindents a text that comes from elsewhere, so the revision is that of the slot afterwards.
            let revision = changed
                .get(&place.pointer)
                .map(|node| Revision::of(node.raw().as_bytes()))
                .ok_or_else(|| no_host(&slot))?;
            let outcome = Outcome::of(previous.as_ref(), &revision);
            // A checkpoint stays that of its task until another begins in its place.
            let before = match (&previous, put.archive) {
                (Some(previous), None) => self.saved_for(key, &slot, previous)?,
                _ => None,
            };
            let task = before.or_else(|| place.task.clone());
            let fingerprints = beside_text(task.as_deref(), put.fingerprints());
            let mut saved = Saved::new(outcome, revision.clone(), previous);
            if !put.dropped.is_empty() {
                saved.truncation.kept_in = Some(beside.dropped_log.place());
            }
            let owner = Owner {
                slot: Some(key.as_str()),
                task: place.task.as_deref(),
            };
            let begins = outcome == Outcome::Created && !put.continues_task;
            let record = beside.dropped_log.entries(
                owner,
                begins || put.ends_task(outcome),
                &put.dropped,
            )?;
            let mut undo = Undo::default();
            if let (Some((why, at)), Some(present), true) = (put.archive, present, is_new_text) {
                let text = present.document.text();
                undo.archive = Some(file.archive_text(text, &archive_name(why, at))?);
                saved.archive.clone_from(&undo.archive);
            }
            let next = is_new_text.then(|| Next {
                text: changed.into_text(),
                revision: Some(revision),
                record,
                fingerprints: Some(fingerprints),
                skips_history: put.skips_history,
                continues_task: put.continues_task,
                undo,
            });
            Ok((saved, next))
        });
        saved.map_err(|error| self.with_place(error, key))
    }
}

impl CheckpointStore for BuilderStateStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let slot = self.slot(key)?;
        let Some(host) = self.file().load()? else {
            return Ok(None);
        };
        let load = || -> Result<Option<Stored>> {
            let place = find(&slot, &host.document)?;
            let mut found = place.map_or(Ok(None), |place| stored(&host, &place))?;
            if let Some(found) = &mut found {
                self.say_former_task(key, &slot, &host.document, found)?;
            }
            Ok(found)
        };
        load().map_err(|error| self.with_place(error, key))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.with_lock(key, &mut |_| Ok(Some(put.clone())))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        Ok(self.empty(key, options, None)?.is_some())
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        for place in self.places()?.iter().filter(|place| place.occupied) {
            match place.key() {
                Ok(key) => keys.push(key),
                Err(_) => foreign.push(place.slot.to_string().into()),
            }
        }
        let mut page = query.page(keys);
        page.foreign = foreign;
        Ok(page)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        self.options
            .history
            .is_some()
            .then_some(self as &dyn History)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        Some(self)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        Some(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_power_loss: self.options.durability == fsio::Durability::Full,
            excludes_processes: true,
            embedded: true,
            ..Capabilities::default()
        }
    }
}

impl Beside for BuilderStateStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.with_log(key, |log, owner| log.read(owner))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        self.with_log(key, |log, owner| log.newest(owner, most))
    }

    fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
        Ok(Some(self.file().dropped_log()?.place_beside()))
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let kept = self.file_of(key).fingerprints(revision);
        let kept = kept.map_err(|error| self.with_place(error, key))?;
        Ok(kept.and_then(|kept| of_beside_text(&kept).1.map(str::to_owned)))
    }

    fn document_file(&self, _key: &Key) -> Option<PathBuf> {
        Some(self.path.clone())
    }
}

impl Heartbeat for BuilderStateStore {
    /// The sign of life is the session's own `lastHeartbeat`; a host without one gets it.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        let slot = self.slot(key)?;
        let beat = self.file_of(key).transact(&mut |host, beside| {
            let host = host.ok_or_else(|| Error::new(ErrorKind::NotFound))?;
            let place = find(&slot, &host.document)?;
            let present = place.map_or(Ok(None), |place| stored(host, &place))?;
            let mut present = present.ok_or_else(|| Error::new(ErrorKind::NotFound))?;
            self.say_former_task(key, &slot, &host.document, &mut present)?;
            present.context.refuse_former_task()?;
            beside.claims.check(Some(key.as_str()), fence, beside.now)?;
            let beat = Timestamp::like(present.context.heartbeat.as_ref(), now);
            let mut changed = host.document.clone();
            let is_new = changed.set(HEARTBEAT, &beat)?;
            let outcome = match is_new {
                true => Outcome::Replaced,
                false => Outcome::Unchanged,
            };
            let revision = present.revision;
            let saved = Saved::new(outcome, revision.clone(), Some(revision.clone()));
            let next = is_new.then(|| Next {
                text: changed.into_text(),
                revision: Some(revision),
                record: DroppedLines::default(),
                fingerprints: None,
                skips_history: true,
                continues_task: false,
                undo: Undo::default(),
            });
            Ok((saved, next))
        });
        beat.map_err(|error| self.with_place(error, key))
    }
}

impl Claims for BuilderStateStore {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        // A claim on what can be no slot would never be found.
        self.slot(key)?;
        let claim = self.file_of(key).change_claim(change);
        claim.map_err(|error| self.with_place(error, key))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.slot(key)?;
        self.file_of(key)
            .claimed()
            .map_err(|error| self.with_place(error, key))
    }
}

impl History for BuilderStateStore {
    /// The states of a slot. An entry is the host file before a save of this slot, read at the slot.
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.past(key, |slot, file, history| {
            let current = file.load();
            let current = current.and_then(|host| in_slot(slot, host));
            // Where the slot was empty in between, another task ended: the host itself tells.
            listed(file, current, &history.entries()?, &[], &|entry| {
                in_slot(slot, file.read_entry(&entry.path)?)
            })
        })
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        self.past(key, |slot, file, history| {
            let host = if entry.is_current() {
                file.load()?
            } else {
                let found = entry_named(&history.entries()?, entry)?;
                file.read_entry(&found.path)?
            };
            in_slot(slot, host)?.ok_or_else(|| no_such(entry))
        })
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.past(key, |slot, file, history| {
            // The host file is there, and may have nothing in this slot.
            if entry.is_current() && in_slot(slot, file.load()?)?.is_none() {
                return Err(no_such(entry));
            }
            file.pin(history, entry, pinned)
        })
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.past(key, |slot, file, history| {
            let has_slot = |entry: &Entry| {
                let host = file.read_entry(&entry.path);
                matches!(host.and_then(|host| in_slot(slot, host)), Ok(Some(_)))
            };
            file.prune(history, keep, Some(&has_slot))
        })
    }

    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        self.file_of(key)
            .changed_without(present)
            .map_err(|error| self.with_place(error, key))
    }

    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        let slot = self.slot(key)?;
        let file = self.file_of(key);
        file.rolled_back(present, &|entry| {
            in_slot(&slot, file.read_entry(&entry.path)?)
        })
        .map_err(|error| self.with_place(error, key))
    }
}

impl Recover for BuilderStateStore {
    /// A damaged host file is mended as a whole, with the newest host that a save of any slot replaced. What
    /// the builder wrote since is in the quarantined text. There is no fresh host: a builder's whole
    /// state would go with the checkpoint.
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let slot = self.slot(key)?;
        let file = self.file_of(key);
        let recover = || -> Result<Recovered> {
            let Some(damaged) = file.damaged(options.fence)? else {
                return Ok(Recovered::healthy(options.with));
            };
            if options.with == Recovery::Fresh {
                return Err(not_recoverable(
                    "a host file cannot begin fresh, for the builder's own state is in it; go on with the newest earlier \
                     state, or salvage the good part",
                ));
            }
            let entries = match file.history()? {
                Some(history) if options.with == Recovery::Newest => {
                    history.entries_of_all_slots()?
                }
                _ => Vec::new(),
            };
            let revision = |host: &Document| {
                let of_slot = in_slot(&slot, Some(Stored::new(host.clone())));
                of_slot.ok().flatten().map(|stored| stored.revision)
            };
            let with = options.with;
            let mut recovered = recover_with(&file, &damaged, with, &entries, None, &revision)?;
            for host in [&mut recovered.document, &mut recovered.salvaged] {
                let of_slot = host.take().map(Stored::new);
                let of_slot = in_slot(&slot, of_slot).unwrap_or_default();
                *host = of_slot.map(|stored| stored.document);
            }
            recovered.report(key, began);
            Ok(recovered)
        };
        recover().map_err(|error| self.with_place(error, key))
    }
}

/// What the name of an archive ends with.
fn archive_name(why: Archive, now: DateTime<Utc>) -> String {
    format!("{}_{}", why.as_str(), now.timestamp())
}

fn no_host(slot: &Slot) -> Error {
    Error::refused(format!(
        "there is no host file, so it has no place for the checkpoint {slot}; \
         let the builder begin its session first"
    ))
}
