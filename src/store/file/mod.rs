//! A folder of checkpoint files.

mod claims;
mod dropped_log;
mod durable_file;
mod fingerprints;
mod history;
mod options;
mod own_file;
mod past;
mod quarantine;
mod saved;
mod task_boundary;
mod unique;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};

pub(super) use dropped_log::{DroppedLines, DroppedLog, Owner};
pub(super) use durable_file::{Damaged, DurableFile, Next, Undo};
pub(super) use history::{Entry, History as FileHistory};
pub use options::FileOptions;
pub(super) use past::{
    entry_named, listed, no_history, no_such, not_recoverable, of_earlier_tasks,
    recover as recover_with,
};
use task_boundary::EndedTask;

use super::{
    Beside, Capabilities, CheckpointStore, ClaimChange, Claims, Decide, DeleteOptions, EntryId,
    Exclusive, Heartbeat, History, HistoryEntry, Keep, Outcome, Page, Put, Query, Recover,
    RecoverOptions, Recovered, Recovery, RolledBack, Saved, Stored, check_expected,
};
use crate::checkpoint::{
    Archive, Claim, Dropped, Error, ErrorKind, Expect, FileRole, Key, Layout, Result, Revision,
};
use crate::fsio;
use crate::json::Document;

/// Keeps each checkpoint in a file of its own.
///
/// The file of a key is `{key}.json` in the store's folder, with characters that no file name may
/// have written as `%XX`; no key leaves the folder. Locks and the dropped log lie in the
/// hidden folder `.agent-checkpoint` beside the files; git ignores it, but for that log.
///
/// # Durability
///
/// A save that returned is on disk: the text is synced before it takes its name, the name before the
/// save returns. A crash at any point leaves the old text or the new one, whole. See
/// `docs/durability.md`.
///
/// On a file system that does not tell upper from lower case, keys that differ only in case are
/// the same file.
///
/// A clone is the same store, and cheap.
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
}

impl FileStore {
    /// The store of a folder. The folder is made with the first save; opening creates nothing.
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

    /// The same place, with the file names of a protocol: see
    /// [`Checkpoint::layout`](crate::Checkpoint::layout). One file keeps its name; its archives and
    /// backups are named as the protocol does.
    #[must_use]
    pub fn with_layout(mut self, named: Layout) -> FileStore {
        // The ids that were read in files are those of the layout before.
        self.options = Arc::new(FileOptions::clone(&self.options));
        match Arc::make_mut(&mut self.place) {
            Place::Folder { layout, .. } | Place::Single { layout, .. } => *layout = named,
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

    /// The same file, under a key of the caller's, such as the one in its content. A folder has no use
    /// for it.
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
            Place::Folder { .. } => None,
            Place::Single { key, .. } => Some(key),
        }
    }

    /// The file of a key, whether or not it exists.
    ///
    /// Where the protocol has ids in its files, a file that is there already counts under the id inside,
    /// whatever it is called, unless the id's own file is there too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] when the key makes too long a name, and for another key than that
    /// of a store of one file. [`ErrorKind::Ambiguous`] when two files of other names have the id.
    pub fn path(&self, key: &Key) -> Result<PathBuf> {
        match &*self.place {
            Place::Folder { path, layout } => {
                let usual = path.join((layout.file_name)(key)?);
                if layout.key_in.is_none() || fsio::look(&usual)?.is_some() {
                    return Ok(usual);
                }
                Ok(self.strange_file(path, layout, key)?.unwrap_or(usual))
            }
            Place::Single {
                path, key: only, ..
            } if only == key => Ok(path.clone()),
            Place::Single { .. } => Err(Error::new(ErrorKind::InvalidKey {
                text: key.to_string(),
                reason: "this store has one file only, under another key",
            })),
        }
    }

