use std::ffi::OsString;
use std::fs::DirEntry;
use std::io;
use std::path::Path;

use super::{FileError, Operation, system};

/// The entries of a folder, in no particular order; empty if there is no such folder.
///
/// # Errors
///
/// [`FileError::Io`], for any failure other than a missing folder.
pub(crate) fn list(folder: &Path) -> Result<Vec<DirEntry>, FileError> {
    let entries = match system::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io(Operation::List, folder, error)),
    };
    entries
        .map(|entry| entry.map_err(FileError::on(Operation::List, folder)))
        .collect()
}

/// The names in a folder, in no particular order; empty if there is no such folder.
///
/// # Errors
///
/// As [`list`].
pub(crate) fn names(folder: &Path) -> Result<Vec<OsString>, FileError> {
    Ok(list(folder)?.iter().map(DirEntry::file_name).collect())
}
