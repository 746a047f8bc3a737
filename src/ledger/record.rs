//! What the lines of a ledger record.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::approval_record::{self, ApprovalRecord};
use super::line::{Line, Tried, Wait, unreadable};
use super::proof::{self, KnownCovered};
use super::{ProofRecord, Receipt};
use crate::checkpoint::{Claim, Fence, ProcessId, Result};

/// An effect as the ledger records it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EffectRecord {
    /// Its identity within the task.
    pub id: String,
    /// Its status.
    #[serde(flatten)]
    pub status: EffectStatus,
    /// When it was begun, or when its end was recorded.
    pub since: DateTime<Utc>,
    /// The owner that began it, or that recorded its end.
    pub by: String,
    /// How to find out whether it took place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how_to_check: Option<String>,
    /// The round: each begin is one. What is found out counts only for its own round.
    pub round: String,
    /// The process that performs it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    #[serde(skip)]
    performer: Performer,
}

/// The status of an effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectStatus {
    /// It took place.
    Done {
        /// Its result.
        receipt: Receipt,
    },
    /// It was begun and did not take place, so it may be begun again.
    NotDone,
    /// It was begun and is being performed: its process runs, or, if that cannot be known, the claim under which it was
    /// begun is valid.
    InProgress,
    /// It was begun, and the ledger does not have its end.
    InDoubt,
}

/// The process and claim under which an effect was begun.
#[derive(Clone, Debug, Default, PartialEq)]
struct Performer {
    fence: Option<Fence>,
    /// The process that records the end, if it is not the one that performs the effect.
    keeper: Option<ProcessId>,
    /// Whether its guard was dropped without an end.
    is_left: bool,
    /// Whether the reader cannot see its process, and has no other claim than it had.
    may_still_run: bool,
}

impl EffectRecord {
    /// Whether the process of an effect in doubt may still run: it could not be checked, as on another machine, and no
    /// other claim fences it off. End it before you trust any check of the effect.
    #[must_use]
    pub fn may_still_run(&self) -> bool {
        self.performer.may_still_run
    }

    /// Distinguishes an effect in progress from one in doubt, if possible. `fence` is the fence of the caller: the
    /// owner of a claim does not wait for itself.
    pub(super) fn look_at(
        &mut self,
        fence: Option<Fence>,
        claim: Option<&Claim>,
        now: DateTime<Utc>,
    ) {
        if self.status != EffectStatus::InDoubt || self.performer.is_left {
            return;
        }
        // For this process, the set of open guards decides.
        let others = [&self.process, &self.performer.keeper]
            .into_iter()
            .flatten();
        let others: Vec<_> = others
            .filter(|process| !process.is_this())
            .map(ProcessId::runs)
            .collect();
        let is_hidden = others.contains(&None) || (self.process.is_none() && others.is_empty());
        let is_anothers = self.performer.fence.is_some() && self.performer.fence != fence;
        let stands = |claim: &Claim| Some(claim.fence) == self.performer.fence && claim.stands(now);
        if super::guard::is_open(&self.round)
            || others.contains(&Some(true))
            || (is_hidden && is_anothers && claim.is_some_and(stands))
        {
            self.status = EffectStatus::InProgress;
        } else {
            self.performer.may_still_run = is_hidden && !is_anothers;
        }
    }
}

/// The contents of the ledger of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LedgerState {
    /// The effects, in the order in which they were first begun.
    pub effects: Vec<EffectRecord>,
    /// The newest proof of each piece of work, in the order of recording: one for several pieces if the same command
    /// over the same inputs proves them.
    pub proofs: Vec<ProofRecord>,
    /// The approvals, in the order in which they were first asked for.
    pub approvals: Vec<ApprovalRecord>,
    /// The task must not continue before this time, by the newest report: see [`waiting`](LedgerState::waiting).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
    /// The last consecutive attempts without progress between them: see
    /// [`failed_attempts`](LedgerState::failed_attempts).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// A time before which a task must not continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotBefore {
    /// The time.
    pub until: DateTime<Utc>,
    /// The report that named it: `rate-limit` or `pause`.
    pub report: String,
    /// The reporting agent.
    pub by: String,
    /// When it was reported.
    pub since: DateTime<Utc>,
    /// A digest of the checkpoint while it waits.
    #[serde(skip)]
    pub(super) standing: String,
}

