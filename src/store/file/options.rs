//! How a store of files behaves.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::history::RecentEntries;
use crate::checkpoint::{Clock, Key, SystemClock};
use crate::fsio::{self, Durability, FileStamp};
use crate::store::Keep;

/// How a store of files behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct FileOptions {
    /// The largest file that is read, in bytes. Default 16 MiB.
    pub(in crate::store) max_bytes: u64,
    /// How long a save waits for the lock. Default 10 s.
    pub(in crate::store) lock_timeout: Duration,
    /// Whether a save waits until the disk has it. Default full.
    pub(in crate::store) durability: Durability,
    /// Reads only: every write is refused, and nothing is created. Default false.
    pub(in crate::store) read_only: bool,
    /// The writing agent, for those who wait for the lock. Default the process id.
    pub(in crate::store) holder: String,
    /// How much history is kept. Default the newest ten states of each checkpoint; `None` keeps none but a
    /// protocol's own backups.
    pub(in crate::store) history: Option<Keep>,
    /// Whether entries of the history are copies instead of hard links to the replaced files. For places
    /// where other programs write into files in place, which changes every name of them. A copy costs a
    /// third sync. Default false.
    pub(in crate::store) history_copies: bool,
    /// Whether to do without locks where the file system has none, because there is one writer only. Default
    /// false: such a place is refused.
    pub(in crate::store) single_writer: bool,
    /// Where the time of claims and backups comes from. Default the machine's clock.
    pub(in crate::store) clock: Arc<dyn Clock>,
    /// The histories whose last entries were made here.
    pub(super) recent: Recent,
    /// What was swept already.
    swept: Swept,
    /// The ids that were read in files.
    pub(super) ids: Ids,
}

/// How many files are remembered in each of the maps below. More are forgotten all at once, and looked at
/// again when they come up.
const MOST: usize = 65_536;

/// The keys that were found in files, so that each is read once. Each clone begins anew.
#[derive(Debug, Default)]
pub(super) struct Ids(Mutex<HashMap<PathBuf, (FileStamp, Option<Key>)>>);

impl Clone for Ids {
    fn clone(&self) -> Self {
        Ids::default()
    }
}

impl Ids {
    /// The clock of files may stand still for so long: a file that was written later than that before it was
    /// looked at may have changed since, and look the same.
    const TICK: Duration = Duration::from_millis(20);

    /// The key in a file, from memory where the file is as it was when it was read.
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
        // What a link leads to may change without it.
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

/// The entries in a history folder, as the last save here left them.
///
/// What others did since shows in the times of the folder and in the file; the folder is listed then. Each clone begins
/// anew.
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

    /// Takes what is known of a folder: whoever fails to put it back leaves nothing that could be wrong.
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

/// For what was swept already; each clone sweeps anew.
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
    /// Reads only.
    #[must_use]
    pub fn read_only() -> Self {
        FileOptions {
            read_only: true,
            ..FileOptions::default()
        }
    }

    /// Names who is writing, for those who wait for the lock.
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

    /// Sets whether a save waits until the disk has it.
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

    /// Keeps no history but a protocol's own backups.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.history = None;
        self
    }

    /// Keeps copies in the history, for places where other programs write into files in place.
    #[must_use]
    pub fn copying_history(mut self) -> Self {
        self.history_copies = true;
        self
    }

    /// Does without locks where the file system has none: there is one writer only.
    #[must_use]
    pub fn with_single_writer(mut self) -> Self {
        self.single_writer = true;
        self
    }

    /// Takes the time of claims and backups from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Whether what belongs to `of` was swept already.
    pub(super) fn has_swept(&self, of: &Path) -> bool {
        let swept = self.swept.0.lock().unwrap_or_else(PoisonError::into_inner);
        swept.contains(of)
    }

    /// Removes what killed writers left in the folders that belong to `of`, once for these options: when its first
    /// save comes.
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
            // What a clock with a coarse tick would show.
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
