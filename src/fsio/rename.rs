use std::io;
use std::path::Path;

use tempfile::TempPath;

use super::folder_handle::FolderHandle;
use super::resolve::parent_of;
use super::{Durability, FileError, Operation, seam};

/// Renames a file within the same file system, if the new name is free; returns whether it was.
///
/// It moves whatever file has the old name at that instant, and never replaces a file.
///
/// # Durability
///
/// On success with [`Durability::Full`] the new name survives a power cut.
///
/// # Errors
///
/// [`FileError::Io`]; the file then still has its old name. [`FileError::NotDurable`] when it has the new name
/// but may lose it in a power cut.
pub(crate) fn rename_new(
    from: &Path,
    to: &Path,
    durability: Durability,
) -> Result<bool, FileError> {
    let handle = match durability {
        Durability::Full => FolderHandle::open(parent_of(to))?,
        Durability::Data | Durability::None => None,
    };
    let path = TempPath::try_from_path(from).map_err(FileError::on(Operation::Rename, from))?;
    let mut path = Some(path);
    let renamed = seam::call_from(Operation::Rename, from, to, || match path.take() {
        Some(whole) => whole.persist_noclobber(to).map_err(|refused| {
            path = Some(refused.path);
            refused.error
        }),
        None => Err(io::Error::other("the file is gone")),
    });
    if let Some(path) = path {
        // A `TempPath` deletes its file when it is dropped, but this is no temporary file.
        path.keep()
            .map_err(|kept| FileError::of_rename(to, kept.error))?;
    }
    match renamed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(FileError::of_rename(to, error)),
    }
    if let Some(handle) = handle {
        handle.sync().map_err(|source| FileError::NotDurable {
            path: to.to_path_buf(),
            source,
        })?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_moves_to_a_free_name_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&a, "1").unwrap();
        assert!(rename_new(&a, &b, Durability::Full).unwrap());
        fs::write(&a, "2").unwrap();
        assert!(!rename_new(&a, &b, Durability::Full).unwrap());
        assert_eq!(fs::read(&a).unwrap(), b"2");
        assert_eq!(fs::read(&b).unwrap(), b"1");
        fs::remove_file(&a).unwrap();
        let free = folder.path().join("c");
        assert!(rename_new(&a, &free, Durability::Full).is_err());
        assert!(!free.exists());
    }
}
