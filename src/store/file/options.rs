//! The options of a store of files.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::history::RecentEntries;
use crate::checkpoint::{Clock, Key, SystemClock};
use crate::fsio::{self, Durability, FileStamp};
use crate::store::Keep;

/// The options of a store of files.
#[derive(Clone)]
#[non_exhaustive]
pub struct FileOptions {
    /// The largest file that is read, in bytes. Default 16 MiB.
    pub(in crate::store) max_bytes: u64,
    /// How long a save waits for the lock. Default 10 s.
    pub(in crate::store) lock_timeout: Duration,
    /// Which syncs a save waits for. Default full.
    pub(in crate::store) durability: Durability,
    /// Whether the store only reads: every write is refused, and nothing is created. Default false.
    pub(in crate::store) read_only: bool,
    /// The name of the writing agent, shown to those who wait for the lock. Default the process id.
    pub(in crate::store) holder: String,
    /// How much history is kept. Default the newest ten states of each checkpoint. `None` keeps only a
    /// protocol's own backups.
    pub(in crate::store) history: Option<Keep>,
    /// Whether history entries are copies instead of hard links to the replaced files. Needed where other programs
    /// write into files in place, which changes a file under all its names. A copy costs a third sync. Default false.
    pub(in crate::store) history_copies: bool,
    /// Whether to work without locks if the file system has none, because there is only one writer. By default
    /// false: such a file system is refused.
    pub(in crate::store) single_writer: bool,
    /// The clock for claims and backups. Default the machine's clock.
    pub(in crate::store) clock: Arc<dyn Clock>,
    /// The histories whose last entries were made by this store.
    pub(super) recent: Recent,
    /// The folders that were already swept.
    swept: Swept,
    /// The ids that were read from files.
    pub(super) ids: Ids,
}

/// The most files that each of the maps below remembers. Beyond that the whole map is cleared, and files are
/// read again when needed.
const MOST: usize = 65_536;

/// The keys that were found in files, so that each file is read only once. A clone starts empty.
#[derive(Debug, Default)]
pub(super) struct Ids(Mutex<HashMap<PathBuf, (FileStamp, Option<Key>)>>);

impl Clone for Ids {
    fn clone(&self) -> Self {
        Ids::default()
    }
}

impl Ids {
    /// How long the file clock may stand still. A file that was changed less than this before it was read may
    /// change again without looking different.
    const TICK: Duration = Duration::from_millis(20);

    /// The key in a file, from memory if the file did not change since it was read.
    pub(super) fn of(&self, path: &Path, read: impl FnOnce() -> Option<Key>) -> Option<Key> {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fsio::look(path).ok().flatten()?;
        let stamp = FileStamp::of(&found);
        if let Some((_, key)) = all().get(path).filter(|(known, _)| *known == stamp) {
            return key.clone();
        }
        let age = found
            .modified()
            .ok()
            .and_then(|modified| modified.elapsed().ok());
        let key = read();
        // The target of a link may change while the link does not.
        if found.is_file() && age.is_some_and(|age| age >= Self::TICK) {
            self.insert(path, stamp, key.clone());
        }
        key
    }

    fn insert(&self, path: &Path, stamp: FileStamp, key: Option<Key>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(path.to_path_buf(), (stamp, key));
    }
}

impl fmt::Debug for FileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileOptions")
            .field("max_bytes", &self.max_bytes)
            .field("lock_timeout", &self.lock_timeout)
            .field("durability", &self.durability)
            .field("read_only", &self.read_only)
            .field("holder", &self.holder)
            .field("history", &self.history)
            .field("history_copies", &self.history_copies)
            .field("single_writer", &self.single_writer)
            .finish_non_exhaustive()
    }
}

/// The entries in a history folder, as the last save of this store left them.
///
/// Changes by others show in the stamps of the folder and the file; the folder is then listed again. A clone
/// starts empty.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<HashMap<PathBuf, RecentEntries>>);

impl Clone for Recent {
    fn clone(&self) -> Self {
        Recent::default()
    }
}

impl Recent {
    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, RecentEntries>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entries of a folder out of the map: if the caller fails before it puts them back, no wrong
    /// ones remain.
    pub(super) fn take(&self, folder: &Path) -> Option<RecentEntries> {
        self.all().remove(folder)
    }

    pub(super) fn put(&self, folder: &Path, entries: RecentEntries) {
        let mut all = self.all();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(folder.to_path_buf(), entries);
    }
}

/// The folders that were already swept; a clone sweeps again.
#[derive(Debug, Default)]
struct Swept(Mutex<HashSet<PathBuf>>);

