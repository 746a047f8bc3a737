//! The lines of a ledger, and what they come to for each effect.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::approval_record::{self, ApprovalRecord, OfApproval};
use super::attempts::{self, Attempt, Tried};
use super::later::{self, NotBefore, Wait};
use super::proof::StoredProof;
use super::{ProofRecord, Receipt};
use crate::checkpoint::{Claim, Error, Fence, ProcessId, Result, random_name};

/// An effect as the ledger has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EffectRecord {
    /// Its identity within the task.
    pub id: String,
    /// What is known of it.
    #[serde(flatten)]
    pub status: EffectStatus,
    /// When it was begun, or when its end was recorded.
    pub since: DateTime<Utc>,
    /// Who began it, or who recorded its end.
    pub by: String,
    /// How to find out whether it took place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how_to_check: Option<String>,
    /// Which time of beginning it this is: what is found out counts for this one alone.
    pub round: String,
    /// The process that brings it about, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    #[serde(skip)]
    begun: Begun,
}

/// What is known of an effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectStatus {
    /// It took place.
    Done {
        /// What it gave back.
        receipt: Receipt,
    },
    /// It was begun, and did not take place: it may be begun again.
    NotDone,
    /// It was begun, and who began it is at it: the process runs, or, where that cannot be known, the claim under which
    /// it was begun stands.
    InProgress,
    /// It was begun, and nothing says whether it took place.
    InDoubt,
}

/// What is known of who began an effect.
#[derive(Clone, Debug, Default, PartialEq)]
struct Begun {
    fence: Option<Fence>,
    /// The process that records the end, where that is another than brings the effect about.
    keeper: Option<ProcessId>,
    /// Whether its guard was dropped without an end.
    is_left: bool,
    /// Whether whoever is in doubt about it cannot see its process, and has no other claim than it had.
    may_still_run: bool,
}

impl EffectRecord {
    /// Of an effect in doubt: whether its process could not be seen, as on another machine, and no claim kept it from
    /// going on. End it for sure before anything that is found out about the effect is believed.
    #[must_use]
    pub fn may_still_run(&self) -> bool {
        self.begun.may_still_run
    }

    /// Tells an effect without an end that somebody is at from one in doubt, as far as can be known. `fence` is that of
    /// who asks: the owner of a claim does not wait for itself.
    pub(super) fn look_at(
        &mut self,
        fence: Option<Fence>,
        claim: Option<&Claim>,
        now: DateTime<Utc>,
    ) {
        if self.status != EffectStatus::InDoubt || self.begun.is_left {
            return;
        }
        // A process knows what it has open itself.
        let others = [&self.process, &self.begun.keeper].into_iter().flatten();
        let others: Vec<_> = others
            .filter(|process| !process.is_this())
            .map(ProcessId::runs)
            .collect();
        let is_hidden = others.contains(&None) || (self.process.is_none() && others.is_empty());
        let is_anothers = self.begun.fence.is_some() && self.begun.fence != fence;
        let stands = |claim: &Claim| Some(claim.fence) == self.begun.fence && claim.stands(now);
        if super::guard::is_open(&self.round)
            || others.contains(&Some(true))
            || (is_hidden && is_anothers && claim.is_some_and(stands))
        {
            self.status = EffectStatus::InProgress;
        } else {
            self.begun.may_still_run = is_hidden && !is_anothers;
        }
    }
}

