//! The facts about a task besides the reports of its agent in the checkpoint: effects that no resume repeats blindly,
//! proofs that work is done, approvals of a person, until when it waits, and failed attempts.
//!
//! After a crash between an effect (a mail, a payment, a deployment) and its report, it is open whether the effect took
//! place. The ledger of a checkpoint has the answer, or states the doubt: the begin of an effect is on disk before it
//! is performed, and its end afterwards.
//!
//! # Example
//!
//! ```
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::ledger::{Effect, EffectDecision, Settlement};
//! use agent_checkpoint::recorder::{Opened, Recorder};
//! use agent_checkpoint::store::MemoryStore;
//! use agent_checkpoint::{CheckpointStoreExt, Key};
//!
//! # fn send(to: &str) -> agent_checkpoint::Result<u32> { Ok(7) }
//! # fn was_sent(to: &str) -> Option<u32> { None }
//! # fn main() -> agent_checkpoint::Result<()> {
//! # let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
//! # let first = TaskCheckpoint::begin("ui-dev", ["Tell the team"], tasks.now());
//! # let Opened::Begun(recorder) = Recorder::begin(&tasks, &Key::new("US-003")?, "ui-dev", &first)? else { return Ok(()) };
//! let mail = Effect::new("send-mail", "team@example.com")?.with_check("look into the folder of sent mail");
//! // If it is in doubt, the closure checks; `None` if it cannot find out.
//! let decision = recorder.effect_or_check(&mail, |_| {
//!     Some(match was_sent("team@example.com") {
//!         Some(number) => Settlement::done(&number).ok()?,
//!         None => Settlement::NotDone,
//!     })
//! })?;
//! match decision {
//!     EffectDecision::Do(mut guard) => {
//!         let number = send("team@example.com")?;
//!         guard.done(&number)?;
//!     }
//!     EffectDecision::AlreadyDone(_) => {}
//!     EffectDecision::InProgress(record) | EffectDecision::InDoubt(record) => {
//!         println!("{} may have been done by {}", record.id, record.by);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What else it has
//!
//! | of | made by | in a plan |
//! |---|---|---|
//! | a [`Proof`] of finished work: a command, how it ended, and the contents of the files that it covers | [`Recorder::prove`](crate::recorder::Recorder::prove) | verify, if it failed or is outdated |
//! | an [`Approval`], decided by a person and consumed once, over all processes | [`Ledger::ask`], [`Ledger::decide`], [`Effect::with_approval`] | wait, while it is pending |
//! | a [time](LedgerState::waiting) before which the task must not continue | [`Operation::RateLimit`](crate::Operation::RateLimit), [`Operation::Pause`](crate::Operation::Pause) | wait |
//! | the consecutive [attempts](LedgerState::failed_attempts) without progress | claims, and work that fails in a [scope](crate::recorder::Recorder::scope) | refuse, after three |
//!
//! # How long it lasts
//!
//! Every store has the ledger beside the checkpoint, in every format. It belongs to the task, and lasts over
//! hand-overs, restarts, recoveries, conversions, archives of a crashed or aborted task, and copies to another store.
//! It ends when the task is archived as complete ([`Ledger::end_with`]) or forgotten. Git does not track it.

mod approval;
mod approval_record;
mod attempts;
mod effect;
mod forwarding;
mod guard;
mod identity;
mod known;
mod later;
mod line;
mod proof;
mod proofs;
mod proving;
mod receipt;
mod record;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

pub use approval::{Approval, ApprovalDecision};
pub use approval_record::{ApprovalRecord, ApprovalStatus};
pub use effect::Effect;
pub use forwarding::Forwarding;
pub use guard::EffectGuard;
use known::KnownEntries;
pub(crate) use known::KnownLedgers;
pub use later::Waiting;
use line::{Line, OfApproval};
pub(crate) use proof::EndedProof;
pub use proof::{OutputBuffer, OutputTail, ProofEnd, ProofRecord};
pub use proofs::{ProofStatus, Proofs, ProvenItem, Rerun};
pub use proving::{Proof, ProofReport, ProofRunner};
pub(crate) use proving::{reports, require_item, run_quietly};
pub use receipt::{Omitted, Receipt};
use record::Entries;
pub use record::{Attempt, EffectRecord, EffectStatus, LedgerState, NotBefore};

