//! Syncs the names in a folder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{FileError, Operation, system};

/// Syncs a folder, so that the names in it survive a power cut.
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

/// An open folder that can be synced. It is opened *before* a file in it is changed, so that a folder that
/// cannot be opened is an error while everything is still unchanged.
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

    /// Windows cannot sync a folder: NTFS journals its entries.
    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps)]
    pub(super) fn open(_folder: &Path) -> Result<Option<Self>, FileError> {
        Ok(None)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        match system::sync_folder(&self.file, &self.path) {
            // File systems that cannot sync folders (some network and FUSE ones) report EINVAL or ENOTSUP.
            // Nothing better can be done there.
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
