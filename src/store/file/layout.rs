//! The version of the library that laid out our folder.

use std::path::{Path, PathBuf};

use crate::checkpoint::{Error, ErrorKind, Result};
use crate::fsio::{self, Contents, Durability, FileError, Present, Replace};

/// The layout that this version writes. Version 0.1 wrote no number. Each of its files has the same place and
/// meaning here, so a running program of version 0.1 and this one exclude and fence each other.
const WRITTEN: u64 = 2;

/// The name of the file in our folder.
pub(super) const NAME: &str = "layout";

/// The largest number file, in bytes.
const MAX_BYTES: u64 = 32;

fn path(own: &Path) -> PathBuf {
    own.join(NAME)
}

/// The layout number of a folder of ours; `None` if it has none.
fn read(own: &Path) -> Result<Option<(u64, Contents)>> {
    let path = path(own);
    let read = match fsio::read_own(&path, MAX_BYTES) {
        Ok(None) => return Ok(None),
        Ok(read) => read,
        Err(FileError::TooLarge { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let number = |read: &Contents| {
        let text = std::str::from_utf8(&read.bytes).ok()?;
        text.trim_ascii().parse().ok()
    };
    match read.and_then(|read| Some((number(&read)?, read))) {
        Some(found) => Ok(Some(found)),
        None => Err(Error::new(ErrorKind::Unreadable {
            detail: format!(
                "the number of the layout is damaged, so it is unknown whether a newer program laid out the folder; \
                 if none did, remove {}",
                path.display()
            ),
        })
        .with_path(path)),
    }
}

/// Whether a folder has the layout that this version writes. Refuses a folder laid out by a newer program.
pub(in crate::store) fn is_present(own: &Path) -> Result<bool> {
    let number = known(own)?;
    Ok(number.is_some_and(|(number, _)| number == WRITTEN))
}

fn known(own: &Path) -> Result<Option<(u64, Contents)>> {
    let number = read(own)?;
    match number {
        Some((found, _)) if found > WRITTEN => Err(Error::new(ErrorKind::NewerLayout {
            found,
            known: WRITTEN,
        })
        .with_path(path(own))),
        number => Ok(number),
    }
}

/// Adopts a folder that is new or was laid out by an older version. It runs under a lock.
///
/// If a power cut removes the number, it is written again. A torn number would stop every write, so its
/// contents are synced.
pub(super) fn take_over(own: &Path, durability: Durability) -> Result<()> {
    let number = known(own)?;
    let present = match &number {
        Some((WRITTEN, _)) => return Ok(()),
        Some((_, read)) => Present::Same(&read.stamp),
        None => Present::Absent,
    };
    let durability = match durability {
        Durability::None => Durability::None,
        Durability::Data | Durability::Full => Durability::Data,
    };
    let written = Replace::new(&path(own), present)
        .durability(durability)
        .write(format!("{WRITTEN}\n").as_bytes());
    match written {
        Ok(_) => Ok(()),
        // Another process was faster, under the lock of another file.
        Err(FileError::Changed { .. }) => known(own).map(drop),
        Err(error) => Err(error.into()),
    }
}
