//! Loading checkpoints, typed and with their violations.

use std::time::SystemTime;

use super::Checkpoints;
use crate::checkpoint::{
    Checkpoint, Current, Error, ErrorKind, Key, Result, Revision, RuleContext, read, violations,
};
use crate::json::{Document, Violation};
use crate::store::{EntryId, Stored, TaskContext};

/// A loaded checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded<C> {
    /// The typed checkpoint, as far as it could be read.
    pub checkpoint: C,
    /// The revision of the document it was read from.
    pub revision: Revision,
    /// Its violations; empty for a valid checkpoint.
    pub violations: Vec<Violation>,
    /// Whether parts of the document could not be read, and so are missing from
    /// [`checkpoint`](Loaded::checkpoint).
    pub is_partial: bool,
    /// The whole document, including what the type does not know. For an older version, it is the result of the
    /// migrations.
    pub document: Document,
    /// The version of the stored document, if migrations brought it to the latest one. A save writes the latest.
    pub migrated_from: Option<u64>,
    /// When it was last written, if the store knows.
    pub modified: Option<SystemTime>,
    /// What the store knows about the task besides the checkpoint.
    pub context: TaskContext,
}

impl<C: Checkpoint> Checkpoints<C> {
    /// Loads the checkpoint under a key; `None` when there is none.
    ///
    /// A checkpoint that breaks its format's rules, or that is partly unreadable, is loaded too, with its violations.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when the stored bytes are not a document; the errors of
    /// [`CheckpointStore::load`](crate::store::CheckpointStore::load).
    pub fn load(&self, key: &Key) -> Result<Option<Loaded<C>>> {
        let stored = self.store.load(key)?;
        stored
            .map(|stored| self.judged_load(key, stored))
            .transpose()
    }

    /// Loads the checkpoint under a key, which must exist.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, and those of [`load`](Checkpoints::load).
    pub fn get(&self, key: &Key) -> Result<Loaded<C>> {
        self.judged_load(key, self.stored(key)?)
    }

    /// The stored document under a key, which must exist.
    pub(super) fn stored(&self, key: &Key) -> Result<Stored> {
        let not_found = || Error::new(ErrorKind::NotFound).with_key(key);
        self.store.load(key)?.ok_or_else(not_found)
    }

    /// Reads the stored document as the format's type, without judging it.
    pub(super) fn current<'d>(&self, key: &Key, stored: &'d Document) -> Result<Current<'d, C>> {
        read::<C>(stored).map_err(|error| error.with_key(key))
    }

    fn judged_load(&self, key: &Key, stored: Stored) -> Result<Loaded<C>> {
        let Current {
            document,
            reading,
            migrated_from,
            ..
        } = self.current(key, &stored.document)?;
        let rule_context = RuleContext {
            now: Some(self.clock.now()),
            key: self.judged(key),
            ..RuleContext::none()
        };
        Ok(Loaded {
            violations: violations(&document, &reading, &rule_context),
            is_partial: reading.is_partial(),
            checkpoint: reading.value,
            migrated_from,
            revision: stored.revision,
            document: document.into_owned(),
            modified: stored.modified,
            context: stored.context,
        })
    }

    /// The key, if the ids inside a checkpoint must match it.
    pub(super) fn judged<'k>(&self, key: &'k Key) -> Option<&'k Key> {
        let capabilities = self.store.capabilities();
        (!capabilities.embedded && !capabilities.keys_are_places).then_some(key)
    }

    /// Loads one state from the history of a checkpoint, as
    /// [`CheckpointStoreExt::states`](crate::CheckpointStoreExt::states) lists them.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStoreExt::load_revision`](crate::CheckpointStoreExt::load_revision).
    pub fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Loaded<C>> {
        let history = crate::store::history_of(&*self.store)?;
        self.judged_load(key, history.load_revision(key, entry)?)
    }

    /// The newest earlier state that can be read.
    pub(super) fn newest_good(&self, key: &Key) -> Result<Option<(EntryId, Stored)>> {
        let Some(history) = self.store.history() else {
            return Ok(None);
        };
        for entry in history.states(key)? {
            if entry.is_current() || entry.revision.is_err() {
                continue;
            }
            // A recovery does not use states of earlier tasks, so no plan is made from them either.
            if entry.tasks_since > 0 {
                break;
            }
            let stored = history.load_revision(key, &entry.id);
            let is_read = |stored: &Stored| self.current(key, &stored.document).map(|_| ());
            match stored.and_then(|stored| is_read(&stored).map(|()| stored)) {
                Ok(stored) => return Ok(Some((entry.id, stored))),
                // This entry is damaged too, cannot be migrated, or was pruned meanwhile.
                Err(error)
                    if error.code() == "migration"
                        || matches!(
                            error.kind(),
                            ErrorKind::Corrupt(_) | ErrorKind::NoSuchRevision { .. }
                        ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
