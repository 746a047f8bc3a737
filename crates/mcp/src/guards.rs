//! The guards of the effects that were begun through this server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_checkpoint::ledger::EffectGuard;

/// The effects that were begun through this server and have no end yet, by their rounds: a key may have several
/// spellings, and an effect that was begun again since has another round.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<BTreeMap<String, BegunEffect>>);

#[derive(Debug)]
pub(crate) struct BegunEffect {
    pub(crate) fence: u64,
    pub(crate) guard: EffectGuard,
}

impl Guards {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, BegunEffect>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
