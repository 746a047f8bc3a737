//! Reads the checkpoints of a folder and its sub-folders, one file at a time.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::inspect::Found;
use super::kept::{FileVersion, InRepository, Version};
use super::parallel::in_order;
use super::scan::Scan;
use super::{Place, Row, RowState, SkipReason, bounded};
use crate::checkpoint::{
    CheckpointFile, Error, ErrorKind, FileRole, Inputs, Key, Layout, Timestamp,
};
use crate::formats::builder_state::{Slot, SlotPlace};
use crate::fsio::{self, FileStamp};
use crate::json::{CorruptCode, Document};
use crate::registry::Format;
use crate::staleness::Checkout;
use crate::store::{
    BuilderStateStore, CLAIMS_FOLDER, CheckpointStore, DROPPED_LOG_FOLDER, FileOptions, FileStore,
    LEDGER_FOLDER, TaskContext, ledger_name, ledger_placeholder,
};

/// What a scan knows of a folder before it reads the files.
#[derive(Default)]
pub(super) struct Surroundings {
    /// What the rules of each format read from other files in the folder.
    inputs: Mutex<HashMap<&'static str, Inputs>>,
    /// Whether a store keeps claims or history here.
    pub(super) has_store: bool,
    /// The names of the claim files; `None` if they cannot be listed, so that each must be looked up.
    claims: Option<BTreeSet<OsString>>,
    /// The names of the ledgers, or `None` likewise.
    ledgers: Option<BTreeSet<OsString>>,
    /// The names of the dropped logs and of the placeholders of ledgers, or `None` likewise.
    placeholders: Option<BTreeSet<OsString>>,
    /// The position of the folder in a repository.
    checkout: Option<Arc<InRepository>>,
    /// Whether the caller named a file here, and so states that it is a checkpoint.
    is_named: bool,
}

impl Surroundings {
    /// The path of the claim file of a checkpoint, if there may be one.
    pub(super) fn claims_of(&self, path: &Path) -> Option<PathBuf> {
        let name = |file: &OsStr| {
            let mut name = file.to_owned();
            name.push(".json");
            name
        };
        beside(path, CLAIMS_FOLDER, name, self.claims.as_ref())
    }

    /// The path of the ledger of a file, or of a slot of a host file, if there may be one.
    pub(super) fn ledger_of(&self, path: &Path, slot: Option<&str>) -> Option<PathBuf> {
        let name = |file: &OsStr| ledger_name(file, slot);
        beside(path, LEDGER_FOLDER, name, self.ledgers.as_ref())
    }

    /// Whether there is a ledger, here or where git copied the checkpoint from.
    fn has_ledger(&self, path: &Path, slot: Option<&str>) -> bool {
        let has_placeholder = |file: &OsStr| {
            let name = ledger_placeholder(file, slot);
            self.placeholders
                .as_ref()
                .is_none_or(|all| all.contains(&name))
        };
        self.ledger_of(path, slot).is_some() || path.file_name().is_some_and(has_placeholder)
    }
}

/// The path of a store's file beside a checkpoint, if it is among the listed ones.
fn beside(
    path: &Path,
    folder: &str,
    name: impl FnOnce(&OsStr) -> OsString,
    there: Option<&BTreeSet<OsString>>,
) -> Option<PathBuf> {
    if there.is_some_and(BTreeSet::is_empty) {
        return None;
    }
    let name = name(path.file_name()?);
    let is_there = there.is_none_or(|all| all.contains(&name));
    let own = || fsio::parent_of(path).join(fsio::OWN_FOLDER);
    is_there.then(|| own().join(folder).join(name))
}

/// What a scan found in a folder so far.
#[derive(Default)]
pub(super) struct Seen {
    /// Whether there is a checkpoint. Then an unreadable file may be one as well.
    has_checkpoints: bool,
    /// The files that could not be read.
    damaged: Vec<Damaged>,
}

/// How many files of a folder form one job for a thread.
const MOST_FILES: usize = 64;

/// One step of the walk through a folder and its sub-folders.
enum Step {
    Files(Arc<Surroundings>, Vec<PathBuf>),
    /// All files of the folder were read.
    End(Arc<Surroundings>, Option<PathBuf>),
    Skip(PathBuf, SkipReason),
}

