//! The history entry that a save makes of the state it replaces.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::order::write_order;
use super::{Entry, History, Naming, SLOT_SEPARATOR, number_and_slot};
use crate::checkpoint::Result;
use crate::fsio::{self, Contents, Durability, FileError, FileStamp, Present, Replace};
use crate::store::file::own_file::OwnFile;
use crate::store::file::unique::{counter_of, in_order, unique_names};
use crate::store::{EntryId, Stored};

/// The number and the slot of each entry in a folder, oldest first.
type Numbered = Vec<(u64, Option<String>)>;

/// The history entries of a file, as the last save left them.
#[derive(Debug)]
pub(in crate::store::file) struct RecentEntries {
    pub(in crate::store::file) entries: Numbered,
    /// The stamps of the folder and the file at that time.
    pub(in crate::store::file) folder: FileStamp,
    pub(in crate::store::file) file: FileStamp,
}

/// The history entry of one save, to be removed if the save fails.
#[derive(Debug, Default)]
pub(in crate::store) struct Kept {
    /// The new entry; `None` if the present state already was one.
    made: Option<PathBuf>,
    /// The present number of entries.
    count: usize,
    /// All entries, if they are known completely by number and slot.
    entries: Option<Numbered>,
    /// The note of the order of backups, and its previous contents.
    order: Option<(OwnFile, Vec<String>)>,
}

impl<'o> History<'o> {
    /// Keeps the present contents of the file, which is about to be replaced or removed. It makes a hard link only if
    /// they are known to be on disk; otherwise it makes a synced copy, because a link would be as torn as the file.
    pub(in crate::store) fn keep(
        &self,
        present: &Contents,
        is_synced: bool,
        now: DateTime<Utc>,
    ) -> Result<Kept, FileError> {
        let folder = self.folder();
        let links = is_synced && !self.options.history_copies;
        let stamp = &present.stamp;
        let present = (&*present.bytes, links);
        if let Some(kept) = self.keep_after(&folder, stamp, present)? {
            return Ok(kept);
        }
        fsio::within(fsio::parent_of(&self.target), &folder)?;
        let names = texts(fsio::names(&folder)?);
        if names.is_empty() {
            create(&folder)?;
        }
        let count = names.iter().filter(|name| self.is_ours(name)).count();
        if let Some((newest, read)) = self.newest_is_present(&folder, &names, present.0)?
            && (is_synced || fsio::sync_now(&newest, &read, Durability::Data).is_ok())
        {
            return Ok(Kept {
                count,
                ..Kept::default()
            });
        }
        let pinned = texts(fsio::names(&self.pins())?);
        for path in self.free_names(&folder, &names, &pinned, now) {
            if self.link_or_copy(&path, present)? {
                let order = self.note_order(&names, &path);
                let names = names.iter().map(String::as_str);
                let names = names.chain(path.file_name().and_then(|name| name.to_str()));
                return Ok(Kept {
                    entries: self.numbered(names).filter(|_| pinned.is_empty()),
                    made: Some(path),
                    count: count + 1,
                    order,
                });
            }
        }
        Err(FileError::Io {
            operation: fsio::Operation::Link,
            path: folder,
            source: std::io::ErrorKind::AlreadyExists.into(),
        })
    }

    /// The same for a store that made the last save itself and so knows the names without listing the folder.
    /// `None` if it does not know them, another process was here since, or something is pinned.
    fn keep_after(
        &self,
        folder: &Path,
        file: &FileStamp,
        present: (&[u8], bool),
    ) -> Result<Option<Kept>, FileError> {
        let Some(recent) = self.options.recent.take(folder) else {
            return Ok(None);
        };
        // A folder that changes twice within a clock tick looks the same, but a replaced file does not. So this
        // can miss one entry: that of a process that worked on another slot within the tick of our save and was
        // killed before it replaced the file. The entry made here then has the same number.
        let is_as_left = recent.file.same_contents(file)
            && stamp_of(folder)?.is_some_and(|now| now == recent.folder);
        if !is_as_left || fsio::look(&self.pins())?.is_some() {
            return Ok(None);
        }
        let mut entries = recent.entries;
        let Some(next) = entries.last().and_then(|(last, _)| last.checked_add(1)) else {
            return Ok(None);
        };
        let path = folder.join(self.name_of(next));
        match self.link_or_copy(&path, present) {
            Ok(true) => {
                entries.push((next, self.slot().cloned()));
                Ok(Some(Kept {
                    made: Some(path),
                    count: entries
                        .iter()
                        .filter(|(_, of)| of.as_ref() == self.slot())
                        .count(),
                    entries: Some(entries),
                    order: None,
                }))
            }
            Ok(false) => Ok(None),
            // For example, the folder was removed. The slower path creates it again or reports the error.
            Err(_) => Ok(None),
        }
    }

