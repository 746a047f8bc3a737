//! From the command line to the checkpoint that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::formats::AnyCheckpoints;
use agent_checkpoint::formats::CheckpointFile;
use agent_checkpoint::formats::builder_state::{Slot, SlotPlace};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Archive, FileRole, Format, Inputs};
use agent_checkpoint::json::Document;
use agent_checkpoint::ledger::Ledger;
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, EntryId, FileOptions, FileStore,
    RecoverOptions, Recovery, read_document,
};
use agent_checkpoint::{
    CheckpointStoreExt, Checkpoints, Error, ErrorKind, FixedClock, Key, Redaction, Report,
};

use chrono::{DateTime, Utc};

use crate::backend::Access;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::inputs;
use crate::named::{
    Named, NamedKey, is_folder, named_link, needs_host_file, newest_good, shell_word,
};
use crate::read;

/// One checkpoint: its location, its format and its key in a store.
pub(crate) struct Target {
    /// The file, or the address of the store, as messages show it.
    pub(crate) path: PathBuf,
    /// The file whose neighbours its format may read. For a store without files, a path that does not exist.
    pub(crate) file: PathBuf,
    /// Its format.
    pub(crate) format: Format,
    /// Its key in the store.
    pub(crate) key: Key,
    /// Its slot in a host file.
    pub(crate) slot: Option<Slot>,
    /// Whether the file (or in a store without files the document) exists.
    is_file_there: bool,
    store: Arc<dyn CheckpointStore>,
    /// The same store, if it is made of files.
    files: Option<Files>,
}

/// A store that is made of files.
enum Files {
    Own(FileStore),
    Host(BuilderStateStore),
}

impl Target {
    /// The checkpoint of FILE or `--store`, for reading. The file must exist.
    pub(crate) fn to_read(file: Option<&Path>, global: &Global) -> Result<Target, Failure> {
        let named = Named::new(file, Access::Read, global)?;
        let target = Target::open(named, Access::Read, global)?;
        target.require_file()?;
        Ok(target)
    }

    /// The checkpoint of `--store`, for writing.
    pub(crate) fn to_write(global: &Global) -> Result<Target, Failure> {
        Target::of_store(Access::Change, global)
    }

    /// The checkpoint of `--store`, for writing; it may have to be created first.
    pub(crate) fn to_begin(global: &Global) -> Result<Target, Failure> {
        Target::of_store(Access::Make, global)
    }

    fn of_store(access: Access, global: &Global) -> Result<Target, Failure> {
        if global.store.is_none() {
            return Err(Failure::new(
                "where is the checkpoint? Name its folder and key, such as --store checkpoints --key US-003 (or CKPT_STORE \
                 and CKPT_KEY), or its file with --store; `ckpt init --write` sets the folder for a whole project",
            ));
        }
        let named = Named::new(None, access, global)?;
        let target = Target::open(named, access, global)?;
        target.check_place(global)?;
        Ok(target)
    }

    /// Refuses a change of a file that no reader of the protocol looks at.
    fn check_place(&self, global: &Global) -> Result<(), Failure> {
        if !self.is_in_file() {
            return Ok(());
        }
        let read = inputs::reader(global);
        let file = CheckpointFile::new(&self.path, &read);
        Ok(self.format.check_place(&file)?)
    }

    /// Fails unless the file exists, so that a change of a missing checkpoint creates no folders.
    pub(crate) fn require_file(&self) -> Result<(), Failure> {
        if self.is_file_there {
            Ok(())
        } else {
            Err(self.error(Error::new(ErrorKind::NotFound)))
        }
    }

    /// The checkpoint of FILE or `--store`, for a change that works on a damaged or missing file, too.
    pub(crate) fn to_change(file: Option<&Path>, global: &Global) -> Result<Target, Failure> {
        let target = Target::damaged(file, Access::Change, global)?;
        target.check_place(global)?;
        Ok(target)
    }

    /// As [`to_change`](Target::to_change), but its store may have to be created first.
    pub(crate) fn to_claim(file: Option<&Path>, global: &Global) -> Result<Target, Failure> {
        let target = Target::damaged(file, Access::Make, global)?;
        target.check_place(global)?;
        Ok(target)
    }