/// Walks through a folder: first its files, then its sub-folders one by one.
struct Walk<'w, 'o> {
    scan: &'w Scan<'o>,
    visited: &'w mut HashSet<PathBuf>,
    steps: VecDeque<Step>,
    /// What is still to be entered, in reverse order, with its depth.
    below: Vec<(PathBuf, FileType, usize)>,
}

impl Iterator for Walk<'_, '_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            let (path, kind, depth) = self.below.pop()?;
            if kind.is_dir() {
                self.sub_folder(path, depth);
            } else if kind.is_symlink() && path.is_dir() {
                return Some(Step::Skip(path, SkipReason::LinkedFolder));
            } else if kind.is_symlink() && path.ends_with(fsio::OWN_FOLDER) {
                let why = "the target of this symbolic link does not exist, so no claim and no history can be read \
                           here";
                return Some(Step::Skip(path, SkipReason::Unreadable(why.to_owned())));
            }
        }
    }
}

impl Walk<'_, '_> {
    fn folder(&mut self, folder: &Path, depth: usize) {
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        if !self.visited.insert(real) {
            return;
        }
        let entries = match fsio::list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                // Only the reason of the system: the error itself names the folder again and adds advice.
                let source = std::error::Error::source(&error);
                let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
                let why = SkipReason::Unreadable(reason);
                return self.steps.push_back(Step::Skip(folder.to_owned(), why));
            }
        };
        let mut entries: Vec<(OsString, FileType)> = entries
            .into_iter()
            .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
            .filter(|(name, kind)| !kind.is_file() || is_json(name))
            .collect();
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let around = Arc::new(self.scan.surroundings(folder));
        let mut files = Vec::new();
        let give = |files: &mut Vec<PathBuf>, steps: &mut VecDeque<Step>| {
            if !files.is_empty() {
                steps.push_back(Step::Files(around.clone(), std::mem::take(files)));
            }
        };
        for (name, kind) in &entries {
            if kind.is_file() {
                files.push(folder.join(name));
                if files.len() == MOST_FILES {
                    give(&mut files, &mut self.steps);
                }
            } else if !kind.is_dir() && is_json(name) {
                let is_link = kind.is_symlink();
                let why = if is_link {
                    SkipReason::Link
                } else {
                    SkipReason::NotAFile
                };
                give(&mut files, &mut self.steps);
                self.steps.push_back(Step::Skip(folder.join(name), why));
            }
        }
        give(&mut files, &mut self.steps);
        let end = Step::End(around, Some(folder.to_owned()));
        self.steps.push_back(end);
        let below = entries
            .into_iter()
            .rev()
            .filter(|(_, kind)| !kind.is_file());
        let below = below.map(|(name, kind)| (folder.join(name), kind, depth));
        self.below.extend(below);
    }

    fn sub_folder(&mut self, path: PathBuf, depth: usize) {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if name == fsio::OWN_FOLDER {
            // The store's own folder holds locks, history and logs, no checkpoints.
        } else if IGNORED_FOLDERS.contains(&name) {
            self.steps.push_back(Step::Skip(path, SkipReason::Ignored));
        } else if depth == self.scan.options.depth {
            self.steps.push_back(Step::Skip(path, SkipReason::TooDeep));
        } else {
            self.folder(&path, depth + 1);
        }
    }
}