/// An attempt at a task that ended without success: its agent is gone, or its work failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// When the failure was found.
    pub at: DateTime<Utc>,
    /// The owner that found it: the one that took the task over, or the one whose work failed.
    pub by: String,
    /// The owner from which the task was taken over; `None` if the work of an owner failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// What is known about the failure.
    pub error: String,
    /// A digest of the progress.
    #[serde(skip)]
    pub(super) mark: String,
    /// The fence of that owner.
    #[serde(skip)]
    pub(super) fence: Fence,
}

impl LedgerState {
    fn tried(&mut self, at: DateTime<Utc>, by: String, tried: Tried) {
        let Tried {
            over,
            fence,
            mark,
            error,
        } = tried;
        // Progress restarts the count.
        self.attempts.retain(|before| before.mark == mark);
        self.attempts.push(Attempt {
            at,
            by,
            over,
            error,
            mark,
            fence,
        });
    }

    fn wait(&mut self, at: DateTime<Utc>, by: String, wait: Option<Wait>) {
        self.not_before = wait.map(|wait| NotBefore {
            until: wait.until,
            report: wait.report,
            by,
            since: at,
            standing: wait.standing,
        });
    }
}

/// The contents of the lines of a ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// How many lines there are.
    pub(super) lines: usize,
    /// How many of them belong to the task.
    pub(super) of_task: usize,
    /// In a host file, the task whose ledger it is.
    pub(super) task: Option<String>,
    /// The state of the task. An effect without an end is in doubt.
    pub(super) state: LedgerState,
    /// The document of the complete task, if the last line says that it is about to be archived.
    pub(super) ending: Option<String>,
    /// Whether the next line must record the end of the previous task, because no line does.
    pub(super) begins_task: bool,
    /// How many tasks ended before.
    ended: usize,
    /// Whether nothing was added since the last of them ended.
    pub(super) has_ended: bool,
    /// The index of each effect by its id.
    places: HashMap<String, usize>,
    /// The rounds whose beginning has a line, also of tasks that ended.
    rounds: HashSet<String>,
    /// The covered files to which a later line may refer.
    covered: KnownCovered,
}

impl Entries {
    /// The entries of a task in the slot of a host file; otherwise of all lines.
    pub(super) fn of(task: Option<String>) -> Entries {
        Entries {
            task,
            ..Entries::default()
        }
    }

    /// Adds the lines that follow.
    pub(super) fn add_lines(&mut self, texts: &[String]) -> Result<()> {
        for text in texts {
            self.lines += 1;
            let line = Line::read(text, self.lines)?;
            if !line.is_of_another(self.task.as_deref()) {
                self.of_task += 1;
                self.add(line)?;
            }
        }
        Ok(())
    }

    /// The task has ended. The lines of an empty slot may be of several tasks, each of which refers to its own proofs.
    fn end_task(&mut self, is_own: bool) {
        self.ended += 1;
        self.state = LedgerState::default();
        self.places.clear();
        if is_own {
            self.covered.clear();
        }
    }

    /// Whether these are later entries of the same task.
    pub(super) fn is_same_task(&self, before: &Entries) -> bool {
        let grew = self.lines >= before.lines;
        grew && (&self.task, self.ended) == (&before.task, before.ended)
    }

