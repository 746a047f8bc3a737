//! Whether what is there will still be there after a power cut.
//!
//! A writer that is killed between making something and syncing it leaves what everybody sees and a power cut may
//! still take away; other programs do not sync at all. Whoever builds on it syncs it first, unless it is known to be
//! synced. How long it has been there is no evidence.

use std::path::Path;

use super::folder::FolderHandle;
use super::resolve::parent_of;
use super::{Contents, Durability, FileError, FileStamp, Operation, Present, Replace, system};

pub(crate) use known::lasts;
pub(super) use known::{note, note_failed};

#[cfg(unix)]
mod known {
    use std::collections::BTreeSet;
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;
    use std::sync::{Mutex, PoisonError};
    use std::time::SystemTime;

    /// How many are remembered. More are forgotten all at once, and cost a sync each when they come up again.
    const MOST: usize = 4096;

    /// Device, inode and, where the file system keeps it, the time of creation: an inode is used again once its file
    /// is gone.
    type InodeId = (u64, u64, Option<SystemTime>);

    static SYNCED: Mutex<BTreeSet<InodeId>> = Mutex::new(BTreeSet::new());

    static FAILED: Mutex<BTreeSet<InodeId>> = Mutex::new(BTreeSet::new());

    fn inode_id(found: &Metadata) -> InodeId {
        (found.dev(), found.ino(), found.created().ok())
    }

    fn has(set: &Mutex<BTreeSet<InodeId>>, found: &Metadata) -> bool {
        let set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.contains(&inode_id(found))
    }

    /// Notes that this process has synced the name of a folder, or of a file of ours that only grows or is replaced.
    pub(in crate::fsio) fn note(found: &Metadata) {
        let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
        if synced.len() >= MOST {
            synced.clear();
        }
        synced.insert(inode_id(found));
    }

    /// Whether this process knows that the name lasts.
    pub(crate) fn lasts(found: &Metadata) -> bool {
        has(&SYNCED, found)
    }

    /// Notes that a sync of this file failed: the system may have dropped what it could not write, so a later sync
    /// that succeeds tells nothing.
    pub(in crate::fsio) fn note_failed(found: &Metadata) {
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= MOST {
            failed.pop_first();
        }
        failed.insert(inode_id(found));
    }

    pub(in crate::fsio) fn has_failed(found: &Metadata) -> bool {
        has(&FAILED, found)
    }
}

/// Elsewhere a folder cannot be synced, so there is nothing to know of names; and a sync that failed may be tried
/// again.
#[cfg(not(unix))]
mod known {
    use std::fs::Metadata;

    pub(in crate::fsio) fn note(_: &Metadata) {}

    pub(crate) fn lasts(_: &Metadata) -> bool {
        true
    }

    pub(in crate::fsio) fn note_failed(_: &Metadata) {}

    pub(in crate::fsio) fn has_failed(_: &Metadata) -> bool {
        false
    }
}

/// Takes it as known that the name of a folder is synced; one that is not there is none.
pub(crate) fn trust_name(folder: &Path) -> Result<(), FileError> {
    if let Some(found) = super::look(folder)? {
        note(&found);
    }
    Ok(())
}

/// Whether this process knows that the name of a folder is synced; also where it is not there.
pub(crate) fn is_trusted(folder: &Path) -> Result<bool, FileError> {
    Ok(super::look(folder)?.is_none_or(|found| lasts(&found)))
}

/// Has the next sync of a file write it anew: one failed before, perhaps in another process.
pub(crate) fn distrust(path: &Path) -> Result<(), FileError> {
    let found = system::metadata(path).map_err(FileError::on(Operation::Inspect, path))?;
    note_failed(&found);
    Ok(())
}

/// Makes sure that a file of ours, which is only ever replaced, survives a power cut. Where this process knows that,
/// it is one look and no sync.
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

/// Syncs a file that is still the one that was read, whoever wrote it: with [`Durability::Full`] its contents and its
/// name, with [`Durability::Data`] its contents. Gives the version that is there afterwards: where a sync of this file
/// failed before, the same bytes are written to a new one.
///
/// # Errors
///
/// [`FileError::Changed`] when it is another; [`FileError::Io`] with what could not be opened or synced.
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
    if known::has_failed(&found) {
        if read.bytes.len() as u64 != found.len() {
            let unread = std::io::Error::other(
                "an earlier sync failed, and it is too large to be written anew",
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
