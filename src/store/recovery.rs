//! Recovery from a checkpoint that cannot be read.

use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::{CheckpointStore, EntryId, Outcome, Saved, Stored};
use crate::checkpoint::{Error, ErrorKind, Fence, Key, Result, Revision};
use crate::event;
use crate::json::{Corrupt, CorruptCode, Document, LeftOut, conflict, salvage};

/// A store that can recover from an unreadable document.
pub trait Recover {
    /// Quarantines a damaged text and puts another one in its place.
    ///
    /// If nothing is wrong, nothing changes. [`Recovery::Newest`] also brings back a deleted document, but not that
    /// of an ended task. Inside a larger file ([`Capabilities::embedded`](super::Capabilities::embedded)) an empty
    /// slot counts as nothing wrong. That file is repaired as a whole, so the fence of any claim in it suffices.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRecoverable`] when there is no state to recover from, or only states of ended tasks;
    /// [`ErrorKind::TooLarge`], and [`ErrorKind::Corrupt`] with the code `too-deep`, for a text that is merely
    /// beyond the limits and stays in place; those of [`put`](CheckpointStore::put).
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered>;
}

/// The recovery of a store, or the error that it has none.
pub(crate) fn recovery_of<S: CheckpointStore + ?Sized>(store: &S) -> Result<&dyn Recover> {
    let none = || Error::new(ErrorKind::NotOffered { what: "recovery" });
    store.recovery().ok_or_else(none)
}

/// What replaces a checkpoint that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Recovery {
    /// The newest readable state of the present task in its history.
    Newest,
    /// Nothing: the next save starts a new document.
    Fresh,
    /// The good part of the damaged text, without the broken values.
    Salvage,
}

/// The options of a recovery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// What replaces the unreadable checkpoint.
    pub with: Recovery,
    /// The fence of the caller's claim.
    pub fence: Option<Fence>,
}

impl RecoverOptions {
    /// Recovers with this replacement.
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

/// The result of a recovery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The damage; `None` if there was none.
    pub damage: Option<Corrupt>,
    /// What replaced the checkpoint.
    pub with: Recovery,
    /// The history entry that was brought back.
    pub entry: Option<EntryId>,
    /// When that state was written, if the store knows.
    pub written: Option<SystemTime>,
    /// Whether saves after that state may be missing. The history has only states that saves replaced, so the
    /// last save before the damage, or before the file was removed, is not in it.
    pub may_lack: bool,
    /// Newer history entries that could not be read either.
    pub passed_over: Vec<EntryId>,
    /// The checkpoint that is in place now; `None` after [`Recovery::Fresh`].
    pub document: Option<Document>,
    /// The save that put it in place.
    pub saved: Option<Saved>,
    /// The readable part of the damaged checkpoint. Compare it with [`document`](Recovered::document) to see
    /// what was lost.
    pub salvaged: Option<Document>,
    /// The parts of the damaged text that are not in `salvaged`: places, and whole documents. For a host file
    /// they are those of the whole text.
    pub left_out: Vec<LeftOut>,
    /// Where the damaged text is quarantined.
    pub put_aside: Option<String>,
}

