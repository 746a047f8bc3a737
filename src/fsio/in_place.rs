use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::resolve::{is_plain, look, not_plain, refuse_strange};
use super::{FileError, Operation, seam, system};

/// A small file that is written in place and not synced, for notes with a checksum: a torn note is ignored.
pub(crate) struct InPlace {
    file: File,
    path: PathBuf,
}

impl InPlace {
    /// Opens a file in an existing folder for writing; a new file gets the mode of the file `like`. A file of
    /// another user that this user may not write is created again. A symbolic or hard link is refused, because
    /// it leads to a file that is not ours.
    pub(crate) fn open(path: &Path, like: &Path) -> Result<Self, FileError> {
        let opened = Self::open_any(path, like)?;
        // Opening an existing file changes nothing, so checking afterwards is safe.
        refuse_strange(path)?;
        Ok(opened)
    }

    /// Opens an existing file for reading and writing; `None` if it does not exist.
    pub(crate) fn open_present(path: &Path) -> Result<Option<Self>, FileError> {
        Ok(Self::open_with_metadata(path)?.map(|(opened, _)| opened))
    }

    /// Writes over an existing file; `false` if there is none, or if it has another owner or other permissions than
    /// the file `like`.
    pub(crate) fn write_over(path: &Path, like: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        let Some((opened, found)) = Self::open_with_metadata(path)? else {
            return Ok(false);
        };
        if !look(like)?.is_some_and(|like| has_same_readers(&found, &like)) {
            return Ok(false);
        }
        let length = bytes.len() as u64;
        if found.len() > length {
            let cut = seam::cut(path, length, || opened.file.set_len(length));
            cut.map_err(FileError::on(Operation::Cut, path))?;
        }
        opened.write(bytes, 0)?;
        Ok(true)
    }

    fn open_with_metadata(path: &Path) -> Result<Option<(Self, Metadata)>, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = match system::open_plain(&mut options, Operation::Open, path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io(Operation::Open, path, error)),
        };
        // Elsewhere than on Unix, opening follows a link.
        #[cfg(not(unix))]
        refuse_strange(path)?;
        let found = system::metadata_of(&file, path);
        let found = found.map_err(FileError::on(Operation::Inspect, path))?;
        if is_removed(&found) {
            return Ok(None);
        }
        if !is_plain(&found) {
            return Err(not_plain(path));
        }
        let path = path.to_path_buf();
        Ok(Some((InPlace { file, path }, found)))
    }

    /// Reads up to `most` bytes from the beginning in one system call.
    pub(crate) fn read(&self, most: usize) -> Result<Vec<u8>, FileError> {
        let mut bytes = vec![0; most];
        let read = system::read(&self.path, || system::read_at(&self.file, &mut bytes, 0));
        bytes.truncate(read.map_err(FileError::on(Operation::Read, &self.path))?);
        Ok(bytes)
    }

    fn open_any(path: &Path, like: &Path) -> Result<Self, FileError> {
        // Opening a pipe only for writing would wait for a reader.
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match system::open_plain(&mut options, Operation::Open, path) {
            Ok(file) => {
                return Ok(InPlace {
                    file,
                    path: path.to_path_buf(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                system::remove_file(path).map_err(FileError::on(Operation::Remove, path))?;
            }
            // A dangling link is reported as not found, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => refuse_strange(path)?,
            Err(error) => return Err(FileError::io(Operation::Open, path, error)),
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        #[cfg(unix)]
        if let Some(like) = look(like)? {
            use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
            options.mode(like.mode() & 0o666);
        }
        #[cfg(not(unix))]
        let _ = (like, look);
        let file = system::open_with(&options, Operation::Create, path);
        Ok(InPlace {
            file: file.map_err(FileError::on(Operation::Open, path))?,
            path: path.to_path_buf(),
        })
    }

    /// Writes bytes at an offset in one system call.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), FileError> {
        let written = system::write_at(&self.file, &self.path, bytes, offset);
        let written = written.map_err(FileError::on(Operation::Write, &self.path))?;
        if written < bytes.len() {
            let short = io::ErrorKind::WriteZero.into();
            return Err(FileError::io(Operation::Write, &self.path, short));
        }
        Ok(())
    }
}

/// Whether an open file has no name any more: it was replaced or removed after it was opened.
fn is_removed(found: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(found) == 0;
    #[cfg(not(unix))]
    {
        let _ = found;
        false
    }
}

/// Whether the same users may read both files.
fn has_same_readers(file: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let readers = |of: &Metadata| (of.uid(), of.gid(), of.mode() & 0o777);
        readers(file) == readers(other)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, other);
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::rc::Rc;

    use super::super::seam::{Call, Watch, watched};
    use super::*;

    /// Puts another file in the place of one that was just opened.
    struct Replaced(PathBuf);

    impl Watch for Replaced {
        fn after(&mut self, call: &Call<'_>) {
            if call.operation == Operation::Open && self.0.exists() {
                assert!(fs::rename(&self.0, call.path).is_ok());
            }
        }
    }

    #[test]
    fn a_file_that_was_replaced_after_it_was_opened_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["note", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "one").unwrap();
        fs::write(&other, "another").unwrap();
        let watch = Rc::new(RefCell::new(Replaced(other)));
        let write = || InPlace::write_over(&path, &path, b"two").unwrap();
        assert!(!watched(watch, write), "the bytes are in no file");
        assert_eq!(fs::read(&path).unwrap(), b"another");
        assert!(write());
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
