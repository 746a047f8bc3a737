//! The checkpoint of a key in its file: the whole file, or a slot of a host file.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::DurableFile;
use super::dropped_log::{DroppedLog, LinesOf};
use super::durable_file::{Next, Undo};
use super::slot::{self, InHost};
use crate::checkpoint::{
    Archive, Error, ErrorKind, Expect, Fence, Key, Layout, Result, Revision, Timestamp,
};
use crate::formats::builder_state::Slot;
use crate::store::{Decide, DeleteOptions, Outcome, Put, Saved, Stored, check_expected};

/// A checkpoint in a file, under its key.
pub(super) struct CheckpointFile<'s> {
    pub(super) key: Key,
    pub(super) file: DurableFile<'s>,
    /// The slot of a host file; `None` if the whole file is the checkpoint.
    pub(super) slot: Option<Slot>,
    pub(super) layout: Layout,
}

impl CheckpointFile<'_> {
    /// The checkpoint in a given state of the file.
    pub(super) fn part_of(&self, file: Option<Stored>) -> Result<Option<Stored>> {
        match &self.slot {
            Some(slot) => slot::in_host(slot, file),
            None => Ok(file),
        }
    }

    pub(super) fn load(&self) -> Result<Option<Stored>> {
        match (&self.slot, self.file.load()?) {
            (Some(slot), Some(host)) => slot::in_present_host(&self.file, slot, &host),
            (_, file) => Ok(file),
        }
    }

    /// Adds the key, and for a slot the host file, to an error.
    pub(super) fn named(&self, error: Error) -> Error {
        let error = match self.slot {
            Some(_) => error.with_path(self.file.path()),
            None => error,
        };
        error.with_key(&self.key)
    }

    /// The slot name in our files beside the host file.
    fn slot_name(&self) -> Option<&str> {
        self.slot.as_ref().map(|_| self.key.as_str())
    }

    pub(super) fn with_lock(&self, decide: &mut Decide<'_>) -> Result<Saved> {
        let mut on_absent = OnAbsent::default();
        self.file.transact(&mut |contents, beside| {
            let open = |slot| InHost::open(slot, contents, &self.file, &beside.noted);
            let in_host = self.slot.as_ref().map(open).transpose()?;
            let present = match &in_host {
                Some(in_host) => in_host.present.as_ref(),
                None => contents,
            };
            let Some(put) = on_absent.decide(present, decide)? else {
                return Ok((Saved::unchanged(&self.key, present)?, None));
            };
            check_expected(&self.key, &put.expect, present)?;
            let claims = &beside.claims;
            match self.slot_name() {
                Some(slot) => claims.check(Some(slot), put.fence, beside.now)?,
                None => {
                    let is_changed = |name: &str| slot::differs(name, present, &put.document);
                    claims.check_whole(put.fence, beside.now, &is_changed)?;
                }
            }
            let (text, revision) = match &in_host {
                Some(in_host) => {
                    let (text, revision) = in_host.with(&put.document)?;
                    (Some(text), revision)
                }
                None => (None, Revision::of(put.document.text().as_bytes())),
            };
            let kept = in_host
                .as_ref()
                .map(|slot| slot.kept_beside(&self.file, &put));
            let kept = kept.transpose()?;
            let previous = present.map(|present| present.revision.clone());
            let outcome = Outcome::of(previous.as_ref(), &revision);
            let mut saved = Saved::new(outcome, revision.clone(), previous);
            if !put.dropped.is_empty() && outcome != Outcome::Unchanged {
                saved.truncation.kept_in = Some(beside.dropped_log.place());
            }
            let ends = put.ends_task(outcome);
            let task = match &in_host {
                Some(in_host) => in_host.place.task.as_deref(),
                None => Some(self.key.as_str()),
            };
            let slot = self.slot_name();
            let of = LinesOf { slot, task };
            let dropped = beside
                .dropped_log
                .lines(of, put.begins_task(outcome), &put.dropped)?;
            let mut undo = Undo::default();
            if let (Some((why, at)), Some(present), Outcome::Replaced) =
                (put.archive, present, outcome)
            {
                undo.archive = Some(self.archive_copy(present, why, at)?);
                saved.archive.clone_from(&undo.archive);
            }
            // For a slot, the hosts in the history show which tasks ended.
            let ends = ends && self.slot.is_none();
            if ends {
                undo = self.file.end_task_for(undo)?;
            }
            let next = (outcome != Outcome::Unchanged).then(|| Next {
                revision: Some(revision),
                dropped,
                skips_history: put.skips_history || ends,
                continues_task: put.continues_task,
                fingerprints: kept.or(put.fingerprints),
                text: text.unwrap_or_else(|| put.document.into_text()),
                undo,
            });
            Ok((saved, next))
        })
    }

    /// Keeps a copy of what is about to be replaced: a file under its protocol's archive name, or the text of a slot.
    fn archive_copy(&self, present: &Stored, why: Archive, at: DateTime<Utc>) -> Result<PathBuf> {
        match self.slot {
            Some(_) => {
                let text = present.document.text();
                self.file.archive_text(text, &archive_name(why, at))
            }
            None => {
                let name = |stem: &str| (self.layout.archive_stem)(stem, why, at);
                self.file.archive_copy(&name)
            }
        }
    }

    pub(super) fn archive(
        &self,
        archive: Archive,
        now: DateTime<Utc>,
        options: &DeleteOptions,
    ) -> Result<PathBuf> {
        if let Some(slot) = &self.slot {
            let emptied = self.empty(slot, options, Some((archive, now)))?;
            return emptied
                .flatten()
                .ok_or_else(|| Error::new(ErrorKind::NotFound));
        }
        let any = options.expect == Expect::Any;
        let name = |stem: &str| (self.layout.archive_stem)(stem, archive, now);
        let check = &mut |present: Option<&Stored>| self.check_expected(options, present);
        self.file.archive(options.fence, check, any, &name)
    }

    pub(super) fn delete(&self, options: &DeleteOptions) -> Result<bool> {
        if let Some(slot) = &self.slot {
            return Ok(self.empty(slot, options, None)?.is_some());
        }
        let check = &mut |present: Option<&Stored>| self.check_expected(options, present);
        self.file.delete(options.fence, check)
    }

    /// Removes everything of the checkpoint. This is impossible for a slot: every entry of the host's history,
    /// and its quarantined texts, also contain the other slots and the builder's own state.
    pub(super) fn forget(
        &self,
        options: &DeleteOptions,
        is_archive: &dyn Fn(&Path, &str, &str) -> bool,
    ) -> Result<bool> {
        if self.slot.is_some() {
            let what = "forgetting one slot of a host file, because its history has copies of the whole file";
            return Err(Error::new(ErrorKind::NotOffered { what }));
        }
        let any = options.expect == Expect::Any;
        let check = &mut |present: Option<&Stored>| self.check_expected(options, present);
        self.file.forget(options.fence, check, any, is_archive)
    }

    fn check_expected(&self, options: &DeleteOptions, present: Option<&Stored>) -> Result<()> {
        check_expected(&self.key, &options.expect, present)
    }

    /// Sets a slot to `null` under the lock, and archives its text first if requested. Returns the path of the
    /// archive; the outer `None` means that the slot was empty.
    fn empty(
        &self,
        slot: &Slot,
        options: &DeleteOptions,
        archive: Option<(Archive, DateTime<Utc>)>,
    ) -> Result<Option<Option<PathBuf>>> {
        self.file.transact(&mut |host, beside| {
            let place = match host {
                Some(host) => slot::find(slot, &host.document)?,
                None => None,
            };
            let (Some(host), Some(place)) = (host, place) else {
                self.check_expected(options, None)?;
                return Ok((None, None));
            };
            if options.expect != Expect::Any || !slot::is_no_checkpoint(&host.document, &place) {
                self.check_expected(options, slot::stored(host, &place)?.as_ref())?;
            }
            if !place.occupied {
                return Ok((None, None));
            }
            beside
                .claims
                .check(self.slot_name(), options.fence, beside.now)?;
            let mut changed = host.document.clone();
            changed.set(&place.pointer, &())?;
            let mut undo = Undo::default();
            if let (Some((why, at)), Some(node)) = (archive, host.document.get(&place.pointer)) {
                let copy = self.file.archive_text(node.raw(), &archive_name(why, at));
                undo.archive = Some(copy?);
            }
            let next = Next {
                undo,
                ..Next::only(changed.into_text(), None)
            };
            Ok((Some(next.undo.archive.clone()), Some(next)))
        })
    }

    /// Sets the `lastHeartbeat` of a host's session; a host without one gets it.
    pub(super) fn beat(&self, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        self.file.transact(&mut |host, beside| {
            let present = match (&self.slot, host) {
                (Some(slot), Some(host)) => slot::in_present_host(&self.file, slot, host)?,
                _ => None,
            };
            let (Some(host), Some(present)) = (host, present) else {
                return Err(Error::new(ErrorKind::NotFound));
            };
            present.context.refuse_former_task()?;
            beside.claims.check(self.slot_name(), fence, beside.now)?;
            let beat = Timestamp::like(present.context.heartbeat.as_ref(), now);
            let mut changed = host.document.clone();
            let is_new = changed.set(slot::HEARTBEAT, &beat)?;
            let outcome = match is_new {
                true => Outcome::Replaced,
                false => Outcome::Unchanged,
            };
            let revision = present.revision;
            let saved = Saved::new(outcome, revision.clone(), Some(revision.clone()));
            let next = is_new.then(|| Next {
                skips_history: true,
                ..Next::only(changed.into_text(), Some(revision))
            });
            Ok((saved, next))
        })
    }

    /// Works on the dropped log; for a slot, on the lines of its present task.
    pub(super) fn with_log<T>(
        &self,
        work: impl FnOnce(&DroppedLog, LinesOf<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut task = None;
        if let Some(slot) = &self.slot
            && let Some(host) = self.file.load()?
        {
            task = slot::find(slot, &host.document)?.and_then(|place| place.task);
        }
        let of = LinesOf {
            slot: self.slot_name(),
            task: task.as_deref(),
        };
        work(&self.file.dropped_log()?, of)
    }

    pub(super) fn fingerprints(&self, revision: &Revision) -> Result<Option<String>> {
        let kept = self.file.fingerprints(revision)?;
        Ok(match self.slot {
            Some(_) => kept.and_then(|kept| slot::of_kept_beside(&kept).1.map(str::to_owned)),
            None => kept,
        })
    }
}

/// The end of the name of an archived slot.
fn archive_name(why: Archive, now: DateTime<Utc>) -> String {
    format!("{}_{}", why.as_str(), now.timestamp())
}

/// The decision for an absent checkpoint, made before the lock is taken. It counts if there is still none under
/// the lock.
#[derive(Default)]
struct OnAbsent(Option<Option<Put>>);

impl OnAbsent {
    fn decide(&mut self, present: Option<&Stored>, decide: &mut Decide<'_>) -> Result<Option<Put>> {
        match (present, self.0.take()) {
            (None, Some(made)) => Ok(made),
            (None, None) => {
                let made = decide(None)?;
                self.0 = Some(made.clone());
                Ok(made)
            }
            (Some(_), _) => decide(present),
        }
    }
}
