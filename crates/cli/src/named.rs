//! What a command line names: a file, or a key in a store without files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::formats::{Format, Layout};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, EntryId, FileOptions, FileStore, HistoryEntry};
use agent_checkpoint::{CheckpointStoreExt, Error, ErrorKind, Key, quoted};

use crate::backend::{self, Access, is_address, shown};
use crate::failure::Failure;
use crate::global::Global;
use crate::read;

/// What FILE or `--store` names.
pub(crate) enum Named {
    File(PathBuf),
    Key(NamedKey),
}

/// A key in a store without files.
pub(crate) struct NamedKey {
    /// The address of the store, in the form that messages show.
    pub(crate) address: PathBuf,
    /// A path with this name that does not exist.
    pub(crate) file: PathBuf,
    pub(crate) key: Key,
    pub(crate) store: Arc<dyn CheckpointStore>,
}

impl Named {
    /// Finds what FILE or `--store` names, for this kind of access.
    pub(crate) fn new(
        file: Option<&Path>,
        access: Access,
        global: &Global,
    ) -> Result<Named, Failure> {
        match (file, &global.store) {
            (None, Some(store)) if is_address(store) => {
                NamedKey::new(store, access, global).map(Named::Key)
            }
            _ => file_or_store(file, global).map(Named::File),
        }
    }

    /// The file or the address.
    pub(crate) fn shown(&self) -> &Path {
        match self {
            Named::File(path) => path,
            Named::Key(named) => &named.address,
        }
    }

    /// The file by whose name and place a format may be recognised.
    pub(crate) fn file(&self) -> &Path {
        match self {
            Named::File(path) => path,
            Named::Key(named) => &named.file,
        }
    }

    /// Its document; see [`read::checkpoint`].
    pub(crate) fn checkpoint(&self, global: &Global) -> Result<Option<Document>, Error> {
        match self {
            Named::File(path) => read::checkpoint(path, global),
            Named::Key(named) => named.checkpoint(),
        }
    }

    /// The format of a damaged document, derived from its error.
    pub(crate) fn format_of_damaged(&self, error: &Error, global: &Global) -> Option<Format> {
        match self {
            Named::File(path) => read::format_of_damaged(path, error, global).ok()?,
            Named::Key(named) => named.kept_format(global),
        }
    }

    /// The failure for a missing checkpoint.
    pub(crate) fn missing(&self) -> Failure {
        match self {
            Named::File(path) => read::no_such_file(path),
            Named::Key(named) => named.at(Error::new(ErrorKind::NotFound)).into(),
        }
    }
}

impl NamedKey {
    fn new(store: &Path, access: Access, global: &Global) -> Result<NamedKey, Failure> {
        let address = shown(store);
        if let Some(slot) = &global.slot {
            return Err(Failure::new(format!(
                "{}: --slot {slot} is for host files, but this store has keys; use --key instead",
                address.display()
            )));
        }
        let Some(key) = &global.key else {
            return Err(Failure::new(format!(
                "{}: which checkpoint of this store? Name it with --key",
                address.display()
            )));
        };
        let key = Key::new(key.as_str())?;
        Ok(NamedKey {
            file: address.join((Layout::default().file_name)(&key)?),
            store: backend::open(store, access, global)?,
            address,
            key,
        })
    }

    /// An error about this checkpoint.
    pub(crate) fn at(&self, error: Error) -> Error {
        error.with_path(&self.address).with_key(&self.key)
    }

    fn checkpoint(&self) -> Result<Option<Document>, Error> {
        let stored = self.store.load(&self.key).map_err(|error| self.at(error))?;
        Ok(stored.map(|stored| stored.document))
    }

    /// The format of the newest earlier state that can be read.
    pub(crate) fn kept_format(&self, global: &Global) -> Option<Format> {
        let entry = newest_good(&*self.store, &self.key)?;
        let kept = self.store.load_revision(&self.key, &entry).ok()?;
        let found = global.formats.detect(&self.file, Some(&kept.document));
        Some(found.ok()?.format)
    }
}

/// The one file that FILE or `--store` names.
fn file_or_store(file: Option<&Path>, global: &Global) -> Result<PathBuf, Failure> {
    match (file, &global.store) {
        (Some(_), Some(_)) => Err(Failure::new("FILE and --store are both given; omit one")),
        (Some(file), None) => match &global.key {
            Some(_) => Err(Failure::new(
                "--key goes with a folder; name it with --store instead of FILE",
            )),
            None if file.is_dir() || is_address(file) => {
                let what = match is_address(file) {
                    // A missing store has no checkpoints to name.
                    true => backend::open(file, Access::Read, global).map(|_| "store")?,
                    false => "folder",
                };
                let place = shown(file).display().to_string();
                let word = shell_word(&place);
                Err(Failure::new(format!(
                    "{place}: is a {what}; name one of its checkpoints with --store {word} --key KEY, or see them all \
                     with `ckpt status {word}`"
                )))
            }
            None if is_like_a_key(file) => {
                let name = file.display();
                Err(Failure::not_found(format!(
                    "{name}: there is no such file; if it is a key, name it with --key {} and its folder with --store",
                    shell_word(&name.to_string())
                )))
            }
            None => Ok(file.to_path_buf()),
        },
        (None, Some(store)) => store_file(store, global),
        (None, None) => Err(Failure::new(
            "which checkpoint? Name its FILE, or its folder and key, such as --store checkpoints --key US-003 (or \
             CKPT_STORE and CKPT_KEY)",
        )),
    }
}

