use std::io;
use std::path::Path;

use super::{Durability, FileError, Operation, Present, Replace, system};

/// Makes a hard link to a file in an existing folder, if the name is free; returns whether it was.
///
/// No bytes are copied. When the file is replaced by a rename, the link keeps the old contents.
///
/// # Durability
///
/// There is no sync, so the link may be missing after a power cut. Its contents are as durable as the file was.
///
/// # Errors
///
/// [`FileError::Io`]. Its source is `Unsupported`, `PermissionDenied` or another error on a file system without
/// hard links; use [`copy`] there.
pub(crate) fn link(from: &Path, to: &Path) -> Result<bool, FileError> {
    match system::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(FileError::io(Operation::Link, to, error)),
    }
}

/// Writes `bytes`, the contents of the file `from`, to a free name, with the mode and the modification time of
/// that file; returns whether the name was free.
///
/// It is for file systems without hard links, and for places where other programs write into files in place.
///
/// # Durability
///
/// The contents are synced as `durability` says. The new name has the whole contents or does not exist.
///
/// # Errors
///
/// As [`Replace::write`], except [`FileError::NotDurable`]: after every error there is no copy.
pub(crate) fn copy(
    from: &Path,
    bytes: &[u8],
    to: &Path,
    durability: Durability,
) -> Result<bool, FileError> {
    let copied = Replace::new(to, Present::Absent)
        .like(from)
        .of_its_time()
        .durability(durability)
        .write(bytes);
    match copied {
        Ok(_) => Ok(true),
        Err(FileError::Changed { .. }) => Ok(false),
        // The copy is in place, but a copy that is not durable is of no use to the caller.
        Err(error @ FileError::NotDurable { .. }) => {
            let _ = system::remove_file(to);
            Err(error.of_a_step())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_hard_link_keeps_what_a_replace_takes_away() {
        let folder = tempfile::tempdir().unwrap();
        let [file, linked, copied] = ["a", "b", "c"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        assert!(link(&file, &linked).unwrap());
        assert!(copy(&file, b"old", &copied, Durability::Data).unwrap());
        let modified = |path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&file), modified(&copied));
        // An existing file of that name does not change.
        assert!(!link(&file, &copied).unwrap());
        assert!(!copy(&file, b"x", &linked, Durability::None).unwrap());
        super::super::replace(&file, b"new", Present::Whatever).unwrap();
        assert_eq!(fs::read(&linked).unwrap(), b"old");
        assert_eq!(fs::read(&copied).unwrap(), b"old");
        // If the file is written in place, a link changes with it, and a copy does not.
        assert!(link(&file, &folder.path().join("d")).unwrap());
        fs::write(&file, "cut").unwrap();
        assert_eq!(fs::read(folder.path().join("d")).unwrap(), b"cut");
        assert_eq!(fs::read(&copied).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn a_copy_is_no_wider_open_than_its_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [file, copied] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&file, "secret").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        copy(&file, b"secret", &copied, Durability::None).unwrap();
        let mode = fs::metadata(&copied).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
