//! Reads, decides and writes as one step, in any store.

use std::time::Duration;

use super::{CheckpointStore, Put, Saved, Stored};
use crate::checkpoint::{Error, ErrorKind, Expect, Key, Result};

/// How often a store without a lock reads again because another writer was faster.
const ATTEMPTS: usize = 16;

/// Decides from the present document what to put; `None` leaves it.
pub(crate) type Decide<'d> = dyn FnMut(Option<&Stored>) -> Result<Option<Put>> + 'd;

/// A store that excludes other writers while a change is decided.
pub trait Exclusive {
    /// Reads the document, lets `decide` choose, and writes the result, under the lock of the key. `None`
    /// leaves the document as it is. The expectation of the put counts as for [`CheckpointStore::put`].
    ///
    /// `decide` is called at least once before this returns `Ok`, and its last call counts. It is called again,
    /// with the new document, if a program without the lock wrote meanwhile. If there is no checkpoint, a store
    /// may call it before it takes the lock, so that a decision to write nothing leaves no lock behind. That
    /// put counts only if there is still no checkpoint under the lock; otherwise `decide` is called again.
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

/// Reads, lets `decide` choose, and writes, as one step in any store. Also returns the value of the last call
/// of `decide`.
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
        Error::refused("the store reports a save, but did not call the closure").with_key(key)
    })?;
    Ok((saved, value))
}

/// Reads, decides, and puts over exactly the revision that was read, until no other writer came in between.
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
                // A writer that lost repeatedly waits longer, so that it does not take the others' turns.
                std::thread::sleep(Duration::from_micros(50 << attempt.min(8)));
            }
            result => return result,
        }
    }
    Err(last.unwrap_or_else(|| Error::new(ErrorKind::ChangedMeanwhile).with_key(key)))
}
