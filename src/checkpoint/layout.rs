//! Where a protocol keeps its files: the names of checkpoints, archives and backups.

use chrono::{DateTime, Utc};

use super::{Key, Result, file_name};
use crate::json::Document;

/// How a protocol names the files of a folder. If the protocol changes ids to make file names, a name is never turned back
/// into an id; the id is then read from the content.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Layout {
    /// The file of a key.
    pub file_name: fn(&Key) -> Result<String>,
    /// The role of a file in the folder, by its full name.
    pub role: fn(&str) -> FileRole,
    /// The key of a current checkpoint, from its content; `None` if the content does not have it.
    pub key_in: Option<fn(&Document) -> Option<Key>>,
    /// The name of an archive without its extension. The store makes it unique.
    pub archive_stem: fn(stem: &str, archive: Archive, now: DateTime<Utc>) -> String,
    /// The protocol's own backups, if it has any.
    pub backups: Option<Backups>,
    /// The name of the only checkpoint in a folder, if the protocol has just one.
    pub only_file: Option<&'static str>,
}

impl Layout {
    /// Whether a file of this name is an archive of the checkpoint with this stem.
    #[must_use]
    pub fn is_archive_of(&self, name: &str, stem: &str) -> bool {
        self.archived_as(name, stem).is_some()
    }

    /// The file of the checkpoint that an archive of this name belongs to, and why it was archived.
    pub(crate) fn of_archive(&self, name: &str) -> Option<(String, Archive)> {
        let ends = name.char_indices().rev().map(|(end, _)| end);
        let mut stems = ends.filter(|end| *end > 0).map(|end| &name[..end]);
        let found = stems.find_map(|stem| Some((stem, self.archived_as(name, stem)?)));
        found.map(|(stem, why)| (format!("{stem}{}", file_name::EXTENSION), why))
    }

    fn archived_as(&self, name: &str, stem: &str) -> Option<Archive> {
        let name = name.strip_suffix(file_name::EXTENSION)?;
        let archives = [Archive::Crashed, Archive::Aborted, Archive::Complete];
        archives.into_iter().find(|archive| {
            let archive = *archive;
            let made = (self.archive_stem)(stem, archive, DateTime::UNIX_EPOCH);
            match made.strip_suffix('0') {
                Some(before) => name.strip_prefix(before).is_some_and(is_unique_number),
                // A name without a time has only the counter that the store adds.
                None => name.strip_prefix(&made).is_some_and(|tail| {
                    let counter = tail.strip_prefix(UNIQUE_SEPARATOR);
                    tail.is_empty() || counter.is_some_and(is_unique_number)
                }),
            }
        })
    }
}

/// The role of a file in a folder of checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileRole {
    /// A checkpoint under this key; `None` if the key must be read from its content.
    Current(Option<Key>),
    /// An archived checkpoint.
    Archive,
    /// A file that does not belong to the protocol.
    Foreign,
}

/// Why a checkpoint is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Archive {
    /// Its agent crashed, and another takes over.
    Crashed,
    /// Its task starts over.
    Aborted,
    /// Its task is complete.
    Complete,
}

impl Archive {
    /// The reason as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Archive::Crashed => "crashed",
            Archive::Aborted => "aborted",
            Archive::Complete => "complete",
        }
    }
}

/// A protocol's own backups: a copy of the file before each change.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Backups {
    /// Their folder, relative to the folder of the checkpoints.
    pub folder: &'static str,
    /// The name of a backup without its extension. The store makes it unique.
    pub stem: fn(stem: &str, now: DateTime<Utc>) -> String,
    /// Whether a file in that folder is a backup of the checkpoint with this stem.
    pub is_backup: fn(name: &str, stem: &str) -> bool,
    /// How many of the newest are kept.
    pub keep: usize,
    /// The time that a backup states for itself. It orders backups that others made.
    pub stamp_in: fn(&Document) -> Option<DateTime<Utc>>,
}

impl Backups {
    /// Backups in `folder`.
    #[must_use]
    pub const fn new(
        folder: &'static str,
        stem: fn(&str, DateTime<Utc>) -> String,
        is_backup: fn(&str, &str) -> bool,
        keep: usize,
    ) -> Self {
        Backups {
            folder,
            stem,
            is_backup,
            keep,
            stamp_in: |_| None,
        }
    }

    /// Sets how to read the time that a backup states for itself.
    #[must_use]
    pub const fn with_stamp_in(mut self, stamp_in: fn(&Document) -> Option<DateTime<Utc>>) -> Self {
        self.stamp_in = stamp_in;
        self
    }
}

/// Separates a stem from the counter that makes it unique when two names have the same second.
pub(crate) const UNIQUE_SEPARATOR: char = '-';

impl Default for Layout {
    /// `{key}.json`, with characters that file names must not contain as `%XX`; archives are
    /// `{key}%{reason}-{epoch}.json`.
    fn default() -> Self {
        Layout {
            file_name: file_name::file_name,
            role: |name| match split_archive(name) {
                Some(_) => FileRole::Archive,
                None => match file_name::key_of(name) {
                    Some(key) => FileRole::Current(Some(key)),
                    None => FileRole::Foreign,
                },
            },
            key_in: None,
            archive_stem: |stem, archive, now| {
                format!("{stem}%{}-{}", archive.as_str(), now.timestamp())
            },
            backups: None,
            only_file: None,
        }
    }
}

/// The stem of the checkpoint that a default archive belongs to. It is marked by a `%` that is no escape of a key.
fn split_archive(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(file_name::EXTENSION)?;
    let (stem, tail) = stem.rsplit_once('%')?;
    let (reason, number) = tail.split_once('-')?;
    let known = ["crashed", "aborted", "complete"].contains(&reason);
    (known && is_unique_number(number)).then_some(stem)
}

/// Whether a text consists of digits, optionally followed by the store's counter.
#[must_use]
pub(crate) fn is_unique_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once(UNIQUE_SEPARATOR) {
        Some((number, counter)) => digits(number) && digits(counter),
        None => digits(text),
    }
}

/// The evidence that a file is of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// Its strength: the strongest evidence wins, and two of equal strength are ambiguous. A protocol's own
    /// file name counts 4, and each member that only this format has counts 1.
    pub strength: u32,
    /// The evidence as text for a person.
    pub reason: String,
}

impl Evidence {
    /// Evidence of this strength, for this reason.
    pub fn new(strength: u32, reason: impl Into<String>) -> Self {
        Evidence {
            strength,
            reason: reason.into(),
        }
    }

    /// Evidence from a matching file name and from members that are present; `None` if there is neither.
    #[must_use]
    pub fn gather(name: Option<&str>, members: &[&str]) -> Option<Self> {
        let mut reasons = Vec::new();
        let mut strength = 0;
        if let Some(name) = name {
            strength += 4;
            reasons.push(format!("named {name}"));
        }
        if !members.is_empty() {
            strength += u32::try_from(members.len()).unwrap_or(u32::MAX - 4);
            reasons.push(format!("has {}", members.join(", ")));
        }
        (strength > 0).then(|| Evidence::new(strength, reasons.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_known_by_its_full_name() {
        let role = Layout::default().role;
        assert_eq!(role("a%crashed-1700000000.json"), FileRole::Archive);
        assert_eq!(role("a%aborted-1700000000-2.json"), FileRole::Archive);
        let key = |text: &str| FileRole::Current(Some(Key::new(text).unwrap()));
        assert_eq!(role("a_crashed.json"), key("a_crashed"));
        assert_eq!(role("crashed-17.json"), key("crashed-17"));
        assert_eq!(role("a%crashed-x.json"), FileRole::Foreign);
    }
}
