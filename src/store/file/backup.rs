//! A protocol's own backups, and names that never meet another file's.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use chrono::Utc;

use crate::checkpoint::{Backups, UNIQUE_SEPARATOR};
use crate::fsio::{self, FileError};

/// How many files may fall into one second before the names run out.
const MOST_IN_A_SECOND: u32 = 10_000;

/// Keeps the present file as a backup and removes the oldest beyond the protocol's number.
///
/// The backup is a second name of the file that is about to be replaced: no byte is copied.
pub(super) fn keep(target: &Path, backups: &Backups) -> Result<(), FileError> {
    let folder = fsio::parent_of(target).join(backups.folder);
    fsio::create_folder_durably(&folder)?;
    let stem = target.file_stem().unwrap_or_default().to_string_lossy();
    link_unique(target, &folder, &(backups.stem)(&stem, Utc::now()))?;
    prune(&folder, &stem, backups);
    Ok(())
}

/// Removes the oldest beyond the protocol's number. What cannot be removed stays for the next time.
fn prune(folder: &Path, stem: &str, backups: &Backups) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut names: Vec<(std::time::SystemTime, String)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let modified = entry.metadata().ok()?.modified().ok()?;
            (backups.is_backup)(&name, stem).then_some((modified, name))
        })
        .collect();
    names.sort();
    let surplus = names.len().saturating_sub(backups.keep);
    for (_, name) in &names[..surplus] {
        let _ = fs::remove_file(folder.join(name));
    }
}

/// Gives a file a second name `{stem}.json` in `folder`, with a counter where that is taken.
pub(super) fn link_unique(target: &Path, folder: &Path, stem: &str) -> Result<PathBuf, FileError> {
    let mut last = None;
    for counter in 0..MOST_IN_A_SECOND {
        let name = match counter {
            0 => format!("{stem}.json"),
            counter => format!("{stem}{UNIQUE_SEPARATOR}{counter}.json"),
        };
        let path = folder.join(name);
        match fs::hard_link(target, &path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = Some(error),
            // File systems without hard links say so in several ways.
            Err(_) if copy_new(target, &path).is_ok() => return Ok(path),
            Err(error) => return Err(FileError::io(fsio::Operation::Link, &path, error)),
        }
    }
    let error = last.unwrap_or_else(|| ErrorKind::AlreadyExists.into());
    Err(FileError::io(fsio::Operation::Link, folder, error))
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
