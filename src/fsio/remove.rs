use std::path::Path;

use super::folder_handle::FolderHandle;
use super::resolve::{look, parent_of};
use super::{Durability, FileError, FileStamp, Operation, system};

/// Removes a file.
///
/// # Durability
///
/// On success with [`Durability::Full`] the file is still gone after a power cut.
///
/// # Errors
///
/// [`FileError::Io`]; also when there is no such file. [`FileError::NotDurable`] when the file is removed but
/// may reappear after a power cut.
pub(crate) fn remove(path: &Path, durability: Durability) -> Result<(), FileError> {
    remove_if(path, None, durability)
}

/// Removes a file if its contents still have this stamp, which is checked right before.
///
/// # Errors
///
/// As [`remove`]; [`FileError::Changed`] when the stamp differs.
pub(crate) fn remove_same(
    path: &Path,
    stamp: &FileStamp,
    durability: Durability,
) -> Result<(), FileError> {
    remove_if(path, Some(stamp), durability)
}

fn remove_if(
    path: &Path,
    stamp: Option<&FileStamp>,
    durability: Durability,
) -> Result<(), FileError> {
    let handle = match durability {
        Durability::Full => FolderHandle::open(parent_of(path))?,
        Durability::Data | Durability::None => None,
    };
    if let Some(stamp) = stamp {
        let now = look(path)?.map(|found| FileStamp::of(&found));
        if now.is_none_or(|now| !now.same_contents(stamp)) {
            return Err(FileError::Changed {
                path: path.to_path_buf(),
            });
        }
    }
    system::remove_file(path).map_err(FileError::on(Operation::Remove, path))?;
    if let Some(handle) = handle {
        handle.sync().map_err(|source| FileError::NotDurable {
            path: path.to_path_buf(),
            source,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_goes_and_a_missing_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "x").unwrap();
        remove(&path, Durability::Full).unwrap();
        assert!(!path.exists());
        assert!(remove(&path, Durability::Full).is_err());
    }
}
