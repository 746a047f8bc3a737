//! Where the history of a file passes from one task to the next.

use std::path::Path;

use super::history::{Boundary, Entry, History};
use super::own_file::{OwnFile, Record, folders};
use crate::checkpoint::Result;
use crate::fsio::{self, Contents, Durability, FileError, Present};

const RECORD: Record = Record {
    name: "the record of the tasks that ended",
    unknown: "which states are of this one",
    remedy: "remove the record to treat all of them as states of this task",
};

/// The record beside one file: `.agent-checkpoint/lineage/{file}.json`, the newest entry of each task that
/// ended, oldest first. It is written under the lock of the file, before the operation that ends the task.
pub(super) struct TaskBoundaries(OwnFile);

impl TaskBoundaries {
    pub(super) fn beside(target: &Path) -> Self {
        TaskBoundaries(OwnFile::beside(target, folders::TASK_BOUNDARIES, ".json"))
    }

    fn read(&self) -> Result<(Vec<Boundary>, Option<Contents>)> {
        let (boundaries, read) = RECORD.read(&self.0)?;
        Ok((boundaries?, read))
    }

    /// How many tasks ended after each of these entries, newest first.
    pub(super) fn tasks_since(
        &self,
        history: &History<'_>,
        entries: &[Entry],
    ) -> Result<Vec<usize>> {
        let (boundaries, _) = self.read()?;
        let noted = history.noted_order();
        let age = |entry: &Entry| {
            let ended = boundaries.iter();
            ended
                .filter(|boundary| history.is_up_to(entry, boundary, &noted))
                .count()
        };
        Ok(entries.iter().map(age).collect())
    }

    /// Records that `tasks` tasks end after an entry that is about to be made as the newest. A process that was
    /// killed before it made the entry may have left a record under the same name.
    pub(super) fn end_after(
        self,
        history: &History<'_>,
        entry: &Entry,
        tasks: usize,
        durability: Durability,
    ) -> Result<()> {
        let (mut boundaries, before) = self.read()?;
        let known = boundaries.clone();
        let (entries, noted) = (history.entries()?, history.noted_order());
        boundaries.retain(|boundary| {
            let mut entries = entries.iter();
            entries.any(|entry| history.is_up_to(entry, boundary, &noted))
                && !boundary.is_of(&entry.id)
        });
        boundaries.extend(std::iter::repeat_n(Boundary::after(entry), tasks));
        if boundaries == known && before.is_none() {
            return Ok(());
        }
        // Write even if nothing changes: the process that wrote the record may have died before its sync.
        let text = RECORD.text(&boundaries)?;
        Ok(self.0.write(&text, Present::Whatever, durability)?)
    }

    /// Ends the present task: none of the states now in the history belong to the next one.
    pub(super) fn end(self, history: &History<'_>, durability: Durability) -> Result<EndedTask> {
        let entries = history.entries()?;
        let Some(newest) = entries.first() else {
            return Ok(EndedTask::default());
        };
        let (mut boundaries, before) = self.read()?;
        let noted = history.noted_order();
        if boundaries
            .iter()
            .any(|boundary| history.is_up_to(newest, boundary, &noted))
        {
            // The process that wrote the record may have died before its sync.
            if let Some(before) = before {
                let lasts = fsio::ensure_synced(self.0.path(), &before, durability);
                lasts.map_err(FileError::of_a_step)?;
            }
            return Ok(EndedTask::default());
        }
        boundaries.retain(|boundary| {
            entries
                .iter()
                .any(|entry| history.is_up_to(entry, boundary, &noted))
        });
        boundaries.push(Boundary::after(newest));
        let text = RECORD.text(&boundaries)?;
        let written = self.0.write(&text, Present::Whatever, durability);
        let ended = EndedTask {
            changed: Some((self.0, before)),
            durability,
        };
        match written {
            Ok(()) => Ok(ended),
            Err(error) => {
                // The record may be in place although it is not durable.
                if matches!(error, FileError::NotDurable { .. }) {
                    ended.undo();
                }
                Err(error.of_a_step().into())
            }
        }
    }
}

/// A task that was ended, to be continued if the operation that ends it fails.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct EndedTask {
    /// The record and its previous contents; `None` if it did not change.
    changed: Option<(OwnFile, Option<Contents>)>,
    durability: Durability,
}

impl EndedTask {
    /// Continues the task, because the operation failed.
    pub(super) fn undo(self) {
        let undone = match &self.changed {
            None => Ok(()),
            Some((file, None)) => file.remove(self.durability),
            Some((file, Some(before))) => {
                file.write(&before.bytes, Present::Whatever, self.durability)
            }
        };
        if let Err(error) = undone {
            tracing::warn!(%error, "a task that goes on is recorded as ended");
        }
    }
}