impl Scan<'_> {
    /// Reads a folder or a file named by the caller.
    pub(super) fn path(
        &mut self,
        path: &Path,
        visited: &mut HashSet<PathBuf>,
        on_row: &mut dyn FnMut(usize),
    ) {
        let start = self.part();
        let mut walk = Walk {
            scan: &start,
            visited,
            steps: VecDeque::new(),
            below: Vec::new(),
        };
        match std::fs::metadata(path) {
            Err(error) => {
                return self.skip(path.display(), SkipReason::Unreadable(error.to_string()));
            }
            Ok(found) if found.is_dir() => walk.folder(path, 0),
            Ok(_) => {
                let mut around = start.surroundings(fsio::parent_of(path));
                // A file named by the caller is taken for a checkpoint.
                around.is_named = true;
                let around = Arc::new(around);
                let file = Step::Files(around.clone(), vec![path.to_owned()]);
                walk.steps.extend([file, Step::End(around, None)]);
            }
        }
        // Files are read on several threads; everything else is done here, in order.
        let read = |step: Step| {
            let (mut part, mut seen) = (start.part(), Seen::default());
            if let Step::Files(around, files) = &step {
                for file in files {
                    part.file(file, around, &mut seen);
                }
            }
            (part, seen, step)
        };
        let mut of_folder = Seen::default();
        in_order(self.options.threads(), walk, read, |(part, seen, step)| {
            let rows = self.rows.len();
            self.append(part);
            match step {
                Step::Files(..) => {
                    of_folder.has_checkpoints |= seen.has_checkpoints;
                    of_folder.damaged.extend(seen.damaged);
                }
                Step::Skip(path, why) => self.skip(path.display(), why),
                Step::End(around, folder) => {
                    if let (Some(folder), Some(claims)) = (folder, &around.claims) {
                        self.claims_alone(&folder, claims);
                    }
                    self.read_damaged_again(&around, std::mem::take(&mut of_folder));
                }
            }
            (rows..self.rows.len()).for_each(|row| on_row(row + 1));
        });
    }

    fn surroundings(&self, folder: &Path) -> Surroundings {
        let own = folder.join(fsio::OWN_FOLDER);
        let has_store = own.is_dir();
        let there = |folder: &str| {
            let names = match has_store {
                true => fsio::names(&own.join(folder)),
                false => Ok(Vec::new()),
            };
            names.ok().map(BTreeSet::from_iter)
        };
        Surroundings {
            inputs: Mutex::default(),
            has_store,
            claims: there(CLAIMS_FOLDER),
            ledgers: there(LEDGER_FOLDER),
            placeholders: there(DROPPED_LOG_FOLDER),
            checkout: in_repository(folder).map(Arc::new),
            is_named: false,
        }
    }

    /// What the rules of a format read from other files in the folder.
    pub(super) fn inputs(&self, around: &Surroundings, format: &Format, path: &Path) -> Inputs {
        let mut known = around.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = || {
            let read = |path: &Path| Ok(self.read(path)?.map(|(document, _)| document));
            let file = CheckpointFile::new(path, &read).leniently();
            format.inputs_beside(&file, None).unwrap_or_default()
        };
        known.entry(format.name()).or_insert_with(beside).clone()
    }

    fn read(&self, path: &Path) -> Result<Option<(Document, FileStamp)>, Error> {
        let Some(contents) = fsio::read_limited(path, self.options.max_bytes)? else {
            return Ok(None);
        };
        Ok(Some((Document::parse(&contents.bytes)?, contents.stamp)))
    }

    /// Reads one file: it becomes a row, a row for each slot, or is skipped.
    fn file(&mut self, path: &Path, around: &Surroundings, seen: &mut Seen) {
        if let Some(row) = self.file_again(path, around) {
            seen.has_checkpoints = true;
            return self.complete(row);
        }
        let at = SystemTime::now();
        let record = around.claims_of(path);
        let claim = record.is_none().then_some(None);
        let stamp_of = |path: PathBuf| Some(FileStamp::of(&fsio::look(&path).ok().flatten()?));
        let claims = record.and_then(stamp_of);
        let ledger = around.ledger_of(path, None).and_then(stamp_of);
        let (document, stamp) = match self.read(path) {
            Ok(Some(read)) => read,
            // Removed since the folder was listed.
            Ok(None) => return,
            Err(error) => {
                let path = path.to_path_buf();
                return seen.damaged.push(Damaged { path, error });
            }
        };
        let format = match self.format_of(path, Some(&document)) {
            Ok(format) => format,
            Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat { .. }) => {
                return self.skip(path.display(), SkipReason::Foreign);
            }
            // Two formats fit equally well: it is a checkpoint of one of them.
            Err(error) => return self.push_unreadable(Place::file(path), None, &error),
        };
        seen.has_checkpoints = true;
        if format.is_host() {
            return self.host(path, &document, &format, around);
        }
        let layout = format.layout();
        let role = role(path, &document, &layout);
        if role == Some(FileRole::Archive) {
            return self.skip(path.display(), SkipReason::Archive);
        }
        let mut found = Found::in_file(path, &document, format, layout, role);
        found.claim = claim;
        found.has_ledger = around.has_ledger(path, None);
        found.checkout.clone_from(&around.checkout);
        let version = FileVersion {
            file: stamp,
            claims,
            ledger,
            has_store: around.has_store,
        };
        found.version = Some(version)
            .filter(|version| !version.is_racy(at))
            .map(Version::File);
        let key = found.id.clone().or_else(|| found.key.clone());
        let key = key.or_else(|| Key::new("checkpoint").ok());
        let store = key.filter(|_| around.has_store).map(|key| {
            let options = self.files.clone();
            let store = FileStore::of_file(path, key.clone(), layout, options);
            (store, key)
        });
        found.store = store
            .as_ref()
            .map(|(store, key)| (store as &dyn CheckpointStore, key.clone()));
        let inputs = self.inputs(around, &format, path);
        self.checkpoint(found, &inputs);
    }

    /// Reads a host file: each checkpoint in it becomes a row.
    fn host(&mut self, path: &Path, host: &Document, format: &Format, around: &Surroundings) {
        let heartbeat = host.get("/lastHeartbeat").and_then(|node| node.as_str());
        let heartbeat = heartbeat.map(Timestamp::parse);
        let store = BuilderStateStore::with_options(
            path,
            FileOptions::read_only().with_max_bytes(self.options.max_bytes),
        );
        let slots = Slot::places(host).into_iter();
        let (slots, empty): (Vec<SlotPlace>, Vec<_>) = slots.partition(|slot| slot.occupied);
        let rows = self.rows.len();
        for slot in empty.iter().filter(|_| around.claims_of(path).is_some()) {
            let place = Place::file(path).with_slot(bounded::text(&slot.slot.to_string()));
            if let Ok(key) = slot.key() {
                let (key, task) = ((&store as &dyn CheckpointStore, &key), slot.task.as_deref());
                self.claim_of_key(place, key, task, Some(format), &|_| false);
            }
        }
        if slots.is_empty() && self.rows.len() == rows {
            self.skip(path.display(), SkipReason::NoCheckpoint);
        }
        for slot in slots {
            let name = slot.slot.to_string();
            let place = Place::file(path).with_slot(bounded::text(&name));
            let Some(document) = host.extract(&slot.pointer) else {
                let reason =
                    "the place of the checkpoint has a value that is not an object".to_owned();
                let mut row = Row::new(place, RowState::Unreadable { reason });
                row.set_format(Some(format));
                row.task = bounded::said(slot.task.as_deref());
                self.push(row);
                continue;
            };
            let mut context = TaskContext {
                task: slot.task.clone(),
                heartbeat: heartbeat.clone(),
                ..TaskContext::default()
            };
            let key = slot.key().ok().filter(|_| around.has_store);
            // The store knows for which task the checkpoint in the active slot was made.
            let is_of_active = matches!(slot.slot, Slot::Active | Slot::FormerActive);
            let stored = key.as_ref().filter(|_| is_of_active);
            let stored = stored.and_then(|key| store.load(key).ok()?);
            if let Some(stored) = stored.filter(|it| it.context.place_is_for.is_some()) {
                context.task = stored.context.task;
                context.place_is_for = stored.context.place_is_for;
            }
            let found = Found {
                place,
                document: &document,
                format: *format,
                key: None,
                id: None,
                names: None,
                context,
                checkout: around.checkout.clone(),
                version: None,
                claim: None,
                has_ledger: around.has_ledger(path, Some(&name)),
                store: key.map(|key| (&store as &dyn CheckpointStore, key)),
            };
            self.checkpoint(found, &Inputs::default());
        }
    }
}

