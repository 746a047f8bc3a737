//! The permission to perform an effect once.

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

/// The permission to perform an effect; its begin is on disk.
///
/// Record the end with [`done`](EffectGuard::done) or [`not_done`](EffectGuard::not_done). If the guard is dropped
/// before that, for example by a panic, or the process is killed, the effect is in doubt: nothing decides it silently.
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
    /// A guard for a round that is about to be recorded.
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

    /// The name of this round: [`EffectRecord::round`](super::EffectRecord::round) as long as the effect was not begun
    /// again.
    #[must_use]
    pub fn round(&self) -> &str {
        &self.round
    }

    /// Another process was faster, so the round was not recorded.
    pub(super) fn was_not_begun(mut self) {
        self.is_ended = true;
    }

    /// Records that the effect took place, with its receipt. If this fails it may be called again.
    ///
    /// It succeeds whichever owner has the task: what took place is a fact.
    ///
    /// # Errors
    ///
    /// The code `receipt` for a value that is not JSON. [`ErrorKind::Refused`](crate::ErrorKind::Refused) if it was
    /// begun again since, or its task has ended. Any failure to write the line: then the effect is in doubt.
    pub fn done(&mut self, receipt: &(impl Serialize + ?Sized)) -> Result<Receipt> {
        let receipt = Receipt::of(receipt)?;
        self.end(Some(receipt.clone()))?;
        Ok(receipt)
    }

    /// Records that the effect certainly did not take place, so that it may be begun again.
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
            // Without this line other processes see the effect in progress as long as this process runs.
            if let Err(error) = self.ledger.leave(&self.effect, &self.round) {
                let (key, effect) = (self.ledger.key(), &self.effect);
                tracing::warn!(%key, effect, %error, "an effect without an end stays in progress");
            }
        }
        open().remove(&self.round);
    }
}
