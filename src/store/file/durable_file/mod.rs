//! One file that is read, changed and written as one step.

mod damaged;
mod forget;
mod lock;
mod read;
mod remove;
mod states;
mod write;

use std::fs::Metadata;
use std::path::{Path, PathBuf};

pub(in crate::store) use damaged::Damaged;
pub(in crate::store) use write::{Next, Undo};

use super::FileOptions;
use super::claims::ClaimsFile;
use super::dropped_log::DroppedLog;
use super::fingerprints::FingerprintsFile;
use super::history::History;
use super::ledger::{Ledger, Synced};
use super::own_file;
use super::saved::SavedNote;
use crate::checkpoint::{Backups, Claim, Error, ErrorKind, Fence, Key, Result, Revision};
use crate::fsio::{self, FileError};
use crate::store::{ClaimChange, LedgerLines, LedgerMark, check_ledger_line, check_size};

/// A file with its lock and its options.
pub(in crate::store) struct DurableFile<'o> {
    path: PathBuf,
    options: &'o FileOptions,
    backups: Option<Backups>,
    /// The folder that no link may lead out of.
    within: Option<PathBuf>,
    /// The slot of a host file that is worked on.
    slot: Option<String>,
    /// The key of the checkpoint, for events.
    key: Option<Key>,
}

/// How often a step is restarted when a program that takes no lock was faster.
const FOREIGN_CHANGES: usize = 4;

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

    /// Sets the key of the checkpoint for events.
    pub(in crate::store) fn named(mut self, key: &Key) -> Self {
        self.key = Some(key.clone());
        self
    }

    /// Sets the protocol's own backups.
    pub(super) fn with_backups(mut self, backups: Option<Backups>) -> Self {
        self.backups = backups;
        self
    }

    /// Refuses links that lead out of this folder.
    pub(super) fn within(mut self, folder: &Path) -> Self {
        self.within = Some(folder.to_path_buf());
        self
    }

    /// Sets the slot of a host file to work on.
    pub(in crate::store) fn on_slot(mut self, slot: &str) -> Self {
        self.slot = Some(slot.to_owned());
        self
    }

    /// The file that the path leads to. All paths that lead to the same file share one lock.
    fn target(&self) -> Result<PathBuf> {
        let (target, _) = self.look_at_target()?;
        if let Some(folder) = &self.within {
            fsio::within(folder, &folder.join(fsio::OWN_FOLDER))?;
        }
        Ok(target)
    }

    /// The same for reading our own files. It refuses links that lead nowhere, so that a file behind one does
    /// not count as absent.
    fn target_of_reader(&self) -> Result<PathBuf> {
        let target = self.target()?;
        own_file::refuse_links(fsio::parent_of(&target))?;
        Ok(target)
    }

    /// The same with the metadata of the file. Where our own folder leads is checked when the
    /// [lock](Self::lock) is taken.
    fn look_at_target(&self) -> Result<(PathBuf, Option<Metadata>)> {
        let folder = self.within.as_deref();
        let found = fsio::target_of(&self.path, folder)?;
        if let (target, Some(metadata)) = &found
            && !metadata.is_file()
        {
            // Refuse it before it is opened: opening a pipe or a device may have effects.
            let path = target.clone();
            return Err(FileError::NotAFile { path }.into());
        }
        Ok(found)
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file in bytes; 0 if it is unknown.
    pub(in crate::store) fn size(&self) -> u64 {
        let found = self.look_at_target().ok();
        found
            .and_then(|(_, metadata)| metadata)
            .map_or(0, |metadata| metadata.len())
    }

    fn history_of(&self, target: &Path) -> Option<History<'o>> {
        History::of(target, self.backups, self.slot.as_deref(), self.options)
    }

    /// The history of the file or slot, for listing; `None` if none is kept.
    pub(in crate::store) fn listed_history(&self) -> Result<Option<History<'o>>> {
        Ok(self.history_of(&self.target_of_reader()?))
    }

    /// The history of the file or slot; `None` if none is kept.
    pub(in crate::store) fn history(&self) -> Result<Option<History<'o>>> {
        Ok(self.history_of(&self.target()?))
    }

    fn note(&self, target: &Path) -> SavedNote {
        SavedNote::beside(target, self.slot.as_deref())
    }

    /// The dropped log, for reading.
    pub(in crate::store) fn dropped_log(&self) -> Result<DroppedLog> {
        Ok(DroppedLog::beside(&self.target()?))
    }

    /// The fingerprints beside the checkpoint, if they belong to this revision.
    pub(in crate::store) fn fingerprints(&self, revision: &Revision) -> Result<Option<String>> {
        Ok(FingerprintsFile::beside(&self.target()?, self.slot.as_deref()).read(revision))
    }

    /// The lines of the ledger of the file or slot that follow a mark, oldest first.
    pub(in crate::store) fn ledger_since(&self, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        let ledger = Ledger::beside(&self.target_of_reader()?, self.slot.as_deref());
        if self.options.read_only {
            return ledger.lines(mark);
        }
        let durability = self.options.durability;
        for _ in 0..FOREIGN_CHANGES {
            if ledger.is_unsynced()? {
                self.locked(|| ledger.write_anew(durability))?;
            }
            match ledger.synced_lines(mark, durability)? {
                Synced::Lines(lines) => return Ok(lines),
                Synced::TakenBack => {}
                Synced::Failed => self.locked(|| ledger.write_anew(durability))?,
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Adds a line to the ledger if it has exactly `at` lines; otherwise returns `false`.
    pub(in crate::store) fn append_to_ledger(
        &self,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        check_ledger_line(line)?;
        self.locked(|| {
            let (target, slot) = (self.target()?, self.slot.as_deref());
            let beside = self.beside(&target);
            beside.claims.check(slot, fence, beside.now)?;
            Ledger::beside(&target, slot).append(line, at, self.options.durability)
        })
    }

    /// The last claim on the file or slot.
    pub(in crate::store) fn claimed(&self) -> Result<Option<Claim>> {
        ClaimsFile::beside(&self.target_of_reader()?).last(self.slot.as_deref())
    }

    /// Replaces the last claim with the result of `change`; it is on disk when this returns.
    pub(in crate::store) fn change_claim(&self, change: &ClaimChange) -> Result<Claim> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let _lock = self.lock(&target)?;
        let now = self.options.clock.now();
        let claims = ClaimsFile::beside(&target);
        claims.change(self.slot.as_deref(), change, now, self.options.durability)
    }

    /// Runs `work` under the lock.
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

    /// Refuses to write a text that is too large to be read again.
    fn refuse_too_large(&self, text: &str) -> Result<()> {
        let checked = check_size(text, self.options.max_bytes);
        checked.map_err(|error| error.with_path(&self.path))
    }
}