    /// As [`to_change`](Target::to_change), for reading only.
    pub(crate) fn to_look_at(file: Option<&Path>, global: &Global) -> Result<Target, Failure> {
        Target::damaged(file, Access::Read, global)
    }

    /// As [`to_change`](Target::to_change) or [`to_look_at`](Target::to_look_at), for an action that needs no format:
    /// for a damaged checkpoint the key is enough.
    pub(crate) fn to_forget(
        file: Option<&Path>,
        apply: bool,
        global: &Global,
    ) -> Result<Target, Failure> {
        let access = if apply { Access::Change } else { Access::Read };
        let target = Target::damaged(file, access, global).or_else(|failure| {
            let is_corrupt = failure.exit == Exit::Corrupt;
            if !is_corrupt || global.key.is_none() || global.format.is_some() {
                return Err(failure);
            }
            // A host file has no keys. Any other store lies by default where a task's store does.
            let mut as_task = global.clone();
            as_task.format = Some(Format::of::<TaskCheckpoint>().name().to_owned());
            match Named::new(file, access, global)? {
                Named::File(path) => {
                    (as_task.store, as_task.key) = (None, None);
                    Target::damaged(Some(&path), access, &as_task)
                }
                Named::Key(_) => Target::damaged(file, access, &as_task),
            }
        })?;
        if apply {
            target.check_place(global)?;
        }
        Ok(target)
    }

    /// The newest good state of a damaged file's present task in its own store: from the history of its key, from its
    /// protocol's backups, or for a host file from the history of any slot.
    pub(crate) fn kept(path: &Path, format: Option<&Format>, global: &Global) -> Option<EntryId> {
        if format.is_some_and(Format::is_host) {
            return kept_host(path, global).map(|(entry, _)| entry);
        }
        let at = |file, global: &Global| {
            let target = Target::to_look_at(file, global).ok();
            target.filter(|target| target.path == path)
        };
        // The damaged file may not be the one that --store names.
        let alone = || Global {
            store: None,
            key: None,
            ..global.clone()
        };
        let target = at(None, global).or_else(|| at(Some(path), &alone()))?;
        newest_good(target.store(), &target.key)
    }

    fn damaged(file: Option<&Path>, access: Access, global: &Global) -> Result<Target, Failure> {
        let named = Named::new(file, access, global)?;
        let error = match named.checkpoint(global) {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => error,
            read => return Target::of(named, read?, access, global),
        };
        let nameless = || {
            Failure::exiting(
                Exit::Corrupt,
                format!(
                    "{error}; its format cannot be found out from its text, its history or its place; name it with \
                     --format"
                ),
            )
        };
        let path = match named {
            Named::File(path) => path,
            Named::Key(named) => {
                let known = global.format.is_some() || named.kept_format(global).is_some();
                let target = Target::in_store(named, None, global)?;
                return match known {
                    true => Ok(Target {
                        is_file_there: true,
                        ..target
                    }),
                    false => Err(nameless()),
                };
            }
        };
        let format = match &global.format {
            Some(_) => format_of(&path, None, global)?,
            None => read::format_of_damaged(&path, &error, global)?.ok_or_else(nameless)?,
        };
        // Its readable part may be enough to find the key.
        let good = read::good_part(&path, global.max_bytes)?;
        let target = Target::in_format(path.clone(), good, format, access, global)
            .or_else(|_| Target::in_format(path, None, format, access, global))?;
        Ok(Target {
            is_file_there: true,
            ..target
        })
    }

    fn open(named: Named, access: Access, global: &Global) -> Result<Target, Failure> {
        let document = named.checkpoint(global)?;
        Target::of(named, document, access, global)
    }

    fn of(
        named: Named,
        document: Option<Document>,
        access: Access,
        global: &Global,
    ) -> Result<Target, Failure> {
        match named {
            Named::File(path) => {
                let format = format_of(&path, document.as_ref(), global)?;
                Target::in_format(path, document, format, access, global)
            }
            Named::Key(named) => Target::in_store(named, document.as_ref(), global),
        }
    }

