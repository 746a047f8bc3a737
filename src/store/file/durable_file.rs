//! One file that is read, changed and written as one step.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};

use super::claims::ClaimsFile;
use super::companion::CompanionFile;
use super::history::{Entry, History, Kept, encoded};
use super::lineage::{Ended, Lineage};
use super::overflow::Entries;
use super::saved::{Noted, SavedNote};
use super::unique::unique_names;
use super::{FileOptions, OverflowFile, Owner, entry_named, no_such, quarantine};
use crate::checkpoint::{Backups, Claim, Error, ErrorKind, Fence, Key, Result, Revision};
use crate::event;
use crate::fsio::{
    self, Contents, Durability, FileError, FileStamp, InPlace, Lock, Present, Replace, look,
    parent_of,
};
use crate::json::{Corrupt, CorruptCode, Document};
use crate::store::{ClaimChange, EntryId, Keep, RolledBack, Stored};

/// How often a step is begun anew when a program that takes no lock was faster.
const FOREIGN_CHANGES: usize = 4;

/// How long after a corrupt reading the file is read again: some programs cut a file and fill it
/// again in place.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// A file that was last written longer ago than this is not just being written. Whoever cuts a file and fills
/// it again may be suspended between the two, or wait for a busy disk.
const AT_REST: Duration = Duration::from_millis(250);

/// How often a file is read again that looks corrupt and is just being written.
const LOOKS: usize = 25;

/// A file with its lock and its options.
pub(in crate::store) struct DurableFile<'o> {
    path: PathBuf,
    options: &'o FileOptions,
    backups: Option<Backups>,
    /// The folder that no link may lead out of.
    within: Option<PathBuf>,
    /// The slot of a host file that the work is on.
    slot: Option<String>,
    /// The checkpoint, for events.
    key: Option<Key>,
}

/// What a file shall hold, and what is recorded with it.
pub(in crate::store) struct Next {
    pub(in crate::store) text: String,
    /// The revision of the checkpoint in it; `None` where a slot is emptied.
    pub(in crate::store) revision: Option<Revision>,
    pub(in crate::store) record: Entries,
    /// The fingerprints that are kept beside the checkpoint of this revision.
    pub(in crate::store) fingerprints: Option<String>,
    /// Whether what it replaces is no state of the history.
    pub(in crate::store) skips_history: bool,
    /// Whether a task that was deleted goes on, where nothing is there.
    pub(in crate::store) continues_task: bool,
    /// What was done for it already.
    pub(in crate::store) undo: Undo,
}

/// What was done for a text before it was written, to be undone when it is not written after all.
#[derive(Default)]
pub(in crate::store) struct Undo {
    /// The copy of the checkpoint that was archived.
    pub(in crate::store) archive: Option<PathBuf>,
    /// The end of its task.
    pub(super) ended: Ended,
}

impl Undo {
    fn undo(self) {
        discard(self.archive);
        self.ended.undo();
    }
}

/// What lies beside a file, for those who decide what it shall hold.
pub(in crate::store) struct Beside {
    pub(in crate::store) overflow: OverflowFile,
    pub(in crate::store) claims: ClaimsFile,
    pub(in crate::store) noted: Noted,
    pub(in crate::store) now: DateTime<Utc>,
}

/// A damaged file, and the lock on it.
pub(in crate::store) struct Damaged<'f> {
    file: &'f DurableFile<'f>,
    target: PathBuf,
    contents: Option<Contents>,
    /// What is wrong with it; `None` when there is no file.
    pub(in crate::store) corrupt: Option<Corrupt>,
    _lock: Option<Lock>,
}

/// What a file holds, or what is wrong with that.
type Judged = (std::result::Result<Stored, Corrupt>, Contents);

/// Decides from what is there what the file shall hold; `None` leaves it. The caller gets the value back.
type Decide<'d, T> = dyn FnMut(Option<&Stored>, &Beside) -> Result<(T, Option<Next>)> + 'd;

/// How long a wait for a lock is that is worth an event: a save by another takes a few milliseconds.
const WORTH_TELLING: Duration = Duration::from_millis(50);

impl<'o> DurableFile<'o> {
    pub(in crate::store) fn new(path: PathBuf, options: &'o FileOptions) -> Self {
        DurableFile {
            path,
            options,
            backups: None,
            within: None,
            slot: None,
            key: None,
        }
    }

    /// Names the checkpoint in events.
    pub(in crate::store) fn named(mut self, key: &Key) -> Self {
        self.key = Some(key.clone());
        self
    }

    /// Keeps the protocol's own backups.
    pub(super) fn with_backups(mut self, backups: Option<Backups>) -> Self {
        self.backups = backups;
        self
    }

    /// Refuses links that lead out of this folder.
    pub(super) fn within(mut self, folder: &Path) -> Self {
        self.within = Some(folder.to_path_buf());
        self
    }

