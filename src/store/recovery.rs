//! How one goes on from a checkpoint that cannot be read.

use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::{CheckpointStore, EntryId, Saved};
use crate::checkpoint::{Error, ErrorKind, Fence, Key, Result};
use crate::event;
use crate::json::{Corrupt, Document, LeftOut};

/// A store that can go on from a document that it cannot read.
pub trait Recover {
    /// Quarantines a damaged text and has another in its place.
    ///
    /// Where nothing is wrong, nothing is changed. [`Recovery::Newest`] also brings back a document that was
    /// deleted, but none of a task that ended. Inside a larger file
    /// ([`Capabilities::embedded`](super::Capabilities::embedded)) an empty place is nothing wrong, and as the file is
    /// mended as a whole, the fence of any claim in it does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRecoverable`] when there is nothing to go on with, or only states of tasks that ended;
    /// [`ErrorKind::TooLarge`] and [`ErrorKind::Corrupt`] with the code `too-deep` for a text that is only beyond
    /// the limits, which stays where it is; those of [`put`](CheckpointStore::put).
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered>;
}

/// The recovery of a store, or the error that it has none.
pub(crate) fn recovery_of<S: CheckpointStore + ?Sized>(store: &S) -> Result<&dyn Recover> {
    let none = || Error::new(ErrorKind::NotOffered { what: "recovery" });
    store.recovery().ok_or_else(none)
}

/// With what a checkpoint that cannot be read is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Recovery {
    /// With the newest state of its history that can be read, and that is of the present task.
    Newest,
    /// With nothing: the next save begins anew.
    Fresh,
    /// With its own good part, without the values that broke.
    Salvage,
}

/// What a recovery asks of the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// With what to go on.
    pub with: Recovery,
    /// The fence of the caller's claim.
    pub fence: Option<Fence>,
}

impl RecoverOptions {
    /// Goes on with this.
    #[must_use]
    pub const fn new(with: Recovery) -> Self {
        RecoverOptions { with, fence: None }
    }

    /// Sets the fence of the writer's claim.
    #[must_use]
    pub fn with_fence(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }
}

/// What came of a recovery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// What was wrong; `None` when nothing was, and nothing was changed.
    pub damage: Option<Corrupt>,
    /// With what the checkpoint went on.
    pub with: Recovery,
    /// The state of the history that was brought back.
    pub entry: Option<EntryId>,
    /// When that state was written, where the store knows.
    pub written: Option<SystemTime>,
    /// Whether what was saved after that state is not in it: a history has what saves replaced, so the last
    /// save before the damage, or before somebody removed the file, is in none of its states.
    pub may_lack: bool,
    /// Entries of the history that were newer and could not be read either.
    pub passed_over: Vec<EntryId>,
    /// The checkpoint that is there now; `None` after [`Recovery::Fresh`].
    pub document: Option<Document>,
    /// The save that put it there.
    pub saved: Option<Saved>,
    /// What of the damaged checkpoint can be read: compare it with [`document`](Recovered::document) to see what
    /// was lost.
    pub salvaged: Option<Document>,
    /// What of the damaged text is not in that, of a host file in the whole text: places, and the whole documents among it.
    pub left_out: Vec<LeftOut>,
    /// Where the damaged text is kept.
    pub put_aside: Option<String>,
}

impl Recovered {
    /// Reports the event `recovered` to those who watch: another document is in place, after what began at this time.
    /// For whoever writes a store.
    pub fn report(&self, key: &Key, began: Instant) {
        let revision = self.saved.as_ref().map(|saved| &saved.revision);
        event::happened("recovered", key, revision, None, began);
    }

    /// Nothing was wrong.
    #[must_use]
    pub fn healthy(with: Recovery) -> Self {
        Recovered {
            damage: None,
            with,
            entry: None,
            written: None,
            may_lack: false,
            passed_over: Vec::new(),
            document: None,
            saved: None,
            salvaged: None,
            left_out: Vec::new(),
            put_aside: None,
        }
    }
}
