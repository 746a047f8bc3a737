use std::borrow::Cow;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::{FileError, Operation, seam, system};

/// The most links that are followed, as on Linux.
const MOST_LINKS: usize = 40;

/// Follows `path` to the file that it finally names.
///
/// A path that is no symbolic link, or that names nothing yet, is returned unchanged. Reads, locks and replaces
/// use the result, so that two paths to one file exclude each other and a link stays a link.
///
/// # Errors
///
/// [`FileError::DanglingLink`] when a link leads to nothing, [`FileError::LinkLoop`] when links form a loop,
/// [`FileError::Io`] when the metadata of the path cannot be read.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, FileError> {
    look_through(path).map(|(target, _)| target.into_owned())
}

/// Checks that a path lies in `folder` or below it after following links. A path that is no link costs one
/// system call.
///
/// # Errors
///
/// [`FileError::LeadsOutside`] when a link leads out of the folder; [`FileError::Io`] when the metadata of the
/// path cannot be read. A path that names nothing yet is accepted.
pub(crate) fn within(folder: &Path, path: &Path) -> Result<(), FileError> {
    if look(path)?.is_none_or(|found| !found.is_symlink()) {
        return Ok(());
    }
    let real = |path: &Path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let found = seam::call(Operation::Inspect, path, || fs::canonicalize(path));
        found.map_err(FileError::on(Operation::Inspect, path))
    };
    let target = real(&resolve(path)?)?;
    if target.starts_with(real(folder)?) {
        return Ok(());
    }
    Err(FileError::LeadsOutside {
        path: path.to_path_buf(),
        target,
    })
}

/// The file that `path` finally names, with its metadata. If `folder` is given, the file must lie in it, as
/// [`within`] checks.
pub(crate) fn target_of(
    path: &Path,
    folder: Option<&Path>,
) -> Result<(PathBuf, Option<Metadata>), FileError> {
    let (target, found) = look_through(path)?;
    if let (Some(folder), Cow::Owned(_)) = (folder, &target) {
        within(folder, path)?;
    }
    Ok((target.into_owned(), found))
}

/// The final target of `path` with its metadata; one system call if `path` is no link.
pub(super) fn look_through(path: &Path) -> Result<(Cow<'_, Path>, Option<Metadata>), FileError> {
    let mut target = Cow::Borrowed(path);
    for _ in 0..=MOST_LINKS {
        match look(&target)? {
            Some(found) if found.is_symlink() => {
                let next =
                    system::read_link(&target).map_err(FileError::on(Operation::Inspect, path))?;
                target = Cow::Owned(parent_of(&target).join(next));
            }
            None if matches!(target, Cow::Owned(_)) => {
                return Err(FileError::DanglingLink {
                    path: path.to_path_buf(),
                    target: target.into_owned(),
                });
            }
            found => return Ok((target, found)),
        }
    }
    Err(FileError::LinkLoop {
        path: path.to_path_buf(),
    })
}

/// The metadata of `path` itself, without following a link. Only "no such file" is `None`: any other error must
/// not be taken for a first run.
pub(crate) fn look(path: &Path) -> Result<Option<Metadata>, FileError> {
    match system::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::io(Operation::Inspect, path, error)),
    }
}

/// The folder that contains `path`; the current one for a bare name.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses anything but a regular file with a single name. It protects files that are written in place: through
/// a link, or another name of the same file, the write would change a file that is not ours.
pub(crate) fn refuse_strange(path: &Path) -> Result<(), FileError> {
    look_plain(path).map(drop)
}

/// The metadata of `path`, with the check of [`refuse_strange`].
pub(super) fn look_plain(path: &Path) -> Result<Option<Metadata>, FileError> {
    let Some(found) = look(path)? else {
        return Ok(None);
    };
    if is_plain(&found) {
        Ok(Some(found))
    } else {
        Err(not_plain(path))
    }
}

/// Whether this is a regular file with a single name.
pub(crate) fn is_plain(found: &Metadata) -> bool {
    #[cfg(unix)]
    let has_other_names = std::os::unix::fs::MetadataExt::nlink(found) > 1;
    #[cfg(not(unix))]
    let has_other_names = false;
    found.is_file() && !has_other_names
}

pub(super) fn not_plain(path: &Path) -> FileError {
    FileError::NotAFile {
        path: path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_missing_file_are_their_own_target() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "x").unwrap();
        assert_eq!(resolve(&file).unwrap(), file);
        let missing = folder.path().join("b");
        assert_eq!(resolve(&missing).unwrap(), missing);
    }

    #[test]
    fn a_path_below_a_file_is_an_error_and_not_a_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "x").unwrap();
        let error = resolve(&file.join("b")).unwrap_err();
        assert!(matches!(error, FileError::Io { .. }), "{error:?}");
    }

    #[cfg(unix)]
    #[test]
    fn chains_of_relative_links_are_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("real"), "x").unwrap();
        symlink("../real", folder.path().join("sub/second")).unwrap();
        symlink("sub/second", folder.path().join("first")).unwrap();
        let found = resolve(&folder.path().join("first")).unwrap();
        assert_eq!(
            fs::canonicalize(&found).unwrap(),
            fs::canonicalize(folder.path().join("real")).unwrap()
        );
        assert!(!found.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_lead_about_in_the_folder_and_not_out_of_it() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        let store = outside.path().join("store");
        fs::create_dir_all(store.join("sub")).unwrap();
        fs::write(store.join("sub/real"), "x").unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        symlink("sub/real", store.join("inside")).unwrap();
        symlink("../secret", store.join("out")).unwrap();
        symlink(outside.path(), store.join("folder")).unwrap();
        assert!(within(&store, &store.join("inside")).is_ok());
        assert!(within(&store, &store.join("missing")).is_ok());
        for name in ["out", "folder"] {
            let error = within(&store, &store.join(name)).unwrap_err();
            assert!(matches!(error, FileError::LeadsOutside { .. }), "{error:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_names_its_target_and_a_loop_ends() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("nowhere", &link).unwrap();
        match resolve(&link).unwrap_err() {
            FileError::DanglingLink { path, target } => {
                assert_eq!(path, link);
                assert_eq!(target, folder.path().join("nowhere"));
            }
            other => panic!("{other:?}"),
        }
        let round = folder.path().join("round");
        symlink("round", &round).unwrap();
        let error = resolve(&round).unwrap_err();
        assert!(matches!(error, FileError::LinkLoop { .. }), "{error:?}");
    }
}
