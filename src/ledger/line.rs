//! The lines of a ledger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Receipt;
use super::proof::StoredProof;
use crate::checkpoint::{Error, Fence, ProcessId, Result, random_name};

/// One line of a ledger.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Line {
    /// Its kind, as text, so that the error for one of a later version names it.
    pub(super) is: String,
    pub(super) at: DateTime<Utc>,
    pub(super) by: String,
    /// Its number, from 1.
    #[serde(skip)]
    pub(super) number: usize,
    /// In a host file, the task in the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// The id of the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<String>,
    /// The round of the effect.
    #[serde(rename = "attempt", skip_serializing_if = "Option::is_none")]
    pub(super) round: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<Fence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<ProcessId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keeper: Option<ProcessId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) how_to_check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receipt: Option<Receipt>,
    /// The approval that it is about, or with which an effect is begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<OfApproval>,
    /// The revision of the complete checkpoint that is about to be archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proof: Option<StoredProof>,
    /// The wait of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait: Option<Wait>,
    /// An attempt that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tried: Option<Tried>,
    /// Whether the previous task was archived by a process that was killed before it recorded that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) begins_task: bool,
    /// A random name, unless the line has another one. So no line equals one of another ledger, and the last line
    /// identifies all before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
}

impl Line {
    pub(super) const BEGUN: &str = "begun";
    pub(super) const DONE: &str = "done";
    pub(super) const NOT_DONE: &str = "not-done";
    pub(super) const LEFT: &str = "left";
    pub(super) const ENDING: &str = "ending";
    pub(super) const ENDED: &str = "ended";
    pub(super) const GOES_ON: &str = "goes-on";
    pub(super) const PROVED: &str = "proved";
    pub(super) const NOT_BEFORE: &str = "not-before";
    pub(super) const ATTEMPT: &str = "attempt";
    pub(super) const RESET: &str = "attempts-reset";

    pub(super) fn new(is: &str, at: DateTime<Utc>, by: &str) -> Line {
        Line {
            is: is.to_owned(),
            at,
            by: by.to_owned(),
            ..Line::default()
        }
    }

    /// A line about neither an effect nor an approval.
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

    /// The end of a round: with a receipt the effect is done.
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

    /// The guard of the round was dropped without an end.
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

    /// The task is archived.
    pub(super) fn ended(at: DateTime<Utc>, by: &str) -> Line {
        Line::named(Line::ENDED, at, by)
    }

    /// The task is not archived.
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
            ..Line::named(Line::NOT_BEFORE, at, by)
        }
    }

    /// An attempt at the task ended.
    pub(super) fn tried(at: DateTime<Utc>, by: &str, tried: Tried) -> Line {
        Line {
            tried: Some(tried),
            ..Line::named(Line::ATTEMPT, at, by)
        }
    }

    /// The attempts so far no longer count.
    pub(super) fn begins_anew(at: DateTime<Utc>, by: &str) -> Line {
        Line::named(Line::RESET, at, by)
    }

    /// The lines of a task; all lines if `task` is `None`.
    pub(super) fn of_task(texts: &[String], task: Option<&str>) -> Result<Vec<Line>> {
        let lines = (1..).zip(texts);
        let lines = lines.map(|(number, text)| Line::read(text, number));
        let is_of_task =
            |line: &Result<Line>| !line.as_ref().is_ok_and(|line| line.is_of_another(task));
        lines.filter(is_of_task).collect()
    }

    pub(super) fn read(text: &str, number: usize) -> Result<Line> {
        let read = serde_json::from_str(text);
        let line: Line =
            read.map_err(|error| unreadable(format!("its line {number} is damaged: {error}")))?;
        Ok(Line { number, ..line })
    }

    /// Whether it belongs to another task in the slot of a host file.
    pub(super) fn is_of_another(&self, task: Option<&str>) -> bool {
        let tasks = self.task.as_deref().zip(task);
        tasks.is_some_and(|(of, task)| of != task)
    }

    /// The line, for this task in the slot of a host file.
    pub(super) fn of_slot(self, task: Option<String>) -> Line {
        Line { task, ..self }
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

/// The part of a line about an approval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OfApproval {
    pub(super) id: String,
    pub(super) round: String,
    /// The request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<Asked>,
    /// The decision, as text, so that the error for an unknown one of a later version names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<String>,
}

/// The request for an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) expires: DateTime<Utc>,
}

/// The part of a line about an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tried {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<String>,
    pub(super) fence: Fence,
    pub(super) mark: String,
    pub(super) error: String,
}

/// The part of a line about the wait of a task; a line without it ends the wait.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wait {
    pub(super) until: DateTime<Utc>,
    pub(super) report: String,
    pub(super) standing: String,
}

/// The error for a ledger that cannot be read: even whether an effect took place is unknown.
pub(super) fn unreadable(why: String) -> Error {
    Error::other(
        "ledger",
        format!(
            "the ledger cannot be read, so it is unknown which effects were begun or done, and what was approved: {why}"
        ),
    )
}