    /// The entries of the next task, after an interrupted archive that took place.
    pub(super) fn of_next_task(&self) -> Entries {
        Entries {
            lines: self.lines,
            of_task: self.of_task,
            ended: self.ended + 1,
            begins_task: true,
            has_ended: true,
            rounds: self.rounds.clone(),
            ..Entries::of(self.task.clone())
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<&EffectRecord> {
        let place = self.places.get(id)?;
        self.state.effects.get(*place)
    }

    /// Adds an effect, or replaces the one with its id.
    fn put(&mut self, effect: EffectRecord) {
        let effects = &mut self.state.effects;
        let place = self.places.get(&effect.id);
        match place.and_then(|place| effects.get_mut(*place)) {
            Some(known) => *known = effect,
            None => {
                self.places.insert(effect.id.clone(), effects.len());
                effects.push(effect);
            }
        }
    }

    fn add(&mut self, line: Line) -> Result<()> {
        self.ending = None;
        self.has_ended = line.is == Line::ENDED;
        let is_own = line.task == self.task;
        if line.begins_task {
            self.end_task(is_own);
        }
        match &*line.is {
            Line::ENDING => {
                self.ending = Some(line.document.unwrap_or_default());
                return Ok(());
            }
            Line::GOES_ON => return Ok(()),
            Line::ENDED => {
                self.end_task(is_own);
                return Ok(());
            }
            Line::PROVED => {
                if let Some(proof) = line.proof {
                    let name = line.name.unwrap_or_default();
                    let record = proof.record(&self.covered, line.at, line.by, name);
                    let record = record.ok_or_else(|| {
                        let number = line.number;
                        unreadable(format!("its line {number} covers what an earlier proof does, which is not there"))
                    })?;
                    let covered = Arc::clone(&record.covered);
                    self.covered.insert(record.name.clone(), covered);
                    let replaced = proof::add(&mut self.state.proofs, record);
                    for gone in replaced.iter().filter(|_| is_own) {
                        self.covered.remove(&gone.name);
                    }
                    return Ok(());
                }
            }
            Line::NOT_BEFORE => {
                self.state.wait(line.at, line.by, line.wait);
                return Ok(());
            }
            Line::RESET => {
                self.state.attempts.clear();
                return Ok(());
            }
            Line::ATTEMPT => {
                if let Some(tried) = line.tried {
                    self.state.tried(line.at, line.by, tried);
                    return Ok(());
                }
            }
            _ => {}
        }
        let unknown = |is: &str| {
            unreadable(format!(
                "its line {} says `{is}`, which this version does not know; use the newest version of what writes it",
                line.number
            ))
        };
        let of_approval = approval_record::add(&mut self.state.approvals, &line);
        match of_approval {
            Some(true) if line.effect.is_none() => return Ok(()),
            Some(false) => return Err(unknown(&line.is)),
            // Beginning an effect consumes its approval.
            _ => {}
        }
        let (Some(id), Some(name)) = (line.effect, line.round) else {
            return Err(unknown(&line.is));
        };
        let status = match (&*line.is, line.receipt) {
            (Line::BEGUN, _) => {
                let begun = EffectRecord {
                    id,
                    status: EffectStatus::InDoubt,
                    since: line.at,
                    by: line.by,
                    how_to_check: line.how_to_check,
                    round: name,
                    process: line.process,
                    performer: Performer {
                        fence: line.fence,
                        keeper: line.keeper,
                        ..Performer::default()
                    },
                };
                self.rounds.insert(begun.round.clone());
                self.put(begun);
                return Ok(());
            }
            (Line::DONE, Some(receipt)) => EffectStatus::Done { receipt },
            (Line::NOT_DONE, _) => EffectStatus::NotDone,
            (Line::LEFT, _) => EffectStatus::InDoubt,
            (is, _) => return Err(unknown(is)),
        };
        if matches!(status, EffectStatus::Done { .. }) && !self.rounds.contains(&name) {
            // The line of its beginning is gone, which only a hand can do. It took place all the same.
            let done = EffectRecord {
                id,
                status,
                since: line.at,
                by: line.by,
                how_to_check: None,
                round: name,
                process: None,
                performer: Performer::default(),
            };
            self.put(done);
            return Ok(());
        }
        // A line about an earlier round does not change a later one, and a done effect stays done.
        let place = self.places.get(&id);
        let found = place.and_then(|place| self.state.effects.get_mut(*place));
        let Some(effect) = found.filter(|effect| effect.round == name) else {
            return Ok(());
        };
        match (&status, &effect.status) {
            (_, EffectStatus::Done { .. }) => return Ok(()),
            (EffectStatus::InDoubt, EffectStatus::InDoubt) => effect.performer.is_left = true,
            (EffectStatus::InDoubt, _) => {}
            _ => {
                effect.status = status;
                effect.since = line.at;
                effect.by = line.by;
            }
        }
        Ok(())
    }
}
