//! The earlier states of a file, and which of them belong to the present task.

use std::path::Path;
use std::time::SystemTime;

use super::{DurableFile, Undo};
use crate::checkpoint::{ErrorKind, Result, Revision};
use crate::store::file::dropped_log::DroppedLog;
use crate::store::file::history::{Entry, History, entry_named};
use crate::store::file::task_boundary::{EndedTask, TaskBoundaries};
use crate::store::{EntryId, Keep, RolledBack, Stored};

impl DurableFile<'_> {
    /// How many tasks ended after each of these history entries, newest first.
    pub(in crate::store) fn tasks_since(
        &self,
        history: &History<'_>,
        entries: &[Entry],
    ) -> Result<Vec<usize>> {
        TaskBoundaries::beside(&self.target()?).tasks_since(history, entries)
    }

    /// Ends the present task: recovery no longer goes back to the present history by itself. It runs under the
    /// lock, and is undone if the operation fails.
    pub(in crate::store::file) fn end_task(&self) -> Result<EndedTask> {
        self.end_task_of(&self.target()?)
    }

    /// Ends the present task for a text that is about to be written.
    pub(in crate::store) fn end_task_for(&self, undo: Undo) -> Result<Undo> {
        match self.end_task() {
            Ok(ended) => Ok(Undo { ended, ..undo }),
            Err(error) => {
                undo.undo();
                Err(error)
            }
        }
    }

    pub(super) fn end_task_of(&self, target: &Path) -> Result<EndedTask> {
        match self.history_of(target) {
            Some(history) => TaskBoundaries::beside(target).end(&history, self.options.durability),
            None => Ok(EndedTask::default()),
        }
    }

    /// Pins or unpins an entry. Pinning the present state makes an entry of it.
    pub(in crate::store) fn pin(
        &self,
        history: &History<'_>,
        entry: &EntryId,
        pinned: bool,
    ) -> Result<EntryId> {
        self.locked(|| {
            if !entry.is_current() {
                let found = entry_named(&history.entries_of_file()?, entry)?;
                history.pin(&found, pinned)?;
                return Ok(found.id);
            }
            let target = self.target()?;
            let (stored, contents) = self.read(&target)?.ok_or_else(|| entry.no_such())?;
            let wanted = self.options.durability;
            self.ensure_synced(&target, &contents, &stored.revision, wanted)?;
            // Copy instead of linking: other programs may write into the present file in place.
            let kept = history.keep(&contents, false, self.options.clock.now())?;
            let pin = || -> Result<EntryId> {
                let newest = history.newest()?.ok_or_else(|| entry.no_such())?;
                history.pin(&newest, pinned)?;
                Ok(newest.id)
            };
            let result = pin();
            if matches!(&result, Err(error) if *error.kind() != ErrorKind::NotDurable) {
                History::undo(kept);
            }
            result
        })
    }

    /// Adds a state to the history of a file that does not exist, and records that `tasks_ended` tasks ended
    /// after it.
    pub(in crate::store) fn append(
        &self,
        history: &History<'_>,
        state: &Stored,
        tasks_ended: usize,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
    ) -> Result<EntryId> {
        self.refuse_too_large(state.document.text())?;
        self.locked(|| {
            let target = self.target()?;
            let beside = self.beside(&target);
            beside.claims.check(None, None, beside.now)?;
            check(self.read(&target)?.as_ref().map(|(stored, _)| stored))?;
            history.append(state, beside.now, |entry| {
                let boundaries = TaskBoundaries::beside(&target);
                boundaries.end_after(history, entry, tasks_ended, self.options.durability)
            })
        })
    }

    /// Removes the entries beyond these limits. While the present state is missing or cannot be read, the newest
    /// readable entry may be the only copy, so it stays. For a slot, the newest entry in which `has_slot` finds a
    /// checkpoint always stays.
    pub(in crate::store) fn prune(
        &self,
        history: &History<'_>,
        keep: &Keep,
        has_slot: Option<&dyn Fn(&Entry) -> bool>,
    ) -> Result<Vec<EntryId>> {
        self.locked(|| {
            let is_good = |entry: &Entry| matches!(self.read_entry(&entry.path), Ok(Some(_)));
            // The entries that stay must be on disk before others are removed.
            history.ensure_synced()?;
            let spared = match has_slot {
                Some(has_slot) => {
                    let mut entries = history.entries()?.into_iter();
                    entries.find(|entry| !entry.pinned && has_slot(entry))
                }
                None => match self.load() {
                    Ok(Some(_)) => None,
                    _ => history.entries()?.into_iter().find(is_good),
                },
            };
            // Shorten the log first, so that an error leaves the history unchanged.
            let log = DroppedLog::beside(&self.target()?);
            log.shorten(keep.bytes, self.options.durability)?;
            history.prune(keep, spared.as_ref().map(|entry| &entry.id))
        })
    }

    /// The time of the last save, if the present state is not the one that it wrote.
    pub(in crate::store) fn changed_without(
        &self,
        present: &Revision,
    ) -> Result<Option<SystemTime>> {
        Ok(self.note(&self.target()?).changed_without(present))
    }

    /// Whether the present state is an earlier one that was put back without the store. `state` reads an entry.
    pub(in crate::store) fn rolled_back(
        &self,
        present: &Revision,
        state: &dyn Fn(&Entry) -> Result<Option<Stored>>,
    ) -> Result<Option<RolledBack>> {
        let target = self.target()?;
        let noted = self.note(&target).read();
        let (Some(last), Some(history)) = (noted.last(), self.history_of(&target)) else {
            return Ok(None);
        };
        if noted.is_ours(present) {
            return Ok(None);
        }
        let mut entries = history.entries()?;
        // A killed save may have made an entry of the present state.
        if matches!(entries.first(), Some(newest) if history.is_present(&newest.path)?) {
            entries.remove(0);
        }
        // An entry that cannot be read matches nothing.
        let states: Vec<Option<Revision>> = entries
            .iter()
            .map(|entry| Some(state(entry).ok()??.revision))
            .collect();
        let position = |wanted: Option<&Revision>| {
            let wanted = wanted?;
            states.iter().position(|is| is.as_ref() == Some(wanted))
        };
        let Some(at) = position(Some(present)) else {
            return Ok(None);
        };
        // A save that came in between made an entry of the state that was loaded before it, so check again.
        let file = Entry {
            id: EntryId::current(),
            path: target.clone(),
            saved: None,
            bytes: 0,
            pinned: false,
        };
        let is_still = matches!(state(&file), Ok(Some(now)) if now.revision == *present);
        let now = self.note(&target).read();
        if !is_still || now.last() != noted.last() || now.is_ours(present) {
            return Ok(None);
        }
        let kept = position(last.checkpoint.as_ref());
        let newer = states[..at].iter().position(Option::is_some);
        let mut rolled_back = RolledBack::new(entries[at].id.clone(), last.at);
        rolled_back.later = kept.or(newer).map(|at| entries[at].id.clone());
        rolled_back.last_is_kept = kept.is_some();
        Ok(Some(rolled_back))
    }
}
