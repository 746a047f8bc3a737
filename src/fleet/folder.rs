//! The checkpoints of a folder and its sub-folders, one file at a time.

use std::collections::HashMap;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::compare::CheckoutFile;
use super::inspect::Found;
use super::scan::Scan;
use super::{Place, Row, RowState, SkipReason, bounded};
use crate::checkpoint::{
    CheckpointFile, Error, ErrorKind, FileRole, Inputs, Key, Layout, Timestamp,
};
use crate::formats::builder_state::{Slot, SlotPlace};
use crate::fsio;
use crate::json::{CorruptCode, Document};
use crate::registry::Format;
use crate::staleness::Checkout;
use crate::store::{BuilderStateStore, CheckpointStore, FileOptions, FileStore, TaskContext};

/// What is known of a folder while its files are read.
#[derive(Default)]
struct Surroundings {
    /// What the rules of each format take from other files that lie here.
    inputs: HashMap<&'static str, Inputs>,
    /// Whether a store keeps claims or history here.
    has_store: bool,
    /// The checkout of a repository that the folder is in.
    checkout: Option<Checkout>,
    /// Whether a checkpoint lies here: then a file that cannot be read may be one as well.
    has_checkpoints: bool,
    /// The files that could not be read.
    damaged: Vec<Damaged>,
}

impl Surroundings {
    /// The same file in every checkout of the repository.
    fn copy_of(&self, path: &Path, slot: &str) -> Option<CheckoutFile> {
        let checkout = self.checkout.as_ref()?;
        let folder = std::fs::canonicalize(fsio::parent_of(path)).ok()?;
        let folder = folder.strip_prefix(&checkout.top).ok()?;
        let file = folder.join(path.file_name()?);
        Some((checkout.common.clone(), file, slot.to_owned()))
    }
}