/// One line of a ledger.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Line {
    /// What it says. A text, so that one of a later version is named in the error.
    pub(super) is: String,
    pub(super) at: DateTime<Utc>,
    pub(super) by: String,
    /// Which one it is, from 1.
    #[serde(skip)]
    number: usize,
    /// In a host file, the task in the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// The id of the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<String>,
    /// Which time of beginning it.
    #[serde(rename = "attempt", skip_serializing_if = "Option::is_none")]
    round: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keeper: Option<ProcessId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    how_to_check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    /// The approval that it is about, or that an effect is begun with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<OfApproval>,
    /// The revision of the complete checkpoint that is about to be archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<StoredProof>,
    /// Until when the task waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Wait>,
    /// An attempt that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<Tried>,
    /// Whether the task before it was archived by a process that was killed before it said so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    begins_task: bool,
    /// Of a line that has no other random name: no line is equal to one of another ledger, so that the last one stands for
    /// all before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl Line {
    pub(super) const BEGUN: &str = "begun";
    const DONE: &str = "done";
    const NOT_DONE: &str = "not-done";
    const LEFT: &str = "left";
    const ENDING: &str = "ending";
    const ENDED: &str = "ended";
    const GOES_ON: &str = "goes-on";
    const PROVED: &str = "proved";

    pub(super) fn new(is: &str, at: DateTime<Utc>, by: &str) -> Line {
        Line {
            is: is.to_owned(),
            at,
            by: by.to_owned(),
            ..Line::default()
        }
    }

    /// One that is neither of an effect nor of an approval.
    fn named(is: &str, at: DateTime<Utc>, by: &str) -> Line {
        Line {
            name: Some(random_name()),
            ..Line::new(is, at, by)
        }
    }

    pub(super) fn begun(
        at: DateTime<Utc>,
        by: &str,
        effect: &super::Effect,
        round: &str,
        fence: Option<Fence>,
        (process, keeper): (&ProcessId, Option<&ProcessId>),
    ) -> Line {
        Line {
            effect: Some(effect.id().to_owned()),
            round: Some(round.to_owned()),
            how_to_check: effect.how_to_check().map(str::to_owned),
            process: Some(process.clone()),
            keeper: keeper.cloned(),
            fence,
            ..Line::new(Line::BEGUN, at, by)
        }
    }

    /// The end of a round: with a receipt it is done.
    pub(super) fn end(
        at: DateTime<Utc>,
        by: &str,
        (effect, round): (&str, &str),
        receipt: Option<Receipt>,
    ) -> Line {
        let is = if receipt.is_some() {
            Line::DONE
        } else {
            Line::NOT_DONE
        };
        Line {
            receipt,
            ..Line::of(is, at, by, (effect, round))
        }
    }

    /// Nobody is at the round any more.
    pub(super) fn left(at: DateTime<Utc>, by: &str, of: (&str, &str)) -> Line {
        Line::of(Line::LEFT, at, by, of)
    }

    fn of(is: &str, at: DateTime<Utc>, by: &str, (effect, round): (&str, &str)) -> Line {
        Line {
            effect: Some(effect.to_owned()),
            round: Some(round.to_owned()),
            ..Line::new(is, at, by)
        }
    }

    /// The complete task of this document is about to be archived.
    pub(super) fn ending(at: DateTime<Utc>, by: &str, document: String) -> Line {
        Line {
            document: Some(document),
            ..Line::named(Line::ENDING, at, by)
        }
    }

    /// It is archived.
    pub(super) fn ended(at: DateTime<Utc>, by: &str) -> Line {
        Line::named(Line::ENDED, at, by)
    }

    /// It is not.
    pub(super) fn goes_on(at: DateTime<Utc>, by: &str) -> Line {
        Line::named(Line::GOES_ON, at, by)
    }

    /// The command of a proof ended.
    pub(super) fn proved(at: DateTime<Utc>, by: &str, proof: StoredProof) -> Line {
        Line {
            proof: Some(proof),
            ..Line::named(Line::PROVED, at, by)
        }
    }

    /// The task waits until a time, or no more.
    pub(super) fn waits(at: DateTime<Utc>, by: &str, wait: Option<Wait>) -> Line {
        Line {
            wait,
            ..Line::named(later::NOT_BEFORE, at, by)
        }
    }

    /// An attempt at the task ended.
    pub(super) fn tried(at: DateTime<Utc>, by: &str, tried: Tried) -> Line {
        Line {
            tried: Some(tried),
            ..Line::named(attempts::ATTEMPT, at, by)
        }
    }

    /// The attempts so far no longer count.
    pub(super) fn begins_anew(at: DateTime<Utc>, by: &str) -> Line {
        Line::named(attempts::RESET, at, by)
    }

    /// The lines of a task; all of them where none is asked for.
    pub(super) fn of_task(texts: &[String], task: Option<&str>) -> Result<Vec<Line>> {
        let lines = (1..).zip(texts);
        let lines = lines.map(|(number, text)| Line::read(text, number));
        let is_of_task =
            |line: &Result<Line>| !line.as_ref().is_ok_and(|line| line.is_of_another(task));
        lines.filter(is_of_task).collect()
    }

    fn read(text: &str, number: usize) -> Result<Line> {
        let read = serde_json::from_str(text);
        let line: Line =
            read.map_err(|error| unreadable(format!("its line {number} is damaged: {error}")))?;
        Ok(Line { number, ..line })
    }

    /// Whether it is of another task than this in the slot of a host file.
    fn is_of_another(&self, task: Option<&str>) -> bool {
        let tasks = self.task.as_deref().zip(task);
        tasks.is_some_and(|(of, task)| of != task)
    }

    /// The line in a host file, of this task in the slot.
    pub(super) fn of_slot(self, task: Option<String>) -> Line {
        Line { task, ..self }
    }

    /// The line behind these.
    pub(super) fn behind(self, entries: &Entries) -> Line {
        Line {
            begins_task: entries.begins_task,
            ..self
        }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(super) fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::edit(format!("a line of the ledger cannot be written: {error}"))
        })
    }
}