    /// What a file is, by its name; but a file that bears its own id as its name is no archive, although
    /// the id reads like one.
    fn role(&self, folder: &Path, layout: &Layout, name: &str) -> FileRole {
        let role = (layout.role)(name);
        let bears_its_id = || {
            let id = self.key_inside(&folder.join(name), layout);
            id.is_some_and(|id| (Layout::default().file_name)(&id).is_ok_and(|own| own == name))
        };
        if role == FileRole::Archive && bears_its_id() {
            return FileRole::Current(None);
        }
        role
    }

    /// The file of another name that has this id inside.
    fn strange_file(&self, folder: &Path, layout: &Layout, key: &Key) -> Result<Option<PathBuf>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for name in fsio::names(folder)? {
            let is_unnamed = name
                .to_str()
                .is_some_and(|name| self.role(folder, layout, name) == FileRole::Current(None));
            let path = folder.join(&name);
            if is_unnamed && self.key_inside(&path, layout).as_ref() == Some(key) {
                files.push(path);
            }
        }
        match files.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            several => Err(Error::new(ErrorKind::Ambiguous {
                what: "file with this id",
                candidates: several
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect(),
            })
            .with_key(key)),
        }
    }

    /// The keys of files whose names do not tell them. A file has the id inside, where that id leads to it;
    /// else its name, where that does: so a corrupt file is listed too, and loading it tells what is wrong.
    /// A file that no key leads to has none.
    fn keys_of(
        &self,
        folder: &Path,
        layout: &Layout,
        names: Vec<String>,
    ) -> Vec<(String, Option<Key>)> {
        let inside: Vec<Option<Key>> = names
            .iter()
            .map(|name| self.key_inside(&folder.join(name), layout))
            .collect();
        let mut holders: HashMap<&Key, usize> = HashMap::new();
        for key in inside.iter().flatten() {
            *holders.entry(key).or_default() += 1;
        }
        let usual = |key: &Key| (layout.file_name)(key).unwrap_or_default();
        let present: HashSet<&String> = names.iter().collect();
        let keys: Vec<Option<Key>> = names
            .iter()
            .zip(&inside)
            .map(|(name, inside)| {
                let leads_here = |key: &&Key| {
                    let usual = usual(key);
                    usual == *name || (!present.contains(&usual) && holders.get(*key) == Some(&1))
                };
                let by_name = || {
                    let stem = Path::new(name).file_stem()?.to_str()?;
                    Key::new(stem).ok().filter(|key| usual(key) == *name)
                };
                inside.as_ref().filter(leads_here).cloned().or_else(by_name)
            })
            .collect();
        names.into_iter().zip(keys).collect()
    }

    /// The key in the content of a file; `None` when it cannot be read or has none.
    fn key_inside(&self, path: &Path, layout: &Layout) -> Option<Key> {
        let key_in = layout.key_in?;
        self.options.ids.of(path, || {
            let file = DurableFile::new(path.to_path_buf(), &self.options);
            key_in(&file.load().ok()??.document)
        })
    }

    /// Archives the checkpoint of a key under the protocol's name for that, and says where.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::Conflict`] when it is not what `options`
    /// expect; [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] as for every write; whatever keeps it from
    /// being renamed. With [`Expect::Any`] a corrupt checkpoint is archived too.
    pub fn archive(
        &self,
        key: &Key,
        archive: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<PathBuf> {
        let layout = *self.layout();
        let any = options.expect == Expect::Any;
        let mut check = |present: Option<&Stored>| check_expected(key, &options.expect, present);
        self.file(key)?
            .archive(options.fence, &mut check, any, &|stem| {
                (layout.archive_stem)(stem, archive, now)
            })
            .map_err(|error| error.with_key(key))
    }

    fn file(&self, key: &Key) -> Result<DurableFile<'_>> {
        let file = DurableFile::new(self.path(key)?, &self.options).named(key);
        let file = file.with_backups(self.layout().backups);
        Ok(match &*self.place {
            Place::Folder { path, .. } => file.within(path),
            Place::Single { .. } => file,
        })
    }

    /// Works on the history of a key.
    fn past<T>(
        &self,
        key: &Key,
        work: impl FnOnce(&DurableFile<'_>, &FileHistory<'_>) -> Result<T>,
    ) -> Result<T> {
        let file = self.file(key)?;
        let history = file.history()?.ok_or_else(no_history)?;
        work(&file, &history).map_err(|error| error.with_key(key))
    }

    fn layout(&self) -> &Layout {
        match &*self.place {
            Place::Folder { layout, .. } | Place::Single { layout, .. } => layout,
        }
    }
}

