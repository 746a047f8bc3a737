//! A folder whose names are made to last.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{FileError, Operation, system};

/// Makes the names in a folder last.
///
/// # Errors
///
/// [`FileError::Io`] when it cannot be opened or synced.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let Some(handle) = FolderHandle::open(folder)? else {
        return Ok(());
    };
    handle
        .sync()
        .map_err(FileError::on(Operation::SyncFolder, folder))
}

/// An open folder that can be synced. It is opened *before* a file in it is touched, so that a folder
/// that cannot be opened is an error while everything is still as it was.
pub(super) struct FolderHandle {
    file: File,
    path: PathBuf,
}

impl FolderHandle {
    #[cfg(unix)]
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, FileError> {
        let file = system::open(folder).map_err(FileError::on(Operation::Open, folder))?;
        Ok(Some(Self {
            file,
            path: folder.to_path_buf(),
        }))
    }

    /// Windows cannot sync a folder: NTFS journals its entries by itself.
    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps)]
    pub(super) fn open(_folder: &Path) -> Result<Option<Self>, FileError> {
        Ok(None)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        match system::sync_folder(&self.file, &self.path) {
            // File systems that have no sync for folders (some network and FUSE ones) say so with
            // EINVAL or ENOTSUP. There is nothing that could be done better there.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    }
}
