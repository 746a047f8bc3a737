//! Where checkpoints are kept: documents under keys.

mod builder_state;
mod file;
mod listing;
mod memory;
mod stored;

pub use builder_state::BuilderStateStore;
pub use file::{FileOptions, FileStore};
pub use listing::{Page, Query};
pub use memory::MemoryStore;
pub use stored::{
    Capabilities, Change, DeleteOptions, Outcome, Put, PutOptions, Saved, Stored, TaskContext,
};

use crate::checkpoint::{Dropped, Error, ErrorKind, Expect, Key, Result};
use crate::json::Document;

/// How often [`CheckpointStore::transact`] reads again when another writer was faster.
const TRANSACT_ATTEMPTS: usize = 16;

/// A store of documents under keys.
///
/// A store knows no formats: it keeps texts with their revisions, so that fleets of mixed formats,
/// copying and tools need no types, and whoever writes a store writes no reading or editing. Use it
/// through [`Checkpoints`](crate::Checkpoints), which adds the types.
///
/// # Contract
///
/// * A document that was put is given back to the byte, with the revision of its bytes. A store that
///   keeps documents inside a larger file ([`Capabilities::embedded`]) may move the lines of a text
///   that comes from elsewhere; values, spellings and order stay.
/// * A put happens whole or not at all, and survives whatever [`capabilities`] promise.
/// * Of several writers that expect the same revision, one wins; the others get
///   [`ErrorKind::Conflict`].
/// * A put of the bytes that are there already writes nothing and says [`Outcome::Unchanged`].
/// * Only "there is none" is `None`; every other failure to read is an error, so that a default is
///   never written over a checkpoint that could not be read.
/// * A document that is there but corrupt is [`ErrorKind::Corrupt`] for every operation, also for a
///   put that expects [`Expect::Any`].
/// * After every error what was there is still there, but for [`ErrorKind::NotDurable`]: then the new
///   document is in place and may not survive a loss of power.
/// * What was left out of a document is kept until a checkpoint is created anew under its key.
/// * Methods block, and may be called from many threads.
///
/// [`capabilities`]: CheckpointStore::capabilities
pub trait CheckpointStore: Send + Sync {
    /// The document under a key, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when what is there is no document, and whatever keeps it from being
    /// read.
    fn load(&self, key: &Key) -> Result<Option<Stored>>;

    /// Puts a document under a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when what is there is not what `options` expect,
    /// [`ErrorKind::Corrupt`] when what is there is no document, [`ErrorKind::ReadOnly`] in a store
    /// opened for reading only, and whatever keeps it from being written. The old document is then
    /// still there.
    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved>;

    /// Reads, lets `change` decide, and writes, as one step that no other writer comes between.
    ///
    /// `change` may run more than once: where the store compares and swaps, it runs again on what a
    /// faster writer left. So it must decide from what it is given alone, and do nothing that
    /// cannot be done twice.
    ///
    /// # Errors
    ///
    /// Those of [`load`](CheckpointStore::load) and [`put`](CheckpointStore::put); the errors of
    /// `change`, after which nothing was written; [`ErrorKind::NotFound`] when it keeps what is not
    /// there; [`ErrorKind::Conflict`] when other writers were faster again and again.
    fn transact(
        &self,
        key: &Key,
        change: &mut dyn FnMut(Option<&Stored>) -> Result<Change>,
    ) -> Result<Saved> {
        let mut last = None;
        for attempt in 0..TRANSACT_ATTEMPTS {
            let stored = self.load(key)?;
            let expect = match &stored {
                Some(stored) => Expect::Revision(stored.revision.clone()),
                None => Expect::Absent,
            };
            let put = match change(stored.as_ref())? {
                Change::Keep => return Saved::unchanged(key, stored.as_ref()),
                Change::Put(put) => put,
            };
            let options = PutOptions::expecting(expect).with_overflow(put.overflow);
            match self.put(key, &put.document, &options) {
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {
                    last = Some(error);
                    // Who lost again and again should not keep the others from their turn.
                    std::thread::sleep(std::time::Duration::from_micros(50 << attempt.min(8)));
                }
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::ChangedMeanwhile).with_key(key)))
    }

    /// Removes the document under a key; `false` when there was none.
    ///
    /// # Errors
    ///
    /// As [`put`](CheckpointStore::put).
    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool>;

    /// The keys there are, in order, a page at a time. Holds no lock.
    ///
    /// # Errors
    ///
    /// Whatever keeps the store from being read. A store that does not exist yet is empty.
    fn list(&self, query: &Query) -> Result<Page>;

    /// What saves under this key left out to keep within their limits, oldest first.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being read.
    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>>;

    /// What this store can promise.
    fn capabilities(&self) -> Capabilities;
}

/// A store behind a pointer is a store.
macro_rules! forward {
    ($($pointer:ty),+) => { $(
        impl<S: CheckpointStore + ?Sized> CheckpointStore for $pointer {
            fn load(&self, key: &Key) -> Result<Option<Stored>> {
                (**self).load(key)
            }

            fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
                (**self).put(key, document, options)
            }

            fn transact(
                &self,
                key: &Key,
                change: &mut dyn FnMut(Option<&Stored>) -> Result<Change>,
            ) -> Result<Saved> {
                (**self).transact(key, change)
            }

            fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
                (**self).delete(key, options)
            }

            fn list(&self, query: &Query) -> Result<Page> {
                (**self).list(query)
            }

            fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
                (**self).overflow(key)
            }

            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
        }
    )+ };
}

forward!(&S, Box<S>, std::sync::Arc<S>);

/// Checks what is there against what a writer expects.
pub(crate) fn check_expected(key: &Key, expect: &Expect, present: Option<&Stored>) -> Result<()> {
    let fits = match (expect, present) {
        (Expect::Any, _) | (Expect::Absent, None) => true,
        (Expect::Revision(wanted), Some(present)) => *wanted == present.revision,
        (Expect::Absent, Some(_)) | (Expect::Revision(_), None) => false,
    };
    if fits {
        return Ok(());
    }
    tracing::debug!(%key, expected = %expect, "conflict");
    Err(Error::new(ErrorKind::Conflict {
        expected: expect.clone(),
        found: present.map(|stored| stored.revision.clone()),
    })
    .with_key(key))
}
