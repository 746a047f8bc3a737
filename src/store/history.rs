//! Earlier states of a checkpoint.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

use super::{CheckpointStore, Stored};
use crate::checkpoint::{Error, ErrorKind, Key, Result, Revision};
use crate::json::Corrupt;

/// The earlier states of a store's documents.
pub trait History {
    /// The states of a key, newest first: the present state, then those that writes replaced.
    ///
    /// A state that cannot be read is an entry too, with the reason. This holds no lock, so an entry may be
    /// gone by the time it is loaded.
    ///
    /// # Errors
    ///
    /// Any failure to list the history.
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>>;

    /// Loads one state of a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is no entry of this name, or no longer; [`ErrorKind::Corrupt`]
    /// when it cannot be read.
    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored>;

    /// Pins an entry, so that it is never removed, or unpins it. Pinning the present state makes an entry of
    /// it. Returns the name of the entry.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is no entry of this name.
    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId>;

    /// Removes the entries beyond these limits and returns them. While the present state is missing or cannot
    /// be read, the newest readable entry stays.
    ///
    /// # Errors
    ///
    /// Any failure to list the history. An entry that cannot be removed stays.
    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>>;

    /// Adds a state as the newest entry, as if it had been [written](Stored::modified) at its time and then
    /// replaced, and records that `tasks_ended` tasks ended after it. It is for copies, which add the oldest
    /// state first and the document last. Nothing is pruned, and the entry is as durable as a document when
    /// this returns. Repeating an interrupted call leaves only one entry.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when there is a document under the key; [`ErrorKind::Claimed`] while a claim on
    /// it is valid; [`ErrorKind::NotOffered`] in a store of slots; any failure to write it.
    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId>;

    /// The time of the last save, if it did not write the state with the revision `present`, so that something
    /// else changed the document. `None` also if the store cannot tell.
    ///
    /// # Errors
    ///
    /// When the key names no place in the store.
    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>>;

    /// Whether the present state, with the revision `present`, is an earlier one that was put back without the store,
    /// for example by `git checkout`: the last save did not write it, and it equals an entry of the history.
    ///
    /// `None` otherwise, and if the store cannot tell: not every store records its last save, and the record
    /// may be lost at any time. A save that was killed does not count. This holds no lock.
    ///
    /// # Errors
    ///
    /// Any failure to list the history.
    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>>;
}

/// The history of a store, or the error that it has none.
pub(crate) fn history_of<S: CheckpointStore + ?Sized>(store: &S) -> Result<&dyn History> {
    let none = || Error::new(ErrorKind::NotOffered { what: "history" });
    store.history().ok_or_else(none)
}

/// The name of one state in the history of a key, as [`History::states`] lists it.
///
/// A state is identified by this name, not by its [`Revision`] alone, because the same bytes can come back.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntryId(String);

impl EntryId {
    pub(super) fn of(text: impl Into<String>) -> Self {
        EntryId(text.into())
    }

    /// The name of the present state, which is not an entry of its own yet.
    #[must_use]
    pub fn current() -> Self {
        EntryId::of(CURRENT)
    }

    /// Whether this names the present state.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.0 == CURRENT
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The error for a missing entry of this name.
    #[must_use]
    pub fn no_such(&self) -> Error {
        let wanted = self.to_string();
        Error::new(ErrorKind::NoSuchRevision { wanted })
    }
}

/// The name of an entry in a store that numbers them.
impl From<u64> for EntryId {
    fn from(number: u64) -> Self {
        EntryId::of(number.to_string())
    }
}

const CURRENT: &str = "current";

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryId({:?})", self.0)
    }
}

impl FromStr for EntryId {
    type Err = Error;

    /// Parses the output of [`Display`](fmt::Display). Whether the entry exists is only checked when it is
    /// loaded.
    fn from_str(text: &str) -> Result<Self> {
        let is_name = |letter: char| letter.is_alphanumeric() || "-_.%@+,=() ".contains(letter);
        let id = EntryId(text.to_owned());
        if text.is_empty() || text.starts_with('.') || !text.chars().all(is_name) {
            return Err(id.no_such());
        }
        Ok(id)
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// One state in the history of a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Its name.
    pub id: EntryId,
    /// The revision of the state, or why it cannot be read.
    pub revision: std::result::Result<Revision, Corrupt>,
    /// When it was written, if the store knows.
    pub saved: Option<SystemTime>,
    /// The length of its text in bytes, for a slot that of the slot's text; for an unreadable state, the length
    /// of the file.
    pub bytes: u64,
    /// Whether it is pinned and so never removed.
    pub pinned: bool,
    /// How many tasks ended after it. It is 0 for a state of the present task, and grows with each task
    /// boundary, which an archive or a new document after a deletion makes. Only states of the present task are
    /// [recovered](super::Recover::recover) without being named.
    pub tasks_since: usize,
}

impl HistoryEntry {
    /// A state of this name, with its revision or the reason why it cannot be read; everything else is unknown.
    /// For authors of stores.
    #[must_use]
    pub fn new(id: EntryId, revision: std::result::Result<Revision, Corrupt>) -> Self {
        HistoryEntry {
            id,
            revision,
            saved: None,
            bytes: 0,
            pinned: false,
            tasks_since: 0,
        }
    }

