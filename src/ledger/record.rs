//! The lines of a ledger, and what they come to for each effect.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Receipt;
use crate::checkpoint::{Claim, Error, Fence, ProcessId, Result};

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
    #[serde(skip)]
    pub(super) attempt: Attempt,
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

/// One time that an effect was begun.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Attempt {
    /// Distinct from that of every other.
    pub(super) name: String,
    fence: Option<Fence>,
    process: Option<ProcessId>,
    /// Whether its guard was dropped without an end.
    is_left: bool,
}

impl Attempt {
    /// Whether who began it is at it still, as far as can be known. `fence` is that of who asks: the owner of a claim
    /// does not wait for itself.
    pub(super) fn is_in_progress(
        &self,
        fence: Option<Fence>,
        claim: Option<&Claim>,
        now: DateTime<Utc>,
    ) -> bool {
        if self.is_left {
            return false;
        }
        if super::guard::is_open(&self.name) {
            return true;
        }
        match self
            .process
            .as_ref()
            .map(|process| (process, process.runs()))
        {
            // A process knows what it has open itself.
            Some((process, _)) if process.is_this() => false,
            Some((_, Some(runs))) => runs,
            // One that cannot be seen, as on another machine, is at it as long as its claim stands.
            _ => {
                let stands = |claim: &Claim| Some(claim.fence) == self.fence && claim.stands(now);
                self.fence != fence && claim.is_some_and(stands)
            }
        }
    }
}

/// One line of a ledger.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Line {
    /// What it says. A text, so that one of a later version is named in the error.
    is: String,
    at: DateTime<Utc>,
    by: String,
    /// In a host file, the task in the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// The id of the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    /// Which time of beginning it.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    how_to_check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    /// The complete checkpoint that is about to be archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
}

impl Line {
    const BEGUN: &str = "begun";
    const DONE: &str = "done";
    const NOT_DONE: &str = "not-done";
    const LEFT: &str = "left";
    const COMPLETE: &str = "complete";
    const GOES_ON: &str = "goes-on";

    fn new(is: &str, at: DateTime<Utc>, by: &str) -> Line {
        Line {
            is: is.to_owned(),
            at,
            by: by.to_owned(),
            ..Line::default()
        }
    }

    pub(super) fn begun(
        at: DateTime<Utc>,
        by: &str,
        effect: &super::Effect,
        attempt: &str,
        fence: Option<Fence>,
        process: &ProcessId,
    ) -> Line {
        Line {
            effect: Some(effect.id().to_owned()),
            attempt: Some(attempt.to_owned()),
            how_to_check: effect.how_to_check().map(str::to_owned),
            process: Some(process.clone()),
            fence,
            ..Line::new(Line::BEGUN, at, by)
        }
    }

    /// The end of an attempt: with a receipt it is done.
    pub(super) fn end(
        at: DateTime<Utc>,
        by: &str,
        (effect, attempt): (&str, &str),
        receipt: Option<Receipt>,
    ) -> Line {
        let is = if receipt.is_some() {
            Line::DONE
        } else {
            Line::NOT_DONE
        };
        Line {
            receipt,
            ..Line::of(is, at, by, (effect, attempt))
        }
    }

    /// Nobody is at the attempt any more.
    pub(super) fn left(at: DateTime<Utc>, by: &str, of: (&str, &str)) -> Line {
        Line::of(Line::LEFT, at, by, of)
    }

    fn of(is: &str, at: DateTime<Utc>, by: &str, (effect, attempt): (&str, &str)) -> Line {
        Line {
            effect: Some(effect.to_owned()),
            attempt: Some(attempt.to_owned()),
            ..Line::new(is, at, by)
        }
    }

    /// The task ends once this document is not present any more.
    pub(super) fn complete(at: DateTime<Utc>, by: &str, document: String) -> Line {
        Line {
            document: Some(document),
            ..Line::new(Line::COMPLETE, at, by)
        }
    }

