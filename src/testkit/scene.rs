//! What a rule works with: an empty place, its store, and the steps that many rules take.

use std::sync::Arc;
use std::time::Duration;

use crate::checkpoint::{Error, ErrorKind, Expect, Fence, Key, Result};
use crate::json::Document;
use crate::store::{Capabilities, CheckpointStore, DeleteOptions, Put, Saved, Stored};

use super::child::Crew;
use super::harness::{Harness, Place};
use super::rule::{Need, Stop, ensure, told};

/// An empty place with its store.
pub(super) struct Scene<'h> {
    pub(super) place: Box<dyn Place>,
    pub(super) store: Arc<dyn CheckpointStore>,
    pub(super) offered: Capabilities,
    /// The key that most rules work on.
    pub(super) key: Key,
    /// Another, where the store has more than one.
    pub(super) other: Option<Key>,
    /// Starts processes that open the same place.
    pub(super) crew: Option<Crew<'h>>,
}

impl<'h> Scene<'h> {
    pub(super) fn set(harness: &dyn Harness, child: Option<&'h str>) -> Result<Scene<'h>, Stop> {
        let place = harness.place()?;
        let store = place.open()?;
        let mut keys = place.keys().into_iter();
        let (key, other) = match keys.next() {
            Some(first) => (first, keys.next()),
            None => (Key::new("US-003")?, Some(Key::new("adhoc-7")?)),
        };
        let crew = place.address().zip(child);
        Ok(Scene {
            offered: store.capabilities(),
            crew: crew.map(|(address, test)| Crew { address, test }),
            place,
            store: Arc::from(store),
            key,
            other,
        })
    }

    /// Stops a rule that needs what is not there.
    pub(super) fn require(&self, needs: &[Need]) -> Result<(), Stop> {
        for need in needs {
            let is_there = match need {
                Need::TwoKeys => self.other.is_some(),
                Need::AnyKey => self.place.keys().is_empty(),
                Need::Standalone => !self.offered.embedded,
                Need::Claims => self.offered.claims,
                Need::History => self.offered.history,
                Need::HistoryBound => self.place.keeps().is_some(),
                Need::Recovery => self.offered.recovery,
                Need::Heartbeat => self.offered.heartbeat,
                Need::Processes => {
                    // A promise that nothing can prove is none.
                    ensure!(
                        !self.offered.excludes_processes || self.place.address().is_some(),
                        "the store promises to keep processes apart, and its place has no address"
                    );
                    if self.crew.is_none() && self.offered.excludes_processes {
                        return Err(Stop::Skipped("no test is named that children run".into()));
                    }
                    self.offered.excludes_processes
                }
                // Whether these can be done shows when they are tried.
                Need::Damage | Need::Faults => true,
                Need::MovableClock => self.place.clock().is_some(),
                Need::SizeLimit => self.place.max_bytes().is_some(),
            };
            if !is_there {
                return Err(Stop::missing(*need));
            }
        }
        Ok(())
    }

    pub(super) fn other(&self) -> Result<&Key, Stop> {
        self.other.as_ref().ok_or(Stop::missing(Need::TwoKeys))
    }

    pub(super) fn crew(&self) -> Result<&Crew<'h>, Stop> {
        self.crew.as_ref().ok_or(Stop::missing(Need::Processes))
    }

    /// Puts what is no document in the place of one.
    pub(super) fn damage(&self) -> Result<(), Stop> {
        match self.place.damage(&self.key)? {
            true => Ok(()),
            false => {
                // A promise that nothing can prove is none.
                ensure!(
                    !self.offered.recovery || !self.place.can_be_damaged(),
                    "the store promises `recovery`, and its place has no `damage` to recover from"
                );
                Err(Stop::missing(Need::Damage))
            }
        }
    }

    /// Puts `{"n": number}`.
    pub(super) fn put(&self, number: u64) -> Result<Saved, Stop> {
        put(&*self.store, &self.key, number)
    }

    /// The number that is there.
    pub(super) fn number(&self) -> Result<Option<u64>, Stop> {
        Ok(present(&*self.store, &self.key)?.and_then(|stored| number_of(&stored)))
    }

