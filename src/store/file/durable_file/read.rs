//! Reads a file that other programs may be writing, and makes sure that what was read is on disk.

use std::path::Path;

use super::{DurableFile, FOREIGN_CHANGES};
use crate::checkpoint::{Error, ErrorKind, Result, Revision};
use crate::fsio::{self, Contents, Durability, FileError, FileStamp, look, parent_of};
use crate::json::{Corrupt, Document};
use crate::store::Stored;

/// The document in a file or the damage of it, with the bytes.
type Judged = (std::result::Result<Stored, Corrupt>, Contents);

impl DurableFile<'_> {
    /// The document; `None` if there is no file.
    pub(in crate::store) fn load(&self) -> Result<Option<Stored>> {
        let (target, _) = self.look_at_target()?;
        Ok(self.read(&target)?.map(|(stored, _)| stored))
    }

    /// Reads the file. If it seems corrupt, it is read again at least once, and as long as it keeps changing or
    /// was changed just now.
    pub(super) fn read(&self, target: &Path) -> Result<Option<(Stored, Contents)>> {
        match self.judged(target)? {
            None => Ok(None),
            Some((Ok(stored), contents)) => Ok(Some((stored, contents))),
            Some((Err(corrupt), _)) => Err(Error::from(corrupt).with_path(&self.path)),
        }
    }

    /// The same, but returns the contents even if they are corrupt.
    pub(super) fn judged(&self, target: &Path) -> Result<Option<Judged>> {
        let mut last = None;
        for look in 1..=fsio::LOOKS {
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
                        && (look == fsio::LOOKS || fsio::is_at_rest(contents.modified)) =>
                {
                    return Ok(Some((Err(corrupt), contents)));
                }
                Err(_) => last = Some(contents.stamp),
            }
            std::thread::sleep(fsio::SECOND_LOOK);
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    pub(super) fn contents(&self, target: &Path) -> Result<Option<Contents>> {
        Ok(fsio::read_plain(target, self.options.max_bytes)?)
    }

    /// Reads a file of the history like the file itself.
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

    /// Makes sure that the present file, as it was read, is on disk, whichever process wrote it. Returns the
    /// version that is there afterwards.
    pub(super) fn ensure_synced(
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

    /// The same for a caller that reports to its user that this is saved.
    pub(super) fn ensure_saved(
        &self,
        target: &Path,
        read: &Contents,
        stored: &Stored,
    ) -> Result<()> {
        let wanted = self.options.durability;
        match self.ensure_synced(target, read, &stored.revision, wanted) {
            Ok(_) => Ok(()),
            Err(error) if error.is_of_a_sync() => Err(error.not_durable(target).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a hard link to the present file is a durable copy of its state.
    pub(super) fn is_synced(&self, target: &Path, read: &Contents, revision: &Revision) -> bool {
        let wanted = match self.options.durability {
            Durability::None => Durability::None,
            Durability::Data | Durability::Full => Durability::Data,
        };
        self.note(target).knows(&read.stamp, revision, wanted)
    }

    /// Syncs the contents of the present file, whatever they are, before it gets another name.
    pub(super) fn ensure_contents_synced(&self, target: &Path) -> Result<()> {
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
            match self.ensure_synced(target, &read, &Revision::of(&read.bytes), wanted) {
                Err(FileError::Changed { .. }) => {}
                Err(error) => return Err(error.of_a_step().into()),
                Ok(_) => return Ok(()),
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Makes the absence of the file durable: the process that removed it may have died before its sync.
    pub(super) fn ensure_absence_synced(&self, target: &Path) -> Result<()> {
        let folder = parent_of(target);
        if self.options.durability == Durability::Full && look(folder)?.is_some() {
            fsio::sync_folder(folder)?;
        }
        Ok(())
    }
}
