//! One file that is read, changed and written as one step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{FileOptions, OverflowFile, backup};
use crate::checkpoint::{Backups, Error, ErrorKind, Result};
use crate::fsio::{self, Contents, FileError, Lock, Pending, Present, Replace, parent_of};
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

/// Decides from what is there what the file shall hold; `None` leaves it.
type Decide<'d> = dyn FnMut(Option<&Stored>, &OverflowFile) -> Result<Option<String>> + 'd;

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
        Ok(OverflowFile::beside(
            &self.target()?,
            self.options.durability,
        ))
    }

    fn lock(&self, target: &Path) -> Result<Lock> {
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly).with_path(&self.path));
        }
        let folder = parent_of(target);
        if !folder.exists() {
            fsio::create_folder_durably(folder)?;
        }
        let sidecar = fsio::own_folder(folder)?
            .join("locks")
            .join(sidecar_name(target, ".lock"));
        let options = self.options;
        Lock::acquire(&sidecar, options.lock_timeout, &options.holder).map_err(
            |error| match error {
                // What is locked for the caller is the checkpoint, not its sidecar.
                FileError::Locked { waited, holder, .. } => {
                    Error::new(ErrorKind::Locked { waited, holder }).with_path(&self.path)
                }
                error => error.into(),
            },
        )
    }

    /// Lock, read, decide, write: no other writer that takes the lock comes between.
    pub(in crate::store) fn transact(&self, decide: &mut Decide<'_>) -> Result<()> {
        let target = self.target()?;
        let overflow = OverflowFile::beside(&target, self.options.durability);
        // A decision not to write anything where nothing is must not leave folders and locks behind.
        if !self.options.read_only
            && !target.exists()
            && decide(None, &overflow.only_asking())?.is_none()
        {
            return Ok(());
        }
        let _lock = self.lock(&target)?;
        for _ in 0..FOREIGN_CHANGES {
            let present = self.read(&target)?;
            let (stored, contents) = match &present {
                Some((stored, contents)) => (Some(stored), Some(contents)),
                None => (None, None),
            };
            let Some(text) = decide(stored, &overflow)? else {
                return Ok(());
            };
            if text.len() as u64 > self.options.max_bytes {
                // What could not be read again must not be written.
                return Err(Error::new(ErrorKind::TooLarge {
                    size: text.len() as u64,
                    limit: self.options.max_bytes,
                })
                .with_path(&self.path));
            }
            let present =
                contents.map_or(Present::Absent, |contents| Present::Same(&contents.stamp));
            let mut back_up = |pending: &Pending<'_>| match self.backups {
                Some(backups) if pending.replaces => backup::keep(&target, &backups),
                _ => Ok(()),
            };
            let mut replace = Replace::new(&target, present).durability(self.options.durability);
            if self.backups.is_some() {
                replace = replace.before_rename(&mut back_up);
            }
            let replaced = replace.write(text.as_bytes());
            match replaced {
                Ok(_) => return Ok(()),
                Err(FileError::Changed { .. }) => {
                    tracing::warn!(path = %self.path.display(), "changed by a program without the lock");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Gives the file another name in its folder, by its stem, and says which. Never over a file that
    /// is there: a counter makes the name unique.
    pub(super) fn set_aside(&self, name: &dyn Fn(&str) -> String) -> Result<PathBuf> {
        let target = self.target()?;
        if !target.exists() {
            return Err(Error::new(ErrorKind::NotFound).with_path(&self.path));
        }
        let _lock = self.lock(&target)?;
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        let aside = backup::link_unique(&target, parent_of(&target), &name(&stem))?;
        fsio::remove(&target, self.options.durability)?;
        Ok(aside)
    }

    /// Removes the file when `check` lets it; `false` when there was none.
    pub(in crate::store) fn delete(
        &self,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
    ) -> Result<bool> {
        let target = self.target()?;
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly).with_path(&self.path));
        }
        if !parent_of(&target).exists() {
            check(None)?;
            return Ok(false);
        }
        let _lock = self.lock(&target)?;
        let present = self.read(&target)?;
        check(present.as_ref().map(|(stored, _)| stored))?;
        if present.is_none() {
            return Ok(false);
        }
        fsio::remove(&target, self.options.durability)?;
        Ok(true)
    }
}

/// The name of a file of ours that belongs to `target`.
pub(super) fn sidecar_name(target: &Path, ending: &str) -> std::ffi::OsString {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    name
}
