//! The ledgers of one store that this process has read, so that it reads each line once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::Entries;
use crate::checkpoint::Key;
use crate::store::LedgerMark;

/// How many ledgers are cached. Beyond that the one that was not used for the longest time is read whole again.
const MOST: usize = 16;

/// The ledgers that the views of one store have read, the last used one last. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownLedgers(Arc<Mutex<VecDeque<(Key, KnownEntries)>>>);

/// The entries of a ledger as it was last read.
#[derive(Debug)]
pub(super) struct KnownEntries {
    /// The store's mark for its lines.
    pub(super) mark: LedgerMark,
    /// Their contents.
    pub(super) entries: Arc<Entries>,
}

impl KnownLedgers {
    fn all(&self) -> MutexGuard<'_, VecDeque<(Key, KnownEntries)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entries out, to add lines without a copy. A caller that comes meanwhile reads the whole ledger.
    pub(super) fn take(&self, key: &Key) -> Option<KnownEntries> {
        let mut all = self.all();
        let place = all.iter().position(|(known, _)| known == key)?;
        Some(all.remove(place)?.1)
    }

    pub(super) fn put_back(&self, key: &Key, known: KnownEntries) {
        let mut all = self.all();
        // Another caller may have put it back meanwhile.
        all.retain(|(known, _)| known != key);
        if all.len() >= MOST {
            all.pop_front();
        }
        all.push_back((key.clone(), known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_only_the_ledger_that_was_used_least_recently_is_dropped() {
        let known = KnownLedgers::default();
        let keys: Vec<Key> = (0..=MOST)
            .map(|number| Key::new(number.to_string()).unwrap())
            .collect();
        let entries = || KnownEntries {
            mark: LedgerMark::new(0, ""),
            entries: Arc::default(),
        };
        for key in &keys[..MOST] {
            known.put_back(key, entries());
        }
        let first = known.take(&keys[0]).unwrap();
        known.put_back(&keys[0], first);
        known.put_back(&keys[MOST], entries());
        let is_there = |key: &Key| known.take(key).is_some();
        let gone: Vec<&Key> = keys.iter().filter(|key| !is_there(key)).collect();
        assert_eq!(gone, [&keys[1]]);
    }
}
