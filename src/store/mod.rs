//! Where checkpoints are kept: documents under keys.

mod builder_state;
mod file;
mod files;
mod history;
mod listing;
mod memory;
mod recovery;
mod stored;
mod transact;

pub use crate::fsio::Durability;
pub use builder_state::BuilderStateStore;
pub use file::{FileOptions, FileStore};
pub use files::{create_file, read_document, read_file};
pub use history::{EntryId, HistoryEntry, Keep, RolledBack};
pub use listing::{Page, Query};
pub use memory::MemoryStore;
pub use recovery::{RecoverOptions, Recovered, Recovery};
pub use stored::{Capabilities, DeleteOptions, Outcome, Put, Saved, Stored, TaskContext};

pub use transact::Exclusive;
pub(crate) use transact::{Decide, transact};

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use crate::checkpoint::{
    Claim, ClaimRequest, Dropped, Error, ErrorKind, Expect, Fence, Key, Result, Revision,
};

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
/// * While a claim on a key stands ([`Capabilities::claims`]), a write goes through only with its fence;
///   a fence of an earlier claim, or of one that ran out or was given back, is refused for good. Fences
///   of a key only grow, also over reloads, releases, and deletes.
/// * What a write replaces or deletes is in the history afterwards ([`Capabilities::history`]), where a
///   failed write leaves nothing; the newest entry, and those that are pinned, never go. Only a
///   heartbeat ([`Put::skip_history`]) replaces without that.
/// * Tasks follow each other under a key. An archive, a [`Recovery::Fresh`] and a new document where none was
///   end the one before: the history has its states ([`HistoryEntry::tasks_since`]), and they come back by their
///   names, but no recovery goes back to them. A mere deletion ends nothing yet, and a put may bring the task back
///   ([`Put::continue_task`]). Inside a larger file
///   ([`Capabilities::embedded`]) the recovery is of that file, whatever tasks it has.
/// * Nothing recovers by itself: what cannot be read stays until
///   [`recover`](CheckpointStore::recover) is called, and is put aside, not lost.
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

    /// The newest `most` of what [`overflow`](CheckpointStore::overflow) gives, oldest first. Stores of files
    /// read no more of the rest than they must.
    ///
    /// # Errors
    ///
    /// Those of [`overflow`](CheckpointStore::overflow).
    fn newest_overflow(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let mut all = self.overflow(key)?;
        all.drain(..all.len().saturating_sub(most));
        Ok(all)
    }

    /// Where [`overflow`](CheckpointStore::overflow) is kept, as the checkpoint itself is to name it: of files a
    /// path relative to the folder of the checkpoint's file, with `/`. `None` where no one could look there.
    ///
    /// # Errors
    ///
    /// When the place of the key cannot be told.
    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        let _ = key;
        Ok(None)
    }

    /// The text that the last write kept beside the document, if that write made this revision: what was
    /// known of the files that it names.
    ///
    /// It is kept without waiting for the disk, and may be gone at any time; what comes back is whole.
    ///
    /// # Errors
    ///
    /// When the place of the key cannot be told.
    fn companion(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let _ = (key, revision);
        Ok(None)
    }

    /// Shows that whoever works on this key is alive, at a place of the store's own: the document stays as it
    /// is, and so does what is known of its progress.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotOffered`] where [`Capabilities::heartbeat`] is false; [`ErrorKind::NotFound`] when there
    /// is no document; [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] as for every write.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        let _ = (key, now, fence);
        Err(not_offered("heartbeat"))
    }

    /// Claims a key: until the claim runs out or is given back, only writes with its fence go through.
    ///
    /// The owner of a claim that stands gets the same one again, for at least as long as it asks for.
    /// There need be no checkpoint yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] while another's claim stands; [`ErrorKind::NotOffered`] where
    /// [`Capabilities::claims`] is false, as in all methods on claims.
    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        let _ = (key, request);
        Err(not_offered("claims"))
    }

    /// Lets a claim stand for longer, from now on; also one that ran out, as long as nobody else has
    /// claimed the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when the claim was given back or another has claimed the key since.
    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        let _ = (key, fence, time_to_live);
        Err(not_offered("claims"))
    }

    /// Gives a claim back. Doing so again changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when another has claimed the key since.
    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        let _ = (key, fence);
        Err(not_offered("claims"))
    }

    /// The last claim on a key, whether or not it still [stands](Claim::stands); `None` when there never
    /// was one.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being read.
    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        let _ = key;
        Err(not_offered("claims"))
    }

    /// The states of a key, newest first: the one that is there now, then those that writes replaced.
    ///
    /// What cannot be read is an entry too, with the reason. Holds no lock: an entry may be gone by the
    /// time it is loaded.
    ///
    /// # Errors
    ///
    /// Whatever keeps the history from being listed; [`ErrorKind::NotOffered`] where
    /// [`Capabilities::history`] is false, as in all methods on history.
    fn history(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        let _ = key;
        Err(not_offered("history"))
    }

    /// One state of a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is none of this name, or none any more;
    /// [`ErrorKind::Corrupt`] when it cannot be read.
    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let _ = (key, entry);
        Err(not_offered("history"))
    }

    /// Pins an entry, so that it is kept whatever comes, or unpins it. Pinning the state that is there
    /// now makes an entry of it. Gives the name of the entry.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is none of this name.
    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        let _ = (key, entry, pinned);
        Err(not_offered("history"))
    }

    /// Removes entries beyond these limits, and says which. While the state that is there now is missing
    /// or cannot be read, the newest entry that can be read stays.
    ///
    /// # Errors
    ///
    /// Whatever keeps the history from being listed. What cannot be removed stays.
    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        let _ = (key, keep);
        Err(not_offered("history"))
    }

    /// Goes on from a document that cannot be read: puts it aside and has another in its place.
    ///
    /// Where nothing is wrong, nothing is changed. [`Recovery::Newest`] also brings back a document that
    /// was deleted, but none of a task that ended; and inside a larger file ([`Capabilities::embedded`]) an empty place is nothing wrong.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRecoverable`] when there is nothing to go on with, or only states of tasks that ended; [`ErrorKind::TooLarge`] and
    /// [`ErrorKind::Corrupt`] with the code `too-deep` for what is only beyond the limits, which is left
    /// where it is; those of [`put`](CheckpointStore::put); [`ErrorKind::NotOffered`] where
    /// [`Capabilities::recovery`] is false.
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let _ = (key, options);
        Err(not_offered("recovery"))
    }

    /// Whether the state that is there now, of the revision `present`, is an earlier one that came back without
    /// the store, as by `git checkout`: it is not what the last save wrote, and equals an entry of the history.
    ///
    /// `None` where that is not so, and where nobody can tell: not every store knows, and what it knows may be gone
    /// at any time. A save that was killed does not count. Holds no lock.
    ///
    /// # Errors
    ///
    /// Whatever keeps the history from being listed.
    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        let _ = (key, present);
        Ok(None)
    }

    /// When the last save was made, where the state of the revision `present` is not what it wrote: something changed
    /// it without the store. `None` also where nobody can tell, as for [`rolled_back`](Self::rolled_back).
    ///
    /// # Errors
    ///
    /// Those of [`rolled_back`](Self::rolled_back).
    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        Ok(self.rolled_back(key, present)?.map(|back| back.saved))
    }

    /// The file that the document of a key is in, where it is in one. It is none of the files that the
    /// document is judged by.
    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        let _ = key;
        None
    }

    /// What this store can promise.
    fn capabilities(&self) -> Capabilities;
}

fn not_offered(what: &'static str) -> Error {
    Error::new(ErrorKind::NotOffered { what })
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

            fn exclusive(&self) -> Option<&dyn Exclusive> {
                (**self).exclusive()
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

            fn newest_overflow(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
                (**self).newest_overflow(key, most)
            }

            fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
                (**self).dropped_log(key)
            }

            fn companion(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
                (**self).companion(key, revision)
            }

            fn document_file(&self, key: &Key) -> Option<PathBuf> {
                (**self).document_file(key)
            }

            fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
                (**self).beat(key, now, fence)
            }

            fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
                (**self).claim(key, request)
            }

            fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
                (**self).renew(key, fence, time_to_live)
            }

            fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
                (**self).release(key, fence)
            }

            fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
                (**self).claimed(key)
            }

            fn history(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
                (**self).history(key)
            }

            fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
                (**self).load_revision(key, entry)
            }

            fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
                (**self).pin(key, entry, pinned)
            }

            fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
                (**self).prune(key, keep)
            }

            fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
                (**self).recover(key, options)
            }

            fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
                (**self).rolled_back(key, present)
            }

            fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
                (**self).changed_without(key, present)
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
