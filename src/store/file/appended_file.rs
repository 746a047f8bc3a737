//! A file of ours that only grows.

use std::path::{Path, PathBuf};

use super::own_file::OwnFile;
use crate::fsio::{self, Durability, FileError, Present};

/// Lines that were added, to be taken back when what they go with fails.
#[derive(Debug)]
pub(super) struct Added {
    path: PathBuf,
    /// The bytes of the file before; `None` where there was none.
    before: Option<u64>,
    lines: u64,
}

impl Added {
    /// A new file, which is not there unless what it goes with succeeds.
    pub(super) fn new_file(path: &Path) -> Self {
        Added {
            path: path.to_path_buf(),
            before: None,
            lines: 0,
        }
    }

    /// What they go with failed: the file is as it was. Best effort.
    pub(super) fn take_back(self) {
        let taken_back = match self.before {
            None => fsio::remove(&self.path, Durability::None),
            // A torn line before got a line end.
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
    /// One that could not be synced. What is in it may be lost in a power cut although a later sync of it succeeds, so it
    /// is written anew before anything is added.
    pub(super) unsynced: OwnFile,
    /// Which file has a name that is on disk by the note, whoever wrote that.
    pub(super) known: Option<String>,
}

impl AppendedFile {
    /// The file in this folder of ours whose name ends with this and `.jsonl`.
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

    /// Adds lines, on disk before it returns. After an error they are not there, but may come back in a power cut where
    /// it is one of a sync.
    pub(super) fn append(&self, lines: &[u8], durability: Durability) -> Result<Added, FileError> {
        self.write_unsynced_anew(durability)?;
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
                // Also the next call must not believe what is in it, and that may be in another process.
                if error.is_of_a_sync() && matches!(fsio::look(self.path()), Ok(Some(_))) {
                    self.set_unsynced();
                }
                Err(error)
            }
        }
    }

    /// Gives a file of which a sync failed the name that says so.
    pub(super) fn set_unsynced(&self) {
        match fsio::rename_new(self.path(), self.unsynced.path(), Durability::None) {
            Ok(true) => {}
            not => {
                let path = self.path().display();
                tracing::warn!(%path, ?not, "a file that could not be synced keeps its name");
            }
        }
    }

    /// Copies a file that could not be synced to a new one, which is synced before it takes the name. One of that name
    /// was made so, and has all of it.
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

    /// All that was added; `None` where nothing was.
    pub(super) fn bytes(&self) -> Result<Option<Vec<u8>>, FileError> {
        match fsio::read_end(self.path(), u64::MAX)? {
            None => fsio::read_end(self.unsynced.path(), u64::MAX),
            bytes => Ok(bytes),
        }
    }

    /// Which file is there, if its name is on disk.
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
            // Where the file system does not keep when a file was made, none is known by a note.
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
