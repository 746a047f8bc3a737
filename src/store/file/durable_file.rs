//! One file that is read, changed and written as one step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::backup::{self, BackUp};
use super::overflow::Entries;
use super::{FileOptions, OverflowFile};
use crate::checkpoint::{Backups, Error, ErrorKind, Result};
use crate::fsio::{
    self, Contents, FileError, FileStamp, Lock, Pending, Present, Replace, look, parent_of,
};
use crate::json::Document;
use crate::store::Stored;

/// How often a step is begun anew when a program that takes no lock was faster.
const FOREIGN_CHANGES: usize = 4;

/// How long after a corrupt reading the file is read again: some programs cut a file and fill it
/// again in place.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// A file with its lock and its options.
pub(in crate::store) struct DurableFile<'o> {
    path: PathBuf,
    options: &'o FileOptions,
    backups: Option<Backups>,
}

/// What a file shall hold, and what is recorded with it.
pub(in crate::store) struct Next {
    pub(in crate::store) text: String,
    pub(in crate::store) record: Entries,
}

/// Decides from what is there what the file shall hold; `None` leaves it.
type Decide<'d> = dyn FnMut(Option<&Stored>, &OverflowFile) -> Result<Option<Next>> + 'd;

impl<'o> DurableFile<'o> {
    pub(in crate::store) fn new(path: PathBuf, options: &'o FileOptions) -> Self {
        DurableFile {
            path,
            options,
            backups: None,
        }
    }

    /// Keeps the protocol's own backups.
    pub(super) fn with_backups(mut self, backups: Option<Backups>) -> Self {
        self.backups = backups;
        self
    }

    /// The file that the path leads to: two names of one file have one lock.
    fn target(&self) -> Result<PathBuf> {
        Ok(fsio::resolve(&self.path)?)
    }

    /// The document, or `None` when there is no file.
    pub(in crate::store) fn load(&self) -> Result<Option<Stored>> {
        let target = self.target()?;
        Ok(self.read(&target)?.map(|(stored, _)| stored))
    }