/// What a change makes of nothing, asked before the lock is taken: it counts if there is still nothing then.
#[derive(Default)]
pub(super) struct OnAbsent(Option<Option<Put>>);

impl OnAbsent {
    pub(super) fn decide(
        &mut self,
        present: Option<&Stored>,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Put>> {
        match (present, self.0.take()) {
            (None, Some(made)) => Ok(made),
            (None, None) => {
                let made = decide(None)?;
                self.0 = Some(made.clone());
                Ok(made)
            }
            (Some(_), _) => decide(present),
        }
    }
}

impl Exclusive for FileStore {
    fn with_lock(&self, key: &Key, decide: &mut Decide<'_>) -> Result<Saved> {
        let file = self.file(key)?;
        let _span = tracing::debug_span!("transact", %key).entered();
        let mut on_absent = OnAbsent::default();
        let saved = file.transact(&mut |present, beside| {
            let Some(put) = on_absent.decide(present, decide)? else {
                return Ok((Saved::unchanged(key, present)?, None));
            };
            check_expected(key, &put.expect, present)?;
            beside.claims.check_all(put.fence, beside.now)?;
            let previous = present.map(|present| present.revision.clone());
            let revision = Revision::of(put.document.text().as_bytes());
            let outcome = Outcome::of(previous.as_ref(), &revision);
            let mut saved = Saved::new(outcome, revision.clone(), previous);
            if !put.dropped.is_empty() {
                saved.truncation.kept_in = Some(beside.dropped_log.place());
            }
            let begins = outcome == Outcome::Created && !put.continues_task;
            let ends = put.ends_task(outcome);
            let owner = Owner {
                slot: None,
                task: Some(key.as_str()),
            };
            let record = beside
                .dropped_log
                .entries(owner, begins || ends, &put.dropped)?;
            let mut undo = Undo::default();
            if let Some((why, at)) = put.archive
                && outcome == Outcome::Replaced
            {
                let name = |stem: &str| (self.layout().archive_stem)(stem, why, at);
                undo.archive = Some(file.archive_copy(&name)?);
                saved.archive.clone_from(&undo.archive);
            }
            if ends {
                undo = file.end_task_for(undo)?;
            }
            let next = (outcome != Outcome::Unchanged).then(|| Next {
                revision: Some(revision),
                record,
                skips_history: put.skips_history || ends,
                continues_task: put.continues_task,
                fingerprints: put.fingerprints,
                text: put.document.into_text(),
                undo,
            });
            Ok((saved, next))
        });
        saved.map_err(|error| error.with_key(key))
    }
}

impl CheckpointStore for FileStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let file = self.file(key)?;
        file.load().map_err(|error| error.with_key(key))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.with_lock(key, &mut |_| Ok(Some(put.clone())))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let file = self.file(key)?;
        file.delete(options.fence, &mut |present| {
            check_expected(key, &options.expect, present)
        })
        .map_err(|error| error.with_key(key))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let (folder, layout) = match &*self.place {
            Place::Single { path, key, .. } => {
                let there = fsio::look(path)?.is_some();
                return Ok(query.page(there.then(|| key.clone())));
            }
            Place::Folder { path, layout } => (path, layout),
        };
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        let mut unnamed = Vec::new();
        for name in fsio::names(folder)? {
            let Some(text) = name.to_str() else {
                foreign.push(name);
                continue;
            };
            match self.role(folder, layout, text) {
                FileRole::Current(Some(key)) => keys.push(key),
                FileRole::Current(None) => unnamed.push(text.to_owned()),
                FileRole::Foreign if text.ends_with(".json") => foreign.push(name),
                FileRole::Archive | FileRole::Foreign => {}
            }
        }
        for (name, key) in self.keys_of(folder, layout, unnamed) {
            match key {
                Some(key) => keys.push(key),
                None => foreign.push(name.into()),
            }
        }
        let mut page = query.page(keys);
        foreign.sort();
        page.foreign = foreign;
        Ok(page)
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

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_power_loss: self.options.durability == fsio::Durability::Full,
            excludes_processes: true,
            keys_are_places: matches!(*self.place, Place::Single { .. }),
            ..Capabilities::default()
        }
    }
}

