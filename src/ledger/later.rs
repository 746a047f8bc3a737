//! A task that waits: for a person to decide, or for a time that its agent or a supervisor named.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::identity::short_digest;
use super::record::{LedgerState, Line};
use super::{ApprovalStatus, Ledger};
use crate::checkpoint::{Handoff, Operation, Result, Status, stamp};
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
    /// A person, who is to approve or deny something.
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
    /// What the task of this checkpoint waits for: of several the one that is over last, if nothing else happens. A time
    /// counts only while the checkpoint stands as the report left it that named the time: an agent that went on earlier has
    /// ended the waiting.
    #[must_use]
    pub fn waiting(&self, handoff: &Handoff, now: DateTime<Utc>) -> Option<Waiting> {
        if handoff.status == Status::Complete {
            return None;
        }
        let pending = self.approvals.iter().filter(|it| it.is_pending(now));
        let pending = pending.max_by_key(|it| it.expires);
        let time = self
            .not_before
            .as_ref()
            .filter(|time| now < time.until && standing(handoff) == time.standing);
        match (pending, time) {
            (Some(pending), time) if time.is_none_or(|time| time.until <= pending.expires) => {
                Some(Waiting::Approval {
                    id: pending.id.clone(),
                    until: pending.expires,
                })
            }
            (_, time) => Some(Waiting::Time { until: time?.until }),
        }
    }

    /// Whether it is said already that the task of this checkpoint waits until this time, or for none.
    pub(crate) fn waits_so(&self, until: Option<DateTime<Utc>>, handoff: &Handoff) -> bool {
        match (&self.not_before, until) {
            (None, None) => true,
            (Some(time), Some(until)) => time.until == until && time.standing == standing(handoff),
            _ => false,
        }
    }

    /// When the task last stopped to wait, of a wait that is over: until then its silence says nothing.
    pub(crate) fn waited_until(
        &self,
        handoff: &Handoff,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let decided = self.approvals.iter().map(|approval| match approval.status {
            ApprovalStatus::Pending | ApprovalStatus::Expired => approval.expires,
            _ => approval.since,
        });
        let time = self.not_before.as_ref();
        let time = time.filter(|time| standing(handoff) == time.standing);
        let ends = decided.chain(time.map(|time| time.until));
        ends.filter(|end| *end <= now).max()
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
            return self.add(|| Line::waits(self.now(), &self.by, None));
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
    short_digest(&json!([
        status,
        reason,
        done,
        begun,
        decision,
        handoff.blockers
    ]))
}