    /// Adds a state as the newest entry; it is on disk when this returns. `before` is called with the entry
    /// before it exists.
    pub(in crate::store) fn append(
        &self,
        state: &Stored,
        now: DateTime<Utc>,
        before: impl Fn(&Entry) -> Result<()>,
    ) -> Result<EntryId> {
        let (folder, text) = (self.folder(), state.document.text());
        self.options.recent.take(&folder);
        fsio::within(fsio::parent_of(&self.target), &folder)?;
        fsio::create_folder_durably(&folder)?;
        let names = texts(fsio::names(&folder)?);
        let pinned = texts(fsio::names(&self.pins())?);
        let at = state.modified.map_or(now, DateTime::from);
        for path in self.free_names(&folder, &names, &pinned, at) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let entry = Entry {
                id: EntryId::of(stem),
                saved: state.modified,
                bytes: text.len() as u64,
                pinned: false,
                path: path.clone(),
            };
            before(&entry)?;
            let written = Replace::new(&path, Present::Absent)
                .written_at(state.modified)
                .durability(self.options.durability)
                .write(text.as_bytes());
            match written {
                Ok(_) => {
                    self.note_order(&names, &path);
                    return Ok(entry.id);
                }
                Err(FileError::Changed { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(FileError::Io {
            operation: fsio::Operation::CreateTemp,
            path: folder,
            source: std::io::ErrorKind::AlreadyExists.into(),
        }
        .into())
    }

    /// The entries of all slots by their names; `None` if entries are not named by numbers.
    fn numbered<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<Numbered> {
        let Naming::Numbers { .. } = &self.naming else {
            return None;
        };
        let names = names.filter_map(number_and_slot);
        let mut all: Numbered = names
            .map(|(number, slot)| (number, slot.map(str::to_owned)))
            .collect();
        all.sort_unstable();
        Some(all)
    }

    /// The slot whose history this is, as encoded in names.
    fn slot(&self) -> Option<&String> {
        match &self.naming {
            Naming::Numbers { slot } => slot.as_ref(),
            Naming::Protocol(_) => None,
        }
    }

    /// The name of the entry with this number.
    fn name_of(&self, number: u64) -> String {
        match self.slot() {
            Some(slot) => format!("{number}{SLOT_SEPARATOR}{slot}.json"),
            None => format!("{number}.json"),
        }
    }

    /// The newest entry, if it is the present state: a save that was killed between this step and its rename
    /// leaves one. That state must not be kept again each time, because that would push out the real entries.
    fn newest_is_present(
        &self,
        folder: &Path,
        names: &[String],
        present: &[u8],
    ) -> Result<Option<(PathBuf, Contents)>, FileError> {
        let ours = names.iter().filter(|name| self.is_ours(name));
        let newest = match &self.naming {
            Naming::Numbers { .. } => ours.max_by_key(|name| in_order(name)).cloned(),
            Naming::Protocol(_) => self.in_order_made(ours.cloned().collect()).pop(),
        };
        let Some(newest) = newest else {
            return Ok(None);
        };
        let path = folder.join(newest);
        if !self.is_present(&path)? {
            return Ok(None);
        }
        let read = fsio::read_limited(&path, self.options.max_bytes)?;
        let read = read.filter(|read| read.bytes == present);
        Ok(read.map(|read| (path, read)))
    }

    pub(super) fn free_names<'n>(
        &'n self,
        folder: &'n Path,
        names: &[String],
        pinned: &[String],
        now: DateTime<Utc>,
    ) -> Box<dyn Iterator<Item = PathBuf> + 'n> {
        match &self.naming {
            Naming::Numbers { .. } => {
                // A pin keeps its number, even if a power cut removed the entry that it was made from.
                let all = names.iter().chain(pinned);
                let last = all.filter_map(|name| number_and_slot(name));
                let last = last.map(|(number, _)| number).max().unwrap_or(0);
                Box::new(
                    (1..=u64::from(u16::MAX))
                        .map(move |more| folder.join(self.name_of(last.saturating_add(more)))),
                )
            }
            Naming::Protocol(backups) => {
                let stem = (backups.stem)(&self.stem(), now);
                // The counter only grows: if a name that was pruned within the same second were used again, the
                // newest entry would look like the oldest.
                let used = names
                    .iter()
                    .filter_map(|name| counter_of(name, &stem))
                    .max();
                let first = used.map_or(0, |counter| counter + 1);
                Box::new(unique_names(folder, &stem).skip(first))
            }
        }
    }

    /// Makes a link if that is requested and possible, else a copy.
    fn link_or_copy(
        &self,
        path: &Path,
        (present, links): (&[u8], bool),
    ) -> Result<bool, FileError> {
        if links {
            match fsio::link(&self.target, path) {
                // File systems without hard links report that in several ways.
                Err(FileError::Io { .. }) => {}
                linked => return linked,
            }
        }
        let durability = match self.options.durability {
            Durability::None => Durability::None,
            Durability::Full | Durability::Data => Durability::Data,
        };
        fsio::copy(&self.target, present, path, durability)
    }

    /// Removes the entry because the file was not replaced.
    pub(in crate::store) fn undo(kept: Kept) {
        if let Some(path) = kept.made {
            let _ = fsio::remove(&path, Durability::None);
        }
        // A later backup of the same name would have another position.
        if let Some((note, before)) = kept.order {
            let _ = write_order(&note, &before);
        }
    }

    /// Removes entries beyond the limits of the options. It is called after a successful save; an entry that
    /// cannot be removed stays until the next time.
    pub(in crate::store) fn prune_after(&self, kept: Kept, left: Option<FileStamp>) {
        let keep = self.options.history.unwrap_or_default();
        let count = keep.count.unwrap_or_else(|| self.usual_count());
        if keep.age.is_some() || keep.bytes.is_some() {
            let _ = self.prune(&keep, None);
            return;
        }
        // If only the number is limited, nothing needs to be listed.
        let mut surplus = kept.count.saturating_sub(count.max(1));
        let folder = self.folder();
        match kept.entries {
            Some(mut entries) => {
                entries.retain(|(number, of)| {
                    let stays = surplus == 0 || of.as_ref() != self.slot();
                    if !stays {
                        surplus -= 1;
                        let path = folder.join(self.name_of(*number));
                        let _ = fsio::remove(&path, Durability::None);
                    }
                    stays
                });
                if let (Ok(Some(stamp)), Some(file)) = (stamp_of(&folder), left) {
                    let recent = RecentEntries {
                        entries,
                        folder: stamp,
                        file,
                    };
                    self.options.recent.put(&folder, recent);
                }
            }
            None if surplus > 0 => {
                let _ = self.prune(&keep, None);
            }
            None => {}
        }
    }
}

/// The stamp of a folder, which changes with every entry that is added or removed.
fn stamp_of(folder: &Path) -> Result<Option<FileStamp>, FileError> {
    Ok(fsio::look(folder)?.map(|found| FileStamp::of(&found)))
}

/// Creates the folder of a history with its parents. It is not synced: if a power cut removes the history,
/// nothing is lost that a save promised.
fn create(folder: &Path) -> Result<(), FileError> {
    fsio::create_folder(folder)
}

fn texts(names: Vec<OsString>) -> Vec<String> {
    let texts = names.into_iter().map(OsString::into_string);
    texts.filter_map(std::result::Result::ok).collect()
}
