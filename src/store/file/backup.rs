//! A protocol's own backups, and names that never meet another file's.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use chrono::Utc;

use crate::checkpoint::{Backups, UNIQUE_SEPARATOR};
use crate::fsio::{self, FileError, Operation};

/// How many files may fall into one second before the names run out.
const MOST_IN_A_SECOND: u32 = 10_000;

/// The backup of one file, made while it is replaced.
pub(super) struct BackUp<'t> {
    target: &'t Path,
    backups: Backups,
    made: Option<PathBuf>,
}

impl<'t> BackUp<'t> {
    pub(super) fn new(target: &'t Path, backups: Backups) -> Self {
        BackUp {
            target,
            backups,
            made: None,
        }
    }

    fn folder(&self) -> PathBuf {
        fsio::parent_of(self.target).join(self.backups.folder)
    }

    fn stem(&self) -> String {
        let stem = self.target.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Keeps the present file: the backup is a second name of the file that is about to be replaced, so
    /// no byte is copied.
    pub(super) fn link(&mut self) -> Result<(), FileError> {
        let folder = self.folder();
        fsio::create_folder_durably(&folder)?;
        let stem = (self.backups.stem)(&self.stem(), Utc::now());
        self.made = Some(link_unique(self.target, &folder, &stem)?);
        Ok(())
    }

    /// The file was not replaced after all.
    pub(super) fn undo(self) {
        if let Some(made) = self.made {
            let _ = fs::remove_file(made);
        }
    }

    /// Removes the oldest beyond the protocol's number, never the one just made. What cannot be removed
    /// stays for the next time.
    pub(super) fn prune(self) {
        let folder = self.folder();
        let Ok(entries) = fs::read_dir(&folder) else {
            return;
        };
        let stem = self.stem();
        // By the time they were written, as protocols' own scripts do: these stamp names with local time.
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let written = entry.metadata().ok()?.modified().ok()?;
                let is_ours = (self.backups.is_backup)(&name, &stem);
                is_ours.then(|| (written, in_order(&name), name))
            })
            .collect();
        names.sort();
        let surplus = names.len().saturating_sub(self.backups.keep);
        for (_, _, name) in &names[..surplus] {
            let path = folder.join(name);
            if self.made.as_ref() != Some(&path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// A name as its words and its numbers, so that 10 comes after 9.
fn in_order(name: &str) -> Vec<(u128, String)> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    stem.split(|letter: char| !letter.is_ascii_alphanumeric())
        .map(|part| (part.parse().unwrap_or(0), part.to_owned()))
        .collect()
}

/// The names `{stem}.json`, `{stem}-1.json`, … in a folder.
pub(super) fn unique_names(folder: &Path, stem: &str) -> impl Iterator<Item = PathBuf> {
    (0..MOST_IN_A_SECOND).map(move |counter| {
        folder.join(match counter {
            0 => format!("{stem}.json"),
            counter => format!("{stem}{UNIQUE_SEPARATOR}{counter}.json"),
        })
    })
}

/// Gives a file a second name in `folder`, with a counter where that is taken. The counter only grows:
/// a name that was pruned within the same second is not used again, or the newest would look oldest.
fn link_unique(target: &Path, folder: &Path, stem: &str) -> Result<PathBuf, FileError> {
    let mut last = None;
    let used = fs::read_dir(folder)
        .map_err(FileError::on(Operation::Open, folder))?
        .filter_map(|entry| counter_of(entry.ok()?.file_name().to_str()?, stem))
        .max();
    let first = used.map_or(0, |counter| counter + 1);
    for path in unique_names(folder, stem).skip(first) {
        match fs::hard_link(target, &path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = Some(error),
            // File systems without hard links say so in several ways.
            Err(_) if copy_new(target, &path).is_ok() => return Ok(path),
            Err(error) => return Err(FileError::io(Operation::Link, &path, error)),
        }
    }
    let error = last.unwrap_or_else(|| ErrorKind::AlreadyExists.into());
    Err(FileError::io(Operation::Link, folder, error))
}

/// The counter in a name that [`unique_names`] made of `stem`.
fn counter_of(name: &str, stem: &str) -> Option<usize> {
    match name.strip_prefix(stem)?.strip_suffix(".json")? {
        "" => Some(0),
        counter => counter.strip_prefix(UNIQUE_SEPARATOR)?.parse().ok(),
    }
}

/// Copies a file to a name that is not taken, and has it on disk.
fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = File::create_new(to)?;
    io::copy(&mut source, &mut copy)
        .and_then(|_| copy.sync_all())
        .inspect_err(|_| {
            let _ = fs::remove_file(to);
        })
}
