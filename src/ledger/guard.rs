//! The permission to bring about an effect, once.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::{Ledger, Receipt};
use crate::checkpoint::{Result, random_name};

/// The rounds whose guards this process holds.
static OPEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn open() -> MutexGuard<'static, BTreeSet<String>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process holds the guard of this round.
pub(super) fn is_open(round: &str) -> bool {
    open().contains(round)
}

/// The permission to bring about an effect: that it was begun is on disk.
///
/// Say how it ended with [`done`](EffectGuard::done) or [`not_done`](EffectGuard::not_done). A guard that is dropped
/// before that, as by a panic, leaves the effect in doubt, and so does a process that is killed: nothing decides it
/// silently.
#[must_use = "the effect is in doubt unless its end is recorded"]
pub struct EffectGuard {
    ledger: Ledger,
    effect: String,
    round: String,
    is_ended: bool,
}

impl fmt::Debug for EffectGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectGuard")
            .field("effect", &self.effect)
            .field("is_ended", &self.is_ended)
            .finish_non_exhaustive()
    }
}

impl EffectGuard {
    /// A guard of a round that is about to be recorded.
    pub(super) fn new(ledger: Ledger, effect: &str) -> EffectGuard {
        let round = random_name();
        open().insert(round.clone());
        EffectGuard {
            ledger,
            effect: effect.to_owned(),
            round,
            is_ended: false,
        }
    }

    pub(super) fn round(&self) -> &str {
        &self.round
    }

    /// The round was not recorded: another was faster.
    pub(super) fn was_not_begun(mut self) {
        self.is_ended = true;
    }

    /// Records that the effect took place, and what it gave back. Where this fails it may be called again.
    ///
    /// It counts whoever has the task by now: what took place is a fact.
    ///
    /// # Errors
    ///
    /// The code `receipt` for one that is no JSON. [`ErrorKind::Refused`](crate::ErrorKind::Refused) where it was
    /// settled as not done meanwhile and begun again. Any failure to write it: then the effect is in doubt.
    pub fn done(&mut self, receipt: &(impl Serialize + ?Sized)) -> Result<Receipt> {
        let receipt = Receipt::of(receipt)?;
        self.end(Some(receipt.clone()))?;
        Ok(receipt)
    }

    /// Records that the effect did not take place for sure, so that it may be begun again.
    ///
    /// # Errors
    ///
    /// Those of [`done`](EffectGuard::done).
    pub fn not_done(&mut self) -> Result<()> {
        self.end(None)
    }

    fn end(&mut self, receipt: Option<Receipt>) -> Result<()> {
        self.ledger.end(&self.effect, &self.round, receipt)?;
        self.is_ended = true;
        Ok(())
    }
}

impl Drop for EffectGuard {
    fn drop(&mut self) {
        if !self.is_ended {
            // Without this line the effect is in progress, for others, as long as this process runs.
            if let Err(error) = self.ledger.leave(&self.effect, &self.round) {
                let (key, effect) = (self.ledger.key(), &self.effect);
                tracing::warn!(%key, effect, %error, "an effect without an end stays in progress");
            }
        }
        open().remove(&self.round);
    }
}
