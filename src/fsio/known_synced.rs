//! What this process knows to be synced, and of which files a sync failed.

pub(crate) use known::{ends_synced, inode_text, lasts, note, note_end};
pub(super) use known::{has_failed, note_failed};

#[cfg(unix)]
mod known {
    use std::collections::{BTreeMap, BTreeSet};
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

    /// Of files that only grow: how long each was when all of it was synced.
    static ENDS: Mutex<BTreeMap<InodeId, u64>> = Mutex::new(BTreeMap::new());

    static FAILED: Mutex<BTreeSet<InodeId>> = Mutex::new(BTreeSet::new());

    fn inode_id(found: &Metadata) -> InodeId {
        (found.dev(), found.ino(), found.created().ok())
    }

    /// Which inode this is, for a note of ours: `None` where the file system does not keep when it was made, so that it
    /// may be another one by now.
    pub(crate) fn inode_text(found: &Metadata) -> Option<String> {
        let made = found.created().ok()?.duration_since(SystemTime::UNIX_EPOCH);
        let made = made.ok()?.as_nanos();
        Some(format!("{}-{}-{made}", found.dev(), found.ino()))
    }

    fn has(set: &Mutex<BTreeSet<InodeId>>, found: &Metadata) -> bool {
        let set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.contains(&inode_id(found))
    }

    /// Notes that the name of a folder, or of a file of ours that only grows or is replaced, is synced.
    pub(crate) fn note(found: &Metadata) {
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

    /// Notes that all of a file that only grows is synced, up to its present end.
    pub(crate) fn note_end(found: &Metadata) {
        let mut ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= MOST {
            ends.clear();
        }
        ends.insert(inode_id(found), found.len());
    }

    /// Whether this process knows that, and nobody added anything since.
    pub(crate) fn ends_synced(found: &Metadata) -> bool {
        let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        ends.get(&inode_id(found)) == Some(&found.len())
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

    pub(crate) fn note(_: &Metadata) {}

    pub(crate) fn lasts(_: &Metadata) -> bool {
        true
    }

    pub(crate) fn note_end(_: &Metadata) {}

    /// Not known, since a file cannot be told from the next one of its name.
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
