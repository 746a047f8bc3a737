//! The earlier states of one file, under the protocol's own names if it has some, else numbered.

mod keep;
mod order;
mod pins;

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(in crate::store) use keep::Kept;
pub(super) use keep::RecentEntries;
pub(super) use order::Boundary;

use super::FileOptions;
use super::own_file::{encoded, folders, path_beside};
use super::unique::in_order;
use crate::checkpoint::{Backups, Result};
use crate::fsio::{self, Durability, FileError, FileStamp};
use crate::store::{EntryId, Keep};

/// The history of one file, or of one slot of a host file.
///
/// An entry is a replaced file: a hard link if that file is known to be on disk, else a copy. It is made when
/// the new contents are on disk and about to get the name; old entries are removed only after that. Pinned
/// entries are copied to a folder from which nothing is removed.
pub(in crate::store) struct History<'o> {
    target: PathBuf,
    naming: Naming,
    options: &'o FileOptions,
}

enum Naming {
    /// `.agent-checkpoint/history/{file}/{number}.json`, or for a slot of a host file `{number}@{slot}.json`.
    Numbers { slot: Option<String> },
    /// The protocol's own folder and names.
    Protocol(Backups),
}

/// One file of a history.
#[derive(Clone, Debug)]
pub(in crate::store) struct Entry {
    pub(in crate::store) id: EntryId,
    pub(in crate::store) path: PathBuf,
    pub(in crate::store) saved: Option<SystemTime>,
    pub(in crate::store) bytes: u64,
    pub(in crate::store) pinned: bool,
}

impl<'o> History<'o> {
    /// The history of a file; `None` if none is kept.
    pub(super) fn of(
        target: &Path,
        backups: Option<Backups>,
        slot: Option<&str>,
        options: &'o FileOptions,
    ) -> Option<Self> {
        let naming = match backups {
            Some(backups) => Naming::Protocol(backups),
            None => Naming::Numbers {
                slot: slot.map(encoded),
            },
        };
        (options.history.is_some() || backups.is_some()).then(|| History {
            target: target.to_path_buf(),
            naming,
            options,
        })
    }

    fn folder(&self) -> PathBuf {
        match &self.naming {
            Naming::Numbers { .. } => path_beside(&self.target, folders::HISTORY, ""),
            Naming::Protocol(backups) => fsio::parent_of(&self.target).join(backups.folder),
        }
    }

    /// The folders of its entries.
    pub(super) fn folders(&self) -> [PathBuf; 2] {
        [self.folder(), self.pins()]
    }

    fn pins(&self) -> PathBuf {
        path_beside(&self.target, folders::PINNED, "")
    }