    /// How many earlier states are there at the most.
    pub(super) fn keeps(&self) -> usize {
        self.place.keeps().map_or(usize::MAX, |keeps| keeps.max(1))
    }

    /// Checks the numbers of the earlier states, newest first: as many of them as the store keeps.
    pub(super) fn has_past(&self, expected: &[u64], when: &str) -> Result<(), Stop> {
        let found = past(&*self.store, &self.key)?;
        let expected = &expected[..expected.len().min(self.keeps())];
        ensure!(
            found == expected,
            "{when} the earlier states are {found:?}, not {expected:?}"
        );
        Ok(())
    }

    pub(super) fn delete(&self) -> Result<bool, Stop> {
        Ok(self.store.delete(&self.key, &DeleteOptions::new())?)
    }
}

pub(super) fn document(text: &str) -> Result<Document, Stop> {
    Ok(Document::from_text(text)?)
}

pub(super) fn numbered(number: u64) -> Result<Document, Stop> {
    document(&format!("{{\"n\":{number}}}"))
}

pub(super) fn number_of(stored: &Stored) -> Option<u64> {
    stored.document.get("/n")?.as_u64()
}

pub(super) fn present(store: &dyn CheckpointStore, key: &Key) -> Result<Option<Stored>, Stop> {
    Ok(store.load(key)?)
}

/// The document that must be there.
pub(super) fn there(store: &dyn CheckpointStore, key: &Key) -> Result<Stored, Stop> {
    let stored = present(store, key)?;
    stored.ok_or_else(|| Stop::failed(format!("the document under {key} is gone")))
}

pub(super) fn put(store: &dyn CheckpointStore, key: &Key, number: u64) -> Result<Saved, Stop> {
    Ok(store.put(key, Put::new(numbered(number)?))?)
}

/// Puts with a fence.
pub(super) fn put_fenced(
    store: &dyn CheckpointStore,
    key: &Key,
    number: u64,
    fence: Fence,
) -> Result<Result<Saved>, Stop> {
    let put = Put::new(numbered(number)?).with_fence(fence);
    Ok(store.put(key, put))
}

/// Puts over what is expected, however often the store asks to try again.
pub(super) fn put_over(
    store: &dyn CheckpointStore,
    key: &Key,
    number: u64,
    expect: Expect,
) -> Result<Result<Saved>, Stop> {
    let document = numbered(number)?;
    Ok(until_answered(|| {
        store.put(key, Put::new(document.clone()).with_expect(expect.clone()))
    }))
}

/// The error of what must be refused.
pub(super) fn refused<T>(
    what: &str,
    answer: Result<T>,
    is_right: impl FnOnce(&ErrorKind) -> bool,
) -> Result<Error, Stop> {
    let Err(error) = answer else {
        return Err(Stop::failed(format!("{what} was not refused")));
    };
    ensure!(
        is_right(error.kind()),
        "{what} was refused, but as {:?}: {}",
        error.kind(),
        told(&error)
    );
    Ok(error)
}

pub(super) fn is_conflict(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conflict { .. })
}

/// Whether the store asks to try again, as one does that waits for a lock only so long.
pub(super) fn is_for_now(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Locked { .. } | ErrorKind::ChangedMeanwhile)
}

/// The answer that is not "try again".
pub(super) fn until_answered<T>(mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    const TIMES: usize = 100;
    for _ in 1..TIMES {
        match ask() {
            Err(error) if is_for_now(error.kind()) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
    ask()
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

/// The numbers of the earlier states, newest first, each loaded.
pub(super) fn past(store: &dyn CheckpointStore, key: &Key) -> Result<Vec<u64>, Stop> {
    let mut numbers = Vec::new();
    for entry in store.history(key)? {
        if entry.is_current() {
            continue;
        }
        let stored = store.load_revision(key, &entry.id)?;
        ensure!(
            entry.revision.as_ref() == Ok(&stored.revision),
            "entry {} has another revision in the list than when it is loaded",
            entry.id
        );
        let number = number_of(&stored);
        numbers.push(number.ok_or_else(|| {
            Stop::failed(format!(
                "entry {} is not what was put: {}",
                entry.id, stored.document
            ))
        })?);
    }
    Ok(numbers)
}