/// The position of a folder in a repository.
fn in_repository(folder: &Path) -> Option<InRepository> {
    let checkout = Checkout::of(folder)?;
    let folder = std::fs::canonicalize(folder).ok()?;
    Some(InRepository {
        folder: folder.strip_prefix(&checkout.top).ok()?.to_owned(),
        repository: checkout.common,
    })
}

/// Folders of dependencies, build output and version control.
const IGNORED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "bower_components",
    "vendor",
    "target",
    "dist",
    "build",
    "out",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".gradle",
    ".next",
    ".cache",
    ".terraform",
];

fn is_json(name: &OsStr) -> bool {
    // `Path::extension` does not work: the file of an empty key is called `.json`.
    name.as_encoded_bytes().ends_with(b".json")
}

/// The role of a file by its name. A file named after its own id is no archive, even if the id reads like one.
fn role(path: &Path, document: &Document, layout: &Layout) -> Option<FileRole> {
    let name = path.file_name()?.to_str()?;
    let role = (layout.role)(name);
    if role == FileRole::Archive
        && let Some(id) = layout.key_in.and_then(|key_in| key_in(document))
        && (Layout::default().file_name)(&id).is_ok_and(|own| own == name)
    {
        return Some(FileRole::Current(None));
    }
    Some(role)
}

