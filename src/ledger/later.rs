//! Tasks that wait: for a decision of a person, or for a time that the agent or a supervisor named.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use super::identity::short_digest;
use super::line::{Line, Wait};
use super::record::LedgerState;
use super::{ApprovalStatus, Ledger};
use crate::checkpoint::{Handoff, Operation, Result, Status, stamp};
use crate::shown::quoted;

/// The reason why a task waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Waiting {
    /// A time.
    Time {
        /// When the task may continue.
        until: DateTime<Utc>,
    },
    /// A person, who must approve or deny an action.
    Approval {
        /// The id of the approval.
        id: String,
        /// When it expires.
        until: DateTime<Utc>,
    },
}

impl Waiting {
    /// Whether the wait is over at this time even if nothing else happens.
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

impl LedgerState {
    /// The wait of this checkpoint's task: of several, the one that ends last if nothing else happens. A time counts
    /// only while the checkpoint is as the report that named it left it: an agent that continued earlier has ended the
    /// wait.
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

    /// Whether the ledger already records that this checkpoint's task waits until this time, or for none.
    pub(crate) fn waits_so(&self, until: Option<DateTime<Utc>>, handoff: &Handoff) -> bool {
        match (&self.not_before, until) {
            (None, None) => true,
            (Some(time), Some(until)) => time.until == until && time.standing == standing(handoff),
            _ => false,
        }
    }

    /// When the last finished wait of the task ended. Silence before that is no evidence.
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
}

impl Ledger {
    /// Records until when the task waits according to a report, which leaves the checkpoint with this hand-off. A
    /// report without a time ends an earlier wait.
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

/// A text that stays the same while a checkpoint waits: the status and reason if its agent stopped in order, otherwise
/// a digest of the work, which changes when an agent continues.
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