    /// Works on one slot of a host file.
    pub(in crate::store) fn on_slot(mut self, slot: &str) -> Self {
        self.slot = Some(slot.to_owned());
        self
    }

    /// The file that the path leads to: two names of one file have one lock.
    fn target(&self) -> Result<PathBuf> {
        self.look_at_target().map(|(target, _)| target)
    }

    /// The same, and what is there.
    fn look_at_target(&self) -> Result<(PathBuf, Option<Metadata>)> {
        let folder = self.within.as_deref();
        let found = fsio::target_of(&self.path, folder)?;
        if let Some(folder) = folder {
            fsio::within(folder, &folder.join(fsio::OWN_FOLDER))?;
        }
        Ok(found)
    }

    /// How many bytes the file has; 0 where that cannot be said.
    pub(in crate::store) fn size(&self) -> u64 {
        let found = self.look_at_target().ok();
        found
            .and_then(|(_, metadata)| metadata)
            .map_or(0, |metadata| metadata.len())
    }

    fn beside(&self, target: &Path) -> Beside {
        Beside {
            overflow: OverflowFile::beside(target),
            claims: ClaimsFile::beside(target),
            noted: Noted::default(),
            now: self.options.clock.now(),
        }
    }

    fn owner(&self) -> Owner<'_> {
        Owner {
            slot: self.slot.as_deref(),
            task: None,
        }
    }

    fn history_of(&self, target: &Path) -> Option<History<'o>> {
        History::of(target, self.backups, self.owner(), self.options)
    }

    /// The history of the file, or of the slot; `None` where none is kept.
    pub(in crate::store) fn history(&self) -> Result<Option<History<'o>>> {
        Ok(self.history_of(&self.target()?))
    }

    /// How many tasks ended after each of these entries of the history, newest first.
    pub(super) fn ages(&self, history: &History<'_>, entries: &[Entry]) -> Result<Vec<usize>> {
        Lineage::beside(&self.target()?).ages(history, entries)
    }

    /// Ends the present task: what is in the history now is not gone on with unasked. Under the lock, and to be
    /// undone when the act fails.
    pub(super) fn end_lineage(&self) -> Result<Ended> {
        self.end_lineage_of(&self.target()?)
    }

    /// Ends the present task for a text that is to be written.
    pub(super) fn end_task(&self, undo: Undo) -> Result<Undo> {
        match self.end_lineage() {
            Ok(ended) => Ok(Undo { ended, ..undo }),
            Err(error) => {
                undo.undo();
                Err(error)
            }
        }
    }

    fn end_lineage_of(&self, target: &Path) -> Result<Ended> {
        match self.history_of(target) {
            Some(history) => Lineage::beside(target).end(&history, self.options.durability),
            None => Ok(Ended::default()),
        }
    }

    /// The document, or `None` when there is no file.
    pub(in crate::store) fn load(&self) -> Result<Option<Stored>> {
        let target = self.target()?;
        Ok(self.read(&target)?.map(|(stored, _)| stored))
    }

    /// Reads, and looks again at what seems corrupt: once, and then for as long as it goes on changing or was
    /// changed just now.
    fn read(&self, target: &Path) -> Result<Option<(Stored, Contents)>> {
        match self.judged(target)? {
            None => Ok(None),
            Some((Ok(stored), contents)) => Ok(Some((stored, contents))),
            Some((Err(corrupt), _)) => Err(Error::from(corrupt).with_path(&self.path)),
        }
    }

    /// The same, with the contents that were found corrupt.
    fn judged(&self, target: &Path) -> Result<Option<Judged>> {
        let mut last = None;
        for look in 1..=LOOKS {
            let Some(contents) = self.contents(target)? else {
                return Ok(None);
            };
            match Document::parse(&contents.bytes) {
                Ok(document) => {
                    let mut stored = Stored::new(document);
                    stored.modified = contents.modified;
                    return Ok(Some((Ok(stored), contents)));
                }
                Err(corrupt)
                    if last.as_ref() == Some(&contents.stamp)
                        && (look == LOOKS || is_settled(&contents)) =>
                {
                    return Ok(Some((Err(corrupt), contents)));
                }
                Err(_) => last = Some(contents.stamp),
            }
            std::thread::sleep(SECOND_LOOK);
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Makes sure that the present file, as it was read, is on disk, whoever wrote it. Gives the version that is there
    /// then.
    fn make_last(
        &self,
        target: &Path,
        read: &Contents,
        revision: &Revision,
        wanted: Durability,
    ) -> Result<FileStamp, FileError> {
        let note = self.note(target);
        if note.knows(&read.stamp, revision, wanted) {
            return Ok(read.stamp.clone());
        }
        if note.has_failed(&read.stamp) {
            fsio::distrust(target)?;
        }
        let stamp = fsio::sync_now(target, read, wanted).inspect_err(|error| {
            if error.is_of_a_sync() || matches!(error, FileError::NotDurable { .. }) {
                note.sync_failed();
            }
        })?;
        note.synced(&stamp, revision, wanted);
        Ok(stamp)
    }

    /// The same for a caller who is told that this is saved.
    fn saved_lasts(&self, target: &Path, read: &Contents, stored: &Stored) -> Result<()> {
        let wanted = self.options.durability;
        match self.make_last(target, read, &stored.revision, wanted) {
            Ok(_) => Ok(()),
            Err(error) if error.is_of_a_sync() => Err(error.not_durable(target).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a link to the present file is a state that lasts.
    fn is_synced(&self, target: &Path, read: &Contents, revision: &Revision) -> bool {
        let wanted = match self.options.durability {
            Durability::None => Durability::None,
            Durability::Data | Durability::Full => Durability::Data,
        };
        self.note(target).knows(&read.stamp, revision, wanted)
    }

    fn contents(&self, target: &Path) -> Result<Option<Contents>> {
        Ok(fsio::read_limited(target, self.options.max_bytes)?)
    }

    /// A file of the history, read as the file itself is.
    pub(in crate::store) fn read_entry(&self, path: &Path) -> Result<Option<Stored>> {
        let Some(contents) = self.contents(path)? else {
            return Ok(None);
        };
        let document = Document::parse(&contents.bytes)
            .map_err(|corrupt| Error::from(corrupt).with_path(path))?;
        let mut stored = Stored::new(document);
        stored.modified = contents.modified;
        Ok(Some(stored))
    }

    /// Pins an entry or unpins it. Pinning the present state makes an entry of it.
    pub(in crate::store) fn pin(
        &self,
        history: &History<'_>,
        entry: &EntryId,
        pinned: bool,
    ) -> Result<EntryId> {
        self.locked(|| {
            if !entry.is_current() {
                let found = entry_named(&history.entries()?, entry)?;
                history.pin(&found, pinned)?;
                return Ok(found.id);
            }
            let target = self.target()?;
            let (stored, contents) = self.read(&target)?.ok_or_else(|| no_such(entry))?;
            let wanted = self.options.durability;
            self.make_last(&target, &contents, &stored.revision, wanted)?;
            // A copy: other programs write into the present file in place.
            let kept = history.keep(&contents, false, self.options.clock.now())?;
            let pin = || -> Result<EntryId> {
                let newest = history.newest()?.ok_or_else(|| no_such(entry))?;
                history.pin(&newest, pinned)?;
                Ok(newest.id)
            };
            let result = pin();
            if matches!(&result, Err(error) if *error.kind() != ErrorKind::NotDurable) {
                History::undo(kept);
            }
            result
        })
    }

    /// Removes what is beyond these limits. While the present state is no good, the newest good entry may be
    /// the only copy, and stays; of a slot always the newest in which `has_slot` says there is something.
    pub(in crate::store) fn prune(
        &self,
        history: &History<'_>,
        keep: &Keep,
        has_slot: Option<&dyn Fn(&Entry) -> bool>,
    ) -> Result<Vec<EntryId>> {
        self.locked(|| {
            let is_good = |entry: &Entry| matches!(self.read_entry(&entry.path), Ok(Some(_)));
            // What stays must be on disk before the rest goes.
            history.make_last()?;
            let spared = match has_slot {
                Some(has_slot) => {
                    let mut entries = history.entries()?.into_iter();
                    entries.find(|entry| !entry.pinned && has_slot(entry))
                }
                None => match self.load() {
                    Ok(Some(_)) => None,
                    _ => history.entries()?.into_iter().find(is_good),
                },
            };
            // First, so that an error leaves the history as it was.
            let log = OverflowFile::beside(&self.target()?);
            log.shorten(keep.bytes, self.options.durability)?;
            history.prune(keep, spared.as_ref().map(|entry| &entry.id))
        })
    }

    /// The record of what was cut, for reading.
    pub(in crate::store) fn overflow(&self) -> Result<OverflowFile> {
        Ok(OverflowFile::beside(&self.target()?))
    }

    /// What was kept beside the checkpoint, if that is of this revision.
    pub(in crate::store) fn companion(&self, revision: &Revision) -> Result<Option<String>> {
        Ok(CompanionFile::beside(&self.target()?, self.owner()).read(revision))
    }

    fn note(&self, target: &Path) -> SavedNote {
        SavedNote::beside(target, self.owner())
    }

    /// When the last save was made, where the present state is not what it wrote.
    pub(in crate::store) fn changed_without(
        &self,
        present: &Revision,
    ) -> Result<Option<SystemTime>> {
        let noted = self.note(&self.target()?).read();
        Ok(noted.changed_without(present))
    }

    /// Whether the present state is an earlier one that came back without us. `state` reads an entry.
    pub(in crate::store) fn rolled_back(
        &self,
        present: &Revision,
        state: &dyn Fn(&Entry) -> Result<Option<Stored>>,
    ) -> Result<Option<RolledBack>> {
        let target = self.target()?;
        let noted = self.note(&target).read();
        let (Some(last), Some(history)) = (noted.last(), self.history_of(&target)) else {
            return Ok(None);
        };
        if noted.is_ours(present) {
            return Ok(None);
        }
        let mut entries = history.entries()?;
        // A save that was killed may have made an entry of what is there.
        if matches!(entries.first(), Some(newest) if history.is_present(&newest.path)?) {
            entries.remove(0);
        }
        // One that cannot be read is not known to be anything.
        let states: Vec<Option<Revision>> = entries
            .iter()
            .map(|entry| Some(state(entry).ok()??.revision))
            .collect();
        let position = |wanted: Option<&Revision>| {
            let wanted = wanted?;
            states.iter().position(|is| is.as_ref() == Some(wanted))
        };
        let Some(at) = position(Some(present)) else {
            return Ok(None);
        };
        // A save that came between made an entry of what was loaded before it.
        let file = Entry {
            id: EntryId::current(),
            path: target.clone(),
            saved: None,
            bytes: 0,
            pinned: false,
        };
        let is_still = matches!(state(&file), Ok(Some(now)) if now.revision == *present);
        let now = self.note(&target).read();
        if !is_still || now.last() != noted.last() || now.is_ours(present) {
            return Ok(None);
        }
        let kept = position(last.checkpoint.as_ref());
        let newer = states[..at].iter().position(Option::is_some);
        let mut rolled_back = RolledBack::new(entries[at].id.clone(), last.at);
        rolled_back.later = kept.or(newer).map(|at| entries[at].id.clone());
        rolled_back.last_is_kept = kept.is_some();
        Ok(Some(rolled_back))
    }

    /// The last claim on the file, or on the slot.
    pub(in crate::store) fn claimed(&self) -> Result<Option<Claim>> {
        ClaimsFile::beside(&self.target()?).last(self.owner())
    }

    /// Puts what `change` makes of the last claim in its place, on disk before it returns.
    pub(in crate::store) fn change_claim(&self, change: &ClaimChange) -> Result<Claim> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let _lock = self.lock(&target)?;
        let now = self.options.clock.now();
        let claims = ClaimsFile::beside(&target);
        claims.change(self.owner(), change, now, self.options.durability)
    }

    /// Does `work` under the lock.
    fn locked<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let _lock = self.lock(&target)?;
        work()
    }

    fn refuse_read_only(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly).with_path(&self.path));
        }
        Ok(())
    }

    /// The lock of the file. `None` where the file system has none and the options do without.
    fn lock(&self, target: &Path) -> Result<Option<Lock>> {
        let folder = parent_of(target);
        let own = folder.join(fsio::OWN_FOLDER);
        // `git clean` takes it away while a program runs, and with it what keeps it out of the repository.
        if self.options.has_swept(&own) && look(&own)?.is_some() {
            fsio::create_folder_durably(&own)?;
        } else {
            let is_ours = look(folder)?.is_none();
            self.note(target).trust_folders(folder, &own)?;
            fsio::create_folder_durably(folder)?;
            fsio::own_folder(folder)?;
            if is_ours {
                ignore_temporary_files(folder)?;
            }
        }
        let name = sidecar_name(target, "");
        self.refuse_links(folder, &own)?;
        // Names that differ only in case are one file on many systems, so they have one lock.
        let folded = format!("{}.lock", name.to_string_lossy().to_lowercase());
        let sidecar = own.join("locks").join(folded);
        let options = self.options;
        let began = Instant::now();
        let lock = match Lock::acquire(&sidecar, options.lock_timeout, &options.holder) {
            Ok(lock) => {
                if began.elapsed() >= WORTH_TELLING
                    && let Some(key) = &self.key
                {
                    event::happened("lock waited", key, None, Some(&options.holder), began);
                }
                lock
            }
            Err(FileError::NoLocks { .. }) if options.single_writer => return Ok(None),
            Err(FileError::Locked {
                waited,
                holder,
                held_for,
                ..
            }) => {
                // What is locked for the caller is the checkpoint, not its sidecar.
                return Err(Error::new(ErrorKind::Locked {
                    waited,
                    pid: fsio::pid_of(holder.as_deref()),
                    holder,
                    held_for,
                })
                .with_path(&self.path));
            }
            Err(error) => return Err(error.into()),
        };
        self.refuse_twin(&lock, target, &name.to_string_lossy())?;
        self.sweep(target, folder, &own);
        Ok(Some(lock))
    }

    /// Refuses a folder of ours that is a link out of the store.
    fn refuse_links(&self, folder: &Path, own: &Path) -> Result<()> {
        if !self.options.has_swept(own) {
            for entry in fsio::list(own)? {
                fsio::within(folder, &entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes the temporary files that killed writers left, wherever any are made: once for the store, and once
    /// for what it keeps of this file. Under the lock: whoever has it may be in the middle of a save, however old
    /// its file looks after the clock was set.
    fn sweep(&self, target: &Path, folder: &Path, own: &Path) {
        self.options.sweep_once(own, || {
            let inside = [
                "", "archive", "claims", "files", "lineage", "order", "overflow",
            ]
            .map(|inside| own.join(inside));
            [&[folder.to_path_buf()][..], &inside].concat()
        });
        self.options.sweep_once(target, || {
            let history = self.history_of(target);
            let mut folders = history.map_or_else(Vec::new, |history| history.folders().to_vec());
            folders.push(quarantine::folder(target));
            folders
        });
    }

    /// Refuses a new file whose name differs from that of another only in case, and a file that is the
    /// other one. Two that are there already are two.
    fn refuse_twin(&self, lock: &Lock, target: &Path, name: &str) -> Result<()> {
        let label = lock.label();
        match label.as_deref() {
            Some(label) if label == name => return Ok(()),
            Some(label) if label.to_lowercase() == name.to_lowercase() => {
                let other = parent_of(target).join(label);
                let is_twin = match (look(target)?, look(&other)?) {
                    (_, None) => false,
                    (None, Some(_)) => true,
                    (Some(_), Some(_)) => is_one_file(target, &other),
                };
                if is_twin {
                    return Err(Error::new(ErrorKind::Twin {
                        other: other.display().to_string(),
                    })
                    .with_path(&self.path));
                }
            }
            _ => {}
        }
        lock.set_label(name);
        Ok(())
    }

    /// Locks, reads, decides and writes: no other writer that takes the lock comes between.
    pub(in crate::store) fn transact<T>(&self, decide: &mut Decide<'_, T>) -> Result<T> {
        let (target, found) = self.look_at_target()?;
        self.refuse_read_only()?;
        let beside = self.beside(&target);
        // A decision not to write anything where nothing is must not leave folders and locks behind.
        if found.is_none()
            && let (value, None) = decide(None, &beside)?
        {
            return Ok(value);
        }
        let _lock = self.lock(&target)?;
        // The time that counts for a claim is that of the write, not when its writer began to wait.
        let mut beside = self.beside(&target);
        for _ in 0..FOREIGN_CHANGES {
            let mut present = self.read(&target)?;
            let (noted, note) = self.note(&target).open();
            if let (Some((stored, _)), None) = (&mut present, &self.slot) {
                stored.changed_without = Some(noted.changed_without(&stored.revision).is_some());
            }
            beside.noted = noted;
            let stored = present.as_ref().map(|(stored, _)| stored);
            let (value, next) = decide(stored, &beside)?;
            let done = match (next, &present) {
                (Some(next), present) => {
                    self.replace(&target, present.as_ref(), &beside.overflow, note, next)
                }
                // The stored bytes equal the new ones, but the process that wrote them may have died before its sync.
                (None, Some((stored, contents))) => self.saved_lasts(&target, contents, stored),
                (None, None) => Ok(()),
            };
            match done {
                Err(error) if *error.kind() == ErrorKind::ChangedMeanwhile => {
                    tracing::warn!(path = %self.path.display(), "changed by a program without the lock");
                }
                done => return done.map(|()| value),
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// What could not be read again must not be written.
    fn refuse_too_large(&self, text: &str) -> Result<()> {
        let (size, limit) = (text.len() as u64, self.options.max_bytes);
        if size > limit {
            return Err(
                Error::new(ErrorKind::WouldBeTooLarge { size, limit }).with_path(&self.path)
            );
        }
        Ok(())
    }

    /// Writes a text, or undoes what was done for it.
    fn replace(
        &self,
        target: &Path,
        present: Option<&(Stored, Contents)>,
        overflow: &OverflowFile,
        note: Option<InPlace>,
        mut next: Next,
    ) -> Result<()> {
        let undo = std::mem::take(&mut next.undo);
        let written = self.write(target, present, overflow, note, &next);
        // Once the new text has its place, so has the old one.
        if matches!(&written, Err(error) if *error.kind() != ErrorKind::NotDurable) {
            undo.undo();
        }
        written
    }

    fn write(
        &self,
        target: &Path,
        present: Option<&(Stored, Contents)>,
        overflow: &OverflowFile,
        note: Option<InPlace>,
        next: &Next,
    ) -> Result<()> {
        self.refuse_too_large(&next.text)?;
        overflow.settle(self.options.durability)?;
        // A new document is another task than those that were here; the slots of a host come and go within it.
        let durability = self.options.durability;
        let history = self.history_of(target);
        // What comes back after a deletion is no wider open than it was.
        let earlier = match (present, &self.slot, &history) {
            (None, None, Some(history)) => history.newest()?.map(|newest| newest.path),
            _ => None,
        };
        let ended = match (present, &self.slot) {
            (None, None) if !next.continues_task => self.end_lineage_of(target)?,
            _ => Ended::default(),
        };
        let now = self.options.clock.now();
        let mut kept = Kept::default();
        let mut added = None;
        let mut before_rename = || {
            let lines = overflow.add(&next.record, &next.text, durability);
            added = lines.map_err(FileError::of_a_step)?;
            if let (Some(history), Some((stored, contents)), false) =
                (&history, present, next.skips_history)
            {
                let is_synced = self.is_synced(target, contents, &stored.revision);
                kept = history.keep(contents, is_synced, now)?;
                if next.revision.is_none() {
                    // A slot that is emptied is nowhere else afterwards.
                    history.make_last()?;
                }
            }
            Ok(())
        };
        let expected = present.map_or(Present::Absent, |(_, contents)| {
            Present::Same(&contents.stamp)
        });
        let noting = self.note(target).begin(note, next.revision.as_ref());
        let mut replace = Replace::new(target, expected).durability(durability);
        if let Some(earlier) = &earlier {
            replace = replace.like(earlier);
        }
        let replaced = replace
            .before_rename(&mut before_rename)
            .write(next.text.as_bytes());
        match replaced {
            Ok(replaced) => {
                let whole = match (&next.revision, &self.slot) {
                    (Some(revision), None) => revision.clone(),
                    _ => Revision::of(next.text.as_bytes()),
                };
                noting.done(next.revision.as_ref(), &whole, &replaced, durability);
                overflow.begun(&next.record, durability);
                // Only a save that succeeded may cost an old entry.
                if let Some(history) = history.filter(|_| !next.skips_history) {
                    history.prune_after(kept);
                }
                if let (Some(revision), Some(text)) = (&next.revision, &next.fingerprints) {
                    // Without it the files are judged by their times: no reason to call the save failed.
                    let file = CompanionFile::beside(target, self.owner());
                    if let Err(error) = file.write(revision, text) {
                        tracing::warn!(path = %self.path.display(), %error, "not kept beside it");
                    }
                }
                Ok(())
            }
            // The new contents are in place, so what they replaced belongs to the history.
            Err(error @ FileError::NotDurable { .. }) => {
                self.note(target).sync_failed();
                Err(error.into())
            }
            Err(error) => {
                noting.undone();
                History::undo(kept);
                ended.undo();
                if let Some(added) = added {
                    added.take_back();
                }
                Err(error.into())
            }
        }
    }

    /// Copies the file to another name in its folder, by its stem, and says which. Under the lock; on disk before
    /// it returns.
    pub(super) fn copy_aside(&self, name: &dyn Fn(&str) -> String) -> Result<PathBuf> {
        let target = self.target()?;
        let missing = || Error::new(ErrorKind::NotFound).with_path(&self.path);
        let contents = self.contents(&target)?.ok_or_else(missing)?;
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        self.copy_to_new(&target, &contents.bytes, parent_of(&target), &name(&stem))
    }

    /// Keeps the text of a slot that leaves its host file, in a file of its own in our folder. Under the lock; on
    /// disk before it returns.
    pub(in crate::store) fn archive_text(&self, text: &str, name: &str) -> Result<PathBuf> {
        let target = self.target()?;
        let own = fsio::own_folder(parent_of(&target))?;
        let folder = own.join("archive");
        fsio::create_folder_durably(&folder)?;
        let slot = encoded(self.slot.as_deref().unwrap_or_default());
        let stem = sidecar_name(&target, &format!("@{slot}_{name}"));
        self.copy_to_new(&target, text.as_bytes(), &folder, &stem.to_string_lossy())
    }

    fn copy_to_new(&self, like: &Path, bytes: &[u8], folder: &Path, stem: &str) -> Result<PathBuf> {
        for aside in unique_names(folder, stem) {
            if fsio::copy(like, bytes, &aside, self.options.durability)? {
                return Ok(aside);
            }
        }
        Err(self.too_many_aside())
    }

    fn too_many_aside(&self) -> Error {
        Error::refused("too many checkpoints were archived in this second; try again in the next")
            .with_path(&self.path)
    }

    /// Gives the file another name in its folder, by its stem, and says which. Never over a file that
    /// is there: a counter makes the name unique. A corrupt file is put aside too, when any will do.
    pub(super) fn set_aside(
        &self,
        fence: Option<Fence>,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
        any_will_do: bool,
        name: &dyn Fn(&str) -> String,
    ) -> Result<PathBuf> {
        self.refuse_read_only()?;
        let target = self.target()?;
        if look(&target)?.is_none() {
            return Err(Error::new(ErrorKind::NotFound).with_path(&self.path));
        }
        let _lock = self.lock(&target)?;
        let beside = self.beside(&target);
        beside.claims.check_all(fence, beside.now)?;
        if !any_will_do {
            check(self.read(&target)?.as_ref().map(|(stored, _)| stored))?;
        }
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        let stem = name(&stem);
        let durability = self.options.durability;
        self.contents_last(&target)?;
        beside.overflow.settle(durability)?;
        let ended = self.end_lineage_of(&target)?;
        for aside in unique_names(parent_of(&target), &stem) {
            match fsio::rename_new(&target, &aside, durability) {
                Ok(false) => {}
                Ok(true) => {
                    self.remove_link(&target)?;
                    return Ok(aside);
                }
                Err(error @ FileError::NotDurable { .. }) => return Err(error.into()),
                Err(error) => {
                    ended.undo();
                    return Err(error.into());
                }
            }
        }
        ended.undo();
        Err(self.too_many_aside())
    }

    /// Has the contents of the present file on disk, whatever they are, before it gets another name.
    fn contents_last(&self, target: &Path) -> Result<()> {
        for _ in 0..FOREIGN_CHANGES {
            let read = match fsio::read_limited(target, self.options.max_bytes) {
                Err(FileError::TooLarge { .. }) => fsio::unread(target),
                read => read,
            };
            let Some(read) = read? else {
                return Ok(());
            };
            let wanted = match self.options.durability {
                Durability::None => Durability::None,
                Durability::Data | Durability::Full => Durability::Data,
            };
            match self.make_last(target, &read, &Revision::of(&read.bytes), wanted) {
                Err(FileError::Changed { .. }) => {}
                Err(error) => return Err(error.of_a_step().into()),
                Ok(_) => return Ok(()),
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Removes the file when `check` lets it; `false` when there was none. It is in the history afterwards.
    pub(in crate::store) fn delete(
        &self,
        fence: Option<Fence>,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
    ) -> Result<bool> {
        let target = self.target()?;
        self.refuse_read_only()?;
        if look(&target)?.is_none() {
            check(None)?;
            self.absence_lasts(&target)?;
            return Ok(false);
        }
        let _lock = self.lock(&target)?;
        let beside = self.beside(&target);
        beside.claims.check_all(fence, beside.now)?;
        for _ in 0..FOREIGN_CHANGES {
            let Some((stored, contents)) = self.read(&target)? else {
                check(None)?;
                self.absence_lasts(&target)?;
                return Ok(false);
            };
            check(Some(&stored))?;
            // It may be brought back.
            beside.overflow.settle(self.options.durability)?;
            let kept = match self.history_of(&target) {
                Some(history) => {
                    let is_synced = self.is_synced(&target, &contents, &stored.revision);
                    let kept = history.keep(&contents, is_synced, beside.now)?;
                    // Afterwards it is nowhere else.
                    if let Err(error) = history.make_last() {
                        History::undo(kept);
                        return Err(error.into());
                    }
                    kept
                }
                None => Kept::default(),
            };
            match fsio::remove_same(&target, &contents.stamp, self.options.durability) {
                Err(FileError::Changed { .. }) => {
                    History::undo(kept);
                    continue;
                }
                Err(error @ FileError::NotDurable { .. }) => return Err(error.into()),
                Err(error) => {
                    History::undo(kept);
                    return Err(error.into());
                }
                Ok(()) => {}
            }
            self.remove_link(&target)?;
            if let Some(history) = self.history_of(&target) {
                history.prune_after(kept);
            }
            return Ok(true);
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Has it on disk that there is no file: who removed it may not have lived to see to that.
    fn absence_lasts(&self, target: &Path) -> Result<()> {
        let folder = parent_of(target);
        if self.options.durability == Durability::Full && look(folder)?.is_some() {
            fsio::sync_folder(folder)?;
        }
        Ok(())
    }

    /// A link to a file that is gone would read as a fault, not as absent.
    fn remove_link(&self, target: &Path) -> Result<()> {
        // What led elsewhere was a link.
        if self.path != target {
            fsio::remove(&self.path, self.options.durability)?;
        }
        Ok(())
    }

    /// The file, when it is damaged or missing, under the lock; `None` when nothing is wrong with it.
    ///
    /// # Errors
    ///
    /// A file that is only beyond the limits of size or depth is an error: nothing is wrong with it.
    pub(in crate::store) fn damaged(&self, fence: Option<Fence>) -> Result<Option<Damaged<'_>>> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let is_there = look(&target)?.is_some();
        let lock = if is_there || look(parent_of(&target))?.is_some() {
            self.lock(&target)?
        } else {
            None
        };
        // What is judged is what is put aside.
        let (corrupt, contents) = match self.judged(&target)? {
            Some((Ok(stored), contents)) => {
                self.saved_lasts(&target, &contents, &stored)?;
                return Ok(None);
            }
            Some((Err(corrupt), contents)) if corrupt.code != CorruptCode::TooDeep => {
                (Some(corrupt), Some(contents))
            }
            Some((Err(corrupt), _)) => return Err(Error::from(corrupt).with_path(&self.path)),
            None => (None, None),
        };
        let beside = self.beside(&target);
        // The file is mended as a whole, with all slots that it may have.
        beside.claims.check_all(fence, beside.now)?;
        Ok(Some(Damaged {
            contents,
            file: self,
            target,
            corrupt,
            _lock: lock,
        }))
    }
}

impl Damaged<'_> {
    /// The damaged bytes; none when there is no file.
    pub(in crate::store) fn bytes(&self) -> &[u8] {
        self.contents
            .as_ref()
            .map_or(&[], |contents| &contents.bytes)
    }

    /// Puts the damaged bytes aside, and a text in their place in which the checkpoint has this revision, or
    /// nothing. Says where they are. Where there is no file, the new one is no wider open than `like`.
    pub(in crate::store) fn replace(
        &self,
        text: Option<(&str, Option<Revision>)>,
        like: Option<&Path>,
    ) -> Result<Option<PathBuf>> {
        if let Some((text, _)) = &text {
            self.file.refuse_too_large(text)?;
        }
        let durability = self.file.options.durability;
        let aside = match &self.contents {
            Some(contents) => Some(quarantine::put_aside(
                &self.target,
                &contents.bytes,
                durability,
            )?),
            None => None,
        };
        let present = match &self.contents {
            Some(contents) => Present::Same(&contents.stamp),
            None => Present::Absent,
        };
        match (text, &self.contents) {
            (Some((text, revision)), _) => {
                let revision = revision.as_ref();
                let noting = self.file.note(&self.target).begin(None, revision);
                let mut replace = Replace::new(&self.target, present).durability(durability);
                if let (Some(like), None) = (like, &self.contents) {
                    replace = replace.like(like);
                }
                match replace.write(text.as_bytes()) {
                    Ok(replaced) => {
                        let whole = Revision::of(text.as_bytes());
                        noting.done(revision, &whole, &replaced, durability);
                    }
                    Err(error) => {
                        match error {
                            FileError::NotDurable { .. } => {
                                self.file.note(&self.target).sync_failed();
                            }
                            _ => noting.undone(),
                        }
                        return Err(error.into());
                    }
                }
            }
            (None, Some(contents)) => {
                // Its owner may have mended it meanwhile.
                fsio::remove_same(&self.target, &contents.stamp, durability)?;
                self.file.remove_link(&self.target)?;
            }
            (None, None) => self.file.absence_lasts(&self.target)?,
        }
        Ok(aside)
    }
}

/// Removes a copy that is no archive after all; one that stays is a copy of what is there.
fn discard(copy: Option<PathBuf>) {
    if let Some(copy) = copy
        && let Err(error) = fsio::remove(&copy, Durability::None)
    {
        tracing::debug!(path = %copy.display(), %error, "a copy of a checkpoint stays");
    }
}

/// Has git ignore what a killed writer may leave beside the checkpoints: only in a folder that the store made, for
/// elsewhere what is ignored is for its owner to say.
fn ignore_temporary_files(folder: &Path) -> Result<()> {
    let text = format!("{}*{}\n", fsio::TEMP_PREFIX, fsio::TEMP_SUFFIX);
    let written = Replace::new(&folder.join(".gitignore"), Present::Absent)
        .durability(Durability::None)
        .write(text.as_bytes());
    match written {
        // Somebody was faster: then it is for that one to say.
        Ok(_) | Err(FileError::Changed { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether nobody can be in the middle of writing a file. A time in the future tells nothing.
fn is_settled(contents: &Contents) -> bool {
    contents
        .modified
        .and_then(|modified| modified.elapsed().ok())
        .is_none_or(|age| age >= AT_REST)
}

/// Whether two paths lead to one file.
fn is_one_file(one: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(other)) {
        (Ok(one), Ok(other)) if one == other => true,
        _ if cfg!(unix) => {
            let stamp = |path| look(path).ok().flatten().map(|found| FileStamp::of(&found));
            stamp(one).is_some_and(|stamp_of_one| Some(stamp_of_one) == stamp(other))
        }
        _ => false,
    }
}

/// The name of a file of ours that belongs to `target`.
pub(super) fn sidecar_name(target: &Path, ending: &str) -> std::ffi::OsString {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    name
}
