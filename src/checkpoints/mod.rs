//! The typed view of a store.

mod rollback;
mod saving;

pub(crate) use rollback::came_back;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};

use crate::checkpoint::{
    Archive, Checkpoint, Claim, ClaimRequest, Clock, Current, DoneIndex, DoneItem, Dropped, Error,
    ErrorKind, Expect, Fence, Handoff, Key, Limits, Result, ResumePlan, ResumeReason, Revision,
    RuleContext, SystemClock, Timestamp, UnreadableItem, judge, read, violations,
};
use crate::event;
use crate::json::{Corrupt, CorruptCode, Document, Violation};
use crate::liveness::Liveness;
use crate::redaction::Redaction;
use crate::resume::{Found, Resume, ResumeOptions, foreign};
use crate::shown;
use crate::staleness::{Basis, Fingerprints, Reason, Staleness, Tracking};
use crate::store::{
    CheckpointStore, ClaimChange, EntryId, HistoryEntry, Keep, Outcome, Put, RecoverOptions,
    Recovered, Saved, Stored, TaskContext,
};
use serde_json::Value;

pub use saving::PutMode;
use saving::{Prepared, Report};

/// How many of the newest dropped items are read for a resume or a record of files.
pub(crate) const NEWEST: usize = 1000;

/// The checkpoints of one format in a store.
///
/// `Checkpoints<()>` has the settings and no format yet: see [`Format::checkpoints`](crate::formats::Format::checkpoints).
///
/// This is where an orchestrator works: it loads typed checkpoints whatever their files look like,
/// changes them with closures that are one step against all other writers, and asks whether they can
/// be trusted and how to go on. Limits, stamps and redaction are applied here.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::StepDone;
/// use agent_checkpoint::formats::task::TaskCheckpoint;
/// use agent_checkpoint::store::MemoryStore;
/// use agent_checkpoint::{CheckpointStoreExt, Key};
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let store = MemoryStore::new();
/// let tasks = store.checkpoints::<TaskCheckpoint>();
/// let key = Key::new("US-003")?;
///
/// let now = chrono::Utc::now();
/// tasks.create(&key, &TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], now))?;
/// let saved = tasks.try_update(&key, |task| {
///     task.start_step("Wire toggle", now)?;
///     task.finish_step(&StepDone::current().with_modified("src/toggle.rs"), now)
/// })?;
/// assert!(saved.truncation.is_empty());
///
/// let loaded = tasks.load(&key)?.expect("it was just saved");
/// assert_eq!(loaded.checkpoint.pending_steps, ["Test it"]);
/// # Ok(())
/// # }
/// ```
pub struct Checkpoints<C> {
    store: Arc<dyn CheckpointStore>,
    limits: Limits,
    clock: Arc<dyn Clock>,
    redaction: Option<Redaction>,
    allow_loss: bool,
    fence: Option<Fence>,
    tracking: Option<Tracking>,
    keeps_fingerprints: bool,
    archive: Option<Archive>,
    format: std::marker::PhantomData<fn() -> C>,
}

impl<C> Clone for Checkpoints<C> {
    fn clone(&self) -> Self {
        self.of()
    }
}

impl<C> fmt::Debug for Checkpoints<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints")
            .field("limits", &self.limits)
            .field("redaction", &self.redaction.is_some())
            .finish_non_exhaustive()
    }
}

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

/// What was there when a task was to begin.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one is made for each task that begins, and is taken apart at once"
)]
pub enum Begun<C> {
    /// Nothing: its first checkpoint was saved.
    Created(Saved),
    /// A checkpoint, which is as it was.
    Found(Box<Loaded<C>>),
}

impl<C> Checkpoints<C> {
    /// The checkpoints of this format in `store`, with the default limits and the machine's clock.
    ///
    /// The view owns its store, so it can be moved to other threads and kept in a struct. The stores of this
    /// library are cheap to clone, and a clone is the same store; any other is shared as an `Arc`.
    #[must_use]
    pub fn new(store: impl CheckpointStore + 'static) -> Self {
        Checkpoints {
            store: Arc::new(store),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            redaction: None,
            allow_loss: false,
            fence: None,
            tracking: None,
            keeps_fingerprints: false,
            archive: None,
            format: std::marker::PhantomData,
        }
    }