/// Whether this is a single word that names no file, neither a present nor a deleted one.
fn is_like_a_key(file: &Path) -> bool {
    let is_word = file.components().count() == 1 && file.extension().is_none();
    is_word && !file.exists() && !Path::new(".agent-checkpoint").exists()
}

/// Everything that the arguments or `--store` name, for reading.
pub(crate) fn files_or_store(files: &[PathBuf], global: &Global) -> Result<Vec<Named>, Failure> {
    match files {
        [] => Ok(vec![Named::new(None, Access::Read, global)?]),
        [first, ..] => {
            file_or_store(Some(first), global)?;
            Ok(files.iter().cloned().map(Named::File).collect())
        }
    }
}

/// A word, quoted for a shell if needed.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The file of a store: the store itself, or the file of `--key` in a folder.
fn store_file(store: &Path, global: &Global) -> Result<PathBuf, Failure> {
    if is_folder(store, global) {
        if is_host_named(global) {
            return Err(needs_host_file(store));
        }
        let Some(key) = &global.key else {
            return Err(Failure::new(format!(
                "{0}: which checkpoint of this folder? Name it with --key, such as --key US-003; `ckpt list {1}` lists those \
                 that are there",
                store.display(),
                shell_word(&store.display().to_string())
            )));
        };
        return file_in(store, &Key::new(key.as_str())?, global);
    }
    if let Some(key) = &global.key {
        let single = FileStore::single(store, FileOptions::read_only())?;
        if single.key().map(Key::as_str) != Some(key) {
            return Err(Failure::new(format!(
                "{}: is one file, not a folder with a key {key}; omit {}",
                store.display(),
                global.source("key"),
                key = quoted(key)
            )));
        }
    }
    Ok(store.to_path_buf())
}

pub(crate) fn needs_host_file(place: &Path) -> Failure {
    Failure::new(format!(
        "{}: builder-state keeps its checkpoints in one host file; name that file",
        place.display()
    ))
}

/// The file of a key in a folder: under the name that the given format uses, else the existing file under the name of
/// any format, else the name of a task's file.
fn file_in(folder: &Path, key: &Key, global: &Global) -> Result<PathBuf, Failure> {
    let usual = folder.join((Layout::default().file_name)(key)?);
    if let Some(name) = &global.format {
        // The verb reports an unknown format; `set` accepts it.
        return Ok(match global.formats.get(name) {
            Ok(format) => folder.join((format.layout().file_name)(key)?),
            Err(_) => usual,
        });
    }
    let mut there: Vec<(PathBuf, &str)> = Vec::new();
    for format in global.formats.iter() {
        if let Ok(name) = (format.layout().file_name)(key) {
            let path = folder.join(name);
            if there.iter().all(|(known, _)| *known != path) && path.exists() {
                there.push((path, format.name()));
            }
        }
    }
    match there.as_slice() {
        [] => Ok(usual),
        [(path, _)] => Ok(path.clone()),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(path, format)| format!("{} ({format})", path.display()))
                .collect();
            Err(Failure::new(format!(
                "{}: the key {} can mean several files: {}; choose one with --format",
                folder.display(),
                quoted(key.as_str()),
                names.join(", ")
            )))
        }
    }
}

pub(crate) fn named_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Whether a path is a folder. A missing path counts as one, unless it ends with `.json`.
pub(crate) fn is_folder(path: &Path, global: &Global) -> bool {
    if let Ok(found) = std::fs::metadata(path) {
        return found.is_dir();
    }
    if named_link(path) {
        return false;
    }
    let looks_like_file = path.extension().is_some_and(|ending| ending == "json");
    let is_host = is_host_named(global);
    !looks_like_file && !is_host
}

/// Whether `--format` names a format of host files.
pub(crate) fn is_host_named(global: &Global) -> bool {
    let named = global.format.as_deref();
    let format = named.and_then(|name| global.formats.get(name).ok());
    format.is_some_and(Format::is_host)
}

/// The newest readable state of the present task in the history, other than the present state.
pub(crate) fn newest_good(store: &dyn CheckpointStore, key: &Key) -> Option<EntryId> {
    let mut entries = store.states(key).ok()?.into_iter();
    let is_good = |entry: &HistoryEntry| !entry.is_current() && entry.revision.is_ok();
    let found = entries.find(|entry| is_good(entry) && entry.tasks_since == 0)?;
    Some(found.id)
}

/// The real path of a store.
pub(crate) fn real(store: &Path) -> PathBuf {
    let text = store.to_string_lossy();
    let path = Path::new(text.strip_prefix("sqlite:").unwrap_or(&text));
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