    /// A checkpoint in a store without files. Its format is the named one, the detected one, or the one of its history.
    fn in_store(
        named: NamedKey,
        document: Option<&Document>,
        global: &Global,
    ) -> Result<Target, Failure> {
        let formats = &global.formats;
        let found = match (&global.format, document) {
            (Some(name), _) => formats.get(name).copied(),
            (None, Some(_)) => formats
                .detect(&named.file, document)
                .map(|detected| detected.format),
            (None, None) => Ok(named
                .kept_format(global)
                .unwrap_or_else(Format::of::<TaskCheckpoint>)),
        };
        let format = found.map_err(|error| named.at(error))?;
        if format.is_host() {
            return Err(needs_host_file(&named.address));
        }
        Ok(Target {
            path: named.address,
            file: named.file,
            format,
            key: named.key,
            slot: None,
            is_file_there: document.is_some(),
            store: named.store,
            files: None,
        })
    }

    fn in_format(
        path: PathBuf,
        document: Option<Document>,
        format: Format,
        access: Access,
        global: &Global,
    ) -> Result<Target, Failure> {
        let options = file_options(access, global);
        let is_file_there = document.is_some();
        if format.is_host() {
            if global.key.is_some() {
                return Err(Failure::new(format!(
                    "{}: a builder-state host file has slots, not keys; use --slot instead of {}",
                    path.display(),
                    global.source("key")
                )));
            }
            let slot = slot_of(&path, document.as_ref(), global)?;
            let store = BuilderStateStore::with_options(&path, options);
            return Ok(Target {
                key: Key::new(slot.to_string())?,
                store: Arc::new(store.clone()),
                files: Some(Files::Host(store)),
                slot: Some(slot),
                file: path.clone(),
                path,
                format,
                is_file_there,
            });
        }
        if global.slot.is_some() {
            return Err(Failure::new(format!(
                "{}: --slot is for builder-state host files, and this file has the format {}; omit --slot",
                path.display(),
                format.name()
            )));
        }
        let (store, key) = store_of(&path, document.as_ref(), Some(&format), global, options)?;
        Ok(Target {
            key,
            store: Arc::new(store.clone()),
            files: Some(Files::Own(store)),
            slot: None,
            file: path.clone(),
            path,
            format,
            is_file_there,
        })
    }

    /// The ledger of the checkpoint, for the owner that the command line names.
    pub(crate) fn ledger(&self, global: &Global) -> Ledger {
        let checkpoints = self.checkpoints::<()>(global);
        checkpoints.ledger(&self.key, global.author())
    }

    /// The checkpoints of the store, of any type.
    pub(crate) fn any_checkpoints(&self, global: &Global) -> Box<dyn AnyCheckpoints> {
        self.format.checkpoints(&self.checkpoints(global))
    }

    /// The checkpoints of the store as type `C`; `()` for [`Format::checkpoints`].
    pub(crate) fn checkpoints<C>(&self, global: &Global) -> Checkpoints<C> {
        let mut checkpoints = Checkpoints::new(self.store.clone())
            .fenced(global.fence)
            .tracking(Tracking::new(&global.root));
        if global.allow_loss {
            checkpoints = checkpoints.allowing_loss();
        }
        if global.redact {
            checkpoints = checkpoints.with_redaction(Redaction::secrets());
        }
        match global.now {
            Some(now) => checkpoints.with_clock(FixedClock(now)),
            None => checkpoints,
        }
    }