    /// Sets the limits that saves keep.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Changes texts before they are saved, such as secrets.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = Some(redaction);
        self
    }

    /// Lets saves overwrite values that could not be read. Off by default: that is how work is lost.
    #[must_use]
    pub fn allowing_loss(mut self) -> Self {
        self.allow_loss = true;
        self
    }

    /// Shows the fence of a claim with every save: see [`CheckpointStoreExt::claim`]. Without one, saves of a
    /// key that is claimed are refused.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Records the files that the checkpoint names, so that [`stale`](Checkpoints::stale) and
    /// [`resume`](Checkpoints::resume) compare contents. Without it files are judged by their times alone.
    ///
    /// A save that reports work records the files as they are then; any other save keeps the record. The record
    /// lies beside the checkpoint, not in it. Only contents of files that changed since the record are read.
    /// [`Saved::files`] lists the changed files that a save recorded and did not name.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(tracking);
        self
    }

    /// Keeps the record of the files with every save: each file is judged as before, if need be by the stamp before.
    pub(crate) fn keep_fingerprints(mut self) -> Self {
        self.keeps_fingerprints = true;
        self
    }

    /// The fence that saves show.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// The project whose files are recorded; where none is, its `.gitignore` files do not count.
    pub(crate) fn project(&self) -> Tracking {
        let none = || Tracking::new("").without_gitignore();
        self.tracking.clone().unwrap_or_else(none)
    }

    /// Archives the checkpoint that a save replaces, under the protocol's name for that and before it goes, where
    /// the store has archives: [`Saved::archive`] says where. For a task that begins anew in its place.
    #[must_use]
    pub fn archiving(mut self, archive: impl Into<Option<Archive>>) -> Self {
        self.archive = archive.into();
        self
    }

    fn archives(&self) -> Option<(Archive, DateTime<Utc>)> {
        Some((self.archive?, self.now()))
    }

    /// The present time, by the clock that saves are stamped from.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The store beneath.
    #[must_use]
    pub fn store(&self) -> &dyn CheckpointStore {
        &*self.store
    }

    /// The same view of checkpoints of another format.
    pub(crate) fn of<D>(&self) -> Checkpoints<D> {
        Checkpoints {
            store: Arc::clone(&self.store),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            redaction: self.redaction.clone(),
            allow_loss: self.allow_loss,
            fence: self.fence,
            tracking: self.tracking.clone(),
            keeps_fingerprints: self.keeps_fingerprints,
            archive: self.archive,
            format: std::marker::PhantomData,
        }
    }
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
    /// [`CheckpointStore::load`].
    pub fn load(&self, key: &Key) -> Result<Option<Loaded<C>>> {
        let stored = self.store.load(key)?;
        stored
            .map(|stored| self.judged_load(key, stored))
            .transpose()
    }

    fn judged_load(&self, key: &Key, stored: Stored) -> Result<Loaded<C>> {
        let Current {
            document,
            reading,
            migrated_from,
            ..
        } = read::<C>(&stored.document).map_err(|error| error.with_key(key))?;
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
    fn judged<'k>(&self, key: &'k Key) -> Option<&'k Key> {
        let capabilities = self.store.capabilities();
        (!capabilities.embedded && !capabilities.keys_are_places).then_some(key)
    }

    /// The checkpoint under a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, and those of [`load`](Checkpoints::load).
    pub fn get(&self, key: &Key) -> Result<Loaded<C>> {
        self.load(key)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound).with_key(key))
    }

    /// Changes a checkpoint as one step that no other writer comes between.
    ///
    /// Only what `change` changed is written, and the stamp; when it changed nothing, nothing is.
    /// `change` may run more than once, on what a faster writer left, so it must decide from the
    /// checkpoint alone and do nothing that cannot be done twice.
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

    /// As [`update`](Checkpoints::update), with a change that may refuse; then nothing is written.
    ///
    /// # Errors
    ///
    /// The errors of `change`; [`ErrorKind::NotFound`] when there is no checkpoint;
    /// [`ErrorKind::NewerSchema`] when a later version of the format wrote it;
    /// [`ErrorKind::WouldLose`] when the change would overwrite values that could not be read;
    /// An error with the code `not-faithful` when a value does not come back from its text as it was; the errors
    /// of [`CheckpointStoreExt::transact`].
    pub fn try_update(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut C) -> Result<()>,
    ) -> Result<Saved> {
        self.try_update_knowing(key, |checkpoint, _| change(checkpoint))
    }

    /// As [`try_update`](Checkpoints::try_update), for a change that has to know what could not be read: for
    /// [`RuleContext::unreadable`], so that an operation which needs all work to be finished is refused.
    ///
    /// # Errors
    ///
    /// Those of [`try_update`](Checkpoints::try_update).
    pub fn try_update_knowing(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut C, &[UnreadableItem]) -> Result<()>,
    ) -> Result<Saved> {
        self.transact(key, &mut |stored| {
            let stored = stored.ok_or_else(|| Error::new(ErrorKind::NotFound))?;
            stored.context.refuse_former_task()?;
            self.changed(key, &stored.document, &mut change)
        })
    }

    /// Saves what `prepare` makes of the document that is there; `None` leaves it.
    fn transact(
        &self,
        key: &Key,
        prepare: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Prepared>>,
    ) -> Result<Saved> {
        let began = Instant::now();
        let mut prepare = |stored: Option<&Stored>| {
            let mut prepared = prepare(stored)?;
            if let Some(prepared) = &mut prepared {
                prepared.record_files(self, key, stored, None)?;
            }
            Ok::<_, Error>(prepared)
        };
        // Tracked files may be large. They are read before the lock is taken; the result counts if the checkpoint
        // is then as it was.
        let mut ahead = None;
        if self.tracking.is_some()
            && self.store.capabilities().excludes_processes
            && let Ok(Some(stored)) = self.store.load(key)
        {
            let prepared = prepare(Some(&stored)).map_err(|error| error.with_key(key))?;
            ahead = Some((stored.revision, prepared));
        }
        let saved = crate::store::transact(&*self.store, key, |stored| {
            // After this save the note names the new state, so this is the last chance to report it.
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
    /// [`ErrorKind::Conflict`] when there is one, and the errors of [`CheckpointStore::put`].
    pub fn create(&self, key: &Key, checkpoint: &C) -> Result<Saved> {
        self.put(key, checkpoint, PutMode::Edit, &Expect::Absent)
    }

    /// Begins a task: saves its first checkpoint, or finds the one that is there and leaves it.
    ///
    /// The caller that finds one decides whether to [`resume`](Checkpoints::resume) it.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Checkpoints::load) and of [`CheckpointStore::put`].
    pub fn begin(&self, key: &Key, checkpoint: &C) -> Result<Begun<C>> {
        loop {
            if let Some(loaded) = self.load(key)? {
                return Ok(Begun::Found(Box::new(loaded)));
            }
            match self.create(key, checkpoint) {
                // Another was faster between the two: find what it saved.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                saved => return saved.map(Begun::Created),
            }
        }
    }

    /// Saves a whole checkpoint, over what is expected there.
    ///
    /// [`PutMode::Edit`] changes what differs in the text that is there and keeps what the type does
    /// not know; [`PutMode::Replace`] writes a new text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when what is there is not what is expected, and those of
    /// [`try_update`](Checkpoints::try_update) save [`ErrorKind::NotFound`].
    pub fn put(&self, key: &Key, checkpoint: &C, mode: PutMode, expect: &Expect) -> Result<Saved> {
        self.put_after(key, checkpoint, mode, expect, None)
    }

    /// Saves a new checkpoint that goes on from another one, which has the record of the files.
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
            let present = stored.map(|stored| &stored.document);
            let mut next = self.whole(key, present, checkpoint.clone(), mode, standalone)?;
            let old = old.map(|(key, old)| (key, old, checkpoint));
            next.record_files(self, key, stored, old)?;
            let (put, report) = next.put(self.fence, self.archives());
            Ok((Some(put), Some(report)))
        });
        ended(key, saved, began)
    }

    /// One state of the history of a checkpoint, as [`CheckpointStoreExt::states`] lists them.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStoreExt::load_revision`].
    pub fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Loaded<C>> {
        let history = crate::store::history_of(&*self.store)?;
        self.judged_load(key, history.load_revision(key, entry)?)
    }

    /// What saves left out of this checkpoint to keep within their limits, oldest first.
    ///
    /// # Errors
    ///
    /// Those of [`Beside::dropped`](crate::store::Beside::dropped).
    pub fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.store.beside().dropped(key)
    }

    /// Finished work that saves cut from this checkpoint, oldest first; none that it still has.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get) and of [`Beside::dropped`](crate::store::Beside::dropped).
    pub fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>> {
        let loaded = self.get(key)?;
        let dropped = self.store.beside().dropped(key)?;
        let cut = cut_from(&dropped, &loaded.checkpoint);
        Ok(cut.iter().flat_map(|cut| cut.handoff().done).collect())
    }

    /// The hand-off of a checkpoint, completed from the dropped log: how much finished work is only there,
    /// and the reasons of decisions whole that an earlier version of the limits cut.
    ///
    /// # Errors
    ///
    /// Those of [`Beside::newest_dropped`](crate::store::Beside::newest_dropped).
    pub fn complete_handoff(&self, key: &Key, checkpoint: &C, handoff: Handoff) -> Result<Handoff> {
        let dropped = self.store.beside().newest_dropped(key, NEWEST)?;
        let cut = cut_from(&dropped, checkpoint);
        self.completed(key, handoff, &dropped, &cut)
    }

    fn completed(
        &self,
        key: &Key,
        mut handoff: Handoff,
        dropped: &[Dropped],
        cut: &[C],
    ) -> Result<Handoff> {
        let found: usize = cut.iter().map(|cut| cut.handoff().done.len()).sum();
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        let log = self.store.beside().dropped_log(key)?;
        if found > handoff.done_elsewhere {
            handoff.done_elsewhere = found;
            handoff.elsewhere.clone_from(&log);
        }
        // A longer log was read in part, and that of a checkpoint that was put aside or copied has the name it had before.
        let was_searched = handoff.elsewhere.is_none() || handoff.elsewhere == log;
        if dropped.len() < NEWEST && was_searched {
            handoff.elsewhere_missing = handoff.done_elsewhere.saturating_sub(found);
        }
        let whole = dropped
            .iter()
            .filter(|piece| piece.pointer.ends_with("/rationale"));
        let whole: Vec<&str> = whole.filter_map(|piece| piece.value.as_str()).collect();
        for decision in &mut handoff.decisions {
            let stump = decision.rationale.as_deref();
            let stump = stump.and_then(|reason| reason.strip_suffix(&*self.limits.mark));
            let Some(stump) = stump.filter(|stump| !stump.is_empty()) else {
                continue;
            };
            let mut newest = whole.iter().rev();
            if let Some(whole) = newest.find(|whole| whole.starts_with(stump)) {
                decision.rationale = Some((*whole).to_owned());
            }
        }
        Ok(handoff)
    }

    /// Judges whether the agent of a checkpoint is alive, by its protocol's thresholds and the clock of this
    /// view. A heartbeat that the store has beside the checkpoint counts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, and those of [`load`](Checkpoints::load).
    pub fn liveness(&self, key: &Key) -> Result<Liveness> {
        let loaded = self.get(key)?;
        let pulse = loaded.checkpoint.pulse();
        let pulse = pulse.with_heartbeat(loaded.context.heartbeat);
        Ok(Liveness::judge(&pulse, &C::thresholds(), self.now()))
    }

    /// Whether the files that a checkpoint names are as they were when it was saved.
    ///
    /// Files of steps that were cut from the checkpoint count as well. Paths are relative to `root`, which
    /// stands in for that of [`tracking`](Checkpoints::tracking). Files of which the save recorded what they
    /// were are judged by that.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get); [`ErrorKind::NotAFolder`] when `root` is none.
    pub fn stale(&self, key: &Key, root: impl AsRef<Path>) -> Result<Staleness> {
        let loaded = self.get(key)?;
        let dropped = self.store.beside().newest_dropped(key, NEWEST)?;
        let cut = cut_from(&dropped, &loaded.checkpoint);
        let staleness = self.staleness(key, &loaded, &cut, root.as_ref())?;
        self.heeding_rollback(key, &loaded, staleness)
    }

    /// How another agent goes on from a checkpoint: the verdict, the plan and all the prompt needs.
    ///
    /// A document that cannot be read gives a plan as well: of the newest earlier state that can be read
    /// ([`Resume::recover_with`]), or to begin anew. Nothing is recovered by this.
    ///
    /// # Errors
    ///
    /// Those of [`stale`](Checkpoints::stale), but for [`ErrorKind::Corrupt`]; that stays for a document that is
    /// only beyond the limits. Those of [`CheckpointStoreExt::claimed`] and [`CheckpointStoreExt::states`], where the
    /// store has them.
    pub fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume> {
        let began = Instant::now();
        match self.get(key) {
            Ok(loaded) => {
                let resume = self.resume_from(key, &loaded, None, options)?;
                let agent = resume.handoff.agent.as_deref();
                event::happened("resumed", key, Some(&loaded.revision), agent, began);
                Ok(resume)
            }
            Err(error) => {
                let Some(damage) = recoverable(&error) else {
                    return Err(error);
                };
                match self.newest_good(key)? {
                    Some((entry, loaded)) => {
                        self.resume_from(key, &loaded, Some((damage, entry)), options)
                    }
                    None => self.resume_from_nothing(key, damage, options),
                }
            }
        }
    }

    fn resume_from(
        &self,
        key: &Key,
        loaded: &Loaded<C>,
        damage: Option<(Corrupt, EntryId)>,
        options: &ResumeOptions,
    ) -> Result<Resume> {
        let now = self.clock.now();
        let dropped = self.store.beside().newest_dropped(key, NEWEST)?;
        let cut = cut_from(&dropped, &loaded.checkpoint);
        let mut staleness = self.staleness(key, loaded, &cut, &options.root)?;
        if damage.is_none() {
            staleness = self.heeding_rollback(key, loaded, staleness)?;
        }
        let rule_context = options.context(now, self.judged(key));
        // Judged with all that is known here: a load knows less.
        let current = read::<C>(&loaded.document)?;
        let mut judged = judge(&current.document, &current.reading, &rule_context);
        if let Some(now_for) = &loaded.context.place_is_for {
            let own = loaded.context.task.as_deref().unwrap_or("another task");
            judged.plan.refuse(format!(
                "The checkpoint is that of {own}, and its place is for {now_for} by now"
            ));
            judged.plan.because(ResumeReason::OfAnotherTask {
                place_is_for: now_for.clone(),
            });
        }
        judged.handoff = self.completed(key, judged.handoff, &dropped, &cut)?;
        if judged.handoff.elsewhere_missing > 0 {
            let (steps, moved_to) = (judged.handoff.done_elsewhere, judged.handoff.moved_to());
            let word = if steps == 1 { "step was" } else { "steps were" };
            let note = format!("{steps} finished {word} {moved_to}");
            judged.plan.note(note);
        }
        let claim = self.claim(key)?;
        let at_work = self.may_be_at_work(loaded, &judged.handoff, claim.as_ref(), options);
        if let Some(note) = at_work {
            judged.plan.note(note);
        }
        let (damage, recover_with) = damage.unzip();
        let found = Found {
            format: C::FORMAT,
            now,
            context: &loaded.context,
            violations: &judged.violations,
            is_partial: loaded.is_partial,
            own: loaded
                .checkpoint
                .message_values(&rule_context.with_unreadable(&judged.handoff.unreadable)),
            handoff: judged.handoff,
            work_has_ids: C::WORK_HAS_IDS,
            foreign: foreign::members(
                &current.document,
                &current.reading.value,
                current.reading.left_out(),
            ),
            earlier: cut.iter().flat_map(|cut| cut.handoff().done).collect(),
            staleness,
            held: self.held(claim, options, now),
            newer: saving::newer(&current),
            damage,
            recover_with,
        };
        Ok(Resume::new(key, judged.plan, found, options))
    }

    /// The plan where nothing can be read.
    fn resume_from_nothing(
        &self,
        key: &Key,
        damage: Corrupt,
        options: &ResumeOptions,
    ) -> Result<Resume> {
        let now = self.clock.now();
        let handoff = Handoff::default();
        let tracking = Tracking::new(&options.root);
        let found = Found {
            format: C::FORMAT,
            now,
            context: &TaskContext::default(),
            violations: &[],
            is_partial: false,
            work_has_ids: C::WORK_HAS_IDS,
            own: serde_json::Value::Null,
            foreign: Vec::new(),
            earlier: Vec::new(),
            staleness: Staleness::judge([], &Basis::new(None, Some(now)), &tracking).of_a_part(),
            held: self.held(self.claim(key)?, options, now),
            newer: None,
            damage: Some(damage),
            recover_with: None,
            handoff: handoff.clone(),
        };
        Ok(Resume::new(key, ResumePlan::of(&handoff), found, options))
    }

    /// The last claim on a key, in a store that has claims.
    fn claim(&self, key: &Key) -> Result<Option<Claim>> {
        match self.store.claims() {
            Some(claims) => claims.claimed(key),
            None => Ok(None),
        }
    }

    /// The claim that keeps the asking owner from going on.
    fn held(
        &self,
        claim: Option<Claim>,
        options: &ResumeOptions,
        now: DateTime<Utc>,
    ) -> Option<Claim> {
        let is_ours = |claim: &Claim| {
            self.fence == Some(claim.fence) || options.asker.as_deref() == Some(&claim.owner)
        };
        claim.filter(|claim| !options.ignores_claims && claim.stands(now) && !is_ours(claim))
    }

    /// What is noted of an agent that reported moments ago on a task that no agent has claimed: nothing keeps two
    /// from going on at once.
    fn may_be_at_work(
        &self,
        loaded: &Loaded<C>,
        handoff: &Handoff,
        claim: Option<&Claim>,
        options: &ResumeOptions,
    ) -> Option<String> {
        let now = self.clock.now();
        // One that was given back says that its owner is done with it.
        let is_settled = claim.is_some_and(|claim| claim.released || claim.stands(now));
        if options.ignores_claims || is_settled || self.store.claims().is_none() {
            return None;
        }
        let pulse = loaded.checkpoint.pulse();
        let pulse = pulse.with_heartbeat(loaded.context.heartbeat.clone());
        let Liveness::Active { last, .. } = Liveness::judge(&pulse, &C::thresholds(), now) else {
            return None;
        };
        let agent = handoff.agent.as_deref()?;
        let asks_itself =
            |asker: &String| asker == agent || asker.starts_with(&format!("{agent},"));
        if last.age >= MOMENTS || options.asker.as_ref().is_some_and(asks_itself) {
            return None;
        }
        Some(format!(
            "{} reported {} s ago, and the task is not claimed: where that agent is still at work, two would go on at \
             once; claim the task before you go on",
            shown::line(agent),
            last.age.num_seconds().max(0),
        ))
    }

    /// The newest earlier state that can be read.
    fn newest_good(&self, key: &Key) -> Result<Option<(EntryId, Loaded<C>)>> {
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
            match self.load_revision(key, &entry.id) {
                Ok(loaded) => return Ok(Some((entry.id, loaded))),
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

    /// What the save of this revision recorded of the files.
    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<Fingerprints>> {
        let text = self.store.beside().fingerprints(key, revision)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn staleness(
        &self,
        key: &Key,
        loaded: &Loaded<C>,
        cut: &[C],
        root: &Path,
    ) -> Result<Staleness> {
        // A wrong root would make every file missing, and its work to be done again.
        if !root.as_os_str().is_empty() && !root.is_dir() {
            return Err(Error::new(ErrorKind::NotAFolder).with_path(root));
        }
        let checkpoint = &loaded.checkpoint;
        let mut files = checkpoint.files();
        files.extend(cut.iter().flat_map(Checkpoint::files));
        let tracking = self.tracking.clone().unwrap_or_else(|| Tracking::new(root));
        let mut tracking =
            tracking.of_checkpoint(self.store.beside().document_file(key), C::layout());
        tracking.root = root.to_path_buf();
        let fingerprints = self.fingerprints(key, &loaded.revision)?;
        // It has the files of all that was moved out, however long ago.
        let recorded = fingerprints.iter().flat_map(|prints| prints.files.keys());
        files.extend(recorded.map(String::as_str));
        let basis = Basis::new(checkpoint.updated_at(), Some(self.clock.now()))
            .with_fingerprints(fingerprints.as_ref());
        let staleness = Staleness::judge(files, &basis, &tracking);
        Ok(if loaded.is_partial {
            staleness.of_a_part()
        } else {
            staleness
        })
    }

    /// The verdict on the state that is there now, which may have come back without the store.
    fn heeding_rollback(
        &self,
        key: &Key,
        present: &Loaded<C>,
        staleness: Staleness,
    ) -> Result<Staleness> {
        let own = present.checkpoint.updated_at();
        let back = self.came_back(key, &present.revision, own)?;
        Ok(match back {
            Some(back) => staleness.against(back),
            None => staleness,
        })
    }

    /// No save fails for what only helps to judge.
    fn told_of_rollback(&self, key: &Key, stored: &Stored) -> Option<Reason> {
        if stored.changed_without == Some(false) {
            return None;
        }
        let present = read::<C>(&stored.document).ok()?;
        let own = present.reading.value.updated_at();
        self.came_back(key, &stored.revision, own).ok()?
    }

    fn came_back(
        &self,
        key: &Key,
        present: &Revision,
        own: Option<&Timestamp>,
    ) -> Result<Option<Reason>> {
        rollback::came_back(self.store(), key, present, own, &|document| {
            read::<C>(document)
                .ok()?
                .reading
                .value
                .updated_at()
                .cloned()
        })
    }
}

/// Adds what the typed view knows to what the store reports, and emits the events of a save.
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

/// What was cut from lists, each element as a checkpoint of its own, but for what the checkpoint still has: a
/// crash can leave a log of what was not cut after all.
fn cut_from<C: Checkpoint>(dropped: &[Dropped], checkpoint: &C) -> Vec<C> {
    let here = checkpoint.handoff().done;
    let here = DoneIndex::of(&here);
    dropped
        .iter()
        .filter_map(as_checkpoint::<C>)
        .filter(|cut| !cut.handoff().done.iter().any(|done| here.has(done)))
        .collect()
}

/// For how long after a report its agent may well be at work still.
const MOMENTS: TimeDelta = TimeDelta::minutes(5);

/// What is wrong with a document that a recovery would replace; one that is only beyond the limits it leaves.
fn recoverable(error: &Error) -> Option<Corrupt> {
    match error.kind() {
        ErrorKind::Corrupt(corrupt) if corrupt.code != CorruptCode::TooDeep => {
            Some(corrupt.clone())
        }
        _ => None,
    }
}

/// A cut list element as a checkpoint that has only this element: so its format tells its files.
fn as_checkpoint<C: Checkpoint>(dropped: &Dropped) -> Option<C> {
    serde_json::from_value(alone(dropped)?).ok()
}

/// How many finished steps of these are not in a checkpoint with this hand-off. `handoff_of` reads one that has nothing
/// but what was dropped, all at once: a supervisor asks of many checkpoints.
pub(crate) fn count_cut(
    dropped: &[Dropped],
    here: &Handoff,
    handoff_of: impl FnOnce(&Value) -> Option<Handoff>,
) -> u64 {
    let mut lists = serde_json::Map::new();
    for piece in dropped.iter().filter_map(alone) {
        let Value::Object(piece) = piece else {
            continue;
        };
        for (list, items) in piece {
            match (lists.get_mut(&list), items) {
                (Some(Value::Array(all)), Value::Array(items)) => all.extend(items),
                (_, items) => {
                    lists.insert(list, items);
                }
            }
        }
    }
    let here = DoneIndex::of(&here.done);
    let cut = handoff_of(&Value::Object(lists)).unwrap_or_default().done;
    cut.iter().filter(|done| !here.has(done)).count() as u64
}

fn alone(dropped: &Dropped) -> Option<Value> {
    let mut tokens = crate::json::pointer::split(&dropped.pointer);
    let list = tokens.next()?.into_owned();
    let _index = tokens.next()?;
    if tokens.next().is_some() || !dropped.value.is_object() {
        return None;
    }
    Some(serde_json::json!({ list: [dropped.value] }))
}

/// Conveniences over any store. Every store has them; none implements them.
pub trait CheckpointStoreExt: CheckpointStore {
    /// The checkpoints of one format in this store, of which the view has a clone. A store that cannot be cloned
    /// is shared as an `Arc`.
    fn checkpoints<C: Checkpoint>(&self) -> Checkpoints<C>
    where
        Self: Clone + Sized + 'static,
    {
        Checkpoints::new(self.clone())
    }

    /// Reads, lets `decide` choose, and writes, as one step that no other writer comes between. `None` leaves what
    /// is there.
    ///
    /// `decide` may run more than once, on what a faster writer left. So it must decide from what it is given
    /// alone, and do nothing that cannot be done twice.
    ///
    /// # Errors
    ///
    /// Those of [`load`](CheckpointStore::load) and [`put`](CheckpointStore::put); the errors of `decide`, after
    /// which nothing was written; [`ErrorKind::NotFound`] when it leaves what is not there;
    /// [`ErrorKind::Conflict`] when other writers were faster again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::json::Document;
    /// use agent_checkpoint::store::{MemoryStore, Put};
    /// use agent_checkpoint::{CheckpointStoreExt, Key};
    ///
    /// # fn main() -> agent_checkpoint::Result<()> {
    /// let store = MemoryStore::new();
    /// let saved = store.transact(&Key::new("US-003")?, |stored| {
    ///     let mut document = match stored {
    ///         Some(stored) => stored.document.clone(),
    ///         None => Document::new(&serde_json::json!({}))?,
    ///     };
    ///     document.set("/status", &"in_progress")?;
    ///     Ok(Some(Put::new(document)))
    /// })?;
    /// assert!(saved.previous.is_none());
    /// # Ok(())
    /// # }
    /// ```
    fn transact(
        &self,
        key: &Key,
        mut decide: impl FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        let (saved, ()) = crate::store::transact(self, key, |stored| Ok((decide(stored)?, ())))?;
        Ok(saved)
    }

    /// As [`transact`](CheckpointStoreExt::transact), and gives what the last run of `decide` made beside the put.
    ///
    /// # Errors
    ///
    /// Those of [`transact`](CheckpointStoreExt::transact).
    fn transact_with<T>(
        &self,
        key: &Key,
        decide: impl FnMut(Option<&Stored>) -> Result<(Option<Put>, T)>,
    ) -> Result<(Saved, T)> {
        crate::store::transact(self, key, decide)
    }

    /// Claims a key: until the claim runs out or is given back, only writes with its fence go through.
    ///
    /// The owner of a claim that stands gets the same one again, for at least as long as it asks for.
    /// There need be no checkpoint yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] while the claim of another agent stands; [`ErrorKind::NotOffered`] in a store
    /// without claims, as for all calls on claims.
    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        let change = ClaimChange::Claim(request.clone());
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// Lets a claim stand for longer, from now on; also one that ran out, as long as no other agent has claimed
    /// the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when the claim was given back or another agent has claimed the key since.
    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        let change = ClaimChange::Renew {
            fence,
            time_to_live,
        };
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// Gives a claim back. Doing so again changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when another agent has claimed the key since.
    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        let change = ClaimChange::Release { fence };
        crate::store::claims_of(self)?.change_claim(key, &change)
    }

    /// The last claim on a key: see [`Claims::claimed`](crate::store::Claims::claimed).
    ///
    /// # Errors
    ///
    /// Any failure to read it.
    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        crate::store::claims_of(self)?.claimed(key)
    }

    /// The states of a key, newest first: see [`History::states`](crate::store::History::states).
    ///
    /// # Errors
    ///
    /// Any failure to list the history; [`ErrorKind::NotOffered`] in a store without history, as for all calls on
    /// history.
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        crate::store::history_of(self)?.states(key)
    }

    /// One state of a key: see [`History::load_revision`](crate::store::History::load_revision).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is none of this name; [`ErrorKind::Corrupt`] when it cannot be
    /// read.
    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        crate::store::history_of(self)?.load_revision(key, entry)
    }

    /// Pins an entry or unpins it: see [`History::pin`](crate::store::History::pin).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchRevision`] when there is none of this name.
    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        crate::store::history_of(self)?.pin(key, entry, pinned)
    }

    /// Removes entries beyond these limits: see [`History::prune`](crate::store::History::prune).
    ///
    /// # Errors
    ///
    /// Any failure to list the history.
    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        crate::store::history_of(self)?.prune(key, keep)
    }

    /// Goes on from a document that cannot be read: see [`Recover::recover`](crate::store::Recover::recover).
    ///
    /// # Errors
    ///
    /// Those of [`Recover::recover`](crate::store::Recover::recover); [`ErrorKind::NotOffered`] in a store without
    /// recovery.
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        crate::store::recovery_of(self)?.recover(key, options)
    }

    /// Shows that the agent of this key is alive: see [`Heartbeat::beat`](crate::store::Heartbeat::beat).
    ///
    /// # Errors
    ///
    /// Those of [`Heartbeat::beat`](crate::store::Heartbeat::beat); [`ErrorKind::NotOffered`] in a store without a
    /// heartbeat.
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        let what = "heartbeat";
        let heartbeat = self
            .heartbeat()
            .ok_or_else(|| Error::new(ErrorKind::NotOffered { what }))?;
        heartbeat.beat(key, now, fence)
    }

    /// Puts an earlier state of a key in place again, to the byte, over what is expected. The state that was there
    /// is in the history afterwards. A state of the task that was deleted brings it back, with its dropped items.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStoreExt::load_revision`] and of [`CheckpointStore::put`].
    fn restore(
        &self,
        key: &Key,
        entry: &EntryId,
        expect: Expect,
        fence: Option<Fence>,
    ) -> Result<Saved> {
        let history = crate::store::history_of(self)?;
        let stored = history.load_revision(key, entry)?;
        let states = history.states(key)?;
        let mut states = states.iter();
        let mut put = Put::new(stored.document)
            .with_expect(expect)
            .with_fence(fence);
        if states.any(|known| known.id == *entry && known.tasks_since == 0) {
            put = put.continue_task();
        }
        self.put(key, put)
    }
}

impl<S: CheckpointStore + ?Sized> CheckpointStoreExt for S {}