    fn read(&self, target: &Path) -> Result<Option<(Stored, Contents)>> {
        match self.read_once(target) {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
                std::thread::sleep(SECOND_LOOK);
                self.read_once(target)
            }
            result => result,
        }
    }

    fn read_once(&self, target: &Path) -> Result<Option<(Stored, Contents)>> {
        let Some(contents) = fsio::read_limited(target, self.options.max_bytes)? else {
            return Ok(None);
        };
        let document = Document::parse(&contents.bytes)
            .map_err(|corrupt| Error::from(corrupt).with_path(&self.path))?;
        let mut stored = Stored::new(document);
        stored.modified = contents.modified;
        Ok(Some((stored, contents)))
    }

    /// The record of what was cut, for reading.
    pub(in crate::store) fn overflow(&self) -> Result<OverflowFile> {
        Ok(OverflowFile::beside(&self.target()?))
    }

    fn refuse_read_only(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly).with_path(&self.path));
        }
        Ok(())
    }

    fn lock(&self, target: &Path) -> Result<Lock> {
        let folder = parent_of(target);
        if look(folder)?.is_none() {
            fsio::create_folder_durably(folder)?;
        }
        let own = fsio::own_folder(folder)?;
        self.options.sweep_once(&[folder, &own]);
        let sidecar = own.join("locks").join(sidecar_name(target, ".lock"));
        let options = self.options;
        Lock::acquire(&sidecar, options.lock_timeout, &options.holder).map_err(
            |error| match error {
                // What is locked for the caller is the checkpoint, not its sidecar.
                FileError::Locked {
                    waited,
                    holder,
                    held_for,
                    ..
                } => Error::new(ErrorKind::Locked {
                    waited,
                    holder,
                    held_for,
                })
                .with_path(&self.path),
                error => error.into(),
            },
        )
    }

    /// Lock, read, decide, write: no other writer that takes the lock comes between.
    pub(in crate::store) fn transact(&self, decide: &mut Decide<'_>) -> Result<()> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let overflow = OverflowFile::beside(&target);
        // A decision not to write anything where nothing is must not leave folders and locks behind.
        if look(&target)?.is_none() && decide(None, &overflow)?.is_none() {
            return Ok(());
        }
        let _lock = self.lock(&target)?;
        for _ in 0..FOREIGN_CHANGES {
            let present = self.read(&target)?;
            let (stored, contents) = match &present {
                Some((stored, contents)) => (Some(stored), Some(contents)),
                None => (None, None),
            };
            let Some(next) = decide(stored, &overflow)? else {
                return Ok(());
            };
            match self.replace(
                &target,
                contents.map(|contents| &contents.stamp),
                &overflow,
                &next,
            ) {
                Err(error) if *error.kind() == ErrorKind::ChangedMeanwhile => {
                    tracing::warn!(path = %self.path.display(), "changed by a program without the lock");
                }
                result => return result,
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    fn replace(
        &self,
        target: &Path,
        stamp: Option<&FileStamp>,
        overflow: &OverflowFile,
        next: &Next,
    ) -> Result<()> {
        let size = next.text.len() as u64;
        let limit = self.options.max_bytes;
        if size > limit {
            // What could not be read again must not be written.
            return Err(
                Error::new(ErrorKind::WouldBeTooLarge { size, limit }).with_path(&self.path)
            );
        }
        let durability = self.options.durability;
        let mut back_up = self.backups.map(|backups| BackUp::new(target, backups));
        let mut before_rename = |pending: &Pending<'_>| {
            overflow.add(&next.record, durability)?;
            match &mut back_up {
                Some(back_up) if pending.replaces => back_up.link(),
                _ => Ok(()),
            }
        };
        let replaced = Replace::new(target, stamp.map_or(Present::Absent, Present::Same))
            .durability(durability)
            .before_rename(&mut before_rename)
            .write(next.text.as_bytes());
        match replaced {
            Ok(_) => {
                // Only a save that succeeded may cost an old backup.
                if let Some(back_up) = back_up {
                    back_up.prune();
                }
                Ok(())
            }
            Err(error) => {
                if let Some(back_up) = back_up {
                    back_up.undo();
                }
                Err(error.into())
            }
        }
    }

    /// Gives the file another name in its folder, by its stem, and says which. Never over a file that
    /// is there: a counter makes the name unique.
    pub(super) fn set_aside(&self, name: &dyn Fn(&str) -> String) -> Result<PathBuf> {
        self.refuse_read_only()?;
        let target = self.target()?;
        if look(&target)?.is_none() {
            return Err(Error::new(ErrorKind::NotFound).with_path(&self.path));
        }
        let _lock = self.lock(&target)?;
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        let stem = name(&stem);
        let durability = self.options.durability;
        for aside in backup::unique_names(parent_of(&target), &stem) {
            if fsio::rename_new(&target, &aside, durability)? {
                self.remove_link(&target)?;
                return Ok(aside);
            }
        }
        Err(
            Error::refused("too many checkpoints were put aside in this second")
                .with_path(&self.path),
        )
    }

    /// Removes the file when `check` lets it; `false` when there was none.
    pub(in crate::store) fn delete(
        &self,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
    ) -> Result<bool> {
        let target = self.target()?;
        self.refuse_read_only()?;
        if look(&target)?.is_none() {
            check(None)?;
            return Ok(false);
        }
        let _lock = self.lock(&target)?;
        for _ in 0..FOREIGN_CHANGES {
            let Some((stored, contents)) = self.read(&target)? else {
                check(None)?;
                return Ok(false);
            };
            check(Some(&stored))?;
            let now = look(&target)?.map(|found| FileStamp::of(&found));
            if now.as_ref() == Some(&contents.stamp) {
                fsio::remove(&target, self.options.durability)?;
                self.remove_link(&target)?;
                return Ok(true);
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// A link to a file that is gone would read as a fault, not as absent.
    fn remove_link(&self, target: &Path) -> Result<()> {
        let is_link = look(&self.path)?.is_some_and(|found| found.is_symlink());
        if self.path != target && is_link {
            fsio::remove(&self.path, self.options.durability)?;
        }
        Ok(())
    }
}

/// The name of a file of ours that belongs to `target`.
pub(super) fn sidecar_name(target: &Path, ending: &str) -> std::ffi::OsString {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    name
}
