//! Changes of checkpoints, each atomic with respect to other writers.

use std::time::Instant;

use super::saving::{Prepared, Report};
use super::{Checkpoints, Loaded, PutMode};
use crate::checkpoint::{Checkpoint, Claim, Error, ErrorKind, Expect, Key, Result, UnreadableItem};
use crate::event;
use crate::store::{Outcome, Saved, Stored};

/// The result of beginning a task.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one is made for each task that begins, and is taken apart at once"
)]
pub enum Begun<C> {
    /// There was no checkpoint. The first one was saved.
    Created(Saved),
    /// There is a checkpoint already. It was not changed.
    Found(Box<Loaded<C>>),
}

impl<C: Checkpoint> Checkpoints<C> {
    /// Changes a checkpoint, atomically with respect to other writers.
    ///
    /// Only what `change` changed is written, and the stamp; if it changed nothing, nothing is written.
    /// `change` may run more than once, with what a faster writer left, so it must depend only on the
    /// checkpoint and must have no effects that cannot be repeated.
    ///
    /// # Errors
    ///
    /// Those of [`try_update`](Checkpoints::try_update).
    pub fn update(&self, key: &Key, mut change: impl FnMut(&mut C)) -> Result<Saved> {
        self.try_update(key, |checkpoint| {
            change(checkpoint);
            Ok(())
        })
    }