    fn stem(&self) -> String {
        let stem = self.target.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    fn is_ours(&self, name: &str) -> bool {
        match &self.naming {
            Naming::Numbers { slot } => {
                number_and_slot(name).is_some_and(|(_, of)| of == slot.as_deref())
            }
            Naming::Protocol(backups) => (backups.is_backup)(name, &self.stem()),
        }
    }

    /// Whether an entry is a hard link to the present file or a copy of it. A copy is the same state only if it
    /// was written at the same time, because the same bytes may come back later.
    pub(super) fn is_present(&self, entry: &Path) -> Result<bool, FileError> {
        let (Some(entry), Some(target)) = (fsio::look(entry)?, fsio::look(&self.target)?) else {
            return Ok(false);
        };
        let is_link = cfg!(unix) && FileStamp::of(&entry).same_contents(&FileStamp::of(&target));
        let is_copy =
            || entry.len() == target.len() && entry.modified().ok() == target.modified().ok();
        Ok(is_link || is_copy())
    }

    /// Syncs the entries. A save does not need this, because the state that it writes is on disk; an operation
    /// that removes a state that is then only in the history does.
    pub(in crate::store) fn ensure_synced(&self) -> Result<(), FileError> {
        if self.options.durability == Durability::Full {
            let own = fsio::parent_of(&self.target).join(fsio::OWN_FOLDER);
            sync_down_to(&own, &self.folder())?;
        }
        Ok(())
    }

    /// The entries, newest first. For a slot they include those made by changes of the host file as a whole.
    pub(in crate::store) fn entries(&self) -> Result<Vec<Entry>> {
        let Naming::Numbers { slot: Some(_) } = &self.naming else {
            return self.entries_of_file();
        };
        let is_of_whole = |name: &str| number_and_slot(name).is_some_and(|(_, of)| of.is_none());
        self.all(&|name| self.is_ours(name) || is_of_whole(name))
    }

    /// The entries of the file, newest first; for a host file those of every slot.
    pub(in crate::store) fn entries_of_file(&self) -> Result<Vec<Entry>> {
        self.all(&|name| match &self.naming {
            Naming::Numbers { .. } => number_and_slot(name).is_some(),
            Naming::Protocol(_) => self.is_ours(name),
        })
    }

    /// The pinned entries and the others, each once.
    fn all(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Entry>> {
        let mut all = self.listed(&self.pins(), true, is_wanted)?;
        for entry in self.listed(&self.folder(), false, is_wanted)? {
            if all.iter().all(|pinned| pinned.id != entry.id) {
                all.push(entry);
            }
        }
        self.sort(&mut all);
        Ok(all)
    }

    fn listed(
        &self,
        folder: &Path,
        pinned: bool,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Entry>> {
        fsio::within(fsio::parent_of(&self.target), folder)?;
        let mut entries = Vec::new();
        for file in fsio::list(folder)? {
            let name = file.file_name();
            let Some(name) = name.to_str().filter(|name| is_wanted(name)) else {
                continue;
            };
            // Skip an entry that was removed meanwhile.
            if let Ok(found) = file.metadata() {
                entries.extend(entry_of(name, file.path(), &found, pinned));
            }
        }
        self.sort(&mut entries);
        Ok(entries)
    }

    fn sort(&self, entries: &mut [Entry]) {
        let number = |entry: &Entry| in_order(entry.id.as_str());
        match &self.naming {
            Naming::Numbers { .. } => entries.sort_by_key(|entry| std::cmp::Reverse(number(entry))),
            Naming::Protocol(_) => {
                let names = entries.iter().map(name_of).collect();
                let made = self.in_order_made(names);
                let places: HashMap<&str, usize> =
                    made.iter().map(String::as_str).zip(0..).collect();
                entries
                    .sort_by_key(|entry| std::cmp::Reverse(places.get(&*name_of(entry)).copied()));
            }
        }
    }

    /// The entry that a save made, or that already was the present state.
    pub(in crate::store) fn newest(&self) -> Result<Option<Entry>> {
        let entries = self.listed(&self.folder(), false, &|name| self.is_ours(name))?;
        let Some(mut newest) = entries.into_iter().next() else {
            return Ok(None);
        };
        if let Some(name) = newest.path.file_name() {
            newest.pinned = fsio::look(&self.pins().join(name))?.is_some();
        }
        Ok(Some(newest))
    }

    fn usual_count(&self) -> usize {
        match &self.naming {
            Naming::Numbers { .. } => Keep::COUNT,
            Naming::Protocol(backups) => backups.keep,
        }
    }
}

pub(super) fn entry_named(entries: &[Entry], wanted: &EntryId) -> Result<Entry> {
    let found = entries.iter().find(|entry| entry.id == *wanted);
    found.cloned().ok_or_else(|| wanted.no_such())
}

fn entry_of(name: &str, path: PathBuf, found: &Metadata, pinned: bool) -> Option<Entry> {
    let stem = name.strip_suffix(".json")?;
    found.is_file().then(|| Entry {
        id: EntryId::of(stem),
        path,
        saved: found.modified().ok(),
        bytes: found.len(),
        pinned,
    })
}

fn name_of(entry: &Entry) -> String {
    let name = entry.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Syncs a folder and those above it, down from `top`.
fn sync_down_to(top: &Path, folder: &Path) -> Result<(), FileError> {
    let mut all: Vec<&Path> = folder
        .ancestors()
        .take_while(|one| one.starts_with(top))
        .collect();
    if all.is_empty() {
        // The protocol's folder lies beside ours, not in it.
        all = folder.ancestors().take(2).collect();
    }
    for one in all.into_iter().rev() {
        if fsio::look(one)?.is_some() {
            fsio::sync_folder(one)?;
        }
    }
    Ok(())
}

/// Separates the number of an entry from the slot of a host file that it belongs to.
const SLOT_SEPARATOR: char = '@';

/// The most digits of an entry's number. A name with more is not ours: no history grows that long, and counting
/// on from there would soon overflow.
const MOST_DIGITS: usize = 15;

/// The number and the slot in the name of an entry.
fn number_and_slot(name: &str) -> Option<(u64, Option<&str>)> {
    let stem = name.strip_suffix(".json")?;
    let (number, slot) = match stem.split_once(SLOT_SEPARATOR) {
        Some((number, slot)) => (number, Some(slot)),
        None => (stem, None),
    };
    let is_short = number.len() <= MOST_DIGITS;
    let plain =
        is_short && !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| plain)?, slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_entries() {
        assert_eq!(number_and_slot("12.json"), Some((12, None)));
        assert_eq!(
            number_and_slot("3@adhoc%3A1.json"),
            Some((3, Some("adhoc%3A1")))
        );
        for name in [
            "012.json",
            "a.json",
            "12.json.bak",
            "12",
            ".json",
            "+1.json",
            "1-2.json",
            "18446744073709551615.json",
        ] {
            assert_eq!(number_and_slot(name), None, "{name}");
        }
    }

    #[test]
    fn a_save_makes_the_names_that_it_tries_and_not_all_that_may_be() {
        use crate::checkpoint::Checkpoint;
        let layout = crate::formats::AgentCheckpoint::layout();
        let options = FileOptions::default();
        let target = Path::new("folder/secondary_a.json");
        let history = History::of(target, layout.backups, None, &options).unwrap();
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            let mut names = history.free_names(Path::new("backups"), &[], &[], Default::default());
            assert!(names.next().is_some());
        }
        // If each call made ten thousand names, this would make ten million.
        assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());
    }
}
