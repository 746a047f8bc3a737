//! The steps that many rules share. Each panics if the store breaks its contract.

use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{Error, ErrorKind, Expect, Fence, Key, Result};
use crate::json::Document;
use crate::store::{Capabilities, CheckpointStore, DeleteOptions, Put, Saved, Stored};

use super::{Place, Skipped};

/// The store of an empty place, and the keys that a rule works on.
pub(super) struct Fixture<'p> {
    pub(super) place: &'p dyn Place,
    pub(super) store: Box<dyn CheckpointStore>,
    pub(super) key: Key,
    /// A second key, if the store has more than one.
    pub(super) other: Option<Key>,
}

impl<'p> Fixture<'p> {
    #[track_caller]
    pub(super) fn new(place: &'p dyn Place) -> Fixture<'p> {
        let mut keys = place.keys().into_iter();
        let (key, other) = match keys.next() {
            Some(first) => (first, keys.next()),
            None => (
                Key::new("US-003").unwrap(),
                Some(Key::new("adhoc-7").unwrap()),
            ),
        };
        Fixture {
            store: place.open().unwrap(),
            place,
            key,
            other,
        }
    }

    pub(super) fn parts(&self) -> (&dyn CheckpointStore, &Key) {
        (&*self.store, &self.key)
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    pub(super) fn claims(&self) -> Result<&dyn CheckpointStore, Skipped> {
        match self.store.claims().is_some() {
            true => Ok(&*self.store),
            false => Err(Skipped("the store has no claims")),
        }
    }

    pub(super) fn history(&self) -> Result<&dyn CheckpointStore, Skipped> {
        match self.store.history().is_some() {
            true => Ok(&*self.store),
            false => Err(Skipped("the store has no history")),
        }
    }

    pub(super) fn recovery(&self) -> Result<&dyn CheckpointStore, Skipped> {
        match self.store.recovery().is_some() {
            true => Ok(&*self.store),
            false => Err(Skipped("the store has no recovery")),
        }
    }

    /// Whether the rules for processes apply.
    pub(super) fn excludes_processes(&self) -> Result<(), Skipped> {
        match self.capabilities().excludes_processes {
            true => Ok(()),
            false => Err(Skipped("the store does not exclude other processes")),
        }
    }

    pub(super) fn clock(&self) -> Result<super::MovableClock, Skipped> {
        let clock = self.place.clock();
        clock.ok_or(Skipped("the place has no clock to move"))
    }

    pub(super) fn other(&self) -> Result<&Key, Skipped> {
        let other = self.other.as_ref();
        other.ok_or(Skipped("the store has only one key"))
    }

    pub(super) fn takes_any_key(&self) -> Result<(), Skipped> {
        match self.place.keys().is_empty() {
            true => Ok(()),
            false => Err(Skipped("the store has fixed keys")),
        }
    }

    #[track_caller]
    pub(super) fn damage(&self) -> Result<(), Skipped> {
        if self.place.damage(&self.key).unwrap() {
            return Ok(());
        }
        assert!(
            self.store.recovery().is_none() || !self.place.can_be_damaged(),
            "the store supports `recovery`, but `Place::damage` damaged nothing that could be recovered"
        );
        Err(Skipped("the place cannot be damaged"))
    }

    /// Puts `{"n": number}` under the key.
    #[track_caller]
    pub(super) fn put(&self, number: u64) -> Saved {
        put(&*self.store, &self.key, number)
    }

    #[track_caller]
    pub(super) fn put_all(&self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.put(number);
        }
    }

    #[track_caller]
    pub(super) fn put_text(&self, text: &str) -> Saved {
        let saved = self.store.put(&self.key, Put::new(document(text)));
        saved.unwrap()
    }

    #[track_caller]
    pub(super) fn delete(&self) -> bool {
        let deleted = self.store.delete(&self.key, &DeleteOptions::new());
        deleted.unwrap()
    }

    /// The document under the key, which must exist.
    #[track_caller]
    pub(super) fn there(&self) -> Stored {
        there(&*self.store, &self.key)
    }

    /// Checks that the document has the expected number.
    #[track_caller]
    pub(super) fn assert_number(&self, expected: impl Into<Option<u64>>, when: &str) {
        let found = number_at(&*self.store, &self.key);
        assert_eq!(found, expected.into(), "{when}");
    }

    /// The largest number of earlier states that the store keeps.
    pub(super) fn keeps(&self) -> usize {
        self.place.keeps().map_or(usize::MAX, |keeps| keeps.max(1))
    }

    /// Checks that the earlier states are the expected ones, newest first, as many as the store keeps.
    #[track_caller]
    pub(super) fn assert_past(&self, expected: &[u64], when: &str) {
        let expected = &expected[..expected.len().min(self.keeps())];
        let found = past(&*self.store, &self.key);
        assert_eq!(found, expected, "the earlier states {when}");
    }
}

#[track_caller]
pub(super) fn document(text: &str) -> Document {
    Document::from_text(text).unwrap()
}

pub(super) fn numbered(number: u64) -> Document {
    document(&format!("{{\"n\":{number}}}"))
}

pub(super) fn number_of(stored: &Stored) -> Option<u64> {
    stored.document.get("/n")?.as_u64()
}

#[track_caller]
pub(super) fn number_at(store: &dyn CheckpointStore, key: &Key) -> Option<u64> {
    number_of(&store.load(key).unwrap()?)
}

/// The document under a key, which must exist.
#[track_caller]
pub(super) fn there(store: &dyn CheckpointStore, key: &Key) -> Stored {
    let stored = store.load(key).unwrap();
    stored.unwrap_or_else(|| panic!("the document under {key} is gone"))
}

#[track_caller]
pub(super) fn put(store: &dyn CheckpointStore, key: &Key, number: u64) -> Saved {
    let saved = store.put(key, Put::new(numbered(number)));
    saved.unwrap()
}

/// Puts a number with a fence.
pub(super) fn put_fenced(
    store: &dyn CheckpointStore,
    key: &Key,
    number: u64,
    fence: Fence,
) -> Result<Saved> {
    store.put(key, Put::new(numbered(number)).with_fence(fence))
}

/// How often a write is tried while the store asks to retry.
const TIMES: usize = 100;

/// Puts a number over the expected state, and retries while the store asks for it.
pub(super) fn put_over(
    store: &dyn CheckpointStore,
    key: &Key,
    number: u64,
    expect: Expect,
) -> Result<Saved> {
    let put = Put::new(numbered(number)).with_expect(expect);
    for _ in 1..TIMES {
        match store.put(key, put.clone()) {
            Err(error) if asks_to_retry(error.kind()) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
    store.put(key, put)
}

/// The lines of a ledger.
#[track_caller]
pub(super) fn lines(store: &dyn CheckpointStore, key: &Key) -> Vec<String> {
    store.beside().ledger(key).unwrap()
}

pub(super) fn line_of(number: usize) -> String {
    format!("{{\"n\":{number}}}")
}

/// Adds a line to a ledger, and retries while the store asks for it.
pub(super) fn add_line(
    store: &dyn CheckpointStore,
    key: &Key,
    line: &str,
    at: usize,
    fence: Option<Fence>,
) -> Result<bool> {
    for _ in 1..TIMES {
        match store.beside().append_to_ledger(key, line, at, fence) {
            Err(error) if asks_to_retry(error.kind()) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
    store.beside().append_to_ledger(key, line, at, fence)
}

/// Adds one to the number in a transaction.
#[track_caller]
pub(super) fn count_up(store: &dyn CheckpointStore, key: &Key) {
    // A store that compares and swaps gives up after it lost to other writers several times; then the caller retries.
    for _ in 0..1000 {
        let counted = store.transact(key, |stored| {
            let number = stored.and_then(number_of).unwrap_or_default();
            Ok(Some(Put::new(numbered(number + 1))))
        });
        match counted {
            Err(error) if is_conflict(error.kind()) || asks_to_retry(error.kind()) => {}
            counted => return drop(counted.unwrap()),
        }
    }
    panic!("the store refused a thousand transactions in a row because of other writers");
}

/// The numbers of the earlier states, newest first. Each state is loaded.
#[track_caller]
pub(super) fn past(history: &dyn CheckpointStore, key: &Key) -> Vec<u64> {
    let entries = history.states(key).unwrap();
    let earlier = entries.iter().filter(|entry| !entry.is_current());
    earlier
        .map(|entry| {
            let stored = history.load_revision(key, &entry.id).unwrap();
            assert_eq!(
                entry.revision.as_ref(),
                Ok(&stored.revision),
                "entry {} is listed with another revision than it is loaded with",
                entry.id
            );
            let number = number_of(&stored);
            number.unwrap_or_else(|| panic!("{} was never put: {}", entry.id, stored.document))
        })
        .collect()
}

/// Checks that the store refused an operation, and returns the error.
#[track_caller]
pub(super) fn refused<T>(
    what: &str,
    answer: Result<T>,
    is_right: impl FnOnce(&ErrorKind) -> bool,
) -> Error {
    let Err(error) = answer else {
        panic!("{what} was not refused");
    };
    let kind = error.kind();
    assert!(
        is_right(kind),
        "{what} was refused, but as {kind:?}: {error:?}"
    );
    error
}

pub(super) fn is_conflict(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conflict { .. })
}

pub(super) fn is_corrupt(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt(_))
}

pub(super) fn is_claimed(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Claimed { .. })
}

pub(super) fn is_fenced(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Fenced { .. })
}

/// Whether the store asks to retry, like one that waits for a lock for a limited time.
fn asks_to_retry(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Locked { .. } | ErrorKind::ChangedMeanwhile)
}