// ---------------------------------------------------------------------------------------------------------------------
// Files that could not be read

/// A file that could not be read.
struct Damaged {
    path: PathBuf,
    error: Error,
}

impl Damaged {
    fn is_corrupt(&self) -> bool {
        matches!(self.error.kind(), ErrorKind::Corrupt(_))
    }

    fn is_being_written(&self) -> bool {
        let found = fsio::look(&self.path).ok().flatten();
        let written = found.and_then(|found| found.modified().ok());
        self.is_corrupt() && !fsio::is_at_rest(written)
    }

    /// Whether a crash can leave such a file. A file that only breaks a rule of JSON may be a settings file with
    /// comments, or a list.
    fn looks_torn(&self) -> bool {
        let torn = [
            CorruptCode::Empty,
            CorruptCode::NulBytes,
            CorruptCode::Truncated,
        ];
        match self.error.kind() {
            ErrorKind::Corrupt(corrupt) => torn.contains(&corrupt.code),
            ErrorKind::TooLarge { .. } => false,
            _ => true,
        }
    }
}

impl Scan<'_> {
    /// Reads the corrupt files of a folder again, and repeats this for files that are being written: some programs
    /// truncate a file and fill it in place.
    fn read_damaged_again(&mut self, around: &Surroundings, mut seen: Seen) {
        let mut may_be_whole: fn(&Damaged) -> bool = Damaged::is_corrupt;
        for _ in 0..fsio::LOOKS {
            if !seen.damaged.iter().any(may_be_whole) {
                break;
            }
            // One pause for all files of the folder.
            std::thread::sleep(fsio::SECOND_LOOK);
            for damaged in std::mem::take(&mut seen.damaged) {
                if may_be_whole(&damaged) {
                    self.file(&damaged.path, around, &mut seen);
                } else {
                    seen.damaged.push(damaged);
                }
            }
            may_be_whole = Damaged::is_being_written;
        }
        let has_checkpoints = seen.has_checkpoints || around.has_store || around.is_named;
        for damaged in &seen.damaged {
            self.damaged(damaged, has_checkpoints);
        }
    }

    /// Adds a row for a damaged file if there is evidence that it is a checkpoint: the caller named its format, its
    /// path or the rest of its text fits a format, other checkpoints lie beside it, or a crash can leave such a file.
    fn damaged(&mut self, damaged: &Damaged, has_checkpoints: bool) {
        let path = &damaged.path;
        // An error means that it is no checkpoint, whatever lies beside it.
        let Ok(format) = self.format_of_damaged(damaged) else {
            return self.skip(path.display(), SkipReason::NoDocument);
        };
        match &format {
            Some(format) if is_archive(path, format) => {
                return self.skip(path.display(), SkipReason::Archive);
            }
            None if !has_checkpoints && !damaged.looks_torn() => {
                return self.skip(path.display(), SkipReason::NoDocument);
            }
            _ => {}
        }
        self.push_unreadable(Place::file(path), format.as_ref(), &damaged.error);
    }

    fn format_of_damaged(&self, damaged: &Damaged) -> Result<Option<Format>, Error> {
        let path = &damaged.path;
        let ErrorKind::Corrupt(cause) = damaged.error.kind() else {
            return Ok(self.format_of(path, None).ok());
        };
        let formats = &self.options.formats;
        if let Some(name) = &self.options.format {
            return Ok(formats.get(name).ok().copied());
        }
        let Ok(Some(contents)) = fsio::read_limited(path, self.options.max_bytes) else {
            return Ok(None);
        };
        let found = match formats.detect_damaged(path, &contents.bytes, cause) {
            Ok(Some(found)) => Some(found),
            other => match formats.detect_kept(path, self.options.max_bytes) {
                Some(found) => Some(found),
                None => other?,
            },
        };
        Ok(found.map(|found| found.format))
    }
}

fn is_archive(path: &Path, format: &Format) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| (format.layout().role)(name) == FileRole::Archive)
}
