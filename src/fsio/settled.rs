//! Whether a name that is there will still be there after a power cut.
//!
//! A writer that is killed between making something and syncing its folder leaves a name that everybody sees
//! and that a power cut may still take away. Whoever builds on it syncs the folder first, unless it knows better:
//! this process synced it itself, or it has been there for so long that the system surely wrote it.

use std::path::Path;

use super::folder::FolderHandle;
use super::resolve::parent_of;
use super::{Durability, FileError, Operation, system};

pub(super) use known::{lasts, note};

#[cfg(unix)]
mod known {
    use std::collections::BTreeSet;
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, SystemTime};

    /// After which time a system has surely written what it was told; Linux does so within a minute.
    const SURELY_WRITTEN: Duration = Duration::from_secs(3600);

    /// How many are remembered. More are forgotten all at once, and cost a sync each when they come up again.
    const MOST: usize = 4096;

    /// What tells a file or folder from all others of this machine that ever were.
    type Identity = (u64, u64, Option<SystemTime>);

    static SYNCED: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

    fn identity(found: &Metadata) -> Identity {
        (found.dev(), found.ino(), found.created().ok())
    }

    /// Notes that this process has synced the name of a file or folder, and what the name leads to.
    pub(in crate::fsio) fn note(found: &Metadata) {
        let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
        if synced.len() >= MOST {
            synced.clear();
        }
        synced.insert(identity(found));
    }

    /// Whether the name surely lasts.
    pub(in crate::fsio) fn lasts(found: &Metadata) -> bool {
        let is_old = found.created().is_ok_and(|made| {
            let age = SystemTime::now().duration_since(made);
            age.is_ok_and(|age| age >= SURELY_WRITTEN)
        });
        let is_noted = || {
            let synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
            synced.contains(&identity(found))
        };
        is_old || is_noted()
    }
}

/// Elsewhere a folder cannot be synced, so there is nothing to know.
#[cfg(not(unix))]
mod known {
    use std::fs::Metadata;

    pub(in crate::fsio) fn note(_: &Metadata) {}

    pub(in crate::fsio) fn lasts(_: &Metadata) -> bool {
        true
    }
}

/// Makes sure that a file that is there survives a power cut, whoever made it. Where that is known this is one
/// look and no sync.
///
/// # Durability
///
/// As `durability` says: with [`Durability::Full`] the name and the contents last, with [`Durability::Data`] the
/// contents.
///
/// # Errors
///
/// [`FileError::NotDurable`] when a sync fails; [`FileError::Io`] when the file cannot be opened.
pub fn make_last(path: &Path, durability: Durability) -> Result<(), FileError> {
    if durability == Durability::None {
        return Ok(());
    }
    let found = system::metadata(path).map_err(FileError::on(Operation::Inspect, path))?;
    if lasts(&found) {
        return Ok(());
    }
    let handle = match durability {
        Durability::Full => FolderHandle::open(parent_of(path))?,
        Durability::Data | Durability::None => None,
    };
    let file = system::open(path).map_err(FileError::on(Operation::Open, path))?;
    let not_durable = |source| FileError::NotDurable {
        path: path.to_path_buf(),
        source,
    };
    system::sync_all(&file, path).map_err(not_durable)?;
    if let Some(handle) = handle {
        handle.sync().map_err(not_durable)?;
        note(&found);
    }
    Ok(())
}
