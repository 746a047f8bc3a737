//! Archives or deletes a file.

use std::path::{Path, PathBuf};

use super::{DurableFile, FOREIGN_CHANGES};
use crate::checkpoint::{Error, ErrorKind, Fence, Result};
use crate::fsio::{self, FileError, look, parent_of};
use crate::store::Stored;
use crate::store::file::history::{History, Kept};
use crate::store::file::own_file::{folders, of_slot, path_beside};
use crate::store::file::unique::unique_names;

impl DurableFile<'_> {
    /// Copies the file to another name in its folder, made from its stem, and returns the path. It runs under
    /// the lock; the copy is on disk when it returns.
    pub(in crate::store) fn archive_copy(&self, name: &dyn Fn(&str) -> String) -> Result<PathBuf> {
        let target = self.target()?;
        let missing = || Error::new(ErrorKind::NotFound).with_path(&self.path);
        let contents = self.contents(&target)?.ok_or_else(missing)?;
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        self.copy_to_new(&target, &contents.bytes, parent_of(&target), &name(&stem))
    }

    /// Stores the text of a slot that leaves its host file in a file in our folder. It runs under the lock; the
    /// file is on disk when it returns.
    pub(in crate::store) fn archive_text(&self, text: &str, name: &str) -> Result<PathBuf> {
        let target = self.target()?;
        let ending = of_slot(self.slot.as_deref(), &format!("_{name}"));
        let path = path_beside(&target, folders::ARCHIVE, &ending);
        let folder = parent_of(&path);
        fsio::create_folder_durably(folder)?;
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        self.copy_to_new(&target, text.as_bytes(), folder, &stem)
    }

    fn copy_to_new(&self, like: &Path, bytes: &[u8], folder: &Path, stem: &str) -> Result<PathBuf> {
        for archive in unique_names(folder, stem) {
            if fsio::copy(like, bytes, &archive, self.options.durability)? {
                return Ok(archive);
            }
        }
        Err(self.too_many_archives())
    }

    fn too_many_archives(&self) -> Error {
        Error::refused("too many checkpoints were archived in this second; try again in the next")
            .with_path(&self.path)
    }

    /// Renames the file in its folder to a name made from its stem, and returns the path. It never replaces
    /// another file: a counter makes the name unique. With `any_will_do`, a corrupt file is archived too.
    pub(in crate::store) fn archive(
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
        beside.claims.check(None, fence, beside.now)?;
        if !any_will_do {
            check(self.read(&target)?.as_ref().map(|(stored, _)| stored))?;
        }
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        let stem = name(&stem);
        let durability = self.options.durability;
        self.ensure_contents_synced(&target)?;
        beside.dropped_log.settle(durability)?;
        let ended = self.end_task_of(&target)?;
        for archive in unique_names(parent_of(&target), &stem) {
            match fsio::rename_new(&target, &archive, durability) {
                Ok(false) => {}
                Ok(true) => {
                    self.remove_link(&target)?;
                    return Ok(archive);
                }
                Err(error @ FileError::NotDurable { .. }) => return Err(error.into()),
                Err(error) => {
                    ended.undo();
                    return Err(error.into());
                }
            }
        }
        ended.undo();
        Err(self.too_many_archives())
    }

    /// Removes the file if `check` accepts it; `false` if there was none. Its state is then in the history.
    pub(in crate::store) fn delete(
        &self,
        fence: Option<Fence>,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
    ) -> Result<bool> {
        let target = self.target()?;
        self.refuse_read_only()?;
        if look(&target)?.is_none() {
            check(None)?;
            self.ensure_absence_synced(&target)?;
            return Ok(false);
        }
        let _lock = self.lock(&target)?;
        let beside = self.beside(&target);
        beside.claims.check(None, fence, beside.now)?;
        for _ in 0..FOREIGN_CHANGES {
            let Some((stored, contents)) = self.read(&target)? else {
                check(None)?;
                self.ensure_absence_synced(&target)?;
                return Ok(false);
            };
            check(Some(&stored))?;
            // The task may be brought back, so its dropped log must be complete.
            beside.dropped_log.settle(self.options.durability)?;
            let kept = match self.history_of(&target) {
                Some(history) => {
                    let is_synced = self.is_synced(&target, &contents, &stored.revision);
                    let kept = history.keep(&contents, is_synced, beside.now)?;
                    // Sync it now: after the removal the state is nowhere else.
                    if let Err(error) = history.ensure_synced() {
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
                history.prune_after(kept, None);
            }
            return Ok(true);
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Removes the link to a file that is gone. It would be read as an error, not as an absent file.
    pub(super) fn remove_link(&self, target: &Path) -> Result<()> {
        // If the target differs from the path, the path was a link.
        if self.path != target {
            fsio::remove(&self.path, self.options.durability)?;
        }
        Ok(())
    }
}