use crate::checkpoint::{
    Claim, Clock, Error, ErrorKind, Fence, Key, ProcessId, Result, Revision, SystemClock, stamp,
};
use crate::shown::quoted;
use crate::store::CheckpointStore;

/// How often adding a line is tried again when another process was faster.
const TRIES: usize = 64;

/// The limit for the pauses between tries to record a fact while the claim changes. Together they take about 16 s, more
/// than the margin of a store for the clocks of other machines.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The ledger of one task.
///
/// [`Checkpoints::ledger`](crate::Checkpoints::ledger) makes one; a [`Recorder`](crate::recorder::Recorder) has its
/// own.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn CheckpointStore>,
    key: Key,
    by: String,
    fence: Option<Fence>,
    /// The process that performs the effects, if it is not this one.
    performer: Option<ProcessId>,
    clock: Arc<dyn Clock>,
    known: KnownLedgers,
    /// In a host file, the task of a guard: its slot may have another task when the effect ends.
    task: Option<String>,
}

/// What the caller must do about an effect.
#[derive(Debug)]
#[must_use]
pub enum EffectDecision {
    /// Perform it now, and record its end with the guard.
    Do(EffectGuard),
    /// It took place, with this receipt.
    AlreadyDone(Receipt),
    /// Another process performs it.
    InProgress(EffectRecord),
    /// It was begun, and its end is unknown: find out, and [settle](Ledger::settle) it.
    InDoubt(EffectRecord),
}

/// The finding about an effect in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It took place.
    Done(Receipt),
    /// It did not take place, and may be begun again.
    NotDone,
}

