//! The entry that a save makes of what it replaces.

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

/// The entries in the history of a file, as a save left them.
#[derive(Debug)]
pub(in crate::store::file) struct RecentEntries {
    pub(in crate::store::file) entries: Numbered,
    /// What the folder was like then, and the file.
    pub(in crate::store::file) folder: FileStamp,
    pub(in crate::store::file) file: FileStamp,
}

/// What was kept for one save, to be taken back when it fails.
#[derive(Debug, Default)]
pub(in crate::store) struct Kept {
    /// The entry that was made; `None` where the present state was one already.
    made: Option<PathBuf>,
    /// How many entries there are now.
    count: usize,
    /// All entries, where their numbers and slots are all that is needed to know them.
    entries: Option<Numbered>,
    /// The note of the order of backups, and what it said before.
    order: Option<(OwnFile, Vec<String>)>,
}

impl<'o> History<'o> {
    /// Keeps the present contents of the file, which is about to be replaced or removed. By a hard link only where
    /// they are known to be on disk; else by a copy, which is: a link would be as torn as the file.
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

    /// The same for a store that made the last save itself: it knows the names without listing the folder.
    /// `None` when it does not, or another process was here since, or something is pinned, which does not
    /// count.
    fn keep_after(
        &self,
        folder: &Path,
        file: &FileStamp,
        present: (&[u8], bool),
    ) -> Result<Option<Kept>, FileError> {
        let Some(recent) = self.options.recent.take(folder) else {
            return Ok(None);
        };
        // A folder that is changed twice within a tick of the clock looks the same; a file that is replaced does not.
        // So this misses one entry: of a process that worked on another slot within the tick of our save, and was
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
            // Somebody removed the folder, say: the long way makes it again, or says what is wrong.
            Err(_) => Ok(None),
        }
    }

    /// Adds a state as the newest entry, on disk when this returns. `before` is called with it before it is there.
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

    /// The entries of all slots by their names; `None` where numbers do not name them.
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

    /// The slot whose history this is, as it stands in names.
    fn slot(&self) -> Option<&String> {
        match &self.naming {
            Naming::Numbers { slot } => slot.as_ref(),
            Naming::Protocol(_) => None,
        }
    }

    /// The name of an entry with a number.
    fn name_of(&self, number: u64) -> String {
        match self.slot() {
            Some(slot) => format!("{number}{SLOT_SEPARATOR}{slot}.json"),
            None => format!("{number}.json"),
        }
    }

    /// A save that was killed between this and its rename left an entry of what is still present. It must
    /// not be kept again each time: that would push the real ones out.
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
                // A pin keeps its number, also where a power cut took the entry that it was made of.
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
                // The counter only grows: a name that was pruned within the same second is not used
                // again, or the newest would look oldest.
                let used = names
                    .iter()
                    .filter_map(|name| counter_of(name, &stem))
                    .max();
                let first = used.map_or(0, |counter| counter + 1);
                Box::new(unique_names(folder, &stem).skip(first))
            }
        }
    }

    /// Links where that is asked for and possible, else copies.
    fn link_or_copy(
        &self,
        path: &Path,
        (present, links): (&[u8], bool),
    ) -> Result<bool, FileError> {
        if links {
            match fsio::link(&self.target, path) {
                // File systems without hard links say so in several ways.
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

    /// The file was not replaced after all.
    pub(in crate::store) fn undo(kept: Kept) {
        if let Some(path) = kept.made {
            let _ = fsio::remove(&path, Durability::None);
        }
        // A later backup of the same name has another place.
        if let Some((note, before)) = kept.order {
            let _ = write_order(&note, &before);
        }
    }

    /// Removes what is beyond the limits of the options. Called after a save that succeeded, with what it left in
    /// place; what cannot be removed stays for the next time.
    pub(in crate::store) fn prune_after(&self, kept: Kept, left: Option<FileStamp>) {
        let keep = self.options.history.unwrap_or_default();
        let count = keep.count.unwrap_or_else(|| self.usual_count());
        if keep.age.is_some() || keep.bytes.is_some() {
            let _ = self.prune(&keep, None);
            return;
        }
        // Where only the number counts, nothing is looked at.
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

/// What a folder is like: it changes with every entry that comes or goes.
fn stamp_of(folder: &Path) -> Result<Option<FileStamp>, FileError> {
    Ok(fsio::look(folder)?.map(|found| FileStamp::of(&found)))
}

/// The folder of a history, with what is missing of it. Not synced: a history that a power cut takes away
/// takes nothing with it that a save promised.
fn create(folder: &Path) -> Result<(), FileError> {
    fsio::create_folder(folder)
}

fn texts(names: Vec<OsString>) -> Vec<String> {
    let texts = names.into_iter().map(OsString::into_string);
    texts.filter_map(std::result::Result::ok).collect()
}
