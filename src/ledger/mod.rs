//! What really happened to a task, beside what its agent says in the checkpoint: effects that no resume repeats blindly,
//! proofs that work is done, what a person approved, until when it waits, and which attempts at it failed.
//!
//! A crash between an effect (a mail, a payment, a deployment) and the report of it leaves the question whether it took
//! place. The ledger of a checkpoint has the answer, or says that there is a doubt: that an effect is begun is on disk
//! before it is brought about, and its end afterwards.
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
//! // Where it is in doubt, the closure finds out: `None` where it cannot.
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
//! | a [`Proof`] of finished work: a command, how it ended, and the contents of the files that it covers | [`Recorder::prove`](crate::recorder::Recorder::prove) | one that failed or is outdated says to verify |
//! | an [`Approval`], decided by a person and used up once, over all processes | [`Ledger::ask`], [`Ledger::decide`], [`Effect::with_approval`] | one that is pending says to wait |
//! | a [time](LedgerState::waiting) before which the task is not to go on | [`Operation::RateLimit`](crate::Operation::RateLimit), [`Operation::Pause`](crate::Operation::Pause) | says to wait |
//! | the [attempts](LedgerState::failed_attempts) in a row that made no progress | claims, and work that fails in a [scope](crate::recorder::Recorder::scope) | three of them refuse |
//!
//! # How long it lasts
//!
//! The ledger lies beside the checkpoint in every store and every format, and belongs to the task: it goes on over
//! hand-overs, restarts, recoveries, conversions, archives of a crashed or aborted task, and copies to another store.
//! It ends when the task is archived as complete ([`Ledger::end_with`]) or forgotten. Git does not take it along.

mod approval;
mod approval_record;
mod attempts;
mod effect;
mod guard;
mod identity;
mod known;
mod later;
mod passing;
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
use approval_record::OfApproval;
pub use approval_record::{ApprovalRecord, ApprovalStatus};
pub use attempts::Attempt;
pub use effect::Effect;
pub use guard::EffectGuard;
use known::KnownLedger;
pub(crate) use known::KnownLedgers;
pub use later::{NotBefore, Waiting};
pub use passing::{Keep, Passing};
pub(crate) use proof::EndedProof;
pub use proof::{OutputTail, ProofEnd, ProofRecord};
pub use proofs::{ProofStatus, Proofs, ProvenItem, Rerun};
pub use proving::{Proof, ProofReport, ProofRunner};
pub(crate) use proving::{reports, require_item, run_quietly};
pub use receipt::{Omitted, Receipt};
pub use record::{EffectRecord, EffectStatus, LedgerState};
use record::{Entries, Line};

use crate::checkpoint::{
    Claim, Clock, Error, ErrorKind, Fence, Key, ProcessId, Result, Revision, SystemClock, stamp,
};
use crate::shown::quoted;
use crate::store::CheckpointStore;

/// How often a line is added anew where another was faster.
const TRIES: usize = 64;

/// The end of the pauses between tries to record an end while the claim changes: together some 16 s, which is more than
/// the margin that a store has for the clocks of other machines.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The ledger of one task.
///
/// [`Checkpoints::ledger`](crate::Checkpoints::ledger) makes one, and a [`Recorder`](crate::recorder::Recorder) has one
/// of its own.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn CheckpointStore>,
    key: Key,
    by: String,
    fence: Option<Fence>,
    process: ProcessId,
    /// This process, where the effects are brought about by another.
    keeper: Option<ProcessId>,
    clock: Arc<dyn Clock>,
    known: KnownLedgers,
    /// In a host file, the task that a guard is of: its slot may be for another by the time of the end.
    task: Option<String>,
}

/// What the caller is to do about an effect.
#[derive(Debug)]
#[must_use]
pub enum EffectDecision {
    /// Bring it about now, and record its end with the guard.
    Do(EffectGuard),
    /// It took place: this is what it gave back.
    AlreadyDone(Receipt),
    /// Another is at it.
    InProgress(EffectRecord),
    /// It was begun, and nothing says whether it took place: find out, and [settle](Ledger::settle) it.
    InDoubt(EffectRecord),
}

/// What was found out about an effect in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It took place.
    Done(Receipt),
    /// It did not take place, and may be begun again.
    NotDone,
}

impl Settlement {
    /// It took place, and this is what it gave back, or what is known of that.
    ///
    /// # Errors
    ///
    /// The code `receipt` for one that is no JSON.
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
    /// The ledger of this key, for an owner, who is named in its lines.
    #[must_use]
    pub fn new(store: Arc<dyn CheckpointStore>, key: &Key, by: impl Into<String>) -> Ledger {
        Ledger {
            store,
            key: key.clone(),
            by: by.into(),
            fence: None,
            process: ProcessId::current(),
            keeper: None,
            clock: Arc::new(SystemClock),
            known: KnownLedgers::default(),
            task: None,
        }
    }

