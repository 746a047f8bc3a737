//! Where checkpoints are kept: documents under keys.

mod beside;
mod builder_state;
mod changes;
mod claims;
mod copy;
mod file;
mod files;
mod history;
mod listing;
mod memory;
mod recovery;
mod scoped;
mod stored;
mod transact;

pub use crate::fsio::Durability;
pub use beside::{Beside, Heartbeat};
pub use builder_state::BuilderStateStore;
pub use changes::{Changes, Listener};
pub(crate) use claims::claims_of;
pub use claims::{ClaimChange, Claims};
pub use copy::{CopyOptions, CopyProgress, CopyReport, copy};
pub(crate) use file::{CLAIMS_FOLDER, DROPPED_LOG_FOLDER, LEDGER_FOLDER, ledger_mark, ledger_name};
pub use file::{FileOptions, FileStore};
pub use files::{create_file, read_document, read_file};
pub(crate) use history::history_of;
pub use history::{EntryId, History, HistoryEntry, Keep, RolledBack};
pub use listing::{Content, Listed, ListedLedger, Page, Query};
pub use memory::MemoryStore;
pub(crate) use recovery::recovery_of;
pub use recovery::{Recover, RecoverOptions, Recovered, Recovery};
pub use scoped::Scoped;
pub use stored::{Capabilities, DeleteOptions, Outcome, Put, Saved, Stored, TaskContext};

pub use transact::Exclusive;
pub(crate) use transact::{Decide, transact};

