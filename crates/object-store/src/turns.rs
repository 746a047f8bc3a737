//! Turns of the threads of one store to write a key, so that they need not lose races against each other.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use agent_checkpoint::Key;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    busy: Mutex<BTreeSet<Key>>,
    freed: Condvar,
}

/// Ends the turn when it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'t> {
    turns: &'t Turns,
    key: &'t Key,
}

impl Turns {
    fn busy(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        // A panic cannot leave the set half changed, so a poisoned lock is harmless.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn; `None` if it has not come at `until`.
    pub(crate) fn wait<'t>(&'t self, key: &'t Key, until: Instant) -> Option<Held<'t>> {
        let mut busy = self.busy();
        while !busy.insert(key.clone()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.freed.wait_timeout(busy, left);
            busy = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(Held { turns: self, key })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.turns.busy().remove(self.key);
        self.turns.freed.notify_all();
    }
}