/// All that the ledger of a task says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LedgerState {
    /// The effects, in the order in which they were first begun.
    pub effects: Vec<EffectRecord>,
    /// The newest proof of each piece of work, in the order in which they were recorded: one of several pieces where the
    /// same command over the same inputs showed them.
    pub proofs: Vec<ProofRecord>,
    /// The approvals, in the order in which they were first asked for.
    pub approvals: Vec<ApprovalRecord>,
    /// Before which time it is not to go on, by the newest report that named one: see [`waiting`](LedgerState::waiting).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
    /// The last attempts in a row that ended without progress between them: see
    /// [`failed_attempts`](LedgerState::failed_attempts).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// What the lines of a ledger come to.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// How many lines there are.
    pub(super) lines: usize,
    /// How many of them are of the task.
    pub(super) of_task: usize,
    /// In a host file, the task whose ledger it is.
    pub(super) task: Option<String>,
    /// What is known of the task. An effect that has no end yet is in doubt.
    pub(super) state: LedgerState,
    /// The document of the complete task, where the last line says that this is about to be archived.
    pub(super) ending: Option<String>,
    /// Whether the next line is to say that the task before it has ended, since no line does.
    pub(super) begins_task: bool,
    /// Where each effect is, by its id.
    places: HashMap<String, usize>,
}

impl Entries {
    /// Those of a task in the slot of a host file; else of all lines.
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

    /// The task has ended.
    fn clear(&mut self) {
        self.state = LedgerState::default();
        self.places.clear();
    }

    /// The same for the next task: an archive that was interrupted took place.
    pub(super) fn of_next_task(&self) -> Entries {
        Entries {
            lines: self.lines,
            of_task: self.of_task,
            begins_task: true,
            ..Entries::of(self.task.clone())
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<&EffectRecord> {
        let place = self.places.get(id)?;
        self.state.effects.get(*place)
    }

    fn add(&mut self, line: Line) -> Result<()> {
        self.ending = None;
        if line.begins_task {
            self.clear();
        }
        match &*line.is {
            Line::ENDING => {
                self.ending = Some(line.document.unwrap_or_default());
                return Ok(());
            }
            Line::GOES_ON => return Ok(()),
            Line::ENDED => {
                self.clear();
                return Ok(());
            }
            Line::PROVED => {
                if let Some(proof) = line.proof {
                    let name = line.name.unwrap_or_default();
                    let added = proof.add_to(&mut self.state.proofs, line.at, line.by, name);
                    return added.ok_or_else(|| {
                        let number = line.number;
                        unreadable(format!("its line {number} covers what an earlier proof does, which is not there"))
                    });
                }
            }
            later::NOT_BEFORE => {
                self.state.wait(line.at, line.by, line.wait);
                return Ok(());
            }
            attempts::RESET => {
                self.state.attempts.clear();
                return Ok(());
            }
            attempts::ATTEMPT => {
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
            // An effect that is begun uses its approval up.
            _ => {}
        }
        let (Some(id), Some(name)) = (line.effect, line.round) else {
            return Err(unknown(&line.is));
        };
        let effects = &mut self.state.effects;
        let found = self
            .places
            .get(&id)
            .and_then(|place| effects.get_mut(*place));
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
                    begun: Begun {
                        fence: line.fence,
                        keeper: line.keeper,
                        ..Begun::default()
                    },
                };
                match found {
                    Some(effect) => *effect = begun,
                    None => {
                        self.places.insert(begun.id.clone(), effects.len());
                        effects.push(begun);
                    }
                }
                return Ok(());
            }
            (Line::DONE, Some(receipt)) => EffectStatus::Done { receipt },
            (Line::NOT_DONE, _) => EffectStatus::NotDone,
            (Line::LEFT, _) => EffectStatus::InDoubt,
            (is, _) => return Err(unknown(is)),
        };
        // What is said of an earlier round changes nothing of a later one, and nothing undoes what was done.
        let Some(effect) = found.filter(|effect| effect.round == name) else {
            return Ok(());
        };
        match (&status, &effect.status) {
            (_, EffectStatus::Done { .. }) => return Ok(()),
            (EffectStatus::InDoubt, EffectStatus::InDoubt) => effect.begun.is_left = true,
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

/// The error for a ledger of which nothing can be told: not even whether an effect took place.
pub(super) fn unreadable(why: String) -> Error {
    Error::other(
        "ledger",
        format!(
            "the ledger cannot be read, so it is unknown which effects were begun or done, and what was approved: {why}"
        ),
    )
}