    /// The task that was to end did not.
    pub(super) fn goes_on(at: DateTime<Utc>, by: &str) -> Line {
        Line::new(Line::GOES_ON, at, by)
    }

    pub(super) fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::edit(format!("a line of the ledger cannot be written: {error}"))
        })
    }
}

/// What the lines of a ledger come to.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// How many lines there are.
    pub(super) lines: usize,
    /// The effects of the task, in the order in which they were first begun. One that has no end yet is in doubt.
    pub(super) effects: Vec<EffectRecord>,
    /// The revision of the complete document whose archive was to follow, where nothing did since: with that document
    /// still present the task has not ended.
    pub(super) ends_without: Option<String>,
}

impl Entries {
    /// Reads the lines of this task. `is_present` says whether this is the revision of the present document.
    pub(super) fn read(
        lines: &[String],
        task: Option<&str>,
        mut is_present: impl FnMut(&str) -> Result<bool>,
    ) -> Result<Entries> {
        let mut entries = Entries {
            lines: lines.len(),
            ..Entries::default()
        };
        for (index, text) in lines.iter().enumerate() {
            let line: Line = serde_json::from_str(text).map_err(|error| {
                unreadable(format!("its line {} is damaged: {error}", index + 1))
            })?;
            let is_of_another = line
                .task
                .as_deref()
                .zip(task)
                .is_some_and(|(of, task)| of != task);
            if !is_of_another {
                entries.add(line, index)?;
            }
        }
        if let Some(document) = entries.ends_without.take() {
            match is_present(&document)? {
                true => entries.ends_without = Some(document),
                false => entries.effects.clear(),
            }
        }
        Ok(entries)
    }

    pub(super) fn find(&self, id: &str) -> Option<&EffectRecord> {
        self.effects.iter().find(|effect| effect.id == id)
    }

    fn add(&mut self, line: Line, index: usize) -> Result<()> {
        let ends_without = self.ends_without.take();
        if line.is == Line::GOES_ON {
            return Ok(());
        }
        if ends_without.is_some() {
            self.effects.clear();
        }
        if line.is == Line::COMPLETE {
            self.ends_without = line.document;
            return Ok(());
        }
        let unknown = |is: &str| {
            unreadable(format!(
                "its line {} says `{is}`, which this version does not know; use the newest version of what writes it",
                index + 1
            ))
        };
        let (Some(id), Some(name)) = (line.effect, line.attempt) else {
            return Err(unknown(&line.is));
        };
        let found = self.effects.iter_mut().find(|effect| effect.id == id);
        let status = match (&*line.is, line.receipt) {
            (Line::BEGUN, _) => {
                let begun = EffectRecord {
                    id,
                    status: EffectStatus::InDoubt,
                    since: line.at,
                    by: line.by,
                    how_to_check: line.how_to_check,
                    attempt: Attempt {
                        name,
                        fence: line.fence,
                        process: line.process,
                        is_left: false,
                    },
                };
                match found {
                    Some(effect) => *effect = begun,
                    None => self.effects.push(begun),
                }
                return Ok(());
            }
            (Line::DONE, Some(receipt)) => EffectStatus::Done { receipt },
            (Line::NOT_DONE, _) => EffectStatus::NotDone,
            (Line::LEFT, _) => EffectStatus::InDoubt,
            (is, _) => return Err(unknown(is)),
        };
        // What is said of an earlier attempt changes nothing of a later one, and nothing undoes what was done.
        let Some(effect) = found.filter(|effect| effect.attempt.name == name) else {
            return Ok(());
        };
        match (&status, &effect.status) {
            (_, EffectStatus::Done { .. }) => return Ok(()),
            (EffectStatus::InDoubt, EffectStatus::InDoubt) => effect.attempt.is_left = true,
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
            "the ledger cannot be read, so it is unknown which effects were begun or done: {why}"
        ),
    )
}
