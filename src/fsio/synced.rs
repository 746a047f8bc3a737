//! Whether files survive a power cut.
//!
//! If a writer is killed between creating something and syncing it, everyone can see the result, but a power
//! cut may still remove it; other programs do not sync at all. So an operation that relies on a file syncs it
//! first, unless it is known to be synced. The age of a file is no evidence.

use std::path::Path;

use super::folder_handle::FolderHandle;
use super::known_synced::{ends_synced, has_failed, lasts, note, note_end, note_failed};
use super::resolve::{look, parent_of};
use super::{
    Contents, Durability, FileError, FileStamp, Operation, Present, Replace, create_folder_durably,
    sync_folder, system,
};

/// Makes the next sync of a file write a new copy, because a sync of it failed before, perhaps in another process.
pub(crate) fn distrust(path: &Path) -> Result<(), FileError> {
    let found = system::metadata(path).map_err(FileError::on(Operation::Inspect, path))?;
    note_failed(&found);
    Ok(())
}

/// Makes sure that a file of ours that is only ever replaced survives a power cut. If this process already
/// knows that, it costs one system call and no sync.
pub(crate) fn ensure_synced(
    path: &Path,
    read: &Contents,
    durability: Durability,
) -> Result<(), FileError> {
    if durability == Durability::None {
        return Ok(());
    }
    let found = system::metadata(path).map_err(FileError::on(Operation::Inspect, path))?;
    if !lasts(&found) {
        sync_now(path, read, durability)?;
        if durability == Durability::Full {
            note(&found);
        }
    }
    Ok(())
}

/// Makes sure that a file of ours that only grows survives a power cut up to its present end, whichever process
/// wrote it, and returns the end. If this process already knows that, it costs one system call and no sync.
///
/// # Errors
///
/// [`FileError::Io`], also for a file whose sync failed before: the system may have dropped the data that it
/// could not write, so a later sync proves nothing.
pub(crate) fn ensure_end_synced(path: &Path, durability: Durability) -> Result<u64, FileError> {
    let Some(found) = look(path)? else {
        return Ok(0);
    };
    if durability == Durability::None || ends_synced(&found) {
        return Ok(found.len());
    }
    if has_failed(&found) {
        let failed = std::io::Error::other("an earlier sync of it failed");
        return Err(FileError::io(Operation::Sync, path, failed));
    }
    let file = match system::open_to_sync(path) {
        Ok(file) => file,
        // A user who may not write the file, which some systems require for a sync, did not write its end.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(found.len());
        }
        Err(error) => return Err(FileError::on(Operation::Open, path)(error)),
    };
    let synced = system::sync_data(&file, path);
    synced.map_err(|source| {
        note_failed(&found);
        FileError::io(Operation::Sync, path, source)
    })?;
    if !lasts(&found) {
        create_folder_durably(parent_of(path))?;
        sync_folder(parent_of(path))?;
        note(&found);
    }
    note_end(&found);
    Ok(found.len())
}

/// Syncs a file if it still is the one that was read, whichever process wrote it: with [`Durability::Full`] its
/// contents and its name, with [`Durability::Data`] its contents. Returns the version that is there afterwards:
/// if a sync of this file failed before, the same bytes are written to a new file.
///
/// # Errors
///
/// [`FileError::Changed`] when it is another file; [`FileError::Io`] for a file or folder that could not be
/// opened or synced.
pub(crate) fn sync_now(
    path: &Path,
    read: &Contents,
    durability: Durability,
) -> Result<FileStamp, FileError> {
    let handle = match durability {
        Durability::Full => FolderHandle::open(parent_of(path))?,
        Durability::Data => None,
        Durability::None => return Ok(read.stamp.clone()),
    };
    let file = system::open_to_sync(path).map_err(FileError::on(Operation::Open, path))?;
    let found =
        system::metadata_of(&file, path).map_err(FileError::on(Operation::Inspect, path))?;
    let stamp = FileStamp::of(&found);
    if stamp != read.stamp {
        return Err(FileError::Changed {
            path: path.to_path_buf(),
        });
    }
    if has_failed(&found) {
        if read.bytes.len() as u64 != found.len() {
            let unread = std::io::Error::other(
                "an earlier sync failed, and it is too large to be written again",
            );
            return Err(FileError::io(Operation::Sync, path, unread));
        }
        let anew = Replace::new(path, Present::Same(&stamp)).durability(durability);
        return Ok(anew.write(&read.bytes)?.stamp);
    }
    let failed = |operation, path, source| {
        note_failed(&found);
        FileError::io(operation, path, source)
    };
    system::sync_all(&file, path).map_err(|source| failed(Operation::Sync, path, source))?;
    if let Some(handle) = handle {
        let folder = parent_of(path);
        let synced = handle.sync();
        synced.map_err(|source| failed(Operation::SyncFolder, folder, source))?;
    }
    Ok(stamp)
}
