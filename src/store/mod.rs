//! Where checkpoints are kept: documents under keys.

mod beside;
mod builder_state;
mod changes;
mod claims;
mod copy;
mod file;
mod files;
mod history;
mod ledger_lines;
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
pub(crate) use file::{
    CLAIMS_FOLDER, DROPPED_LOG_FOLDER, LEDGER_FOLDER, ledger_name, ledger_placeholder,
};
pub use file::{FileOptions, FileStore};
pub use files::{create_file, read_document, read_file};
pub(crate) use history::history_of;
pub use history::{EntryId, History, HistoryEntry, Keep, RolledBack};
pub use ledger_lines::{LedgerLines, LedgerMark};
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
/// A store knows no formats. It keeps texts with their revisions, so fleets of mixed formats, copying and tools
/// need no types, and authors of stores write no parsing or editing. Use a store through
/// [`Checkpoints`](crate::Checkpoints), which adds the types.
///
/// # Contract
///
/// * A document that was put is returned byte for byte, with the revision of its bytes. A store that keeps
///   documents inside a larger file ([`Capabilities::embedded`]) may reindent a text from elsewhere; values,
///   spellings and order stay the same.
/// * A put happens completely or not at all, and is as durable as [`capabilities`] promise.
/// * Of several writers that expect the same revision, one wins; the others get [`ErrorKind::Conflict`].
/// * A put of the bytes that are already there writes nothing and returns [`Outcome::Unchanged`].
/// * `None` means only that there is no document; every other failure to read is an error. So a default is
///   never written over a checkpoint that could not be read.
/// * A corrupt document is [`ErrorKind::Corrupt`] for every operation, including a put that expects [`Expect::Any`].
/// * After every error the old document is still there, except after [`ErrorKind::NotDurable`]: then the new
///   document is in place but may not survive a loss of power. A store behind a network that cannot find out
///   whether a write succeeded reports the [code](crate::Error::code) `outcome-unknown`. A
///   [`forget`](CheckpointStore::forget) that failed may have removed a part.
/// * Dropped items are kept until a checkpoint is created anew under their key.
/// * The ledger of a key ([`Beside::ledger`]) has every line that was added, in order, whatever happens to the
///   documents under the key. Of several writers that add a line at the same position, one wins.
/// * While a claim on a key is valid ([`Claims`]), a write needs its fence. The fence of an earlier or released
///   claim is refused forever, and that of an expired claim until the claim is renewed. The fences of a key only
///   grow, even across reloads, releases and deletes.
/// * What a write replaces or deletes is in the history afterwards ([`History`]); a failed write leaves nothing
///   there. The newest entry and pinned entries are never removed. Only a heartbeat ([`Put::skip_history`]) replaces
///   a document without an entry, and only [`forget`](CheckpointStore::forget) removes the whole history.
/// * Tasks follow each other under a key. An archive, a [`Recovery::Fresh`] and a new document where there was
///   none end the previous task. The history keeps its states ([`HistoryEntry::tasks_since`]), which can be
///   restored by name, but no recovery goes back to them. A mere deletion does not end the task yet: a put may
///   bring it back ([`Put::continue_task`]). Inside a larger file ([`Capabilities::embedded`]) that whole file
///   is recovered, whatever tasks it has.
/// * Nothing recovers by itself: an unreadable document stays until [`recover`](Recover::recover) is called,
///   and is then quarantined, not lost.
/// * If several of these rules are violated at once, the error reports one of them.
/// * Methods block, and may be called from many threads.
///
/// The module `testkit` (feature `testkit`) tests each of these rules for a store of your own.
///
/// [`capabilities`]: CheckpointStore::capabilities
pub trait CheckpointStore: Send + Sync {
    /// Loads the document under a key; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when the stored bytes are not a document, and any failure to read them.
    fn load(&self, key: &Key) -> Result<Option<Stored>>;

    /// Puts a document under a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when the present document is not what the put expects, [`ErrorKind::Corrupt`]
    /// when it is corrupt, [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] when a claim does not permit the
    /// write, [`ErrorKind::ReadOnly`] in a store opened for reading only, and any failure to write it. The old
    /// document is then still there.
    fn put(&self, key: &Key, put: Put) -> Result<Saved>;

    /// The lock of this store, if it has one: with it a change runs once, and excludes other writers. Without
    /// it [`transact`](crate::CheckpointStoreExt::transact) uses compare-and-swap in a loop.
    fn exclusive(&self) -> Option<&dyn Exclusive>;

    /// Removes the document under a key; `false` if there was none.
    ///
    /// # Errors
    ///
    /// As [`put`](CheckpointStore::put).
    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool>;

    /// Removes everything that the store has of a key: the document in any state, its history including pinned
    /// entries, quarantined and archived texts, dropped items, fingerprints, the ledger, and the claim except for its
    /// [fence](crate::Claim::only_fence). Returns `false` if there was nothing. Afterwards no file of the store
    /// contains these bytes, and the key is as if it had never been used, except that fences keep growing.
    ///
    /// This is the only call that removes pinned or damaged states. It is not atomic: one that fails or is
    /// killed may have removed a part. The document is removed last, so the key stays listed until then, and
    /// the same call again removes the rest.
    ///
    /// # Errors
    ///
    /// As [`put`](CheckpointStore::put), but an unreadable document is removed if any document is
    /// [expected](DeleteOptions::expect); [`ErrorKind::NotOffered`] in a store that keeps documents inside a
    /// larger file, because its history has copies of that whole file.
    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool>;

    /// The keys of the store, in order, one page at a time. This holds no lock.
    ///
    /// # Errors
    ///
    /// Any failure to read the store. A store that does not exist yet is empty.
    fn list(&self, query: &Query) -> Result<Page>;

    /// What lies beside the documents: dropped items, fingerprints and ledgers.
    fn beside(&self) -> &dyn Beside;

    /// The claims on keys; `None` if keys cannot be claimed.
    fn claims(&self) -> Option<&dyn Claims>;

    /// The earlier states; `None` if none are kept.
    fn history(&self) -> Option<&dyn History>;

    /// The recovery from unreadable documents; `None` if that is not possible.
    fn recovery(&self) -> Option<&dyn Recover>;

    /// A heartbeat that the store keeps apart from the documents; `None` if it has none.
    fn heartbeat(&self) -> Option<&dyn Heartbeat>;

    /// Notifications of writes; `None` if changes can only be found by listing.
    fn changes(&self) -> Option<&dyn Changes>;

    /// What this store promises.
    fn capabilities(&self) -> Capabilities;
}

/// A store behind a pointer is a store, too.
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

/// Compares the present document with a writer's expectation; for authors of stores.
///
/// # Errors
///
/// [`ErrorKind::Conflict`] with the key, the expectation and the present revision.
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

/// Refuses a text that is not a line of a [ledger](Beside::ledger): one JSON object without line ends. For
/// authors of stores.
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

/// Refuses a text of more bytes than `limit`, because it could not be read again; for authors of stores.
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
