//! Earlier states of one file: under the protocol's own names where it has some, else numbered.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::durable_file::sidecar_name;
use super::lineage::{Border, since_epoch};
use super::past::no_such;
use super::unique::{counter_of, in_order, unique_names};
use super::{FileOptions, Owner};
use crate::checkpoint::{Backups, Error, Key, Layout, Result};
use crate::fsio::{self, Contents, Durability, FileError, FileStamp, Present, Replace};
use crate::json::Document;
use crate::store::{EntryId, Keep};

/// What stands between the number of an entry and the slot of a host file that it belongs to.
const SLOT_SEPARATOR: char = '@';

/// The history of one file, or of one slot of a host file.
///
/// An entry is a second name of a file that was replaced: a hard link where that file is known to be on disk, else a
/// copy. It is made when the new contents are on disk and about to take the name, and old ones go only after that.
/// Pinned entries are copied to a folder that nothing is removed from.
pub(in crate::store) struct History<'o> {
    target: PathBuf,
    naming: Naming,
    options: &'o FileOptions,
}

enum Naming {
    /// `.agent-checkpoint/history/{file}/{number}.json`, of a host file `{number}@{slot}.json`.
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

/// What was kept for one save, to be taken back when it fails.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The entry that was made; `None` where the present state was one already.
    made: Option<PathBuf>,
    /// How many entries there are now.
    count: usize,
    /// The numbers of the entries, oldest first, where these are all that is needed to know them.
    numbers: Option<Vec<u64>>,
    /// The note of the order of backups, and what it said before.
    order: Option<(PathBuf, Vec<String>)>,
}

impl<'o> History<'o> {
    /// The history of a file; `None` where none is kept.
    pub(super) fn of(
        target: &Path,
        backups: Option<Backups>,
        owner: Owner<'_>,
        options: &'o FileOptions,
    ) -> Option<Self> {
        let naming = match backups {
            Some(backups) => Naming::Protocol(backups),
            None => Naming::Numbers {
                slot: owner.slot.map(encoded),
            },
        };
        (options.history.is_some() || backups.is_some()).then(|| History {
            target: target.to_path_buf(),
            naming,
            options,
        })
    }

    fn own(&self, what: &str) -> PathBuf {
        fsio::parent_of(&self.target)
            .join(fsio::OWN_FOLDER)
            .join(what)
            .join(sidecar_name(&self.target, ""))
    }

    fn folder(&self) -> PathBuf {
        match &self.naming {
            Naming::Numbers { .. } => self.own("history"),
            Naming::Protocol(backups) => fsio::parent_of(&self.target).join(backups.folder),
        }
    }

    /// Where its entries are.
    pub(super) fn folders(&self) -> [PathBuf; 2] {
        [self.folder(), self.pins()]
    }