    /// A state made from the result of reading it. For authors of stores.
    ///
    /// # Errors
    ///
    /// The error of the read, unless it says that the text is corrupt.
    pub fn of(id: EntryId, read: Result<Stored>) -> Result<Self> {
        let stored = match read {
            Ok(stored) => stored,
            Err(error) => match error.kind() {
                ErrorKind::Corrupt(corrupt) => {
                    return Ok(HistoryEntry::new(id, Err(corrupt.clone())));
                }
                _ => return Err(error),
            },
        };
        let mut entry = HistoryEntry::new(id, Ok(stored.revision));
        entry.saved = stored.modified;
        entry.bytes = stored.document.text().len() as u64;
        Ok(entry)
    }

    /// Whether this is the present state.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.id.is_current()
    }
}

/// An earlier state that was put back without the store, for example by `git checkout` or a copy of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RolledBack {
    /// The newest history entry that equals the present state.
    pub present: EntryId,
    /// The entry to look at instead: the state that was saved last if it is kept, else the newest entry after
    /// `present`, if there is one.
    pub later: Option<EntryId>,
    /// The time of the last save.
    pub saved: SystemTime,
    /// Whether the state that was saved last is an entry of the history. If not, this store has no copy of it.
    pub last_is_kept: bool,
}

impl RolledBack {
    /// States that this entry was put back after a save at this time, and that no later state is kept. For
    /// authors of stores.
    #[must_use]
    pub fn new(present: EntryId, saved: SystemTime) -> Self {
        RolledBack {
            present,
            later: None,
            saved,
            last_is_kept: false,
        }
    }
}

/// How much history is kept of each key. The newest entry and pinned ones are never removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keep {
    /// The most entries; `None` means the protocol's own number if it has one, else 10.
    pub count: Option<usize>,
    /// The greatest age of an entry.
    pub age: Option<Duration>,
    /// The most bytes of all entries together, as stored: an entry of a slot is a whole host file.
    pub bytes: Option<u64>,
}

impl Keep {
    /// How many entries are kept by default.
    pub const COUNT: usize = 10;

    /// The newest `count` entries.
    #[must_use]
    pub const fn newest(count: usize) -> Self {
        Keep {
            count: Some(count),
            age: None,
            bytes: None,
        }
    }

    /// Limits the age.
    #[must_use]
    pub const fn younger_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Limits the size of all entries together.
    #[must_use]
    pub const fn within_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Whether this number of entries is within the limits, whatever the entries are.
    pub(super) fn keeps_any(&self, count: usize, entries: usize) -> bool {
        entries <= self.count.unwrap_or(count) && self.age.is_none() && self.bytes.is_none()
    }

    /// The positions of those `entries` that are beyond the limits. `entries` are newest first, each with its
    /// time and its size in bytes. The newest is never beyond. `count` is the number to keep if the limits name
    /// none. For authors of stores.
    #[must_use]
    pub fn beyond(
        &self,
        count: usize,
        entries: impl IntoIterator<Item = (Option<SystemTime>, u64)>,
        now: SystemTime,
    ) -> Vec<usize> {
        let most = self.count.unwrap_or(count);
        let mut sum = 0_u64;
        let mut beyond = Vec::new();
        for (at, (written, bytes)) in entries.into_iter().enumerate() {
            let is_old = self.age.zip(written).is_some_and(|(age, written)| {
                now.duration_since(written).is_ok_and(|old| old > age)
            });
            let is_too_much = self
                .bytes
                .is_some_and(|most| sum.saturating_add(bytes) > most);
            if at > 0 && (at >= most || is_old || is_too_much) {
                beyond.push(at);
            } else {
                sum = sum.saturating_add(bytes);
            }
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stays_whatever_the_limits() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let ago = |seconds| Some(now - Duration::from_secs(seconds));
        let entries = [(ago(100), 50), (ago(200), 10), (ago(300), 10), (None, 10)];
        assert_eq!(Keep::newest(2).beyond(10, entries, now), [2, 3]);
        assert_eq!(Keep::newest(0).beyond(10, entries, now), [1, 2, 3]);
        assert_eq!(Keep::default().beyond(3, entries, now), [3]);
        let young = Keep::default().younger_than(Duration::from_secs(200));
        assert_eq!(young.beyond(10, entries, now), [2]);
        // An entry that is too large leaves room for smaller ones after it.
        let small = Keep::default().within_bytes(60);
        assert_eq!(small.beyond(10, entries, now), [2, 3]);
        assert!(Keep::default().beyond(10, [], now).is_empty());
    }

    #[test]
    fn an_entrys_name_is_no_path() {
        for text in ["12", "current", "Main-20260101-120000-1", "3@adhoc%3A1"] {
            assert_eq!(text.parse::<EntryId>().unwrap().to_string(), text);
        }
        for text in ["", "../x", "a/b", "a\\b", ".hidden", "a\nb", "C:x"] {
            assert!(text.parse::<EntryId>().is_err(), "{text:?}");
        }
    }
}
