//! Loading checkpoints, typed and judged.

use std::time::SystemTime;

use super::Checkpoints;
use crate::checkpoint::{
    Checkpoint, Current, Error, ErrorKind, Key, Result, Revision, RuleContext, read, violations,
};
use crate::json::{Document, Violation};
use crate::store::{EntryId, Stored, TaskContext};

/// A checkpoint as it was loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded<C> {
    /// What could be read, typed.
    pub checkpoint: C,
    /// The token of the state it was read from.
    pub revision: Revision,
    /// What is wrong with it; empty for a valid one.
    pub violations: Vec<Violation>,
    /// Whether parts of it could not be read, and are missing from
    /// [`checkpoint`](Loaded::checkpoint).
    pub is_partial: bool,
    /// The whole document, with what the type does not know; of an older version, as its migrations left it.
    pub document: Document,
    /// The version that is stored, where migrations brought it to the latest one; a save writes the latest.
    pub migrated_from: Option<u64>,
    /// When it was last written, if the store has that.
    pub modified: Option<SystemTime>,
    /// What the store has about the task beside the checkpoint.
    pub context: TaskContext,
}

impl<C: Checkpoint> Checkpoints<C> {
    /// The checkpoint under a key, or `None` when there is none.
    ///
    /// A checkpoint that breaks its format's rules, or parts of which cannot be read, is loaded all
    /// the same, with its violations.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when what is there is no document; the errors of
    /// [`CheckpointStore::load`](crate::store::CheckpointStore::load).
    pub fn load(&self, key: &Key) -> Result<Option<Loaded<C>>> {
        let stored = self.store.load(key)?;
        stored
            .map(|stored| self.judged_load(key, stored))
            .transpose()
    }

    /// The checkpoint under a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, and those of [`load`](Checkpoints::load).
    pub fn get(&self, key: &Key) -> Result<Loaded<C>> {
        self.judged_load(key, self.stored(key)?)
    }

    /// What is stored under a key, which is there.
    pub(super) fn stored(&self, key: &Key) -> Result<Stored> {
        let not_found = || Error::new(ErrorKind::NotFound).with_key(key);
        self.store.load(key)?.ok_or_else(not_found)
    }

    /// What is stored, typed and not judged.
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

    /// The key, where ids inside a checkpoint are judged by it.
    pub(super) fn judged<'k>(&self, key: &'k Key) -> Option<&'k Key> {
        let capabilities = self.store.capabilities();
        (!capabilities.embedded && !capabilities.keys_are_places).then_some(key)
    }

    /// One state of the history of a checkpoint, as [`CheckpointStoreExt::states`](crate::CheckpointStoreExt::states) lists them.
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
            // What a recovery would not go on with is nothing to plan from.
            if entry.tasks_since > 0 {
                break;
            }
            let stored = history.load_revision(key, &entry.id);
            let is_read = |stored: &Stored| self.current(key, &stored.document).map(|_| ());
            match stored.and_then(|stored| is_read(&stored).map(|()| stored)) {
                Ok(stored) => return Ok(Some((entry.id, stored))),
                // Damaged as well, of a version that cannot be brought to this one, or pruned meanwhile.
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