    fn pins(&self) -> PathBuf {
        self.own("pinned")
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

    /// Keeps the present contents of the file, which is about to be replaced or removed. By a second name only where
    /// they are known to be on disk; else by a copy, which is: a link would be as torn as the file.
    pub(super) fn keep(
        &self,
        present: &Contents,
        is_synced: bool,
        now: DateTime<Utc>,
    ) -> Result<Kept, FileError> {
        let folder = self.folder();
        let links = is_synced && !self.options.history_copies;
        let present = (&*present.bytes, links);
        if let Some(kept) = self.keep_after(&folder, present)? {
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
            if self.second_name(&path, present)? {
                let order = self.note_order(&names, &path);
                let names = names.iter().map(String::as_str);
                let names = names.chain(path.file_name().and_then(|name| name.to_str()));
                return Ok(Kept {
                    numbers: self.numbers(names).filter(|_| pinned.is_empty()),
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

    /// The same for a store that made the last entry itself: it knows the names without listing the folder.
    /// `None` when it does not, or another process was here since, or something is pinned, which does not
    /// count.
    fn keep_after(&self, folder: &Path, present: (&[u8], bool)) -> Result<Option<Kept>, FileError> {
        let Some((mut numbers, stamp)) = self.options.recent.take(folder) else {
            return Ok(None);
        };
        let is_as_left = stamp_of(folder)?.is_some_and(|now| now == stamp);
        if !is_as_left || fsio::look(&self.pins())?.is_some() {
            return Ok(None);
        }
        let Some(next) = numbers.last().and_then(|last| last.checked_add(1)) else {
            return Ok(None);
        };
        let path = folder.join(format!("{next}.json"));
        match self.second_name(&path, present) {
            Ok(true) => {
                numbers.push(next);
                Ok(Some(Kept {
                    made: Some(path),
                    count: numbers.len(),
                    numbers: Some(numbers),
                    order: None,
                }))
            }
            Ok(false) => Ok(None),
            // Somebody removed the folder, say: the long way makes it again, or says what is wrong.
            Err(_) => Ok(None),
        }
    }

    /// The numbers of entries by their names; `None` where numbers alone do not name them.
    fn numbers<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<Vec<u64>> {
        if !matches!(self.naming, Naming::Numbers { slot: None }) {
            return None;
        }
        let mut numbers: Vec<u64> = names
            .filter_map(number_and_slot)
            .filter_map(|(number, slot)| slot.is_none().then_some(number))
            .collect();
        numbers.sort_unstable();
        Some(numbers)
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

    /// Whether an entry is another name of the present file, or a copy of it. A copy is the same state only if it
    /// was written at the same time: the same bytes may come back later.
    pub(super) fn is_present(&self, entry: &Path) -> Result<bool, FileError> {
        let (Some(entry), Some(target)) = (fsio::look(entry)?, fsio::look(&self.target)?) else {
            return Ok(false);
        };
        let is_link = cfg!(unix) && FileStamp::of(&entry).same_contents(&FileStamp::of(&target));
        let is_copy =
            || entry.len() == target.len() && entry.modified().ok() == target.modified().ok();
        Ok(is_link || is_copy())
    }

    fn free_names<'n>(
        &'n self,
        folder: &'n Path,
        names: &[String],
        pinned: &[String],
        now: DateTime<Utc>,
    ) -> Box<dyn Iterator<Item = PathBuf> + 'n> {
        match &self.naming {
            Naming::Numbers { slot } => {
                // A pin keeps its number, also where a power cut took the entry that it was made of.
                let all = names.iter().chain(pinned);
                let last = all.filter_map(|name| number_and_slot(name));
                let last = last.map(|(number, _)| number).max().unwrap_or(0);
                let slot = slot.as_ref();
                Box::new((1..=u64::from(u16::MAX)).map(move |more| {
                    let number = last.saturating_add(more);
                    folder.join(match slot {
                        Some(slot) => format!("{number}{SLOT_SEPARATOR}{slot}.json"),
                        None => format!("{number}.json"),
                    })
                }))
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
    fn second_name(&self, path: &Path, (present, links): (&[u8], bool)) -> Result<bool, FileError> {
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

    /// Has the entries on disk. A save does not wait for that, since what it puts in place is on disk; whoever
    /// removes something that is only in the history afterwards does.
    pub(in crate::store) fn make_last(&self) -> Result<(), FileError> {
        if self.options.durability == Durability::Full {
            let own = fsio::parent_of(&self.target).join(fsio::OWN_FOLDER);
            sync_down_to(&own, &self.folder())?;
        }
        Ok(())
    }

    /// The file was not replaced after all.
    pub(super) fn undo(kept: Kept) {
        if let Some(path) = kept.made {
            let _ = fsio::remove(&path, Durability::None);
        }
        // A later backup of the same name has another place.
        if let Some((note, before)) = kept.order {
            let _ = write_order(&note, &before);
        }
    }

    /// Removes what is beyond the limits of the options. Called after a save that succeeded; what cannot be
    /// removed stays for the next time.
    pub(super) fn prune_after(&self, kept: Kept) {
        let keep = self.options.history.unwrap_or_default();
        let count = keep.count.unwrap_or_else(|| self.usual_count());
        if keep.age.is_some() || keep.bytes.is_some() {
            let _ = self.prune(&keep, None);
            return;
        }
        // Where only the number counts, nothing is looked at.
        let surplus = kept.count.saturating_sub(count.max(1));
        let folder = self.folder();
        match kept.numbers {
            Some(mut numbers) => {
                for number in numbers.drain(..surplus.min(numbers.len())) {
                    let _ = fsio::remove(&folder.join(format!("{number}.json")), Durability::None);
                }
                if let Ok(Some(stamp)) = stamp_of(&folder) {
                    self.options.recent.put(&folder, numbers, stamp);
                }
            }
            None if surplus > 0 => {
                let _ = self.prune(&keep, None);
            }
            None => {}
        }
    }

    fn usual_count(&self) -> usize {
        match &self.naming {
            Naming::Numbers { .. } => Keep::COUNT,
            Naming::Protocol(backups) => backups.keep,
        }
    }

    /// Removes what is beyond these limits, never the newest and never `spared`, and says what went.
    pub(in crate::store) fn prune(
        &self,
        keep: &Keep,
        spared: Option<&EntryId>,
    ) -> Result<Vec<EntryId>> {
        let mut loose = self.listed(&self.folder(), false, &|name| self.is_ours(name))?;
        let pinned = fsio::names(&self.pins())?;
        loose.retain(|entry| {
            let name = entry.path.file_name();
            name.is_none_or(|name| pinned.iter().all(|pin| pin != name))
        });
        let sizes: Vec<_> = loose
            .iter()
            .map(|entry| (entry.saved, entry.bytes))
            .collect();
        let now = SystemTime::from(self.options.clock.now());
        let mut gone = Vec::new();
        // In the newest entry the slot of a host file may be empty, but not in the one before as well.
        let is_slot = matches!(self.naming, Naming::Numbers { slot: Some(_) });
        let stay = 1 + usize::from(is_slot && spared.is_none());
        // The oldest first: killed in between, it leaves no hole.
        for at in keep
            .beyond(self.usual_count(), &sizes, now)
            .into_iter()
            .rev()
            .filter(|at| *at >= stay)
        {
            let entry = &loose[at];
            if spared != Some(&entry.id) && fsio::remove(&entry.path, Durability::None).is_ok() {
                gone.push(entry.id.clone());
            }
        }
        gone.reverse();
        Ok(gone)
    }

    /// The entries, newest first; of a slot also those that were made when the host file was changed as a
    /// whole.
    pub(in crate::store) fn entries(&self) -> Result<Vec<Entry>> {
        let of_the_whole = |name: &str| match &self.naming {
            Naming::Numbers { slot: Some(_) } => {
                number_and_slot(name).is_some_and(|(_, of)| of.is_none())
            }
            _ => false,
        };
        self.all(&|name| self.is_ours(name) || of_the_whole(name))
    }

    /// The entries of every slot of a host file, newest first.
    pub(in crate::store) fn entries_of_all_slots(&self) -> Result<Vec<Entry>> {
        self.all(&|name| number_and_slot(name).is_some())
    }

    /// What is pinned and what is not, each once.
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
            // One that went meanwhile is none.
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

    /// Where the order is noted in which a protocol's backups were made: one name a line, the oldest first.
    fn order_note(&self) -> PathBuf {
        self.own("order")
    }

    /// The order of the backups as far as it is noted, also of some that are gone. Without the note nothing is
    /// lost but the order.
    pub(super) fn noted_order(&self) -> Vec<String> {
        if matches!(self.naming, Naming::Numbers { .. }) {
            return Vec::new();
        }
        let read = fsio::read_limited(&self.order_note(), MOST_NOTED as u64 * 512);
        let bytes = read.ok().flatten().map(|read| read.bytes);
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// These backups in the order in which they were made, the oldest first. Neither names nor the times of files
    /// tell it, since clocks are set and checkouts give new times. Those that others made join by what they
    /// say of themselves, else by their names.
    fn in_order_made(&self, names: Vec<String>) -> Vec<String> {
        let noted = self.noted_order();
        let known: HashSet<&String> = noted.iter().collect();
        let mut others: Vec<String> = Vec::new();
        let mut present: HashSet<String> = HashSet::new();
        for name in names {
            if !known.contains(&name) {
                others.push(name.clone());
            }
            present.insert(name);
        }
        let mut ordered = noted;
        ordered.retain(|name| present.contains(name));
        if others.is_empty() {
            return ordered;
        }
        let mut stamps = HashMap::new();
        for name in &present {
            stamps.insert(name.clone(), self.written_in(name));
        }
        others.sort_by_cached_key(|name| (stamps.get(name).copied().flatten(), in_order(name)));
        for other in others {
            let is_before = |known: &String| {
                let stamp = |name| stamps.get(name).copied().flatten();
                match (stamp(known), stamp(&other)) {
                    (Some(known), Some(other)) => known <= other,
                    _ => in_order(known) <= in_order(&other),
                }
            };
            let at = ordered.iter().rposition(is_before).map_or(0, |at| at + 1);
            ordered.insert(at, other);
        }
        ordered
    }

    /// The time that a backup says it is of.
    fn written_in(&self, name: &str) -> Option<DateTime<Utc>> {
        let Naming::Protocol(backups) = &self.naming else {
            return None;
        };
        let read = |folder: PathBuf| {
            let read = fsio::read_limited(&folder.join(name), self.options.max_bytes);
            read.ok().flatten()
        };
        let read = read(self.folder()).or_else(|| read(self.pins()))?;
        (backups.stamp_in)(&Document::parse(&read.bytes).ok()?)
    }

    /// Notes that a backup is the newest, and gives what was noted before. Best effort: what is not noted joins by
    /// what it says.
    fn note_order(&self, names: &[String], made: &Path) -> Option<(PathBuf, Vec<String>)> {
        let (Naming::Protocol(_), Some(made)) = (&self.naming, made.file_name()) else {
            return None;
        };
        let present = names.iter().filter(|name| self.is_ours(name));
        let present = self.in_order_made(present.cloned().collect());
        // Those that are gone stay for a while: a task may have ended with one of them.
        let before = self.noted_order();
        let mut order = before.clone();
        order.retain(|name| !present.contains(name));
        order.drain(..order.len().saturating_sub(MOST_NOTED));
        order.extend(present);
        order.push(made.to_string_lossy().into_owned());
        let note = self.order_note();
        let written = fsio::create_folder(fsio::parent_of(&note));
        if let Err(error) = written.and_then(|()| write_order(&note, &order)) {
            tracing::warn!(path = %note.display(), %error, "the order of backups is not noted");
        }
        Some((note, before))
    }

    /// Whether an entry is of the task that ended with this one, or of one before.
    /// `noted` is the [order](History::noted_order) that is noted.
    pub(super) fn is_up_to(&self, entry: &Entry, border: &Border, noted: &[String]) -> bool {
        let order = |id: &str| in_order(id);
        let (entry_order, border_order) = (order(entry.id.as_str()), order(&border.entry));
        let saved = entry.saved.map(since_epoch);
        match &self.naming {
            // A number comes again only where somebody removed the history, and then with newer states.
            Naming::Numbers { .. } => {
                let is_later = saved.zip(border.saved).is_some_and(|(is, was)| is > was);
                entry_order <= border_order && !is_later
            }
            Naming::Protocol(_) => {
                let place = |id: &str| {
                    noted
                        .iter()
                        .position(|name| name.strip_suffix(".json") == Some(id))
                };
                match (place(entry.id.as_str()), place(&border.entry)) {
                    (Some(entry), Some(border)) => entry <= border,
                    _ => (saved, entry_order) <= (border.saved, border_order),
                }
            }
        }
    }

    /// Pins an entry, or unpins it. A pin is a copy: whoever still has the file of the entry open, or writes into it
    /// in place, does not change the pin.
    pub(in crate::store) fn pin(&self, entry: &Entry, pinned: bool) -> Result<()> {
        let Some(name) = entry.path.file_name() else {
            return Ok(());
        };
        let (loose, pin) = (self.folder().join(name), self.pins().join(name));
        let (from, to) = if pinned {
            (&loose, &pin)
        } else {
            (&pin, &loose)
        };
        if pinned == entry.pinned {
            return self.pin_lasts(pinned);
        }
        fsio::create_folder_durably(fsio::parent_of(to))?;
        let linked = || !pinned && matches!(fsio::link(from, to), Ok(true));
        if fsio::look(to)?.is_none() && !linked() {
            let read = fsio::read_limited(from, self.options.max_bytes)?;
            let read = read.ok_or_else(|| no_such(&entry.id))?;
            fsio::copy(from, &read.bytes, to, self.options.durability)?;
        }
        if pinned {
            return self.pin_lasts(pinned);
        }
        self.make_last()?;
        fsio::remove(&pin, self.options.durability)?;
        Ok(())
    }

    /// Has a pin on disk, also one whose maker was killed before it was.
    fn pin_lasts(&self, pinned: bool) -> Result<()> {
        if pinned && self.options.durability == Durability::Full {
            let own = fsio::parent_of(&self.target).join(fsio::OWN_FOLDER);
            let pins = self.pins();
            // The pin is in place by now.
            sync_down_to(&own, &pins).map_err(|error| error.not_durable(&pins))?;
        }
        Ok(())
    }

    /// The entry that a save kept, or that was the present state already.
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
}

/// How many names of backups that are gone are still noted.
const MOST_NOTED: usize = 256;

fn write_order(note: &Path, order: &[String]) -> Result<(), FileError> {
    let text = format!("{}\n", order.join("\n"));
    let replace = Replace::new(note, Present::Whatever).durability(Durability::None);
    replace.write(text.as_bytes()).map(drop)
}

fn name_of(entry: &Entry) -> String {
    let name = entry.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
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

/// Syncs a folder and those above it, from `top` on.
fn sync_down_to(top: &Path, folder: &Path) -> Result<(), FileError> {
    let mut all: Vec<&Path> = folder
        .ancestors()
        .take_while(|one| one.starts_with(top))
        .collect();
    if all.is_empty() {
        // The protocol's folder is beside ours.
        all = folder.ancestors().take(2).collect();
    }
    for one in all.into_iter().rev() {
        if fsio::look(one)?.is_some() {
            fsio::sync_folder(one)?;
        }
    }
    Ok(())
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

/// The most digits of the number of an entry. What has more is no entry of ours: no history comes that far, and
/// counting on from there would soon have no number left.
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

/// A slot as part of a file name.
pub(super) fn encoded(slot: &str) -> String {
    let name = Key::new(slot).and_then(|key| (Layout::default().file_name)(&key));
    name.map_or_else(
        |_: Error| String::from("%"),
        |name| name.strip_suffix(".json").unwrap_or(&name).to_owned(),
    )
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
        assert_eq!(encoded("adhoc:1/x"), "adhoc%3A1%2Fx");
    }

    #[test]
    fn a_save_makes_the_names_that_it_tries_and_not_all_that_may_be() {
        use crate::checkpoint::Checkpoint;
        let layout = crate::formats::AgentCheckpoint::layout();
        let options = FileOptions::default();
        let target = Path::new("folder/secondary_a.json");
        let history = History::of(target, layout.backups, Owner::default(), &options).unwrap();
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            let mut names = history.free_names(Path::new("backups"), &[], &[], DateTime::default());
            assert!(names.next().is_some());
        }
        // Ten thousand names each would be ten million.
        assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());
    }
}
