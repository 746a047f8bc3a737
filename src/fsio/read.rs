use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::resolve::{look, not_plain};
use super::{FileError, FileStamp, Operation, system};

/// How long after a corrupt read a file is read again: some programs truncate a file and fill it again in place.
pub(crate) const SECOND_LOOK: Duration = Duration::from_millis(20);

/// How often a file is read again that looks corrupt and is being written.
pub(crate) const LOOKS: usize = 25;

/// The age from which a file counts as no longer being written. A program that truncates a file and fills it
/// again may be suspended in between, or wait for a busy disk.
const AT_REST: Duration = Duration::from_millis(250);

/// Whether a file with this modification time is surely not being written. A time in the future proves nothing.
pub(crate) fn is_at_rest(modified: Option<SystemTime>) -> bool {
    let age = modified.and_then(|modified| modified.elapsed().ok());
    age.is_none_or(|age| age >= AT_REST)
}

/// The contents of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Contents {
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// The version of the file. It is taken before the first byte is read: if another program writes in place
    /// meanwhile, the stamp is that of the older version, and a save that relies on it is refused.
    pub stamp: FileStamp,
    /// When the file was last written, if the file system says.
    pub modified: Option<SystemTime>,
    /// The metadata of the file when it was opened.
    pub metadata: Metadata,
}

/// Reads a whole file of at most `limit` bytes; `None` if there is no such file.
///
/// Symbolic links are followed. A pipe or device is refused before it is opened, because opening one can block
/// forever or have effects.
///
/// # Errors
///
/// Only "no such file" is `None`; any other failure to read the file is an error: [`FileError::NotAFile`],
/// [`FileError::DanglingLink`], [`FileError::TooLarge`], [`FileError::Io`].
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Option<Contents>, FileError> {
    match system::metadata(path) {
        Ok(found) => check(path, &found, limit)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A dangling link is reported as "not found" too, but it is not an absent file.
            return super::resolve(path).map(|_| None);
        }
        Err(error) => return Err(FileError::io(Operation::Inspect, path, error)),
    }
    match system::open(path) {
        Ok(file) => read_open(&file, path, limit).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::io(Operation::Open, path, error)),
    }
}

/// As [`read_limited`], for a file that the caller has just checked, which saves a system call. A link that was
/// put there since is followed as usual. A pipe or device that was put there since is refused too, but only
/// after it was opened.
///
/// # Errors
///
/// As [`read_limited`].
pub(crate) fn read_plain(path: &Path, limit: u64) -> Result<Option<Contents>, FileError> {
    match read_own(path, limit) {
        Err(FileError::NotAFile { .. }) => read_limited(path, limit),
        read => read,
    }
}

/// As [`read_plain`], for a file of our own. We make no links, so a link leads to a file that is not ours and
/// is refused.
///
/// # Errors
///
/// As [`read_limited`]; a link is [`FileError::NotAFile`].
pub(crate) fn read_own(path: &Path, limit: u64) -> Result<Option<Contents>, FileError> {
    let file = open_own(path)?;
    file.map(|file| read_open(&file, path, limit)).transpose()
}

fn open_own(path: &Path) -> Result<Option<File>, FileError> {
    // On other systems an open follows a link.
    if cfg!(not(unix)) && look(path)?.is_some_and(|found| !found.is_file()) {
        return Err(not_plain(path));
    }
    match system::open_plain(OpenOptions::new().read(true), Operation::Open, path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if system::is_not_plain(&error) => Err(not_plain(path)),
        Err(error) => Err(FileError::io(Operation::Open, path, error)),
    }
}

fn read_open(file: &File, path: &Path, limit: u64) -> Result<Contents, FileError> {
    // Another file may have been put there since the check; only the open one counts.
    let opened =
        system::metadata_of(file, path).map_err(FileError::on(Operation::Inspect, path))?;
    check(path, &opened, limit)?;

    // Bytes that are added meanwhile belong to another version of the file. Some files (/proc) report a size of
    // 0 although they have contents, so of those one byte more than the limit is read.
    let expected = match opened.len() {
        0 => limit.saturating_add(1),
        size => size,
    };
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len()).unwrap_or(0));
    let mut whole = file.take(expected);
    system::read(path, || whole.read_to_end(&mut bytes))
        .map_err(FileError::on(Operation::Read, path))?;
    let size = bytes.len() as u64;
    if size > limit {
        return Err(too_large(path, size, limit));
    }
    Ok(Contents {
        bytes,
        stamp: FileStamp::of(&opened),
        modified: opened.modified().ok(),
        metadata: opened,
    })
}

