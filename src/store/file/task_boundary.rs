//! Where the history of a file passes from one task to the next.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::history::{Entry, History};
use super::names::name_beside;
use crate::checkpoint::{Error, ErrorKind, Result};
use crate::fsio::{self, Contents, Durability, FileError, Present, Replace};

/// The largest record that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The record beside one file: `.agent-checkpoint/lineage/{file}.json`, the newest entry of each task that
/// ended, oldest first. Written under the lock of the file, before the act that ends the task.
pub(super) struct TaskBoundaries {
    target: PathBuf,
    path: PathBuf,
}

/// The newest entry of a task that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Boundary {
    pub(super) entry: String,
    /// When that state was written, in seconds since 1970 and nanoseconds: the number of an entry may come
    /// again where somebody removed the history.
    pub(super) saved: Option<(u64, u32)>,
}

impl Boundary {
    fn after(entry: &Entry) -> Boundary {
        Boundary {
            entry: entry.id.to_string(),
            saved: entry.saved.map(since_epoch),
        }
    }
}

pub(super) fn since_epoch(time: std::time::SystemTime) -> (u64, u32) {
    let span = time.duration_since(std::time::UNIX_EPOCH);
    span.map_or((0, 0), |span| (span.as_secs(), span.subsec_nanos()))
}

impl TaskBoundaries {
    pub(super) fn beside(target: &Path) -> Self {
        let own = fsio::parent_of(target).join(fsio::OWN_FOLDER);
        TaskBoundaries {
            path: own.join("lineage").join(name_beside(target, ".json")),
            target: target.to_path_buf(),
        }
    }

    fn read(&self) -> Result<(Vec<Boundary>, Option<Contents>)> {
        if fsio::look(&self.path)?.is_none() {
            return Ok((Vec::new(), None));
        }
        let Some(read) = fsio::read_limited(&self.path, MAX_BYTES)? else {
            return Ok((Vec::new(), None));
        };
        let borders = serde_json::from_slice(&read.bytes).map_err(|error| {
            Error::new(ErrorKind::Unreadable {
                detail: format!(
                    "the record of the tasks that ended is damaged, so it is unknown which states are of this \
                     one: {error}; remove it to have all of them taken for this task's"
                ),
            })
            .with_path(&self.path)
        })?;
        Ok((borders, Some(read)))
    }

    /// How many tasks ended after each of these entries, newest first.
    pub(super) fn tasks_since(
        &self,
        history: &History<'_>,
        entries: &[Entry],
    ) -> Result<Vec<usize>> {
        let (borders, _) = self.read()?;
        let noted = history.noted_order();
        let age = |entry: &Entry| {
            let ended = borders.iter();
            ended
                .filter(|border| history.is_up_to(entry, border, &noted))
                .count()
        };
        Ok(entries.iter().map(age).collect())
    }

    /// Ends the present task: none of the states that are in the history now is of the next one.
    pub(super) fn end(self, history: &History<'_>, durability: Durability) -> Result<EndedTask> {
        let entries = history.entries()?;
        let Some(newest) = entries.first() else {
            return Ok(EndedTask::default());
        };
        let (mut borders, before) = self.read()?;
        let noted = history.noted_order();
        if borders
            .iter()
            .any(|border| history.is_up_to(newest, border, &noted))
        {
            // Its writer may not have lived to see it on disk.
            if let Some(before) = before {
                let lasts = fsio::ensure_synced(&self.path, &before, durability);
                lasts.map_err(FileError::of_a_step)?;
            }
            return Ok(EndedTask::default());
        }
        borders.retain(|border| {
            entries
                .iter()
                .any(|entry| history.is_up_to(entry, border, &noted))
        });
        borders.push(Boundary::after(newest));
        let mut text = serde_json::to_vec(&borders).map_err(|error| {
            Error::new(ErrorKind::Edit {
                detail: format!("the end of the task cannot be recorded: {error}"),
            })
        })?;
        text.push(b'\n');
        fsio::own_folder(fsio::parent_of(&self.target))?;
        fsio::create_folder_durably(fsio::parent_of(&self.path))?;
        let ended = EndedTask {
            changed: Some((self.path, before)),
            durability,
        };
        let written = match &ended.changed {
            Some((path, _)) => Replace::new(path, Present::Whatever)
                .like(&self.target)
                .durability(durability)
                .write(&text)
                .map(drop),
            None => Ok(()),
        };
        match written {
            Ok(()) => Ok(ended),
            Err(error) => {
                // It may be in place all the same.
                if matches!(error, FileError::NotDurable { .. }) {
                    ended.undo();
                }
                Err(error.of_a_step().into())
            }
        }
    }
}

/// A task that was ended, to be taken up again where the act that ends it fails.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct EndedTask {
    /// The record, and what was in it before; `None` where it is as it was.
    changed: Option<(PathBuf, Option<Contents>)>,
    durability: Durability,
}

impl EndedTask {
    /// The act failed, so the task goes on.
    pub(super) fn undo(self) {
        let undone = match &self.changed {
            None => Ok(()),
            Some((path, None)) => fsio::remove(path, self.durability),
            Some((path, Some(before))) => Replace::new(path, Present::Whatever)
                .durability(self.durability)
                .write(&before.bytes)
                .map(drop),
        };
        if let Err(error) = undone {
            tracing::warn!(%error, "a task that goes on is recorded as ended");
        }
    }
}