    /// As [`update`](Checkpoints::update), with a change that may fail; then nothing is written.
    ///
    /// # Errors
    ///
    /// The errors of `change`; [`ErrorKind::NotFound`] when there is no checkpoint; [`ErrorKind::NewerSchema`] when a
    /// later version of the format wrote it; [`ErrorKind::WouldLose`] when the change would overwrite values that
    /// could not be read; an error with the code `not-faithful` when a value differs after it is written and read
    /// back; the errors of [`CheckpointStoreExt::transact`](crate::CheckpointStoreExt::transact).
    pub fn try_update(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut C) -> Result<()>,
    ) -> Result<Saved> {
        self.try_update_knowing(key, |checkpoint, _| change(checkpoint))
    }

    /// As [`try_update`](Checkpoints::try_update), for a change that needs the unreadable items. With them in
    /// [`RuleContext::unreadable`](crate::RuleContext::unreadable), an operation that needs all work to be
    /// finished is refused.
    ///
    /// # Errors
    ///
    /// Those of [`try_update`](Checkpoints::try_update).
    fn try_update_knowing(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut C, &[UnreadableItem]) -> Result<()>,
    ) -> Result<Saved> {
        self.transact(key, &mut |stored| {
            let stored = stored.ok_or_else(|| Error::new(ErrorKind::NotFound))?;
            stored.context.refuse_former_task()?;
            self.changed(key, stored, &mut change)
        })
    }

    /// Changes a checkpoint by an agent's report. If a rule refuses the report, and the fence or its lack
    /// permits no write anyway, the error is that of the fence: an agent that was replaced must stop, not
    /// follow the advice of a rule. The store checks the fence only when it writes.
    ///
    /// # Errors
    ///
    /// Those of [`try_update`](Checkpoints::try_update).
    pub(crate) fn update_by_report(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut C, &[UnreadableItem]) -> Result<()>,
    ) -> Result<Saved> {
        let mut is_refused = false;
        let saved = self.try_update_knowing(key, |checkpoint, unreadable| {
            let changed = change(checkpoint, unreadable);
            is_refused = changed.is_err();
            changed
        });
        if is_refused
            && saved.is_err()
            && let Err(error) = self.check_fence(key)
            && matches!(
                error.kind(),
                ErrorKind::Claimed { .. } | ErrorKind::Fenced { .. } | ErrorKind::TakenOver { .. }
            )
        {
            return Err(error);
        }
        saved
    }

    /// Fails if the view's fence, or its lack of one, permits no write.
    pub(crate) fn check_fence(&self, key: &Key) -> Result<()> {
        let Some(claims) = self.store.claims() else {
            return Ok(());
        };
        let last = claims.claimed(key)?;
        Claim::check(last.as_ref(), self.fence, self.now()).map_err(|error| error.with_key(key))
    }

    /// Saves the result of `prepare` for the present document; `None` leaves the document as it is.
    fn transact(
        &self,
        key: &Key,
        prepare: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Prepared>>,
    ) -> Result<Saved> {
        let began = Instant::now();
        let mut prepare = |stored: Option<&Stored>| {
            let mut prepared = prepare(stored)?;
            if let Some(prepared) = &mut prepared {
                prepared.record_files(self, key)?;
            }
            Ok::<_, Error>(prepared)
        };
        // Tracked files may be large, so they are read before the lock is taken. The result is used if the
        // checkpoint is still the same under the lock.
        let mut ahead = None;
        if self.tracking.is_some()
            && self.store.capabilities().excludes_processes
            && let Ok(Some(stored)) = self.store.load(key)
        {
            let prepared = prepare(Some(&stored)).map_err(|error| error.with_key(key))?;
            ahead = Some((stored.revision, prepared));
        }
        let saved = crate::store::transact(&*self.store, key, |stored| {
            // After this save the note names the new state, so this is the last chance to report a rollback.
            let came_back = stored.and_then(|stored| self.told_of_rollback(key, stored));
            let of = stored.map(|stored| &stored.revision);
            let prepared = match ahead.take() {
                Some((revision, prepared)) if Some(&revision) == of => prepared,
                _ => prepare(stored)?,
            };
            let Some(prepared) = prepared else {
                return Ok((None, (None, came_back)));
            };
            let (put, report) = prepared.put(self.fence, self.archives());
            Ok((Some(put), (Some(report), came_back)))
        });
        let saved =
            saved.map(|(saved, (report, came_back))| (Saved { came_back, ..saved }, report));
        ended(key, saved, began)
    }

    /// Saves a new checkpoint under a key that has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when there is a checkpoint, and the errors of
    /// [`CheckpointStore::put`](crate::store::CheckpointStore::put).
    pub fn create(&self, key: &Key, checkpoint: &C) -> Result<Saved> {
        self.put(key, checkpoint, PutMode::Edit, &Expect::Absent)
    }

    /// Begins a task: saves its first checkpoint, or returns an existing one unchanged.
    ///
    /// If there is one, the caller decides whether to [`resume`](Checkpoints::resume) it.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Checkpoints::load) and of [`CheckpointStore::put`](crate::store::CheckpointStore::put).
    pub fn begin(&self, key: &Key, checkpoint: &C) -> Result<Begun<C>> {
        loop {
            if let Some(loaded) = self.load(key)? {
                return Ok(Begun::Found(Box::new(loaded)));
            }
            match self.create(key, checkpoint) {
                // Another process was faster: find the checkpoint that it saved.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                saved => return saved.map(Begun::Created),
            }
        }
    }

    /// Saves a whole checkpoint, if the present state is as expected.
    ///
    /// [`PutMode::Edit`] changes only what differs in the present text and keeps what the type does not know;
    /// [`PutMode::Replace`] writes a new text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when the present state is not the expected one, and those of
    /// [`try_update`](Checkpoints::try_update) except [`ErrorKind::NotFound`].
    pub fn put(&self, key: &Key, checkpoint: &C, mode: PutMode, expect: &Expect) -> Result<Saved> {
        self.put_after(key, checkpoint, mode, expect, None)
    }

    /// Saves a new checkpoint that continues another one and its fingerprints.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Checkpoints::create).
    pub(crate) fn create_after(
        &self,
        key: &Key,
        checkpoint: &C,
        old: (&Key, &Loaded<C>),
    ) -> Result<Saved> {
        let expect = Expect::Absent;
        self.put_after(key, checkpoint, PutMode::Edit, &expect, Some(old))
    }

    fn put_after(
        &self,
        key: &Key,
        checkpoint: &C,
        mode: PutMode,
        expect: &Expect,
        old: Option<(&Key, &Loaded<C>)>,
    ) -> Result<Saved> {
        let began = Instant::now();
        let standalone = !self.store.capabilities().embedded;
        let saved = crate::store::transact(&*self.store, key, |stored| {
            crate::store::check_expected(key, expect, stored)?;
            let mut next = self.whole(key, stored, checkpoint.clone(), mode, standalone)?;
            if let Some((key, old)) = old {
                next.goes_on_from(self, key, old, checkpoint)?;
            }
            next.record_files(self, key)?;
            let (put, report) = next.put(self.fence, self.archives());
            Ok((Some(put), Some(report)))
        });
        ended(key, saved, began)
    }
}

/// Completes the report of a save with that of the typed view, and emits its events.
fn ended(key: &Key, saved: Result<(Saved, Option<Report>)>, began: Instant) -> Result<Saved> {
    let (saved, report) = saved.map_err(|error| {
        if let ErrorKind::Conflict { found, .. } = error.kind() {
            event::happened("conflict", key, found.as_ref(), None, began);
        }
        error.with_key(key)
    })?;
    let agent = report.as_ref().and_then(|report| report.agent.as_deref());
    if saved.outcome != Outcome::Unchanged {
        event::happened("saved", key, Some(&saved.revision), agent, began);
        if report.as_ref().is_some_and(Report::is_truncated) {
            event::happened("truncated", key, Some(&saved.revision), agent, began);
        }
    }
    Ok(match report {
        Some(report) => report.complete(saved),
        None => saved,
    })
}