impl Recovered {
    /// Decides what replaces a document that is gone or cannot be read; `None` if nothing is wrong with it. For
    /// authors of stores.
    ///
    /// `present` is the result of [`load`](CheckpointStore::load), and `text` the bytes that it was read from.
    /// `past` are the earlier states, newest first: the name of each, how many [tasks
    /// ended](super::HistoryEntry::tasks_since) after it, and the argument for `read`, which returns `None` for
    /// an unreadable state.
    ///
    /// The store must do the rest. It quarantines the text of a [`damage`](Recovered::damage) and sets [its
    /// place](Recovered::put_aside), then puts the [`document`](Recovered::document) in its place without
    /// making a history entry. If there is no document, it ends the task and removes what is there.
    ///
    /// # Errors
    ///
    /// Those of [`Recover::recover`], except those of a put; and those of `read`.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::json::Document;
    /// use agent_checkpoint::store::{EntryId, Recovered, Recovery, Stored};
    ///
    /// # fn main() -> agent_checkpoint::Result<()> {
    /// let text = br#"{"phase": "rev"#;
    /// let present = Document::parse(text).map(|document| Some(Stored::new(document)));
    /// let past = [(2, 0, &b"broken, too"[..]), (1, 0, &br#"{"phase": "plan"}"#[..])];
    /// let past = past.map(|(number, tasks_since, text)| (EntryId::from(number), tasks_since, text));
    /// let read = |text: &[u8]| Ok(Document::parse(text).ok().map(Stored::new));
    ///
    /// let recovered = Recovered::decide(Recovery::Newest, present.map_err(Into::into), text, past, read)?;
    /// let recovered = recovered.ok_or("nothing is wrong").unwrap();
    /// assert_eq!(recovered.entry, Some(EntryId::from(1)));
    /// assert_eq!(recovered.passed_over, [EntryId::from(2)]);
    /// assert_eq!(recovered.document.unwrap().text(), r#"{"phase": "plan"}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn decide<S>(
        with: Recovery,
        present: Result<Option<Stored>>,
        text: &[u8],
        past: impl IntoIterator<Item = (EntryId, usize, S)>,
        read: impl FnMut(S) -> Result<Option<Stored>>,
    ) -> Result<Option<Recovered>> {
        let damage = match present {
            Ok(Some(_)) => return Ok(None),
            Ok(None) => None,
            Err(error) => match error.kind() {
                ErrorKind::Corrupt(corrupt) if corrupt.code != CorruptCode::TooDeep => {
                    Some(corrupt.clone())
                }
                _ => return Err(error),
            },
        };
        let mut recovered = Recovered::healthy(with);
        recovered.damage = damage;
        recovered.go_on(text, past, read, "start fresh")?;
        let outcome = match recovered.damage {
            Some(_) => Outcome::Replaced,
            None => Outcome::Created,
        };
        let text = recovered.document.as_ref().map(Document::text);
        let revision = text.map(|text| Revision::of(text.as_bytes()));
        recovered.saved = revision.map(|revision| Saved::new(outcome, revision, None));
        Ok(Some(recovered))
    }

    /// Finds the replacing document, if there is to be one. `last_way` is the last resort that the error names
    /// if none is found.
    pub(super) fn go_on<S>(
        &mut self,
        text: &[u8],
        past: impl IntoIterator<Item = (EntryId, usize, S)>,
        mut read: impl FnMut(S) -> Result<Option<Stored>>,
        last_way: &str,
    ) -> Result<()> {
        let is_damaged = self.damage.is_some();
        if let Some(salvage) = salvage(text).filter(|_| is_damaged) {
            self.salvaged = Some(salvage.document);
            self.left_out = salvage.left_out;
        }
        match (self.with, &self.salvaged) {
            (Recovery::Fresh, _) => return Ok(()),
            (Recovery::Salvage, Some(salvaged)) => {
                self.document = Some(salvaged.clone());
                return Ok(());
            }
            (Recovery::Salvage, None) => {
                return Err(match conflict(text) {
                    _ if !is_damaged => not_recoverable("there is nothing here to salvage"),
                    Some(conflict) => Error::refused(conflict.message),
                    None => not_recoverable(format!(
                        "nothing of the damaged text can be read; recover the newest earlier state, or {last_way}"
                    )),
                });
            }
            (Recovery::Newest, _) => {}
        }
        let mut ended = None;
        for (id, tasks_since, state) in past {
            if tasks_since > 0 {
                ended = Some(id);
                break;
            }
            let Some(stored) = read(state)? else {
                self.passed_over.push(id);
                continue;
            };
            self.entry = Some(id);
            self.written = stored.modified;
            // A state enters the history when the next save replaces it, which did not happen to the damaged one.
            self.may_lack = is_damaged;
            self.document = Some(stored.document);
            return Ok(());
        }
        let rest = match (&ended, &self.salvaged) {
            (None, _) if !is_damaged => {
                "and no damaged text either: there is nothing to recover".to_owned()
            }
            (None, Some(_)) => format!("salvage the good part of the damaged text, or {last_way}"),
            (None, None) => format!("and nothing of the damaged text can be read: {last_way}"),
            (Some(_), _) if !is_damaged => {
                "restore one of them by its name, or begin a new one".to_owned()
            }
            (Some(_), None) => format!(
                "and nothing of the damaged text can be read: {last_way}, after which one of them can be restored by its name"
            ),
            (Some(_), Some(_)) => {
                "start fresh, after which one of them can be restored by its name, or salvage the good part of the \
                 damaged text"
                    .to_owned()
            }
        };
        Err(not_recoverable(match ended {
            None => format!("there is no earlier state that can be read; {rest}"),
            Some(ended) => format!(
                "no earlier state of this task can be read, and {ended} and older states are of earlier tasks, which \
                 were archived, started fresh or deleted; {rest}"
            ),
        }))
    }

    /// Emits the event `recovered` for an operation that began at this time, if it changed anything. For
    /// authors of stores.
    pub fn report(&self, key: &Key, began: Instant) {
        if self.saved.is_none() && self.damage.is_none() {
            return;
        }
        let revision = self.saved.as_ref().map(|saved| &saved.revision);
        event::happened("recovered", key, revision, None, began);
    }

    /// The result if nothing was wrong.
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

pub(super) fn not_recoverable(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotRecoverable {
        detail: detail.into(),
    })
}
