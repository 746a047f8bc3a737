//! Our own files beside a checkpoint's file: their names, and how they are read and replaced.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::{Error, ErrorKind, Key, Layout, Result};
use crate::fsio::{self, Contents, Durability, FileError, InPlace, Present, Replace};

/// The subfolders of our folder, each with the files of one kind.
pub(super) mod folders {
    pub(in crate::store::file) const ARCHIVE: &str = "archive";
    pub(crate) const CLAIMS: &str = "claims";
    pub(crate) const DROPPED_LOG: &str = "overflow";
    pub(in crate::store::file) const FINGERPRINTS: &str = "files";
    pub(in crate::store::file) const HISTORY: &str = "history";
    pub(crate) const LEDGER: &str = "ledger";
    pub(in crate::store::file) const LOCKS: &str = crate::fsio::LOCKS_FOLDER;
    pub(in crate::store::file) const ORDER: &str = "order";
    pub(in crate::store::file) const PINNED: &str = "pinned";
    pub(in crate::store::file) const QUARANTINE: &str = "corrupt";
    pub(in crate::store::file) const TASK_BOUNDARIES: &str = "lineage";

    /// The subfolders in which files are replaced, so that a killed writer leaves temporary files there.
    pub(in crate::store::file) const REPLACED: [&str; 7] = [
        ARCHIVE,
        CLAIMS,
        FINGERPRINTS,
        LEDGER,
        TASK_BOUNDARIES,
        ORDER,
        DROPPED_LOG,
    ];
}

/// The file that has the time of the last sweep of our folder.
pub(super) const SWEPT: &str = "swept";

/// Refuses our folder if it is a link to nowhere, and any subfolder that is a link to nowhere or out of the
/// store. Our files are opened without following links.
pub(super) fn refuse_links(folder: &Path) -> Result<(), FileError> {
    let own = folder.join(fsio::OWN_FOLDER);
    let entries = fsio::list(&own)?;
    if entries.is_empty() {
        fsio::resolve(&own)?;
    }
    for entry in entries {
        let is_link = entry.file_type().is_ok_and(|found| found.is_symlink());
        if is_link && entry.file_name() != SWEPT {
            fsio::within(folder, &entry.path())?;
        }
    }
    Ok(())
}

/// The path of one of our files beside a checkpoint's file: `.agent-checkpoint/{folder}/{file}{ending}`.
pub(super) fn path_beside(target: &Path, folder: &str, ending: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    // Allocate the full length at once, so that nothing is copied twice.
    let more = fsio::OWN_FOLDER.len() + folder.len() + ending.len() + "///".len();
    let mut path = PathBuf::with_capacity(target.as_os_str().len() + more);
    path.push(fsio::parent_of(target));
    path.push(fsio::OWN_FOLDER);
    path.push(folder);
    path.push(name);
    path.as_mut_os_string().push(ending);
    path
}

/// The ending of a name: `{ending}` for a whole file, `@{slot}{ending}` for a slot of a host file.
pub(super) fn of_slot(slot: Option<&str>, ending: &str) -> String {
    match slot {
        Some(slot) => format!("@{}{ending}", encoded(slot)),
        None => ending.to_owned(),
    }
}

/// A slot name, encoded for a file name.
pub(super) fn encoded(slot: &str) -> String {
    let name = Key::new(slot).and_then(|key| (Layout::default().file_name)(&key));
    name.map_or_else(
        |_: Error| String::from("%"),
        |name| name.strip_suffix(".json").unwrap_or(&name).to_owned(),
    )
}

/// One of our files.
#[derive(Debug)]
pub(super) struct OwnFile {
    /// The checkpoint's file.
    target: PathBuf,
    path: PathBuf,
}

impl OwnFile {
    pub(super) fn beside(target: &Path, folder: &str, ending: &str) -> Self {
        OwnFile {
            target: target.to_path_buf(),
            path: path_beside(target, folder, ending),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    pub(super) fn is_there(&self) -> Result<bool, FileError> {
        Ok(fsio::look(&self.path)?.is_some())
    }

    /// The whole file, up to `most` bytes. Most checkpoints have no such file, which costs one system call.
    pub(super) fn read(&self, most: u64) -> Result<Option<Contents>, FileError> {
        fsio::read_own(&self.path, most)
    }

    /// Replaces it with this durability. It gets no wider permissions than the checkpoint's file.
    pub(super) fn write(
        &self,
        bytes: &[u8],
        present: Present<'_>,
        durability: Durability,
    ) -> Result<(), FileError> {
        let folder = fsio::parent_of(&self.path);
        match durability {
            Durability::None => fsio::create_folder(folder)?,
            Durability::Data | Durability::Full => fsio::create_folder_durably(folder)?,
        }
        Replace::new(&self.path, present)
            .like(&self.target)
            .durability(durability)
            .write(bytes)
            .map(drop)
    }

    /// Writes the file in place without a sync. Only for a file with a checksum: readers ignore a torn one.
    ///
    /// A rename would cost more: when an unsynced file is renamed over another, ext4 writes it to the disk, and the
    /// next save waits for that.
    pub(super) fn write_over(&self, bytes: &[u8]) -> Result<(), FileError> {
        match InPlace::write_over(&self.path, &self.target, bytes) {
            Ok(true) => Ok(()),
            _ => self.write(bytes, Present::Whatever, Durability::None),
        }
    }

    /// Removes the file.
    pub(super) fn remove(&self, durability: Durability) -> Result<(), FileError> {
        fsio::remove(&self.path, durability)
    }
}

/// A kind of record, described for the error when it is damaged.
pub(super) struct Record {
    /// Its name, such as "the record of claims".
    pub(super) name: &'static str,
    /// What is unknown without it.
    pub(super) unknown: &'static str,
    /// The next step.
    pub(super) remedy: &'static str,
}

impl Record {
    /// The largest record that is read, in bytes.
    const MAX_BYTES: u64 = 1024 * 1024;

    /// The record in a JSON file, or the error if it is damaged, with the contents; the default value if there
    /// is no file.
    pub(super) fn read<T: DeserializeOwned + Default>(
        &self,
        file: &OwnFile,
    ) -> Result<(Result<T>, Option<Contents>)> {
        let Some(read) = file.read(Self::MAX_BYTES)? else {
            return Ok((Ok(T::default()), None));
        };
        let record = serde_json::from_slice(&read.bytes).map_err(|error| {
            let Record {
                name,
                unknown,
                remedy,
            } = self;
            Error::new(ErrorKind::Unreadable {
                detail: format!("{name} is damaged, so it is unknown {unknown}: {error}; {remedy}"),
            })
            .with_path(file.path())
        });
        Ok((record, Some(read)))
    }

    /// The record as the text of its file.
    pub(super) fn text<T: Serialize>(&self, record: &T) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(record)
            .map_err(|error| Error::edit(format!("{} cannot be written: {error}", self.name)))?;
        text.push(b'\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_no_separator_in_a_name() {
        assert_eq!(of_slot(Some("adhoc:1/x"), ".note"), "@adhoc%3A1%2Fx.note");
        let path = path_beside(Path::new("a/b.json"), folders::CLAIMS, ".json");
        assert_eq!(path, Path::new("a/.agent-checkpoint/claims/b.json.json"));
    }
}
