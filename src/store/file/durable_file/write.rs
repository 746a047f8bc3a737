//! The only way in which a file gets new contents.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::{DurableFile, FOREIGN_CHANGES};
use crate::checkpoint::{Error, ErrorKind, Result, Revision};
use crate::fsio::{self, Contents, Durability, FileError, InPlace, Present, Replace};
use crate::store::Stored;
use crate::store::file::claims::ClaimsFile;
use crate::store::file::dropped_log::{DroppedLines, DroppedLog};
use crate::store::file::fingerprints::FingerprintsFile;
use crate::store::file::history::{History, Kept};
use crate::store::file::saved::Noted;
use crate::store::file::task_boundary::EndedTask;

/// The new contents of a file, and what is recorded with them.
pub(in crate::store) struct Next {
    pub(in crate::store) text: String,
    /// The revision of the checkpoint in it; `None` if a slot is emptied.
    pub(in crate::store) revision: Option<Revision>,
    pub(in crate::store) dropped: DroppedLines,
    /// The fingerprints to store beside the checkpoint of this revision.
    pub(in crate::store) fingerprints: Option<String>,
    /// Whether the replaced state does not become a history entry.
    pub(in crate::store) skips_history: bool,
    /// Whether a deleted task continues, if there is no file.
    pub(in crate::store) continues_task: bool,
    /// Preparations that must be undone if the write fails.
    pub(in crate::store) undo: Undo,
}

impl Next {
    /// A text without anything beside it.
    pub(in crate::store) fn only(text: String, revision: Option<Revision>) -> Self {
        Next {
            text,
            revision,
            dropped: DroppedLines::default(),
            fingerprints: None,
            skips_history: false,
            continues_task: false,
            undo: Undo::default(),
        }
    }
}

/// Preparations for a text, to be undone if the text is not written.
#[derive(Default)]
pub(in crate::store) struct Undo {
    /// The archived copy of the checkpoint.
    pub(in crate::store) archive: Option<PathBuf>,
    /// The end of its task.
    pub(in crate::store::file) ended: EndedTask,
}

impl Undo {
    pub(super) fn undo(self) {
        discard(self.archive);
        self.ended.undo();
    }
}

/// What lies beside a file, for the decision on its new contents.
pub(in crate::store) struct FilesBeside {
    pub(in crate::store) dropped_log: DroppedLog,
    pub(in crate::store) claims: ClaimsFile,
    pub(in crate::store) noted: Noted,
    pub(in crate::store) now: DateTime<Utc>,
}

/// Decides on the new contents of the file from the present ones; `None` leaves them. The caller gets the value back.
type Decide<'d, T> = dyn FnMut(Option<&Stored>, &FilesBeside) -> Result<(T, Option<Next>)> + 'd;

