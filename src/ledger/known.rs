//! What this process knows of the ledgers of one store, so that it reads each line once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::Entries;
use crate::checkpoint::Key;
use crate::store::LedgerMark;

/// How many ledgers are remembered. More are forgotten all at once, and are read whole when they come up again.
const MOST: usize = 16;

/// The ledgers that the views of one store have read. A clone has the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownLedgers(Arc<Mutex<BTreeMap<Key, KnownLedger>>>);

/// A ledger as it was last read.
#[derive(Debug)]
pub(super) struct KnownLedger {
    /// What the store gave for its lines.
    pub(super) mark: LedgerMark,
    /// What they come to.
    pub(super) entries: Arc<Entries>,
}

impl KnownLedgers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, KnownLedger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what is known, so that lines are added to it without a copy. Whoever comes meanwhile reads all of it.
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
