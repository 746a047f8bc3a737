//! What this process knows to be synced, and the files whose sync failed.

pub(crate) use known::{ends_synced, inode_text, lasts, note, note_end};
pub(super) use known::{has_failed, note_failed};

#[cfg(unix)]
mod known {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;
    use std::sync::{Mutex, PoisonError};
    use std::time::SystemTime;

    /// The most files that are remembered. Beyond that all are forgotten, and each costs a sync when it is
    /// needed again.
    const MOST: usize = 4096;

    /// Device, inode and, if the file system has it, the creation time: an inode number is reused after its
    /// file is removed.
    type InodeId = (u64, u64, Option<SystemTime>);

    static SYNCED: Mutex<BTreeSet<InodeId>> = Mutex::new(BTreeSet::new());

    /// The length up to which a file that only grows is synced.
    static ENDS: Mutex<BTreeMap<InodeId, u64>> = Mutex::new(BTreeMap::new());

    static FAILED: Mutex<BTreeSet<InodeId>> = Mutex::new(BTreeSet::new());

    fn inode_id(found: &Metadata) -> InodeId {
        (found.dev(), found.ino(), found.created().ok())
    }

    /// The identity of a file as text, for a note of ours. `None` if the file system has no creation times,
    /// because the inode number may then be reused.
    pub(crate) fn inode_text(found: &Metadata) -> Option<String> {
        let made = found.created().ok()?.duration_since(SystemTime::UNIX_EPOCH);
        let made = made.ok()?.as_nanos();
        Some(format!("{}-{}-{made}", found.dev(), found.ino()))
    }

    fn has(set: &Mutex<BTreeSet<InodeId>>, found: &Metadata) -> bool {
        let set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.contains(&inode_id(found))
    }

    /// Remembers that the name is synced: that of a folder, or of a file of ours that only grows or is replaced.
    pub(crate) fn note(found: &Metadata) {
        let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
        if synced.len() >= MOST {
            synced.clear();
        }
        synced.insert(inode_id(found));
    }

    /// Whether this process knows that the name is synced.
    pub(crate) fn lasts(found: &Metadata) -> bool {
        has(&SYNCED, found)
    }

    /// Remembers that a file that only grows is synced up to its present end.
    pub(crate) fn note_end(found: &Metadata) {
        let mut ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= MOST {
            ends.clear();
        }
        ends.insert(inode_id(found), found.len());
    }

    /// Whether this process knows that the file is synced up to its end, and nothing was added since.
    pub(crate) fn ends_synced(found: &Metadata) -> bool {
        let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        ends.get(&inode_id(found)) == Some(&found.len())
    }

    /// Remembers that a sync of this file failed. The system may have dropped the data that it could not write,
    /// so a later successful sync proves nothing.
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

/// On other systems a folder cannot be synced, so there is nothing to remember about names; and a failed sync
/// may be repeated.
#[cfg(not(unix))]
mod known {
    use std::fs::Metadata;

    pub(crate) fn note(_: &Metadata) {}

    pub(crate) fn lasts(_: &Metadata) -> bool {
        true
    }

    pub(crate) fn note_end(_: &Metadata) {}

    /// Unknown, because a file cannot be distinguished from a later one with the same name.
    pub(crate) fn ends_synced(_: &Metadata) -> bool {
        false
    }

    pub(crate) fn inode_text(_: &Metadata) -> Option<String> {
        None
    }

    pub(in crate::fsio) fn note_failed(_: &Metadata) {}

    pub(in crate::fsio) fn has_failed(_: &Metadata) -> bool {
        false
    }
}
