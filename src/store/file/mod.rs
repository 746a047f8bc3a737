//! A store in a folder of checkpoint files.

mod appended_file;
mod checkpoint_file;
mod claims;
mod dropped_log;
mod durable_file;
mod fingerprints;
mod history;
mod keys;
mod known_ledger;
pub(super) mod layout;
mod ledger;
mod options;
mod own_file;
mod past;
mod quarantine;
mod saved;
mod slot;
mod task_boundary;
mod unique;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use checkpoint_file::CheckpointFile;
use dropped_log::DroppedLog;
pub(super) use durable_file::DurableFile;
pub(crate) use ledger::{file_name as ledger_name, placeholder_name as ledger_placeholder};
pub use options::FileOptions;
use own_file::folders;
pub(crate) use own_file::folders::{
    CLAIMS as CLAIMS_FOLDER, DROPPED_LOG as DROPPED_LOG_FOLDER, LEDGER as LEDGER_FOLDER,
};

use super::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, Decide, DeleteOptions,
    EntryId, Exclusive, Heartbeat, History, HistoryEntry, Keep, LedgerLines, LedgerMark, Page, Put,
    Query, Recover, RecoverOptions, Recovered, RolledBack, Saved, Stored,
};
use crate::checkpoint::{
    Archive, Claim, Dropped, Error, ErrorKind, Fence, FileRole, Key, Layout, Result, Revision,
};
use crate::fsio;

/// Keeps each checkpoint in a file of its own.
///
/// The file of a key is `{key}.json` in the store's folder. Characters that a file name must not contain are
/// written as `%XX`, and no key leads out of the folder. Locks, ledgers and the dropped log are in the hidden
/// folder `.agent-checkpoint` beside the files; git ignores that folder, except for the dropped log.
///
/// # Durability
///
/// When a save returns, it is on disk: the text is synced before it gets its name, and the name before the save
/// returns. A crash at any point leaves either the whole old text or the whole new one. See
/// `docs/durability.md`.
///
/// On a file system that ignores case, keys that differ only in case are the same file.
///
/// A clone is cheap and is the same store.
#[derive(Clone, Debug)]
pub struct FileStore {
    place: Arc<Place>,
    options: Arc<FileOptions>,
}

#[derive(Clone, Debug)]
enum Place {
    /// All checkpoints of a folder.
    Folder { path: PathBuf, layout: Layout },
    /// One file, whatever its name.
    Single {
        path: PathBuf,
        key: Key,
        layout: Layout,
    },
    /// The slots of a host file.
    Host { path: PathBuf },
}

impl FileStore {
    /// The store of a folder. The first save creates the folder; opening creates nothing.
    pub fn open(folder: impl Into<PathBuf>) -> FileStore {
        FileStore::with_options(folder, FileOptions::default())
    }

    /// The store of a folder, with options.
    pub fn with_options(folder: impl Into<PathBuf>, options: FileOptions) -> FileStore {
        FileStore {
            place: Arc::new(Place::Folder {
                path: folder.into(),
                layout: Layout::default(),
            }),
            options: Arc::new(options),
        }
    }

    /// The same store with the file names of a protocol: see [`Checkpoint::layout`](crate::Checkpoint::layout).
    /// A store of one file keeps that file's name; its archives and backups get the protocol's names.
    #[must_use]
    pub fn with_layout(mut self, named: Layout) -> FileStore {
        // The remembered ids were read by the rules of the previous layout.
        self.options = Arc::new(FileOptions::clone(&self.options));
        match Arc::make_mut(&mut self.place) {
            Place::Folder { layout, .. } | Place::Single { layout, .. } => *layout = named,
            Place::Host { .. } => {}
        }
        self
    }

