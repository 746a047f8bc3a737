//! Reading, deciding and writing as one step, in any store.

use std::time::Duration;

use super::{CheckpointStore, Put, Saved, Stored};
use crate::checkpoint::{Error, ErrorKind, Expect, Key, Result};

/// How often a store without a lock reads again when another writer was faster.
const ATTEMPTS: usize = 16;

/// Decides from what is there what is put; `None` leaves it.
pub(crate) type Decide<'d> = dyn FnMut(Option<&Stored>) -> Result<Option<Put>> + 'd;

/// A store that keeps other writers out while a change is decided.
pub trait Exclusive {
    /// Reads, lets `decide` choose, and writes, under the lock of the key. `None` leaves what is there. What the
    /// put expects counts as for [`CheckpointStore::put`].
    ///
    /// `decide` is called at least once before this returns `Ok`, and its last call counts. It may be called more often:
    /// where a program that takes no lock wrote meanwhile, on what that program left. Where there is no checkpoint, a store
    /// may call it before it takes the lock, so that a decision to write nothing leaves no lock behind; what it put then
    /// counts only if there is still none under the lock, else it is called again.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStoreExt::transact`](crate::CheckpointStoreExt::transact).
    fn with_lock(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved>;
}

/// Reads, lets `decide` choose, and writes, as one step in any store. Gives what the last run of `decide` made
/// beside the put.
pub(crate) fn transact<S: CheckpointStore + ?Sized, T>(
    store: &S,
    key: &Key,
    mut decide: impl FnMut(Option<&Stored>) -> Result<(Option<Put>, T)>,
) -> Result<(Saved, T)> {
    let mut last = None;
    let decide = &mut |stored: Option<&Stored>| {
        let (put, value) = decide(stored)?;
        last = Some(value);
        Ok(put)
    };
    let saved = match store.exclusive() {
        Some(exclusive) => exclusive.with_lock(key, decide)?,
        None => compare_and_swap(store, key, decide)?,
    };
    let value = last.ok_or_else(|| {
        Error::refused("the store reports a save, but did not call the change").with_key(key)
    })?;
    Ok((saved, value))
}

/// Reads, decides and puts over exactly what was read, until no other writer came between.
fn compare_and_swap<S: CheckpointStore + ?Sized>(
    store: &S,
    key: &Key,
    decide: &mut Decide<'_>,
) -> Result<Saved> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        let stored = store.load(key)?;
        let Some(mut put) = decide(stored.as_ref())? else {
            return Saved::unchanged(key, stored.as_ref());
        };
        super::check_expected(key, &put.expect, stored.as_ref())?;
        put.expect = match stored {
            Some(stored) => Expect::Revision(stored.revision),
            None => Expect::Absent,
        };
        match store.put(key, put) {
            Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {
                last = Some(error);
                // A writer that lost again and again should not keep the others from their turn.
                std::thread::sleep(Duration::from_micros(50 << attempt.min(8)));
            }
            result => return result,
        }
    }
    Err(last.unwrap_or_else(|| Error::new(ErrorKind::ChangedMeanwhile).with_key(key)))
}
