use std::fs::OpenOptions;
use std::path::Path;

use super::resolve::{look, parent_of};
use super::{
    Durability, FileError, Operation, create_folder_durably, known_synced, seam, sync_folder,
    system,
};

/// Appends `bytes` to a file; creates the file and its folder if they are missing.
///
/// It is meant for records that a reader processes line by line. A crash may leave the last line torn. So that
/// a torn line does not swallow the next one, a line end is written first if the file does not end with one.
/// The caller must exclude other writers. The file gets no wider permissions than the file `like`, because its
/// contents come from there.
///
/// # Durability
///
/// On success the bytes survive a power cut, unless `durability` is [`Durability::None`].
///
/// # Errors
///
/// [`FileError::NotAFile`], [`FileError::DiskFull`], [`FileError::Io`]. The earlier contents of the file are
/// still there.
pub(crate) fn append(
    path: &Path,
    bytes: &[u8],
    durability: Durability,
    like: Option<&Path>,
) -> Result<(), FileError> {
    let folder = parent_of(path);
    create_folder_durably(folder)?;
    let found = look(path)?;
    let length = found.as_ref().map_or(0, std::fs::Metadata::len);
    #[cfg(unix)]
    let mode_before = found.as_ref().map(std::os::unix::fs::MetadataExt::mode);
    let name_is_new = match found {
        Some(found) if !found.is_file() => {
            return Err(FileError::NotAFile {
                path: path.to_path_buf(),
            });
        }
        // If the process that created the file died before it synced the folder, the name is not on disk yet.
        found => found.is_none_or(|found| !known_synced::lasts(&found)),
    };
    #[cfg(unix)]
    let mut narrowed = None;
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    if let Some(like) = like.map(look).transpose()?.flatten() {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        options.mode(like.mode() & 0o666);
        // The file was created when `like` had wider permissions.
        let wider = |before: &u32| before & !like.mode() & 0o777 != 0;
        narrowed = mode_before
            .filter(wider)
            .map(|before| before & like.mode() & 0o777);
    }
    #[cfg(not(unix))]
    let _ = like;
    let file = system::open_with(&options, Operation::Create, path)
        .map_err(FileError::on(Operation::Open, path))?;
    #[cfg(unix)]
    if let Some(mode) = narrowed {
        use std::os::unix::fs::PermissionsExt;
        let set = || file.set_permissions(std::fs::Permissions::from_mode(mode));
        seam::call(Operation::SetMode, path, set)
            .map_err(FileError::on(Operation::SetMode, path))?;
    }
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    if let Some(last) = length.checked_sub(1) {
        let mut end = [0];
        let read = system::read(path, || system::read_at(&file, &mut end, last));
        read.map_err(FileError::on(Operation::Read, path))?;
        if end != *b"\n" {
            whole.push(b'\n');
        }
    }
    whole.extend_from_slice(bytes);
    seam::write_all(&file, path, &whole).map_err(FileError::on(Operation::Write, path))?;
    if durability != Durability::None {
        system::sync_data(&file, path).map_err(FileError::on(Operation::Sync, path))?;
        if name_is_new {
            sync_folder(folder)?;
            if let Ok(found) = system::metadata_of(&file, path) {
                known_synced::note(&found);
            }
        }
    }
    Ok(())
}

/// Truncates a file to its first `length` bytes, if it is longer by at most `most` bytes. If it is longer than
/// that, another process added to it meanwhile, and nothing is removed.
pub(crate) fn cut_back(path: &Path, length: u64, most: u64) -> Result<(), FileError> {
    let now = look(path)?.filter(std::fs::Metadata::is_file);
    let added = now.and_then(|now| now.len().checked_sub(length));
    if !added.is_some_and(|added| (1..=most).contains(&added)) {
        return Ok(());
    }
    let file = system::open_with(OpenOptions::new().write(true), Operation::Open, path)
        .map_err(FileError::on(Operation::Open, path))?;
    let cut = seam::cut(path, length, || file.set_len(length));
    cut.map_err(FileError::on(Operation::Cut, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_torn_line_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/record.jsonl");
        append(&path, b"one\n", Durability::Full, None).unwrap();
        append(&path, b"tw", Durability::Full, None).unwrap();
        append(&path, b"three\n", Durability::None, None).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntw\nthree\n");
    }

    #[test]
    fn a_folder_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = append(folder.path(), b"x", Durability::None, None).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }));
    }
}
