//! A folder of checkpoint files.

mod durable_file;
mod names;
mod options;
mod overflow;

use std::path::{Path, PathBuf};

pub(super) use durable_file::DurableFile;
pub use options::FileOptions;
pub(super) use overflow::OverflowFile;

use super::{
    Capabilities, Change, CheckpointStore, Outcome, Page, PutOptions, Query, Saved, Stored,
    check_expected,
};
use crate::checkpoint::{Dropped, Error, ErrorKind, Expect, Key, Result, Revision};
use crate::fsio;
use crate::json::Document;

/// Keeps each checkpoint in a file of its own.
///
/// The file of a key is `{key}.json` in the store's folder, with characters that no file name may
/// have written as `%XX`; no key leaves the folder. Locks and the record of what was cut lie in the
/// hidden folder `.agent-checkpoint` beside the files, which git ignores.
///
/// # Durability
///
/// A save that returned is on disk: the text is synced before it takes its name, the name before the
/// save returns. A crash at any point leaves the old text or the new one, whole. See
/// `docs/durability.md`.
///
/// On a file system that does not tell upper from lower case, keys that differ only in case are
/// the same file.
#[derive(Debug)]
pub struct FileStore {
    place: Place,
    options: FileOptions,
}

#[derive(Debug)]
enum Place {
    /// All checkpoints of a folder.
    Folder(PathBuf),
    /// One file, whatever its name.
    Single { path: PathBuf, key: Key },
}

impl FileStore {
    /// The store of a folder. The folder is made with the first save; opening creates nothing.
    pub fn open(folder: impl Into<PathBuf>) -> FileStore {
        FileStore::with_options(folder, FileOptions::default())
    }

    /// The store of a folder, with options.
    pub fn with_options(folder: impl Into<PathBuf>, options: FileOptions) -> FileStore {
        let folder = folder.into();
        options.sweep(&folder);
        FileStore {
            place: Place::Folder(folder),
            options,
        }
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
        let key = names::key_of(&name).map_or_else(|| Key::new(name.trim()), Ok)?;
        options.sweep(path.parent().unwrap_or(Path::new("")));
        Ok(FileStore {
            place: Place::Single { path, key },
            options,
        })
    }

    /// The key of a store of one file; `None` for a folder.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match &self.place {
            Place::Folder(_) => None,
            Place::Single { key, .. } => Some(key),
        }
    }

    /// The file of a key, whether or not it exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] when the key makes too long a name, and for another key than that
    /// of a store of one file.
    pub fn path(&self, key: &Key) -> Result<PathBuf> {
        match &self.place {
            Place::Folder(folder) => Ok(folder.join(names::file_name(key)?)),
            Place::Single { path, key: only } if only == key => Ok(path.clone()),
            Place::Single { .. } => Err(Error::new(ErrorKind::InvalidKey {
                text: key.to_string(),
                reason: "this store has one file only, under another key",
            })),
        }
    }

    fn file(&self, key: &Key) -> Result<DurableFile<'_>> {
        Ok(DurableFile::new(self.path(key)?, &self.options))
    }
}

impl CheckpointStore for FileStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let file = self.file(key)?;
        file.load().map_err(|error| error.with_key(key))
    }

    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
        self.transact(key, &mut |present| {
            check_expected(key, &options.expect, present)?;
            Ok(Change::Put {
                document: document.clone(),
                overflow: options.overflow.clone(),
            })
        })
    }

    fn transact(
        &self,
        key: &Key,
        change: &mut dyn FnMut(Option<&Stored>) -> Result<Change>,
    ) -> Result<Saved> {
        let file = self.file(key)?;
        let _span = tracing::debug_span!("transact", %key).entered();
        let mut saved = None;
        let result = file.transact(&mut |present, overflow| {
            let (document, dropped) = match change(present)? {
                Change::Keep => {
                    saved = Some(Saved::unchanged(key, present)?);
                    return Ok(None);
                }
                Change::Put { document, overflow } => (document, overflow),
            };
            let previous = present.map(|present| present.revision.clone());
            let text = document.into_text();
            let revision = Revision::of(text.as_bytes());
            let outcome = match &previous {
                None => Outcome::Created,
                Some(previous) if *previous == revision => Outcome::Unchanged,
                Some(_) => Outcome::Replaced,
            };
            let mut result = Saved::new(outcome, revision, previous);
            result.truncation.kept_in = overflow.keep(None, &dropped)?;
            saved = Some(result);
            Ok((outcome != Outcome::Unchanged).then_some(text))
        });
        result.map_err(|error| error.with_key(key))?;
        saved.ok_or_else(|| Error::new(ErrorKind::ChangedMeanwhile).with_key(key))
    }

    fn delete(&self, key: &Key, expect: &Expect) -> Result<bool> {
        let file = self.file(key)?;
        file.delete(&mut |present| check_expected(key, expect, present))
            .map_err(|error| error.with_key(key))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let folder = match &self.place {
            Place::Single { path, key } => {
                let there = fs_err::metadata(path).is_ok();
                return Ok(query.page(there.then(|| key.clone())));
            }
            Place::Folder(folder) => folder,
        };
        let entries = match fs_err::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Page::default());
            }
            Err(error) => return Err(io_error(error, folder)),
        };
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| io_error(error, folder))?.file_name();
            let Some(text) = name.to_str() else {
                foreign.push(name);
                continue;
            };
            if !text.ends_with(names::EXTENSION) {
                continue;
            }
            match names::key_of(text) {
                Some(key) => keys.push(key),
                None => foreign.push(name),
            }
        }
        let mut page = query.page(keys);
        foreign.sort();
        page.foreign = foreign;
        Ok(page)
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.file(key)?.overflow()?.read(None)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_power_loss: self.options.durability == fsio::Durability::Full,
            excludes_processes: true,
            ..Capabilities::default()
        }
    }
}

fn io_error(error: std::io::Error, path: &Path) -> Error {
    Error::new(ErrorKind::Io).with_path(path).with_source(error)
}
