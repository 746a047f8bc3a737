//! What lies beside the documents of a store.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::Saved;
use crate::checkpoint::{Dropped, Fence, Key, Result, Revision};

/// What a store keeps beside its documents: the items that saves dropped, and the fingerprints of the files that
/// a document names, which both come with a [`Put`](super::Put); and the ledger, which has a life of its own.
pub trait Beside {
    /// The items that saves of this key dropped to keep within their limits, oldest first.
    ///
    /// # Errors
    ///
    /// Any failure to read them.
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>>;

    /// The newest `most` of the [dropped items](Beside::dropped), oldest first. Stores of files read no more of
    /// the rest than they must.
    ///
    /// # Errors
    ///
    /// Those of [`dropped`](Beside::dropped).
    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>>;

    /// Where the dropped items are kept, as the checkpoint itself names it: of files a path relative to the folder
    /// of the checkpoint's file, with `/`. `None` where no reader could look there.
    ///
    /// # Errors
    ///
    /// When the key has no place.
    fn dropped_log(&self, key: &Key) -> Result<Option<String>>;

    /// The fingerprints that the last write kept beside the document, if that write made this revision.
    ///
    /// They are kept without waiting for the disk, and may be gone at any time; a text that comes back is whole.
    ///
    /// # Errors
    ///
    /// When the key has no place.
    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>>;

    /// The file that holds the document of a key, where there is one. It is none of the files that the document is
    /// judged by.
    fn document_file(&self, key: &Key) -> Option<PathBuf>;

    /// The lines of the ledger of this key, oldest first, each exactly as it was added; none where nothing was added.
    /// A line is one JSON object without line ends, of which the store knows no more than that. What is given is as safe as a
    /// document, whoever wrote it, but by a store that was opened for reading only.
    ///
    /// The ledger outlives each document under the key: puts, deletes, archives and recoveries leave it as it is. Only a
    /// [`forget`](super::CheckpointStore::forget) removes it.
    ///
    /// # Errors
    ///
    /// Any failure to read them; [`Unreadable`](crate::ErrorKind::Unreadable) when the ledger is damaged, or is known to
    /// be elsewhere.
    fn ledger(&self, key: &Key) -> Result<Vec<String>>;

    /// Adds a line to the ledger of this key, where it has exactly `at` lines; `false`, and nothing is written, where it
    /// has another number by now. When this returns `true`, the line is as safe as a document. There need be none.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) when the line is no JSON object or has a line end in it
    /// ([`check_ledger_line`](super::check_ledger_line)); [`Claimed`](crate::ErrorKind::Claimed) and
    /// [`Fenced`](crate::ErrorKind::Fenced) as for every write; those of [`ledger`](Beside::ledger), and whatever keeps
    /// the line from being written. It is not there then and never will be, but after
    /// [`NotDurable`](crate::ErrorKind::NotDurable) and the [code](crate::Error::code) `outcome-unknown`.
    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool>;
}

/// A heartbeat that the store itself keeps beside the documents.
pub trait Heartbeat {
    /// Shows that the agent of this key is alive. The document stays as it is, and so does what is known of its
    /// progress.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no document;
    /// [`Claimed`](crate::ErrorKind::Claimed) and [`Fenced`](crate::ErrorKind::Fenced) as for every write.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved>;
}