    /// A store of one file, under the key that [`key`](FileStore::key) gives.
    ///
    /// # Errors
    ///
    /// When the path has no file name.
    pub fn single(path: impl Into<PathBuf>, options: FileOptions) -> Result<FileStore> {
        let path = path.into();
        let Some(name) = path.file_name() else {
            return Err(Error::new(ErrorKind::InvalidKey {
                text: path.display().to_string(),
                reason: "it has no file name",
            }));
        };
        let name = name.to_string_lossy();
        let key = match (Layout::default().role)(&name) {
            FileRole::Current(Some(key)) => key,
            _ => Key::new(name.trim())?,
        };
        Ok(FileStore {
            place: Arc::new(Place::Single {
                path,
                key,
                layout: Layout::default(),
            }),
            options: Arc::new(options),
        })
    }

    /// A store of one file under the given key, sharing its options with other stores.
    pub(crate) fn of_file(
        path: &Path,
        key: Key,
        layout: Layout,
        options: Arc<FileOptions>,
    ) -> FileStore {
        let path = path.to_path_buf();
        FileStore {
            place: Arc::new(Place::Single { path, key, layout }),
            options,
        }
    }

    /// Sets the key of a store of one file, for example to the id in its content. It has no effect on a folder.
    #[must_use]
    pub fn with_key(mut self, named: Key) -> FileStore {
        if let Place::Single { key, .. } = Arc::make_mut(&mut self.place) {
            *key = named;
        }
        self
    }

    /// The key of a store of one file; `None` for a folder.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match &*self.place {
            Place::Folder { .. } | Place::Host { .. } => None,
            Place::Single { key, .. } => Some(key),
        }
    }

    /// Archives the checkpoint of a key under the protocol's archive name, and returns the path. The ledger stays:
    /// [`Ledger::end_with`](crate::ledger::Ledger::end_with) ends that of a complete task together with this.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no checkpoint; [`ErrorKind::Conflict`] when it is not what
    /// `options` expect; [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] as for every write; any failure to
    /// rename it. With [`Expect::Any`](crate::Expect::Any) a corrupt checkpoint is archived too.
    pub fn archive(
        &self,
        key: &Key,
        archive: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<PathBuf> {
        self.at(key, |file| file.archive(archive, now, options))
    }

    /// The slots of a host file.
    pub(in crate::store) fn host(path: PathBuf, options: FileOptions) -> FileStore {
        FileStore {
            place: Arc::new(Place::Host { path }),
            options: Arc::new(options),
        }
    }

    /// Records that the session of a host is alive.
    pub(in crate::store) fn beat(
        &self,
        key: &Key,
        now: DateTime<Utc>,
        fence: Option<Fence>,
    ) -> Result<Saved> {
        self.at(key, |file| file.beat(now, fence))
    }

    /// The resolved path of the file, if it is an archive. In a folder no key is the name of one.
    fn archived(&self) -> Result<Option<PathBuf>> {
        let Place::Single { path, layout, .. } = &*self.place else {
            return Ok(None);
        };
        let path = fsio::resolve(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_of_slot = folder.ends_with(Path::new(fsio::OWN_FOLDER).join(folders::ARCHIVE));
        let is_archive = is_of_slot || self.role(folder, layout, &name) == FileRole::Archive;
        Ok(is_archive.then_some(path))
    }

    /// The store of the task that this file is a crashed or aborted archive of. The ledger stayed there: what the agent did
    /// outside is done, whichever file its checkpoint has. That of a complete task has ended.
    fn of_archive(&self, key: &Key) -> Result<Option<FileStore>> {
        let Some(mut path) = self.archived()? else {
            return Ok(None);
        };
        let mut found = None;
        // An archive may have been archived itself.
        while let Some((file, Archive::Crashed | Archive::Aborted)) = path
            .file_name()
            .and_then(|name| self.layout().of_archive(&name.to_string_lossy()))
        {
            path.set_file_name(file);
            found = Some(path.clone());
        }
        let store = |path: PathBuf| {
            FileStore::of_file(&path, key.clone(), self.layout(), self.options.clone())
        };
        Ok(found.map(store))
    }

    /// Runs `work` on the checkpoint of a key.
    fn at<T>(&self, key: &Key, work: impl FnOnce(&CheckpointFile<'_>) -> Result<T>) -> Result<T> {
        let file = DurableFile::new(self.path(key)?, &self.options).named(key);
        let layout = self.layout();
        let (file, slot) = match &*self.place {
            Place::Folder { path, .. } => (file.within(path), None),
            Place::Single { .. } => (file, None),
            Place::Host { path } => {
                let slot = key.as_str().parse();
                let slot = slot.map_err(|error: Error| error.with_path(path).with_key(key))?;
                (file.on_slot(key.as_str()), Some(slot))
            }
        };
        let file = CheckpointFile {
            file: file.with_backups(layout.backups),
            key: key.clone(),
            slot,
            layout,
        };
        work(&file).map_err(|error| file.named(error))
    }

    fn layout(&self) -> Layout {
        match &*self.place {
            Place::Folder { layout, .. } | Place::Single { layout, .. } => *layout,
            Place::Host { .. } => Layout::default(),
        }
    }
}

impl Exclusive for FileStore {
    fn with_lock(&self, key: &Key, decide: &mut Decide<'_>) -> Result<Saved> {
        let _span = tracing::debug_span!("transact", %key).entered();
        self.at(key, |file| file.with_lock(decide))
    }
}

impl CheckpointStore for FileStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.at(key, |file| file.load())
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.with_lock(key, &mut |_| Ok(Some(put.clone())))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.at(key, |file| file.delete(options))
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let is_archive = |folder: &Path, name: &str, stem: &str| {
            let layout = self.layout();
            layout.is_archive_of(name, stem)
                && self.role(folder, &layout, name) == FileRole::Archive
        };
        self.at(key, |file| file.forget(options, &is_archive))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.keys(query)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        let is_kept = self.options.history.is_some() || self.layout().backups.is_some();
        is_kept.then_some(self as &dyn History)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        Some(self)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_power_loss: self.options.durability == fsio::Durability::Full,
            excludes_processes: true,
            keys_are_places: matches!(*self.place, Place::Single { .. }),
            embedded: matches!(*self.place, Place::Host { .. }),
            ..Capabilities::default()
        }
    }
}