/// The metadata of an existing file without its bytes, for one that is too large to be read.
pub(crate) fn unread(path: &Path) -> Result<Option<Contents>, FileError> {
    let found = look(path)?.filter(Metadata::is_file);
    Ok(found.map(|found| Contents {
        bytes: Vec::new(),
        stamp: FileStamp::of(&found),
        modified: found.modified().ok(),
        metadata: found,
    }))
}

/// The last bytes of a file of our own, at most `limit`; `None` if there is no such file.
///
/// # Errors
///
/// As [`read_own`], except [`FileError::TooLarge`].
pub(crate) fn read_end(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    let Some(mut file) = open_own(path)? else {
        return Ok(None);
    };
    let found =
        system::metadata_of(&file, path).map_err(FileError::on(Operation::Inspect, path))?;
    check(path, &found, u64::MAX)?;
    let length = found.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let mut read = || {
        if length < found.len() {
            file.seek(SeekFrom::Start(found.len() - length))?;
        }
        Read::by_ref(&mut file).take(length).read_to_end(&mut bytes)
    };
    system::read(path, &mut read).map_err(FileError::on(Operation::Read, path))?;
    Ok(Some(bytes))
}

/// These bytes of a file of our own; none where it is not there, or no longer of this stamp.
///
/// # Errors
///
/// As [`read_own`].
pub(crate) fn read_part(
    path: &Path,
    part: Range<u64>,
    stamp: &FileStamp,
) -> Result<Option<Vec<u8>>, FileError> {
    let Some(mut file) = open_own(path)? else {
        return Ok(None);
    };
    let found =
        system::metadata_of(&file, path).map_err(FileError::on(Operation::Inspect, path))?;
    if FileStamp::of(&found) != *stamp {
        return Ok(None);
    }
    let length = part.end.saturating_sub(part.start);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let read = || {
        file.seek(SeekFrom::Start(part.start))?;
        Read::by_ref(&mut file).take(length).read_to_end(&mut bytes)
    };
    system::read(path, read).map_err(FileError::on(Operation::Read, path))?;
    Ok(Some(bytes))
}

fn check(path: &Path, found: &Metadata, limit: u64) -> Result<(), FileError> {
    if !found.is_file() {
        return Err(FileError::NotAFile {
            path: path.to_path_buf(),
        });
    }
    if found.len() > limit {
        return Err(too_large(path, found.len(), limit));
    }
    Ok(())
}

fn too_large(path: &Path, size: u64, limit: u64) -> FileError {
    FileError::TooLarge {
        path: path.to_path_buf(),
        size,
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_missing_file_is_none_and_an_empty_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(read_limited(&path, 10).unwrap().is_none());
        fs::write(&path, "").unwrap();
        assert!(read_limited(&path, 0).unwrap().unwrap().bytes.is_empty());
    }

    #[test]
    fn the_limit_is_the_last_size_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "0123456789").unwrap();
        let read = read_limited(&path, 10).unwrap().unwrap();
        assert_eq!(read.bytes, b"0123456789");
        assert!(matches!(
            read_limited(&path, 9),
            Err(FileError::TooLarge {
                size: 10,
                limit: 9,
                ..
            })
        ));
        assert_eq!(
            read_limited(&path, u64::MAX).unwrap().unwrap().bytes.len(),
            10
        );
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = read_limited(folder.path(), 10).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
    }

    #[test]
    fn a_read_error_is_never_a_first_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "x").unwrap();
        let error = read_limited(&file.join("below"), 10).unwrap_err();
        assert!(matches!(error, FileError::Io { .. }), "{error:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_opens_but_cannot_be_read_is_an_error() {
        // A regular file of size 0 whose first page is never mapped, so that reading it fails even for root.
        let error = read_limited(Path::new("/proc/self/mem"), 10).unwrap_err();
        assert!(
            matches!(
                error,
                FileError::Io {
                    operation: Operation::Read,
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_holds_for_a_file_that_is_larger_than_it_says() {
        // Files of /proc report a size of 0 bytes.
        let error = read_limited(Path::new("/proc/self/status"), 10).unwrap_err();
        assert!(
            matches!(
                error,
                FileError::TooLarge {
                    size: 11,
                    limit: 10,
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_is_no_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let error = read_limited(&link, 10).unwrap_err();
        assert!(matches!(error, FileError::DanglingLink { .. }), "{error:?}");
    }
}
