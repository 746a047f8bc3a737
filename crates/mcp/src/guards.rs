//! The guards of the effects that were begun through this server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_checkpoint::ledger::EffectGuard;

/// The effects that were begun through this server and have no end yet, by their rounds: a key may have several
/// spellings, and an effect that was begun again since has another round.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<BTreeMap<String, OpenEffect>>);

/// An effect without an end, and the fence under which it was begun.
#[derive(Debug)]
pub(crate) struct OpenEffect {
    pub(crate) fence: u64,
    pub(crate) guard: EffectGuard,
}

impl Guards {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, OpenEffect>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
