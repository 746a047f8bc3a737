//! A file of ours that only grows.

use std::path::{Path, PathBuf};

use super::own_file::OwnFile;
use crate::fsio::{self, Durability, FileError, Present};

/// Lines that were added, to be removed again if the operation they belong to fails.
#[derive(Debug)]
pub(super) struct Added {
    path: PathBuf,
    /// The length of the file before, in bytes; `None` if it did not exist.
    before: Option<u64>,
    lines: u64,
}

impl Added {
    /// A new file, which is removed again unless its operation succeeds.
    pub(super) fn new_file(path: &Path) -> Self {
        Added {
            path: path.to_path_buf(),
            before: None,
            lines: 0,
        }
    }

    /// Restores the file after its operation failed. Best effort.
    pub(super) fn take_back(self) {
        let taken_back = match self.before {
            None => fsio::remove(&self.path, Durability::None),
            // If the file ended with a torn line, a line end was added before the new lines.
            Some(before) => fsio::cut_back(&self.path, before, self.lines + 1),
        };
        if let Err(error) = taken_back {
            tracing::warn!(path = %self.path.display(), %error, "lines that were not to be added stay");
        }
    }
}

/// A file to which lines are added, under the lock.
pub(super) struct AppendedFile {
    pub(super) file: OwnFile,
    /// The name of a file that could not be synced. A power cut may remove what is in it even if a later sync
    /// of it succeeds, so it is copied to a new file before anything is added.
    pub(super) unsynced: OwnFile,
    /// The identity of the file whose name is on disk according to the note, whichever process wrote that.
    pub(super) known: Option<String>,
}

impl AppendedFile {
    /// The file in this folder of ours whose name has this ending and `.jsonl`.
    pub(super) fn beside(target: &Path, folder: &str, ending: &str) -> Self {
        let file = |more| OwnFile::beside(target, folder, &format!("{ending}{more}"));
        AppendedFile {
            file: file(".jsonl"),
            unsynced: file(".unsynced.jsonl"),
            known: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds lines to a file that is not [unsynced](Self::write_unsynced_anew); they are on disk when this returns.
    /// After an error they are removed, but after a failed sync they may reappear in a power cut.
    pub(super) fn append(&self, lines: &[u8], durability: Durability) -> Result<Added, FileError> {
        let found = fsio::look(self.path())?;
        if let Some(found) = &found
            && self.known.is_some()
            && self.known == fsio::inode_text(found)
        {
            fsio::trust(found);
            let folder = fsio::look(fsio::parent_of(self.path()))?;
            folder.iter().for_each(fsio::trust);
        }
        let added = Added {
            path: self.path().to_path_buf(),
            before: found.map(|found| found.len()),
            lines: lines.len() as u64,
        };
        match fsio::append(self.path(), lines, durability, Some(self.file.target())) {
            Ok(()) => Ok(added),
            Err(error) => {
                added.take_back();
                // The next call must not trust the contents either, and it may run in another process.
                if error.is_of_a_sync() && matches!(fsio::look(self.path()), Ok(Some(_))) {
                    self.set_unsynced();
                }
                Err(error)
            }
        }
    }

    /// Gives a file whose sync failed the name that marks it as unsynced.
    pub(super) fn set_unsynced(&self) {
        match fsio::rename_new(self.path(), self.unsynced.path(), Durability::None) {
            Ok(true) => {}
            not => {
                let path = self.path().display();
                tracing::warn!(%path, ?not, "a file that could not be synced keeps its name");
            }
        }
    }

    /// Copies an unsynced file to a new one, which is synced before it gets the name. If that name exists
    /// already, an earlier call finished the copy.
    pub(super) fn write_unsynced_anew(&self, durability: Durability) -> Result<(), FileError> {
        if !self.unsynced.is_there()? {
            return Ok(());
        }
        let bytes = self.bytes()?.unwrap_or_default();
        self.file
            .write(&bytes, Present::Whatever, durability)
            .map_err(FileError::of_a_step)?;
        if durability != Durability::None
            && let Ok(Some(found)) = fsio::look(self.path())
        {
            fsio::note_end(&found);
        }
        self.unsynced.remove(Durability::None)
    }

    /// All bytes; `None` if nothing was ever added.
    pub(super) fn bytes(&self) -> Result<Option<Vec<u8>>, FileError> {
        match fsio::read_end(self.path(), u64::MAX)? {
            None => fsio::read_end(self.unsynced.path(), u64::MAX),
            bytes => Ok(bytes),
        }
    }

    /// The identity of the present file, if its name is on disk.
    pub(super) fn synced(&self) -> Option<String> {
        let found = fsio::look(self.path()).ok().flatten();
        fsio::inode_text(&found.filter(fsio::lasts)?)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::fsio::seam::{Call, Watch, watched};

    struct FolderSyncs(usize);

    impl Watch for FolderSyncs {
        fn after(&mut self, call: &Call<'_>) {
            self.0 += usize::from(call.operation == fsio::Operation::SyncFolder);
        }
    }

    #[test]
    fn only_a_file_that_the_note_names_has_its_name_on_disk() {
        for is_named in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("a.json");
            let mut log = AppendedFile::beside(&target, "overflow", "");
            std::fs::create_dir_all(fsio::parent_of(log.path())).unwrap();
            std::fs::write(log.path(), "").unwrap();
            let found = fsio::look(log.path()).unwrap().unwrap();
            // On a file system without creation times, a note cannot identify a file.
            let Some(inode) = fsio::inode_text(&found) else {
                return;
            };
            log.known = Some(if is_named { inode } else { format!("{inode}0") });
            let syncs = Rc::new(RefCell::new(FolderSyncs(0)));
            let append = || log.append(b"{}\n", Durability::Full).unwrap();
            watched(Rc::clone(&syncs) as Rc<RefCell<dyn Watch>>, append);
            assert_eq!(syncs.borrow().0 == 0, is_named);
        }
    }
}
