//! The data that a store has beside its documents.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{LedgerLines, LedgerMark, Saved};
use crate::checkpoint::{Dropped, Fence, Key, Result, Revision};

/// The data that a store has beside its documents: the dropped items and the fingerprints of the files that a document
/// names, which both come with a [`Put`](super::Put); and the ledger, which is written on its own.
pub trait Beside {
    /// The items that saves of this key dropped to stay within their limits, oldest first.
    ///
    /// # Errors
    ///
    /// Any failure to read them.
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>>;

    /// The newest `most` of the [dropped items](Beside::dropped), oldest first. A store of files reads no more
    /// of the log than necessary.
    ///
    /// # Errors
    ///
    /// Those of [`dropped`](Beside::dropped).
    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>>;

    /// The place of the dropped items, as the checkpoint itself names it: in a store of files a path relative
    /// to the folder of the checkpoint's file, with `/`. `None` if no reader could look there.
    ///
    /// # Errors
    ///
    /// When the key names no place in the store.
    fn dropped_log(&self, key: &Key) -> Result<Option<String>>;

    /// The fingerprints that the last write stored beside the document, if that write made this revision.
    ///
    /// They are not synced and may be lost at any time; a text that is returned is whole.
    ///
    /// # Errors
    ///
    /// When the key names no place in the store.
    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>>;

    /// The file that contains the document of a key, if there is one. It never counts among the files by which
    /// the document is judged.
    fn document_file(&self, key: &Key) -> Option<PathBuf>;

    /// The lines of the ledger of this key, oldest first, each exactly as it was added; empty if there are none. A
    /// line is one JSON object without line ends; the store reads nothing else from it. The returned lines are as
    /// durable as a document, whichever process wrote them, unless the store was opened for reading only.
    ///
    /// The ledger outlives the documents under the key: puts, deletes, archives and recoveries do not change
    /// it. Only a [`forget`](super::CheckpointStore::forget) removes it.
    ///
    /// # Errors
    ///
    /// Any failure to read them; [`Unreadable`](crate::ErrorKind::Unreadable) when the ledger is damaged, or is
    /// known to be on another machine.
    fn ledger(&self, key: &Key) -> Result<Vec<String>> {
        Ok(self.ledger_since(key, None)?.lines)
    }

    /// The same lines without those that `mark` identifies. The mark came with an earlier answer for this key. A ledger
    /// only grows, so a caller that remembers the contents reads each line once.
    ///
    /// A store omits lines only if they are certainly still there and unchanged. Otherwise, as after a forget, it
    /// returns all lines, and [`LedgerLines::before`] is 0. A store without marks always returns
    /// [`LedgerLines::all`].
    ///
    /// # Errors
    ///
    /// Those of [`ledger`](Beside::ledger).
    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines>;

    /// Adds a line to the ledger of this key if it has exactly `at` lines. Otherwise nothing is written, and the
    /// result is `false`. After `true`, the line is as durable as a document. The key need not have a document.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) when the line is not a JSON object or contains a line end
    /// ([`check_ledger_line`](super::check_ledger_line)); [`Claimed`](crate::ErrorKind::Claimed) and
    /// [`Fenced`](crate::ErrorKind::Fenced) as for every write; those of [`ledger`](Beside::ledger), and any
    /// failure to write the line. After an error the line is not in the ledger and never will be, except after
    /// [`NotDurable`](crate::ErrorKind::NotDurable) and the [code](crate::Error::code) `outcome-unknown`.
    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool>;
}

/// A heartbeat that the store keeps apart from the documents.
pub trait Heartbeat {
    /// Records that the agent of this key is alive. The document and the stamps of its progress do not change.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no document;
    /// [`Claimed`](crate::ErrorKind::Claimed) and [`Fenced`](crate::ErrorKind::Fenced) as for every write.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved>;
}