impl DurableFile<'_> {
    pub(super) fn beside(&self, target: &Path) -> FilesBeside {
        FilesBeside {
            dropped_log: DroppedLog::beside(target),
            claims: ClaimsFile::beside(target),
            noted: Noted::default(),
            now: self.options.clock.now(),
        }
    }

    /// Locks, reads, decides and writes, atomically with respect to other writers that take the lock.
    pub(in crate::store) fn transact<T>(&self, decide: &mut Decide<'_, T>) -> Result<T> {
        let (target, found) = self.look_at_target()?;
        self.refuse_read_only()?;
        let mut beside = self.beside(&target);
        // If nothing exists and nothing is to be written, do not create folders and locks.
        if found.is_none()
            && let (value, None) = decide(None, &beside)?
        {
            return Ok(value);
        }
        let mut locked = self.lock(&target)?;
        // A claim is judged at the time of the write, not at the time its writer began to wait.
        beside.now = self.options.clock.now();
        for _ in 0..FOREIGN_CHANGES {
            let mut present = self.read(&target)?;
            let opened = locked.note.take();
            let (noted, note) = opened.unwrap_or_else(|| self.note(&target).open());
            if let Some((stored, contents)) = &mut present {
                let of_this = self.note(&target);
                of_this.recall(&noted, &contents.stamp, &stored.revision);
                if self.slot.is_none() {
                    let changed = noted.changed_without(&stored.revision);
                    stored.changed_without = Some(changed.is_some());
                }
            }
            beside.dropped_log.log.known = noted.log();
            beside.noted = noted;
            let stored = present.as_ref().map(|(stored, _)| stored);
            let (value, next) = decide(stored, &beside)?;
            let done = match (next, &present) {
                (Some(next), present) => {
                    self.replace(&target, present.as_ref(), &beside.dropped_log, note, next)
                }
                // The stored bytes equal the new ones, but the process that wrote them may have died before its sync.
                (None, Some((stored, contents))) => self.ensure_saved(&target, contents, stored),
                (None, None) => Ok(()),
            };
            match done {
                Err(error) if *error.kind() == ErrorKind::ChangedMeanwhile => {
                    tracing::warn!(path = %self.path.display(), "changed by a program without the lock");
                }
                done => return done.map(|()| value),
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    /// Writes a text, or undoes the preparations for it.
    pub(super) fn replace(
        &self,
        target: &Path,
        present: Option<&(Stored, Contents)>,
        dropped_log: &DroppedLog,
        note: Option<InPlace>,
        mut next: Next,
    ) -> Result<()> {
        let undo = std::mem::take(&mut next.undo);
        let written = self.write(target, present, dropped_log, note, &next);
        // If the new text is in place and only not durable, the preparations belong to it.
        if matches!(&written, Err(error) if *error.kind() != ErrorKind::NotDurable) {
            undo.undo();
        }
        written
    }

    pub(super) fn write(
        &self,
        target: &Path,
        present: Option<&(Stored, Contents)>,
        dropped_log: &DroppedLog,
        note: Option<InPlace>,
        next: &Next,
    ) -> Result<()> {
        self.refuse_too_large(&next.text)?;
        dropped_log.settle(self.options.durability)?;
        // A new document begins another task than those before it; the slots of a host come and go within the
        // host file.
        let durability = self.options.durability;
        let history = self.history_of(target);
        // A file that is created again after a deletion gets no wider permissions than it had.
        let earlier = match (present, &self.slot, &history) {
            (None, None, Some(history)) => history.newest()?.map(|newest| newest.path),
            _ => None,
        };
        let ended = match (present, &self.slot) {
            (None, None) if !next.continues_task => self.end_task_of(target)?,
            _ => EndedTask::default(),
        };
        let now = self.options.clock.now();
        let mut kept = Kept::default();
        let mut added = None;
        let mut before_rename = || {
            let lines = dropped_log.add(&next.dropped, &next.text, durability);
            added = lines.map_err(FileError::of_a_step)?;
            if let (Some(history), Some((stored, contents)), false) =
                (&history, present, next.skips_history)
            {
                let is_synced = self.is_synced(target, contents, &stored.revision);
                kept = history.keep(contents, is_synced, now)?;
                if next.revision.is_none() {
                    // The state of an emptied slot is nowhere else afterwards.
                    history.ensure_synced()?;
                }
            }
            Ok(())
        };
        let expected = present.map_or(Present::Absent, |(_, contents)| {
            Present::Same(&contents.stamp)
        });
        let noting = self.note(target).begin(note, next.revision.as_ref());
        let mut replace = Replace::new(target, expected).durability(durability);
        if let Some((_, contents)) = present {
            replace = replace.known(&contents.metadata);
        }
        if let Some(earlier) = &earlier {
            replace = replace.like(earlier);
        }
        let replaced = replace
            .before_rename(&mut before_rename)
            .write(next.text.as_bytes());
        match replaced {
            Ok(replaced) => {
                let whole = match (&next.revision, &self.slot) {
                    (Some(revision), None) => revision.clone(),
                    _ => Revision::of(next.text.as_bytes()),
                };
                let log = match &added {
                    Some(_) => dropped_log.log.synced(),
                    None => dropped_log.log.known.clone(),
                };
                noting.done(next.revision.as_ref(), &whole, &replaced, durability, log);
                dropped_log.begun(&next.dropped, durability);
                // Only a successful save may remove old entries.
                if let Some(history) = history.filter(|_| !next.skips_history) {
                    history.prune_after(kept, Some(replaced.stamp));
                }
                if let (Some(revision), Some(text)) = (&next.revision, &next.fingerprints) {
                    // Without fingerprints the files are judged by their times, so this must not make the save fail.
                    let file = FingerprintsFile::beside(target, self.slot.as_deref());
                    if let Err(error) = file.write(revision, text) {
                        tracing::warn!(path = %self.path.display(), %error, "not kept beside it");
                    }
                }
                Ok(())
            }
            // The new contents are in place, so the replaced ones belong in the history.
            Err(error @ FileError::NotDurable { .. }) => {
                self.note(target).sync_failed();
                Err(error.into())
            }
            Err(error) => {
                noting.undone();
                History::undo(kept);
                ended.undo();
                if let Some(added) = added {
                    added.take_back();
                }
                Err(error.into())
            }
        }
    }
}

/// Removes a copy whose archiving failed. If it cannot be removed, it is a copy of what is still there.
fn discard(copy: Option<PathBuf>) {
    if let Some(copy) = copy
        && let Err(error) = fsio::remove(&copy, Durability::None)
    {
        tracing::debug!(path = %copy.display(), %error, "a copy of a checkpoint stays");
    }
}