impl Settlement {
    /// It took place, with this receipt, or what is known of it.
    ///
    /// # Errors
    ///
    /// The code `receipt` for a value that is not JSON.
    pub fn done(receipt: &(impl Serialize + ?Sized)) -> Result<Settlement> {
        Receipt::of(receipt).map(Settlement::Done)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("key", &self.key)
            .field("by", &self.by)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// The ledger of this key, for an owner, whose name is in its lines.
    #[must_use]
    pub fn new(store: Arc<dyn CheckpointStore>, key: &Key, by: impl Into<String>) -> Ledger {
        Ledger {
            store,
            key: key.clone(),
            by: by.into(),
            fence: None,
            performer: None,
            clock: Arc::new(SystemClock),
            known: KnownLedgers::default(),
            task: None,
        }
    }

    /// Sets the fence of a claim, for beginning and settling effects. Without one, both are refused while the key is
    /// claimed.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Names the process that performs the effects, if it is not this one.
    #[must_use]
    pub fn in_process(mut self, process: ProcessId) -> Self {
        self.performer = Some(process);
        self
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Reads only lines that are new to the views of the store.
    pub(crate) fn knowing(mut self, known: &KnownLedgers) -> Self {
        self.known = known.clone();
        self
    }

    /// The key of the checkpoint.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether the ledger ended with an archive of its complete task, and has no line since. An earlier state that is then
    /// restored begins without what the task did outside.
    ///
    /// # Errors
    ///
    /// Those of [`state`](Ledger::state).
    pub fn has_ended(&self) -> Result<bool> {
        Ok(self.read()?.has_ended)
    }

    /// The contents of the ledger.
    ///
    /// # Errors
    ///
    /// The code `ledger` if it is damaged, and any failure to read it: then it is unknown which effects took place.
    pub fn state(&self) -> Result<LedgerState> {
        let mut state = self.read()?.state.clone();
        let now = self.now();
        for approval in &mut state.approvals {
            approval.look_at(now);
        }
        let is_open = |effect: &EffectRecord| effect.status == EffectStatus::InDoubt;
        if state.effects.iter().any(is_open) {
            let claim = self.claim()?;
            for effect in state.effects.iter_mut().filter(|effect| is_open(effect)) {
                self.look_at(effect, claim.as_ref());
            }
        }
        Ok(state)
    }

    /// All effects of the task, in the order in which they were first begun.
    ///
    /// # Errors
    ///
    /// Those of [`state`](Ledger::state).
    pub fn effects(&self) -> Result<Vec<EffectRecord>> {
        self.state().map(|state| state.effects)
    }

    /// Begins an effect, unless it was begun before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if it lacks an [approval](Effect::with_approval) that it needs, as for
    /// [`consume`](Ledger::consume), or comes without one that was asked for under its id. Those of
    /// [`state`](Ledger::state). [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] as for every write, and any failure
    /// to write the line. After an error the effect must not be performed.
    pub fn begin(&self, effect: &Effect) -> Result<EffectDecision> {
        self.refuse_former_task()?;
        let id = effect.id();
        for _ in 0..TRIES {
            let entries = self.read()?;
            if let Some(found) = entries.find(id)
                && found.status != EffectStatus::NotDone
            {
                return self.answer(found.clone());
            }
            let used = match effect.approval() {
                Some(approval) => Some(OfApproval::of(&self.approved(&entries, approval)?)),
                None => {
                    self.refuse_without_approval(&entries, id)?;
                    None
                }
            };
            let of_task = self.of_task(&entries);
            let mut guard = EffectGuard::new(of_task.clone(), id);
            let (by, round) = (&self.by, guard.round());
            // Only here, since it reads several files of the system.
            let own = ProcessId::current();
            let processes = match &self.performer {
                Some(other) => (other, Some(&own)),
                None => (&own, None),
            };
            let mut begun = Line::begun(self.now(), by, effect, round, self.fence, processes);
            begun.approval = used.clone();
            match of_task.append(begun, &entries, self.fence) {
                Ok(true) => return Ok(EffectDecision::Do(guard)),
                Ok(false) => guard.was_not_begun(),
                Err(error) => {
                    // The line may still be there, and no process performs the effect.
                    if guard.not_done().is_err() {
                        guard.was_not_begun();
                    }
                    return Err(error);
                }
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Settles an effect in doubt with a finding about it. The finding counts only for this round: not if the effect
    /// was begun again since.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if it was begun again since, if another process performs it, and if it took place and is
    /// to be settled as not done. Those of [`begin`](Ledger::begin).
    pub fn settle(&self, effect: &EffectRecord, settlement: Settlement) -> Result<()> {
        let receipt = match settlement {
            Settlement::Done(receipt) => Some(receipt),
            Settlement::NotDone => None,
        };
        let (id, round) = (&*effect.id, &*effect.round);
        for _ in 0..TRIES {
            let entries = self.read()?;
            let mut record = self.find(&entries, id, round)?.clone();
            self.look_at(&mut record, self.claim()?.as_ref());
            let (by, since) = (&record.by, stamp(record.since));
            match (&record.status, &receipt) {
                (EffectStatus::Done { .. }, Some(_)) | (EffectStatus::NotDone, None) => {
                    return Ok(());
                }
                (EffectStatus::Done { .. }, None) => {
                    return Err(self.refused(format!(
                        "{} took place: {by} recorded that at {since}",
                        quoted(id)
                    )));
                }
                (EffectStatus::InProgress, _) => {
                    return Err(self.refused(format!(
                        "{by} is at {} since {since}; settle it once that process has ended and its claim is over",
                        quoted(id)
                    )));
                }
                (EffectStatus::InDoubt, _) | (EffectStatus::NotDone, Some(_)) => {}
            }
            let line = Line::end(self.now(), &self.by, (id, round), receipt.clone());
            if self.of_task(&entries).append(line, &entries, self.fence)? {
                return Ok(());
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Archives the checkpoint of a complete task, at exactly this revision, and ends the ledger. If `archive` fails or
    /// is interrupted and the checkpoint is still there, the ledger continues. A pending approval is no obstacle: a
    /// complete task needs none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if an effect is in doubt or in progress: settle it first. Those of `archive`, of
    /// [`state`](Ledger::state) and of [`begin`](Ledger::begin).
    pub fn end_with<T, E: From<Error>>(
        &self,
        checkpoint: &Revision,
        archive: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let LedgerState { effects, .. } = self.state()?;
        let is_open = |effect: &&EffectRecord| {
            matches!(
                effect.status,
                EffectStatus::InDoubt | EffectStatus::InProgress
            )
        };
        if let Some(open) = effects.iter().find(is_open) {
            return Err(self
                .refused(format!(
                    "{} was begun, and it is not known whether it took place: settle that before the task ends",
                    quoted(&open.id)
                ))
                .into());
        }
        if self.latest()?.of_task == 0 {
            return archive();
        }
        let document = checkpoint.to_string();
        self.add(|| Line::ending(self.now(), &self.by, document.clone()))?;
        let archived = archive();
        let ended = match &archived {
            Ok(_) => self.add_behind(Ledger::latest, || Line::ended(self.now(), &self.by)),
            Err(_) => self.add_behind(Ledger::latest, || Line::goes_on(self.now(), &self.by)),
        };
        // Without this line, a read checks whether the checkpoint is there.
        if let Err(error) = ended {
            tracing::warn!(key = %self.key, %error, "what came of an archive is not in the ledger");
        }
        archived
    }

    /// Adds a line after the present ones.
    fn add(&self, line: impl Fn() -> Line) -> Result<()> {
        self.add_behind(Ledger::read, line)
    }

    /// The same, after the entries that `read` returns.
    fn add_behind(
        &self,
        read: impl Fn(&Ledger) -> Result<Arc<Entries>>,
        line: impl Fn() -> Line,
    ) -> Result<()> {
        for _ in 0..TRIES {
            let entries = read(self)?;
            if self
                .of_task(&entries)
                .append(line(), &entries, self.fence)?
            {
                return Ok(());
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Copies the ledger to another checkpoint of the same task, such as a converted one, which has no ledger yet or
    /// the beginning of this one: an interrupted copy can be continued.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the other has a different ledger; those of [`state`](Ledger::state) and of
    /// [`begin`](Ledger::begin).
    pub fn copy_to(&self, other: &Ledger) -> Result<()> {
        let (all, there, task) = other.texts()?;
        let mut lines = self.texts()?.1.into_iter();
        for known in &there {
            let ours = lines.next().map(|line| line.of_slot(task.clone()).text());
            if ours.transpose()? != Some(known.text()?) {
                return Err(other.refused("it has a ledger of its own".to_owned()));
            }
        }
        let of_task = Ledger {
            task,
            ..other.clone()
        };
        for (at, line) in (all..).zip(lines) {
            if !of_task.append_at(line, at, other.fence)? {
                return Err(other.changed_meanwhile());
            }
        }
        // An approval is for one use, but both checkpoints exist: deny it in the copy.
        let approvals = other.state()?.approvals;
        for approval in approvals.iter().filter(|approval| approval.is_open()) {
            let because = Some("its task was copied; ask anew".to_owned());
            let denied = ApprovalDecision::Denied { because };
            other.decide(approval, &denied, &other.by)?;
        }
        Ok(())
    }

    /// Records the end of a round: done with a receipt, otherwise not done.
    fn end(&self, id: &str, round: &str, receipt: Option<Receipt>) -> Result<()> {
        self.tell_of(id, round, |found| match (&found.status, &receipt) {
            (EffectStatus::Done { .. }, _) | (EffectStatus::NotDone, None) => None,
            _ => Some(Line::end(
                self.now(),
                &self.by,
                (id, round),
                receipt.clone(),
            )),
        })
    }

    /// Records that the guard of a round was dropped without an end.
    fn leave(&self, id: &str, round: &str) -> Result<()> {
        self.tell_of(id, round, |found| {
            let is_open = found.status == EffectStatus::InDoubt;
            is_open.then(|| Line::left(self.now(), &self.by, (id, round)))
        })
    }

    /// Adds a fact about a round.
    fn tell_of(
        &self,
        id: &str,
        round: &str,
        line: impl Fn(&EffectRecord) -> Option<Line>,
    ) -> Result<()> {
        self.tell(|entries| Ok(line(self.find(entries, id, round)?)))
    }

    /// Adds a fact, if `line` gives one, whichever owner has the task: the next owner needs it most.
    fn tell(&self, line: impl Fn(&Entries) -> Result<Option<Line>>) -> Result<()> {
        let mut pause = Duration::from_millis(2);
        for _ in 0..TRIES {
            let entries = self.read()?;
            let Some(line) = line(&entries)? else {
                return Ok(());
            };
            let now = self.now();
            let claim = self.claim()?.filter(|claim| claim.stands(now));
            let fence = claim.map(|claim| claim.fence);
            match self.of_task(&entries).append(line, &entries, fence) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The claim was made, released or expired since; the clock of a store may differ for a while.
                Err(error)
                    if pause < LONGEST_PAUSE
                        && matches!(
                            error.kind(),
                            ErrorKind::Claimed { .. } | ErrorKind::Fenced { .. }
                        ) =>
                {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.changed_meanwhile())
    }

    /// The effect, if its last begin is this round.
    fn find<'e>(&self, entries: &'e Entries, id: &str, round: &str) -> Result<&'e EffectRecord> {
        let found = entries.find(id).filter(|found| found.round == round);
        found.ok_or_else(|| {
            self.refused(format!(
                "{} was begun again since, or its task has ended",
                quoted(id)
            ))
        })
    }

    fn answer(&self, mut record: EffectRecord) -> Result<EffectDecision> {
        if record.status == EffectStatus::InDoubt {
            self.look_at(&mut record, self.claim()?.as_ref());
        }
        Ok(match record.status {
            EffectStatus::Done { receipt } => EffectDecision::AlreadyDone(receipt),
            EffectStatus::InProgress => EffectDecision::InProgress(record),
            EffectStatus::InDoubt | EffectStatus::NotDone => EffectDecision::InDoubt(record),
        })
    }

    fn look_at(&self, record: &mut EffectRecord, claim: Option<&Claim>) {
        record.look_at(self.fence, claim, self.now());
    }

    /// The entries, after the outcome of an interrupted archive.
    fn read(&self) -> Result<Arc<Entries>> {
        let mut entries = self.latest()?;
        if let Some(document) = &entries.ending
            && self.is_archived(document)?
        {
            entries = Arc::new(entries.of_next_task());
        }
        Ok(entries)
    }

    /// The entries of its lines. Known lines are not read again.
    fn latest(&self) -> Result<Arc<Entries>> {
        let task = self.task()?;
        let known = self.known.take(&self.key);
        let (mark, mut entries) = match known.filter(|known| known.entries.task == task) {
            Some(known) => (Some(known.mark), known.entries),
            None => (None, Arc::new(Entries::of(task.clone()))),
        };
        let read = self.store.beside().ledger_since(&self.key, mark.as_ref());
        let read = read.map_err(|error| error.with_key(&self.key))?;
        if read.before != entries.lines {
            entries = Arc::new(Entries::of(task));
        }
        if !read.lines.is_empty() {
            let added = Arc::make_mut(&mut entries).add_lines(&read.lines);
            added.map_err(|error| error.with_key(&self.key))?;
        }
        if let Some(mark) = read.mark {
            let entries = Arc::clone(&entries);
            self.known
                .put_back(&self.key, KnownEntries { mark, entries });
        }
        Ok(entries)
    }

    /// Whether an interrupted archive of this document took place: the key has no document, or one of a later task. If
    /// that is uncertain, the ledger continues.
    fn is_archived(&self, document: &str) -> Result<bool> {
        let (Some(there), history) = (self.store.load(&self.key)?, self.store.history()) else {
            return Ok(true);
        };
        let Some(history) = history else {
            return Ok(false);
        };
        let is_it = |revision: &Revision| revision.to_string() == document;
        if is_it(&there.revision) {
            return Ok(false);
        }
        let states = history.states(&self.key)?;
        let newest = states
            .iter()
            .find(|state| state.revision.as_ref().is_ok_and(is_it));
        Ok(newest.is_some_and(|state| state.tasks_since > 0))
    }

    /// The number of all lines, the lines of the task, and the task if it is in the slot of a host file: only in a slot
    /// may one task follow another without an archive.
    fn texts(&self) -> Result<(usize, Vec<Line>, Option<String>)> {
        let read = || {
            let texts = self.store.beside().ledger(&self.key)?;
            let task = self.task()?;
            let lines = Line::of_task(&texts, task.as_deref())?;
            Ok((texts.len(), lines, task))
        };
        read().map_err(|error: Error| error.with_key(&self.key))
    }

    /// Refuses to act for a task whose slot has another task now.
    fn refuse_former_task(&self) -> Result<()> {
        if !self.store.capabilities().embedded {
            return Ok(());
        }
        let stored = self.store.load(&self.key)?;
        let refused = stored.map_or(Ok(()), |stored| stored.context.refuse_former_task());
        refused.map_err(|error: Error| error.with_key(&self.key))
    }

    fn task(&self) -> Result<Option<String>> {
        if self.task.is_some() || !self.store.capabilities().embedded {
            return Ok(self.task.clone());
        }
        let stored = self.store.load(&self.key)?;
        Ok(stored.and_then(|stored| stored.context.task))
    }

    /// The same ledger for the task of these entries, even if its slot has another one by now.
    fn of_task(&self, entries: &Entries) -> Ledger {
        Ledger {
            task: entries.task.clone(),
            ..self.clone()
        }
    }

    /// Adds a line of the task after these entries.
    fn append(&self, line: Line, entries: &Entries, fence: Option<Fence>) -> Result<bool> {
        let line = Line {
            begins_task: entries.begins_task,
            ..line
        };
        self.append_at(line, entries.lines, fence)
    }

    fn append_at(&self, line: Line, at: usize, fence: Option<Fence>) -> Result<bool> {
        let line = line.of_slot(self.task.clone());
        let store = self.store.beside();
        let added = store.append_to_ledger(&self.key, &line.text()?, at, fence);
        added.map_err(|error| error.with_key(&self.key))
    }

    /// The last claim on the key, in a store that has claims.
    fn claim(&self) -> Result<Option<Claim>> {
        match self.store.claims() {
            Some(claims) => claims.claimed(&self.key),
            None => Ok(None),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn refused(&self, why: String) -> Error {
        Error::refused(why).with_key(&self.key)
    }

    fn changed_meanwhile(&self) -> Error {
        Error::new(ErrorKind::ChangedMeanwhile).with_key(&self.key)
    }
}

/// The contents of the ledger of a key that has a document; `task` is the one in its slot of a host file.
pub(crate) fn state_of(
    store: &dyn CheckpointStore,
    key: &Key,
    task: Option<&str>,
) -> Result<LedgerState> {
    let mut entries = Entries::of(task.map(str::to_owned));
    entries.add_lines(&store.beside().ledger(key)?)?;
    Ok(entries.state)
}