    /// The document of the checkpoint, untyped.
    pub(crate) fn load(&self) -> Result<Option<Document>, Failure> {
        let stored = self.store().load(&self.key);
        let stored = stored.map_err(|error| self.error(error))?;
        Ok(stored.map(|stored| stored.document))
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn CheckpointStore {
        &*self.store
    }

    /// The store, if each checkpoint is a separate file.
    pub(crate) fn files(&self) -> Option<&FileStore> {
        match &self.files {
            Some(Files::Own(store)) => Some(store),
            _ => None,
        }
    }

    /// Whether it is kept in a file.
    pub(crate) fn is_in_file(&self) -> bool {
        self.files.is_some()
    }

    /// The file as its format sees it.
    pub(crate) fn as_file<'a>(
        &'a self,
        read: &'a dyn Fn(&Path) -> Result<Option<Document>, Error>,
        global: &'a Global,
    ) -> CheckpointFile<'a> {
        CheckpointFile::new(&self.file, read).in_project(&global.root)
    }

    /// The context that comes from files beside the checkpoint, unless an option gives it.
    pub(crate) fn inputs_beside(
        &self,
        report: Option<&Report>,
        global: &Global,
    ) -> Result<Inputs, Failure> {
        if !self.is_in_file() {
            return Ok(Inputs::default());
        }
        let read = inputs::reader(global);
        let file = self.as_file(&read, global);
        Ok(self.format.inputs_beside(&file, report)?)
    }

    /// Archives the checkpoint and returns where: see [`FileStore::archive`]. In a store without files the archive is a
    /// pinned entry of the history of the ended task.
    pub(crate) fn archive(
        &self,
        why: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<String, Failure> {
        let archived = match &self.files {
            Some(Files::Own(store)) => store.archive(&self.key, why, now, options),
            Some(Files::Host(store)) => store.archive(&self.key, why, now, options),
            None => return self.archive_as_entry(options),
        };
        let archived = archived.map_err(|error| self.error(error))?;
        Ok(archived.display().to_string())
    }

    fn archive_as_entry(&self, options: &DeleteOptions) -> Result<String, Failure> {
        let (store, at) = (&self.store, |error| self.error(error));
        // Without a history the archive would be lost.
        store.states(&self.key).map_err(at)?;
        if !store.delete(&self.key, options).map_err(at)? {
            return Err(at(Error::new(ErrorKind::NotFound)));
        }
        if store.recovery().is_some() {
            let end = RecoverOptions::new(Recovery::Fresh).with_fence(options.fence());
            store.recover(&self.key, &end).map_err(at)?;
        }
        let mut past = store.states(&self.key).map_err(at)?.into_iter();
        let newest = past.find(|entry| !entry.is_current());
        let newest = newest.ok_or_else(|| at(Error::new(ErrorKind::NotFound)))?;
        let entry = store.pin(&self.key, &newest.id, true).map_err(at)?;
        Ok(format!("entry {entry} of the history of {}", self.key))
    }

    /// An error about this checkpoint. If the checkpoint is missing, its past decides whether the advice is only to
    /// begin.
    pub(crate) fn error(&self, error: Error) -> Failure {
        let is_missing = matches!(error.kind(), ErrorKind::NotFound);
        // The archive may belong to the task before the deleted one.
        let past = || {
            let of_this_task = self.of_the_past(true);
            of_this_task
                .or_else(|| self.archived())
                .or_else(|| self.of_the_past(false))
        };
        match is_missing.then(past).flatten() {
            Some(past) => Failure::not_found(format!("{}: {past}", self.place())),
            None if self.is_in_file() => error.with_path(&self.path).into(),
            None => {
                let mut failure = Failure::from(error.with_path(&self.path).with_key(&self.key));
                let file = self.file.display().to_string();
                failure.message = failure.message.replace(&file, &self.place());
                failure.file = Some(self.path.clone());
                failure
            }
        }
    }

    /// The message about a checkpoint that was archived, for example because another agent took over.
    fn archived(&self) -> Option<String> {
        self.is_in_file().then_some(())?;
        let name = self.path.file_name()?.to_str()?;
        let stem = name.strip_suffix(".json")?;
        let layout = self.format.layout();
        let entries = std::fs::read_dir(self.path.parent()?.join(".")).ok()?;
        let archives = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let other = entry.file_name().into_string().ok()?;
            let saved = entry.metadata().and_then(|found| found.modified()).ok();
            layout.is_archive_of(&other, stem).then_some((saved, other))
        });
        let (_, newest) = archives.max()?;
        Some(format!(
            "there is no checkpoint here now; the last one was archived as {newest}: `ckpt show` and `ckpt resume` \
             read that file, `ckpt start` begins a new task"
        ))
    }

    /// The message about a missing checkpoint whose history has states of its task, or of earlier tasks.
    pub(crate) fn of_the_past(&self, of_this_task: bool) -> Option<String> {
        let entries = self.store().states(&self.key).ok()?;
        let newest = entries.iter().find(|entry| !entry.is_current())?;
        if of_this_task && newest.tasks_since > 0 {
            return None;
        }
        // Without the slot, the command might mean another slot that has a checkpoint.
        let slot = self.slot.as_ref();
        let slot = slot.map_or_else(String::new, |slot| format!(" --slot {slot}"));
        let once = match self.slot_place() {
            Some(Err(_)) => " once its task is in the file again",
            _ => "",
        };
        Some(match newest.tasks_since {
            // An empty slot needs no recovery.
            0 if self.slot.is_some() && self.is_file_there => format!(
                "the checkpoint is gone; its history has earlier states, the newest is {0}: `ckpt restore{slot} --entry \
                 {0}` brings it back{once}, `ckpt history{slot}` lists them",
                newest.id
            ),
            0 => format!(
                "the checkpoint is gone; its history has earlier states, the newest is {}: `ckpt recover` brings \
                 it back, `ckpt history{slot}` lists them",
                newest.id
            ),
            _ => format!(
                "there is no checkpoint here now; the history has states of a task that ended, the newest is {}: \
                 `ckpt start{slot}` begins the next task{once}, `ckpt history{slot}` lists them, `ckpt restore{slot} \
                 --entry ENTRY` brings one back{once}",
                newest.id
            ),
        })
    }

    /// The pointer in the file for a pointer in the checkpoint; they differ in a host file.
    pub(crate) fn pointer_in_file(&self, pointer: &str) -> String {
        let place = self.slot_place().and_then(Result::ok);
        let base = place.map_or_else(String::new, |place| place.pointer);
        format!("{base}{pointer}")
    }

    /// The place of the slot in the host file, or the error that it has none; `None` if no host can be read.
    fn slot_place(&self) -> Option<Result<SlotPlace, Error>> {
        let slot = self.slot.as_ref()?;
        let host = read_document(&self.path, u64::MAX).ok().flatten()?;
        Some(slot.find(&host))
    }

    /// Its location, for a message.
    pub(crate) fn place(&self) -> String {
        let path = self.path.display();
        match self.is_in_file() {
            true => path.to_string(),
            false => format!("{path} ({})", self.key),
        }
    }

    /// The words with which a command line names it.
    pub(crate) fn words(&self) -> String {
        let path = self.path.display().to_string();
        match self.is_in_file() {
            true => path,
            false => format!(
                "--store {} --key {}",
                shell_word(&path),
                shell_word(self.key.as_str())
            ),
        }
    }

    /// The key, unless the file itself is the address.
    pub(crate) fn shown_key(&self) -> Option<&Key> {
        self.slot.is_none().then_some(&self.key)
    }
}

