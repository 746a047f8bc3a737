//! A task that waits: for a person to decide, or for a time that its agent or a supervisor named.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::{LedgerState, Line};
use super::{Ledger, digest, stamp};
use crate::checkpoint::{Handoff, Operation, Result, Status};
use crate::shown::quoted;

/// That a task is to go on at a time, and not before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotBefore {
    /// The time.
    pub until: DateTime<Utc>,
    /// The report that said so: `rate-limit` or `pause`.
    pub report: String,
    /// Who reported it.
    pub by: String,
    /// When it was reported.
    pub since: DateTime<Utc>,
    /// What the checkpoint says as long as it waits.
    #[serde(skip)]
    standing: String,
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Waiting {
    /// A time.
    Time {
        /// At this time it goes on.
        until: DateTime<Utc>,
    },
    /// A person, who is to approve or deny something: the first of what is pending.
    Approval {
        /// The id of the approval.
        id: String,
        /// When it expires.
        until: DateTime<Utc>,
    },
}

impl Waiting {
    /// Whether it is over at this time, without anything else that happens.
    #[must_use]
    pub fn is_over(&self, now: DateTime<Utc>) -> bool {
        match self {
            Waiting::Time { until } | Waiting::Approval { until, .. } => *until <= now,
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Time { until } => write!(f, "until {}", stamp(*until)),
            Waiting::Approval { id, .. } => write!(f, "for a person to decide on {}", quoted(id)),
        }
    }
}

/// What a line says of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wait {
    until: DateTime<Utc>,
    report: String,
    standing: String,
}

/// What a line says; without a time nothing is waited for any more.
pub(super) const NOT_BEFORE: &str = "not-before";

impl LedgerState {
    /// What the task of this checkpoint waits for: a person first. A time counts only while the checkpoint stands as the
    /// report left it that named the time: an agent that went on earlier has ended the waiting.
    #[must_use]
    pub fn waiting(&self, handoff: &Handoff, now: DateTime<Utc>) -> Option<Waiting> {
        if handoff.status == Status::Complete {
            return None;
        }
        let mut approvals = self.approvals.iter();
        if let Some(pending) = approvals.find(|approval| approval.is_pending(now)) {
            return Some(Waiting::Approval {
                id: pending.id.clone(),
                until: pending.expires,
            });
        }
        let time = self.not_before.as_ref()?;
        let waits = now < time.until && standing(handoff) == time.standing;
        waits.then_some(Waiting::Time { until: time.until })
    }

    pub(super) fn wait(&mut self, at: DateTime<Utc>, by: String, wait: Option<Wait>) {
        self.not_before = wait.map(|wait| NotBefore {
            until: wait.until,
            report: wait.report,
            by,
            since: at,
            standing: wait.standing,
        });
    }
}

impl Ledger {
    /// Records until when the task waits by a report that leaves its checkpoint with this hand-off; one without a time
    /// ends what an earlier one said.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Ledger::begin).
    pub(crate) fn wait(&self, report: &Operation, left: &Handoff) -> Result<()> {
        let Some(until) = report.until() else {
            return match self.read()?.state.not_before {
                Some(_) => self.add(|| Line::waits(self.now(), &self.by, None)),
                None => Ok(()),
            };
        };
        let wait = || Wait {
            until,
            report: report.name().to_owned(),
            standing: standing(left),
        };
        self.add(|| Line::waits(self.now(), &self.by, Some(wait())))
    }
}

/// What a checkpoint says as long as it waits. One that says why its agent stopped says so until that agent, or another,
/// goes on; of any other it is the work itself.
fn standing(handoff: &Handoff) -> String {
    let (status, reason) = (handoff.status.as_str(), handoff.reason.as_deref());
    if handoff.was_left_in_order() {
        return format!("{status}, {}", reason.unwrap_or_default());
    }
    let begun: Vec<&str> = handoff.in_progress.iter().map(|item| &*item.text).collect();
    let decision = handoff.decisions.last().map(|decision| &*decision.text);
    let done = handoff.count_done();
    digest(&(status, reason, done, begun, decision, &handoff.blockers))
}