use crate::checkpoint::{Error, ErrorKind, Expect, Key, Result};

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
///   document is in place and may not survive a loss of power. A store behind a network that cannot learn what became
///   of a write says so with the [code](crate::Error::code) `outcome-unknown`. A
///   [`forget`](CheckpointStore::forget) that failed may have removed a part.
/// * What was left out of a document is kept until a checkpoint is created anew under its key.
/// * The ledger of a key ([`Beside::ledger`]) has every line that was added, in order, whatever becomes of the documents
///   under the key. Of several writers that add a line at the same place, one wins.
/// * While a claim on a key stands ([`Claims`]), a write goes through only with its fence;
///   a fence of an earlier claim, or of one that ran out or was given back, is refused for good. Fences
///   of a key only grow, also over reloads, releases, and deletes.
/// * What a write replaces or deletes is in the history afterwards ([`History`]), where a
///   failed write leaves nothing; the newest entry, and those that are pinned, never go. Only a
///   heartbeat ([`Put::skip_history`]) replaces without that, and only [`forget`](CheckpointStore::forget) removes
///   all of it.
/// * Tasks follow each other under a key. An archive, a [`Recovery::Fresh`] and a new document where none was
///   end the one before: the history has its states ([`HistoryEntry::tasks_since`]), and they come back by their
///   names, but no recovery goes back to them. A mere deletion ends nothing yet, and a put may bring the task back
///   ([`Put::continue_task`]). Inside a larger file
///   ([`Capabilities::embedded`]) the recovery is of that file, whatever tasks it has.
/// * Nothing recovers by itself: what cannot be read stays until [`recover`](Recover::recover) is called, and is
///   quarantined, not lost.
/// * Where several of these are wrong at once, the error tells one of them.
/// * Methods block, and may be called from many threads.
///
/// The module `testkit` (feature `testkit`) makes a test of each of these for a store of your own.
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
    /// [`ErrorKind::Conflict`] when what is there is not what the put expects,
    /// [`ErrorKind::Corrupt`] when what is there is no document, [`ErrorKind::ReadOnly`] in a store
    /// opened for reading only, and whatever keeps it from being written. The old document is then
    /// still there.
    fn put(&self, key: &Key, put: Put) -> Result<Saved>;

    /// The lock of this store, where it has one: with it a change runs once, and no other writer comes between.
    /// Elsewhere [`transact`](crate::CheckpointStoreExt::transact) compares and swaps in a loop.
    fn exclusive(&self) -> Option<&dyn Exclusive>;

    /// Removes the document under a key; `false` when there was none.
    ///
    /// # Errors
    ///
    /// As [`put`](CheckpointStore::put).
    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool>;

    /// Removes everything that the store has of a key: the document, whatever it is, its history with what is pinned,
    /// what was quarantined and archived, dropped items, fingerprints, the ledger, and the claim but for its
    /// [fence](crate::Claim::only_fence). `false` when there was nothing. Afterwards the bytes are in none of the
    /// store's files, and the key is as if it had never been used, but that fences go on growing.
    ///
    /// This is the one call that removes what is pinned or damaged. It is not whole: one that fails or is killed may
    /// have removed a part. The document goes last, so that the key is listed until then, and the same call again
    /// removes the rest.
    ///
    /// # Errors
    ///
    /// As [`put`](CheckpointStore::put), but that a document that cannot be read is removed where any is
    /// [expected](DeleteOptions::expect); [`ErrorKind::NotOffered`] in a store that keeps documents inside a larger
    /// file, of which the history has whole copies.
    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool>;

    /// The keys there are, in order, a page at a time. Holds no lock.
    ///
    /// # Errors
    ///
    /// Whatever keeps the store from being read. A store that does not exist yet is empty.
    fn list(&self, query: &Query) -> Result<Page>;

    /// What lies beside the documents: dropped items, fingerprints and ledgers.
    fn beside(&self) -> &dyn Beside;

    /// The claims on keys; `None` where keys cannot be claimed.
    fn claims(&self) -> Option<&dyn Claims>;

    /// Earlier states; `None` where none are kept.
    fn history(&self) -> Option<&dyn History>;

    /// Going on from documents that cannot be read; `None` where that is not possible.
    fn recovery(&self) -> Option<&dyn Recover>;

    /// A heartbeat of the store's own, beside the documents; `None` where it has none.
    fn heartbeat(&self) -> Option<&dyn Heartbeat>;

    /// Notices of writes; `None` where changes are found by listing alone.
    fn changes(&self) -> Option<&dyn Changes>;

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

            fn put(&self, key: &Key, put: Put) -> Result<Saved> {
                (**self).put(key, put)
            }

            fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
                (**self).delete(key, options)
            }

            fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
                (**self).forget(key, options)
            }

            fn list(&self, query: &Query) -> Result<Page> {
                (**self).list(query)
            }

            fn exclusive(&self) -> Option<&dyn Exclusive> {
                (**self).exclusive()
            }

            fn beside(&self) -> &dyn Beside {
                (**self).beside()
            }

            fn claims(&self) -> Option<&dyn Claims> {
                (**self).claims()
            }

            fn history(&self) -> Option<&dyn History> {
                (**self).history()
            }

            fn recovery(&self) -> Option<&dyn Recover> {
                (**self).recovery()
            }

            fn heartbeat(&self) -> Option<&dyn Heartbeat> {
                (**self).heartbeat()
            }

            fn changes(&self) -> Option<&dyn Changes> {
                (**self).changes()
            }

            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
        }
    )+ };
}

forward!(&S, Box<S>, std::sync::Arc<S>);

/// Checks what is there against what a writer expects; for those who write a store.
///
/// # Errors
///
/// [`ErrorKind::Conflict`] with the key, what was expected and what is there.
pub fn check_expected(key: &Key, expect: &Expect, present: Option<&Stored>) -> Result<()> {
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

/// Refuses what is no line of a [ledger](Beside::ledger): one JSON object without line ends; for those who write a store.
///
/// # Errors
///
/// [`ErrorKind::Refused`].
pub fn check_ledger_line(line: &str) -> Result<()> {
    match is_ledger_line(line) {
        true => Ok(()),
        false => Err(Error::refused(
            "a line of a ledger is one JSON object without line ends; nothing was written, write it as one",
        )),
    }
}

fn is_ledger_line(line: &str) -> bool {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
    line.starts_with('{') && !line.contains(['\n', '\r']) && is_json()
}

/// Refuses a text of more bytes than this, which could not be read again; for those who write a store.
///
/// # Errors
///
/// [`ErrorKind::TooLarge`].
pub fn check_size(text: &str, limit: u64) -> Result<()> {
    let (size, is_new) = (text.len() as u64, true);
    match size > limit {
        true => Err(Error::new(ErrorKind::TooLarge {
            size,
            limit,
            is_new,
        })),
        false => Ok(()),
    }
}