/// The store of a file and the key in it.
///
/// A file with the name that its protocol gives it is opened through its folder, so that the protocol's own backups are
/// made. Any other file is a store by itself, under the key in its content.
pub(crate) fn store_of(
    path: &Path,
    document: Option<&Document>,
    format: Option<&Format>,
    global: &Global,
    options: FileOptions,
) -> Result<(FileStore, Key), Error> {
    let layout = format.map(Format::layout).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str());
    let named = match (&global.key, &global.store) {
        (Some(key), Some(store)) if is_folder(store, global) => Some(Key::new(key.as_str())?),
        _ => None,
    };
    let found = named.or_else(|| {
        let inside = layout.key_in.zip(document);
        inside
            .and_then(|(key_in, document)| key_in(document))
            .or_else(|| match (layout.role)(name?) {
                FileRole::Current(key) => key,
                _ => None,
            })
    });
    let Some(key) = found else {
        let store = FileStore::single(path, options)?.with_layout(layout);
        let key = store.key().cloned();
        let key = key.ok_or_else(|| Error::new(ErrorKind::NotFound).with_path(path))?;
        return Ok((store, key));
    };
    // A link that the user names is followed anywhere; a link inside a store is not.
    let is_named_link =
        global.store.as_deref().is_none_or(|store| store == path) && named_link(path);
    let is_in_place =
        !is_named_link && (layout.file_name)(&key).is_ok_and(|usual| Some(usual.as_str()) == name);
    let store = if is_in_place {
        let folder = path.parent().unwrap_or(Path::new(""));
        FileStore::with_options(folder, options).with_layout(layout)
    } else {
        FileStore::single(path, options)?
            .with_layout(layout)
            .with_key(key.clone())
    };
    Ok((store, key))
}

