//! A store of the checkpoints inside a builder-state host file.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{
    Beside, Capabilities, Changes, CheckpointStore, Claims, DeleteOptions, Exclusive, FileOptions,
    FileStore, Heartbeat, History, Page, Put, Query, Recover, Saved, Stored,
};
use crate::checkpoint::{Archive, Fence, Key, Result};
use crate::formats::builder_state::SlotPlace;

/// Keeps checkpoints inside a host file. Keys are the host's slots: `active`, `adhoc:ID`, `top`.
///
/// A revision is that of one slot, so changes that the builder makes elsewhere in the file are no conflict; the lock
/// is that of the file. Everything outside the slot stays the same. Deleting writes `null`, as the protocol does.
///
/// A damaged host file is recovered as a whole, with all its slots, and cannot start fresh.
///
/// # Durability
///
/// As [`FileStore`].
#[derive(Clone, Debug)]
pub struct BuilderStateStore(FileStore);

impl BuilderStateStore {
    /// The store of a host file, usually `docs/builder-state.json`. Opening creates nothing.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        BuilderStateStore::with_options(path, FileOptions::default())
    }

    /// The store of a host file, with options.
    pub fn with_options(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        BuilderStateStore(FileStore::host(path.into(), options))
    }

    /// The slots of the host file as it is now; none if there is no file.
    ///
    /// # Errors
    ///
    /// As [`load`](CheckpointStore::load).
    pub fn places(&self) -> Result<Vec<SlotPlace>> {
        self.0.places()
    }

    /// Archives the checkpoint of a slot and returns the path: its text is in a file of our own folder, on disk
    /// before the slot becomes `null`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is no checkpoint; those of
    /// [`delete`](CheckpointStore::delete).
    pub fn archive(
        &self,
        key: &Key,
        archive: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<PathBuf> {
        self.0.archive(key, archive, now, options)
    }
}

impl CheckpointStore for BuilderStateStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.0.load(key)
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.0.put(key, put)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.0.delete(key, options)
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.0.forget(key, options)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.0.list(query)
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn beside(&self) -> &dyn Beside {
        self.0.beside()
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        self.0.exclusive()
    }

    fn history(&self) -> Option<&dyn History> {
        self.0.history()
    }

    fn claims(&self) -> Option<&dyn Claims> {
        self.0.claims()
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        self.0.recovery()
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        Some(self)
    }

    fn changes(&self) -> Option<&dyn Changes> {
        self.0.changes()
    }
}

impl Heartbeat for BuilderStateStore {
    /// Sets the session's own `lastHeartbeat`; a host without one gets it.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        self.0.beat(key, now, fence)
    }
}
