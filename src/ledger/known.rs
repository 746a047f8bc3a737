//! The ledgers of one store that this process has read, so that it reads each line once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::Entries;
use crate::checkpoint::Key;
use crate::store::LedgerMark;

/// How many ledgers are cached. At the limit all are dropped, and each is read whole when it is used again.
const MOST: usize = 16;

/// The ledgers that the views of one store have read. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownLedgers(Arc<Mutex<BTreeMap<Key, KnownLedger>>>);

/// A ledger as it was last read.
#[derive(Debug)]
pub(super) struct KnownLedger {
    /// The store's mark for its lines.
    pub(super) mark: LedgerMark,
    /// Their contents.
    pub(super) entries: Arc<Entries>,
}

impl KnownLedgers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, KnownLedger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entry out, to add lines without a copy. A caller that comes meanwhile reads the whole ledger.
    pub(super) fn take(&self, key: &Key) -> Option<KnownLedger> {
        self.all().remove(key)
    }

    pub(super) fn put_back(&self, key: &Key, known: KnownLedger) {
        let mut all = self.all();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key.clone(), known);
    }
}