impl Beside for FileStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        let file = self.file(key)?;
        file.dropped_log()?.read(Owner::default())
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let file = self.file(key)?;
        file.dropped_log()?.newest(Owner::default(), most)
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        // Its name only, so it does not matter where links lead.
        let target = fsio::resolve(&self.path(key)?)?;
        Ok(Some(DroppedLog::beside(&target).place_beside()))
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let kept = self.file(key)?.fingerprints(revision);
        kept.map_err(|error| error.with_key(key))
    }

    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        self.path(key).ok()
    }
}

impl Claims for FileStore {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        let claim = self.file(key)?.change_claim(change);
        claim.map_err(|error| error.with_key(key))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.file(key)?
            .claimed()
            .map_err(|error| error.with_key(key))
    }
}

impl History for FileStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.past(key, |file, history| {
            let current = file.load();
            let entries = history.entries()?;
            let ages = file.tasks_since(history, &entries)?;
            listed(file, current, &entries, &ages, &|entry| {
                file.read_entry(&entry.path)
            })
        })
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        self.past(key, |file, history| {
            if entry.is_current() {
                return file.load()?.ok_or_else(|| no_such(entry));
            }
            let found = entry_named(&history.entries()?, entry)?;
            file.read_entry(&found.path)?.ok_or_else(|| no_such(entry))
        })
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.past(key, |file, history| file.pin(history, entry, pinned))
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.past(key, |file, history| file.prune(history, keep, None))
    }

    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        let changed = self.file(key)?.changed_without(present);
        changed.map_err(|error| error.with_key(key))
    }

    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        let file = self.file(key)?;
        file.rolled_back(present, &|entry| file.read_entry(&entry.path))
            .map_err(|error| error.with_key(key))
    }
}

impl Recover for FileStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let file = self.file(key)?;
        let recover = || -> Result<Recovered> {
            let Some(damaged) = file.damaged(options.fence)? else {
                return Ok(Recovered::healthy(options.with));
            };
            let mut entries = match file.history()? {
                Some(history) if options.with == Recovery::Newest => {
                    let entries = history.entries()?;
                    let ages = file.tasks_since(&history, &entries)?;
                    entries.into_iter().zip(ages).collect()
                }
                _ => Vec::new(),
            };
            let earlier: Option<EntryId> = entries
                .iter()
                .find(|(_, age)| *age > 0)
                .map(|(entry, _)| entry.id.clone());
            entries.retain(|(_, age)| *age == 0);
            let entries: Vec<Entry> = entries.into_iter().map(|(entry, _)| entry).collect();
            let ended = match options.with {
                Recovery::Fresh => file.end_task()?,
                _ => EndedTask::default(),
            };
            let revision = |document: &Document| Some(Revision::of(document.text().as_bytes()));
            let recovered = recover_with(
                &file,
                &damaged,
                options.with,
                &entries,
                earlier.as_ref(),
                &revision,
            );
            if matches!(&recovered, Err(error) if *error.kind() != ErrorKind::NotDurable) {
                ended.undo();
            }
            recovered.inspect(|recovered| recovered.report(key, began))
        };
        recover().map_err(|error| error.with_key(key))
    }
}
