use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::resolve::{look, look_plain, refuse_strange};
use super::{FileError, Operation, system};

/// A small file that is written in place, without waiting for the disk: for notes that have a checksum, so that a
/// torn one is none.
pub(crate) struct InPlace {
    file: File,
    path: PathBuf,
}

impl InPlace {
    /// Opens a file for writing, in a folder that is there; a new one gets the mode of the file `like`. One that
    /// another user made, and that this one may not write, is made anew. A symbolic or hard link is refused: it
    /// leads into somebody's file.
    pub(crate) fn open(path: &Path, like: &Path) -> Result<Self, FileError> {
        let opened = Self::open_any(path, like)?;
        // Opening what is there changes nothing.
        refuse_strange(path)?;
        Ok(opened)
    }

    /// Opens a file that is there, for reading and writing; `None` where it is not.
    pub(crate) fn open_present(path: &Path) -> Result<Option<Self>, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = match system::open_plain(&mut options, Operation::Open, path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io(Operation::Open, path, error)),
        };
        Ok(look_plain(path)?.map(|_| InPlace {
            file,
            path: path.to_path_buf(),
        }))
    }

    /// Reads up to `most` bytes from the beginning, in one call.
    pub(crate) fn read(&self, most: usize) -> Result<Vec<u8>, FileError> {
        let mut bytes = vec![0; most];
        let read = system::read(&self.path, || system::read_at(&self.file, &mut bytes, 0));
        bytes.truncate(read.map_err(FileError::on(Operation::Read, &self.path))?);
        Ok(bytes)
    }

    fn open_any(path: &Path, like: &Path) -> Result<Self, FileError> {
        // For writing alone, opening a pipe would wait for somebody who reads it.
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
            // A link to nothing is not found either.
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

    /// Writes bytes at an offset, in one call.
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