/// The format of a file: the named one, the detected one, or for a missing file the one of its name or its history.
fn format_of(path: &Path, document: Option<&Document>, global: &Global) -> Result<Format, Error> {
    let formats = &global.formats;
    if let Some(name) = &global.format {
        return formats
            .get(name)
            .copied()
            .map_err(|error| error.with_path(path));
    }
    if document.is_some() {
        return Ok(formats.detect(path, document)?.format);
    }
    let by_name = formats.detect(path, None).ok();
    let by_past = || formats.detect_kept(path, global.max_bytes);
    let detected = by_name.or_else(by_past);
    Ok(detected.map_or_else(Format::of::<TaskCheckpoint>, |detected| detected.format))
}

/// The newest state of a host file in its history, from which a recovery continues.
pub(crate) fn kept_host(path: &Path, global: &Global) -> Option<(EntryId, Document)> {
    let options = FileOptions::read_only().with_max_bytes(global.max_bytes);
    let store = FileStore::single(path, options).ok()?;
    let entry = newest_good(&store, store.key()?)?;
    let host = store.load_revision(store.key()?, &entry).ok()?;
    Some((entry, host.document))
}

/// The slot that is meant in a host file, or, if that file is damaged or gone, in its newest kept state. A named slot
/// may be missing from the file and still have a history.
fn slot_of(path: &Path, host: Option<&Document>, global: &Global) -> Result<Slot, Error> {
    match (&global.slot, host) {
        (Some(slot), Some(host)) => match slot.find(host) {
            Err(error) if !has_states(path, slot, global) => Err(error.with_path(path)),
            _ => Ok(slot.clone()),
        },
        (Some(slot), None) => Ok(slot.clone()),
        (None, Some(host)) => only_slot(path, host),
        (None, None) => match kept_host(path, global) {
            Some((_, host)) => only_slot(path, &host),
            None => Ok(Slot::Top),
        },
    }
}

fn has_states(path: &Path, slot: &Slot, global: &Global) -> bool {
    let options = FileOptions::read_only().with_max_bytes(global.max_bytes);
    let states = Key::new(slot.to_string())
        .and_then(|slot| BuilderStateStore::with_options(path, options).states(&slot));
    states.is_ok_and(|states| !states.is_empty())
}

/// The only slot of a host file with a checkpoint, which needs no name.
pub(crate) fn only_slot(path: &Path, host: &Document) -> Result<Slot, Error> {
    Slot::only(host).map_err(|error| error.with_path(path))
}

/// The options of a file store, including who writes.
pub(crate) fn file_options(access: Access, global: &Global) -> FileOptions {
    let options = match access {
        Access::Read => FileOptions::read_only(),
        Access::Change | Access::Make => FileOptions::default(),
    };
    let mut options = options.with_max_bytes(global.max_bytes);
    if let Some(now) = global.now {
        options = options.with_clock(FixedClock(now));
    }
    if let Some(timeout) = global.lock_timeout {
        options = options.with_lock_timeout(timeout);
    }
    match (&global.agent, &global.session) {
        (Some(agent), Some(session)) => options.with_holder(&format!("{agent}, session {session}")),
        (Some(agent), None) => options.with_holder(agent),
        (None, Some(session)) => options.with_holder(&format!("session {session}")),
        (None, None) => options,
    }
}