impl Clone for Swept {
    fn clone(&self) -> Self {
        Swept::default()
    }
}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            max_bytes: 16 * 1024 * 1024,
            lock_timeout: Duration::from_secs(10),
            durability: Durability::Full,
            read_only: false,
            holder: format!("process {}", std::process::id()),
            history: Some(Keep::default()),
            history_copies: false,
            single_writer: false,
            clock: Arc::new(SystemClock),
            recent: Recent::default(),
            swept: Swept::default(),
            ids: Ids::default(),
        }
    }
}

impl FileOptions {
    /// Options for a store that only reads.
    #[must_use]
    pub fn read_only() -> Self {
        FileOptions {
            read_only: true,
            ..FileOptions::default()
        }
    }

    /// Sets the name of the writing agent, which is shown to those who wait for the lock.
    #[must_use]
    pub fn with_holder(mut self, agent: &str) -> Self {
        self.holder = format!("{agent} (process {})", std::process::id());
        self
    }

    /// Sets the largest file that is read, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long a save waits for the lock.
    #[must_use]
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets which syncs a save waits for.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how much history is kept.
    #[must_use]
    pub fn with_history(mut self, keep: Keep) -> Self {
        self.history = Some(keep);
        self
    }

    /// Keeps no history except a protocol's own backups.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.history = None;
        self
    }

    /// Makes history entries copies, for places where other programs write into files in place.
    #[must_use]
    pub fn copying_history(mut self) -> Self {
        self.history_copies = true;
        self
    }

    /// Works without locks if the file system has none, because there is only one writer.
    #[must_use]
    pub fn with_single_writer(mut self) -> Self {
        self.single_writer = true;
        self
    }

    /// Sets the clock for claims and backups.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Whether the folders that belong to `of` were already swept.
    pub(super) fn has_swept(&self, of: &Path) -> bool {
        let swept = self.swept.0.lock().unwrap_or_else(PoisonError::into_inner);
        swept.contains(of)
    }

    /// Removes the temporary files that killed writers left in the folders of `of`, once for these options, at
    /// the first save.
    pub(super) fn sweep_once(&self, of: &Path, folders: impl FnOnce() -> Vec<PathBuf>) {
        let mut swept = self.swept.0.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.contains(of) {
            return;
        }
        if swept.len() >= MOST {
            swept.clear();
        }
        swept.insert(of.to_path_buf());
        drop(swept);
        for folder in folders() {
            fsio::sweep(&folder, fsio::ABANDONED_AFTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_remembers_of_many_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "{}").unwrap();
        let stamp = FileStamp::of(&std::fs::metadata(&file).unwrap());
        let options = FileOptions::default();
        let fill = |number: usize| {
            let path = PathBuf::from(number.to_string());
            let recent = RecentEntries {
                entries: Vec::new(),
                folder: stamp.clone(),
                file: stamp.clone(),
            };
            options.recent.put(&path, recent);
            options.sweep_once(&path, Vec::new);
            options.ids.insert(&path, stamp.clone(), None);
        };
        let sizes = || {
            let swept = options.swept.0.lock().unwrap().len();
            let ids = options.ids.0.lock().unwrap().len();
            [options.recent.all().len(), swept, ids]
        };
        (0..MOST).for_each(fill);
        assert_eq!(sizes(), [MOST; 3]);
        fill(MOST);
        assert_eq!(sizes(), [1; 3]);
    }

    #[test]
    fn the_slots_of_a_host_never_take_a_number_twice_although_the_clock_stands_still() {
        use crate::store::file::history::History;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("host.json");
        let stores = [FileOptions::default(), FileOptions::default()];
        let mut numbers = Vec::new();
        let saves = [
            (0, Some("a")),
            (0, Some("b")),
            (0, Some("a")),
            (1, Some("b")),
        ];
        let saves = saves
            .into_iter()
            .chain([(0, Some("a")), (0, None), (1, None)]);
        let look = |path: &Path| FileStamp::of(&fsio::look(path).unwrap().unwrap());
        std::fs::write(&target, "{}").unwrap();
        for (n, (store, slot)) in saves.enumerate() {
            let options = &stores[store];
            let history = History::of(&target, None, slot, options).unwrap();
            let present = fsio::read_limited(&target, 10).unwrap().unwrap();
            let kept = history.keep(&present, false, Clock::now(&SystemClock));
            fsio::replace(&target, format!("{n}").as_bytes(), fsio::Present::Whatever).unwrap();
            history.prune_after(kept.unwrap(), Some(look(&target)));
            let newest = history.newest().unwrap().unwrap();
            let number = newest.id.as_str().split('@').next().unwrap();
            numbers.push(number.parse::<usize>().unwrap());
            // The stamps that a clock with a coarse tick would show.
            let folder = look(newest.path.parent().unwrap());
            for options in &stores {
                let mut all = options.recent.all();
                all.values_mut()
                    .for_each(|known| known.folder = folder.clone());
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    }
}