impl Scan<'_> {
    /// Reads a folder or a file that the caller named.
    pub(super) fn path(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Err(error) => self.skip(path.display(), SkipReason::Unreadable(error.to_string())),
            Ok(found) if found.is_dir() => self.folder(path, 0),
            Ok(_) => {
                let mut around = self.surroundings(fsio::parent_of(path));
                // A caller that names a file states that it is a checkpoint.
                around.has_checkpoints = true;
                self.file(path, &mut around);
                self.read_damaged_again(around);
            }
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        if !self.visited.insert(real) {
            return;
        }
        let entries = match fsio::list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                // Only the reason of the system: the error itself names the folder once more and adds an advice.
                let source = std::error::Error::source(&error);
                let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
                return self.skip(folder.display(), SkipReason::Unreadable(reason));
            }
        };
        let mut entries: Vec<(PathBuf, FileType)> = entries
            .into_iter()
            .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
            .filter(|(path, kind)| !kind.is_file() || is_json(path))
            .collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        let mut around = self.surroundings(folder);
        for (path, kind) in &entries {
            if kind.is_file() {
                self.file(path, &mut around);
            } else if !kind.is_dir() && is_json(path) {
                let is_link = kind.is_symlink();
                let why = if is_link {
                    SkipReason::Link
                } else {
                    SkipReason::NotAFile
                };
                self.skip(path.display(), why);
            }
        }
        if around.has_store {
            self.claims_alone(folder);
        }
        self.read_damaged_again(around);
        for (path, kind) in entries {
            if kind.is_dir() {
                self.sub_folder(&path, depth);
            } else if kind.is_symlink() && path.is_dir() {
                self.skip(path.display(), SkipReason::LinkedFolder);
            }
        }
    }

    fn sub_folder(&mut self, path: &Path, depth: usize) {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if name == fsio::OWN_FOLDER {
            // Locks, history and records of the store: no checkpoints of their own.
        } else if IGNORED_FOLDERS.contains(&name) {
            self.skip(path.display(), SkipReason::Ignored);
        } else if depth == self.options.depth {
            self.skip(path.display(), SkipReason::TooDeep);
        } else {
            self.folder(path, depth + 1);
        }
    }

    fn surroundings(&self, folder: &Path) -> Surroundings {
        let has_store = folder.join(fsio::OWN_FOLDER).is_dir();
        Surroundings {
            inputs: HashMap::new(),
            has_store,
            checkout: Checkout::of(folder),
            has_checkpoints: has_store,
            damaged: Vec::new(),
        }
    }

    fn read(&self, path: &Path) -> Result<Option<Document>, Error> {
        let Some(contents) = fsio::read_limited(path, self.options.max_bytes)? else {
            return Ok(None);
        };
        Ok(Some(Document::parse(&contents.bytes)?))
    }

    /// One file: a row, rows of its slots, or skipped.
    fn file(&mut self, path: &Path, around: &mut Surroundings) {
        let document = match self.read(path) {
            Ok(Some(document)) => document,
            // Removed since the folder was listed.
            Ok(None) => return,
            Err(error) => {
                let path = path.to_path_buf();
                return around.damaged.push(Damaged { path, error });
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
        around.has_checkpoints = true;
        if format.is_host() {
            return self.host(path, &document, &format, around);
        }
        let layout = format.layout();
        let role = role(path, &document, &layout);
        if role == Some(FileRole::Archive) {
            return self.skip(path.display(), SkipReason::Archive);
        }
        let mut found = Found::in_file(path, &document, format, layout, role);
        found.copy = around.copy_of(path, "");
        let key = found.id.clone().or_else(|| found.key.clone());
        let key = key.or_else(|| Key::new("checkpoint").ok());
        let store = key.filter(|_| around.has_store).and_then(|key| {
            let store = FileStore::single(path, FileOptions::read_only()).ok()?;
            Some((store.with_layout(layout).with_key(key.clone()), key))
        });
        found.store = store
            .as_ref()
            .map(|(store, key)| (store as &dyn CheckpointStore, key.clone()));
        let beside = || {
            let read = |path: &Path| self.read(path);
            let file = CheckpointFile::new(path, &read).leniently();
            format.inputs_beside(&file, None).unwrap_or_default()
        };
        let inputs = around.inputs.entry(format.name()).or_insert_with(beside);
        self.checkpoint(found, inputs);
    }

    /// A host file: a row for each checkpoint in it.
    fn host(&mut self, path: &Path, host: &Document, format: &Format, around: &Surroundings) {
        let heartbeat = host.get("/lastHeartbeat").and_then(|node| node.as_str());
        let heartbeat = heartbeat.map(Timestamp::parse);
        let store = BuilderStateStore::with_options(path, FileOptions::read_only());
        let slots = Slot::places(host).into_iter();
        let slots: Vec<SlotPlace> = slots.filter(|slot| slot.occupied).collect();
        if slots.is_empty() {
            self.skip(path.display(), SkipReason::NoCheckpoint);
        }
        for slot in slots {
            let name = slot.slot.to_string();
            let place = Place::file(path).with_slot(bounded::text(&name));
            let Some(document) = host.extract(&slot.pointer) else {
                let reason = "no checkpoint object is where one belongs".to_owned();
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
            let stored = key.as_ref().and_then(|key| store.load(key).ok()?);
            // The store knows for which task the checkpoint was made.
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
                copy: around.copy_of(path, &name),
                store: key.map(|key| (&store as &dyn CheckpointStore, key)),
            };
            self.checkpoint(found, &Inputs::default());
        }
    }
}

/// Folders of dependencies, of build output, and of version control.
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

fn is_json(path: &Path) -> bool {
    // Not by its extension: the file of an empty key is called `.json`.
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().ends_with(b".json")
}

/// What a file is by its name. A file that has its own id as its name is no archive, although the id reads like one.
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

/// How long after a corrupt reading a file is read again.
const PAUSE: Duration = Duration::from_millis(20);

/// A file that was written longer ago is not being written.
const AT_REST: Duration = Duration::from_millis(250);

/// How often files are read that are corrupt and are being written.
const MOST_READINGS: usize = 25;

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
        let age = written.and_then(|written| written.elapsed().ok());
        self.is_corrupt() && age.is_some_and(|age| age < AT_REST)
    }

    /// Whether a crash leaves such a file. A file that only breaks a rule of JSON may be a settings file with comments,
    /// or a list.
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
    /// Reads the corrupt files of a folder once more, and those that are being written again and again. Some programs
    /// truncate a file and fill it in place.
    fn read_damaged_again(&mut self, mut around: Surroundings) {
        let mut may_be_whole: fn(&Damaged) -> bool = Damaged::is_corrupt;
        for _ in 0..MOST_READINGS {
            if !around.damaged.iter().any(may_be_whole) {
                break;
            }
            // One pause for all files of the folder.
            std::thread::sleep(PAUSE);
            for damaged in std::mem::take(&mut around.damaged) {
                if may_be_whole(&damaged) {
                    self.file(&damaged.path, &mut around);
                } else {
                    around.damaged.push(damaged);
                }
            }
            may_be_whole = Damaged::is_being_written;
        }
        for damaged in &around.damaged {
            self.damaged(damaged, around.has_checkpoints);
        }
    }

    /// A damaged file is a row where there is evidence that it is a checkpoint: the caller named its format, its path
    /// or the rest of its text fits a format, there are checkpoints beside it, or a crash leaves such a file.
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