impl Beside for FileStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.at(key, |file| file.with_log(DroppedLog::read))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        self.at(key, |file| file.with_log(|log, of| log.newest(of, most)))
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        // Only the name matters here, not where links lead.
        let target = fsio::resolve(&self.path(key)?)?;
        Ok(Some(DroppedLog::place_beside(&target)))
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        self.at(key, |file| file.fingerprints(revision))
    }

    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        self.path(key).ok()
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        let of_task = self.of_archive(key)?;
        let store = of_task.as_ref().unwrap_or(self);
        store.at(key, |file| file.file.ledger_since(mark))
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        if let Some(path) = self.archived()? {
            let why = "this is an archive, to whose ledger nothing is added; go on with the task under its own key";
            return Err(Error::refused(why).with_path(path));
        }
        self.at(key, |file| file.file.append_to_ledger(line, at, fence))
    }
}

impl Claims for FileStore {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.at(key, |file| file.file.change_claim(change))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.at(key, |file| file.file.claimed())
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let mut keys = self.keys_without_file()?;
        keys.retain(|key| match self.claimed(key) {
            Ok(claim) => claim.is_some_and(|claim| !claim.released),
            Err(_) => true,
        });
        Ok(keys)
    }
}

impl History for FileStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.at(key, |file| file.states())
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        self.at(key, |file| file.load_revision(entry))
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.at(key, |file| file.pin(entry, pinned))
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.at(key, |file| file.prune(keep))
    }

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        self.at(key, |file| file.append(state, tasks_ended))
    }

    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        self.at(key, |file| file.file.changed_without(present))
    }

    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        self.at(key, |file| file.rolled_back(present))
    }
}

impl Recover for FileStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        self.at(key, |file| file.recover(options))
    }
}