    /// Shows the fence of a claim when an effect is begun or settled. Without one both are refused while the key is
    /// claimed.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Names the process that brings the effects about, where that is another than this one.
    #[must_use]
    pub fn in_process(mut self, process: ProcessId) -> Self {
        self.process = process;
        self.keeper = Some(ProcessId::current());
        self
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Reads only what is new to the views of the store.
    pub(crate) fn knowing(mut self, known: &KnownLedgers) -> Self {
        self.known = known.clone();
        self
    }

    /// The key of the checkpoint.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// All that the ledger says of the task.
    ///
    /// # Errors
    ///
    /// The code `ledger` where it is damaged, and whatever keeps it from being read: then it is unknown which effects
    /// took place.
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
    /// [`ErrorKind::Refused`] where it needs an [approval](Effect::with_approval) and has none, as for
    /// [`consume`](Ledger::consume), and where one was asked for under its id and it comes without. Those of
    /// [`state`](Ledger::state). [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] as for every write, and whatever keeps the
    /// line from being written: then the effect must not be brought about.
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
            let processes = (&self.process, self.keeper.as_ref());
            let mut begun = Line::begun(self.now(), by, effect, round, self.fence, processes);
            begun.approval = used.clone();
            match of_task.append(begun, &entries, self.fence) {
                Ok(true) => return Ok(EffectDecision::Do(guard)),
                Ok(false) => guard.was_not_begun(),
                Err(error) => {
                    // The line may be there all the same, and nobody brings the effect about.
                    if guard.not_done().is_err() {
                        guard.was_not_begun();
                    }
                    return Err(error);
                }
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Settles an effect that is in doubt, by what was found out about it. What was found out about this time that it
    /// was begun says nothing about a later one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] where it was begun again since, where another is at it, and where it took place and is to
    /// be settled as not done. Those of [`begin`](Ledger::begin).
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

    /// Archives the checkpoint of a complete task, of this revision and of no other, and with that ends the ledger. Where
    /// `archive` fails or is interrupted, so that the checkpoint is still there, the effects go on. What a person has not
    /// decided is no obstacle: a complete task needs no approval any more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] where an effect is in doubt or in progress: settle it first. Those of `archive`, of
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
        // Without the line it shows all the same: in whether the checkpoint is there.
        if let Err(error) = ended {
            tracing::warn!(key = %self.key, %error, "what came of an archive is not in the ledger");
        }
        archived
    }

    /// Adds a line, wherever the others are by then.
    fn add(&self, line: impl Fn() -> Line) -> Result<()> {
        self.add_behind(Ledger::read, line)
    }

    /// The same behind what `read` gives.
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

    /// Takes the ledger along to another checkpoint of the same task, such as a converted one, which has none yet, or the
    /// beginning of this one: a copy that was interrupted goes on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] where the other has a ledger of its own; those of [`state`](Ledger::state) and of
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
        // What is approved is approved once, and the other checkpoint is there besides.
        let approvals = other.state()?.approvals;
        for approval in approvals.iter().filter(|approval| approval.is_open()) {
            let because = Some("its task was copied; ask anew".to_owned());
            let denied = ApprovalDecision::Denied { because };
            other.decide(approval, &denied, &other.by)?;
        }
        Ok(())
    }

    /// Records the end of a round: done with a receipt, else not done.
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

    /// Records that nobody is at a round any more.
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

    /// Adds a fact, if there is one to add, whoever has the task by now: who goes on needs it most.
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
                // Claimed, given back or expired since; a store may see the time otherwise for a while.
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

    /// The effect, where it was last begun in this round.
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

    /// What the ledger says, with an archive that was interrupted.
    fn read(&self) -> Result<Arc<Entries>> {
        let mut entries = self.latest()?;
        if let Some(document) = &entries.ending
            && self.is_archived(document)?
        {
            entries = Arc::new(entries.of_next_task());
        }
        Ok(entries)
    }

    /// What its lines come to. Those that are known are not read again.
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
                .put_back(&self.key, KnownLedger { mark, entries });
        }
        Ok(entries)
    }

    /// Whether an archive of this document that was interrupted took place: nothing is there, or another task is. What is
    /// in doubt is not forgotten.
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

    /// How many lines there are, those of the task, and which task that is in the slot of a host file: only there one
    /// follows the other without an archive between them.
    fn texts(&self) -> Result<(usize, Vec<Line>, Option<String>)> {
        let read = || {
            let texts = self.store.beside().ledger(&self.key)?;
            let task = self.task()?;
            let lines = Line::of_task(&texts, task.as_deref())?;
            Ok((texts.len(), lines, task))
        };
        read().map_err(|error: Error| error.with_key(&self.key))
    }

    /// Refuses what would be done for a task whose slot is for another by now.
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

    /// The same, of the task of these lines whatever its slot is for by then.
    fn of_task(&self, entries: &Entries) -> Ledger {
        Ledger {
            task: entries.task.clone(),
            ..self.clone()
        }
    }

    /// Adds a line of the task behind these.
    fn append(&self, line: Line, entries: &Entries, fence: Option<Fence>) -> Result<bool> {
        self.append_at(line.behind(entries), entries.lines, fence)
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

/// What the ledger under a key says, whose document is there; `task` is that of its slot in a host file.
pub(crate) fn state_of(
    store: &dyn CheckpointStore,
    key: &Key,
    task: Option<&str>,
) -> Result<LedgerState> {
    let mut entries = Entries::of(task.map(str::to_owned));
    entries.add_lines(&store.beside().ledger(key)?)?;
    Ok(entries.state)
}
