//! The lines about approvals, and the record that they make of each.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Approval;
use super::line::{Asked, Line, OfApproval};
use crate::checkpoint::random_name;

/// An approval as the ledger records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// Its identity within the task.
    pub id: String,
    /// Its status.
    #[serde(flatten)]
    pub status: ApprovalStatus,
    /// The action as a person reads it.
    pub action: String,
    /// The SHA-256 digest of the action, as `sha256:` and 64 digits.
    pub digest: String,
    /// Why it is needed, as the asking agent put it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the asking agent.
    pub asked_by: String,
    /// When it was last asked, decided or used.
    pub since: DateTime<Utc>,
    /// Who last asked, decided or used it: a name, not a proof.
    pub by: String,
    /// Who approved or denied it: a name, not a proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// From this time on it is neither decided nor used.
    pub expires: DateTime<Utc>,
    /// The effect that was begun with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The round of asking. A decision counts only for its own round.
    pub round: String,
}

/// The status of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalStatus {
    /// It was asked for and is not decided.
    Pending,
    /// It may be used, once.
    Approved,
    /// The action must not be done.
    Denied,
    /// It was approved and has been used.
    Consumed,
    /// It expired before it was decided or used.
    Expired,
}

impl ApprovalStatus {
    /// The status in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalStatus::Pending => "pending",
            ApprovalStatus::Approved => "approved",
            ApprovalStatus::Denied => "denied",
            ApprovalStatus::Consumed => "consumed",
            ApprovalStatus::Expired => "expired",
        }
    }
}

impl ApprovalRecord {
    pub(super) fn asked(
        approval: &Approval,
        at: DateTime<Utc>,
        by: &str,
        expires: DateTime<Utc>,
    ) -> ApprovalRecord {
        ApprovalRecord {
            id: approval.id().to_owned(),
            status: ApprovalStatus::Pending,
            action: approval.action().to_owned(),
            digest: approval.digest().to_owned(),
            reason: approval.reason().map(str::to_owned),
            asked_by: by.to_owned(),
            since: at,
            by: by.to_owned(),
            decided_by: None,
            because: None,
            expires,
            effect: None,
            round: random_name(),
        }
    }

    /// Whether a person must still decide, at this time.
    #[must_use]
    pub fn is_pending(&self, now: DateTime<Utc>) -> bool {
        self.status == ApprovalStatus::Pending && now < self.expires
    }

    /// Whether it can still be decided or used, according to its status.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self.status,
            ApprovalStatus::Pending | ApprovalStatus::Approved
        )
    }

    /// Whether both belong to the same round of asking.
    pub(super) fn is_round_of(&self, other: &ApprovalRecord) -> bool {
        self.round == other.round && self.digest == other.digest
    }

    /// Marks an open approval as expired if its time has passed.
    pub(super) fn look_at(&mut self, now: DateTime<Utc>) {
        if self.is_open() && now >= self.expires {
            self.status = ApprovalStatus::Expired;
        }
    }

    pub(super) fn becomes(&mut self, status: ApprovalStatus, at: DateTime<Utc>, by: &str) {
        self.status = status;
        self.since = at;
        by.clone_into(&mut self.by);
        if matches!(status, ApprovalStatus::Approved | ApprovalStatus::Denied) {
            self.decided_by = Some(by.to_owned());
        }
    }
}

impl OfApproval {
    /// The part of a line that names this record.
    pub(super) fn of(record: &ApprovalRecord) -> OfApproval {
        OfApproval {
            id: record.id.clone(),
            round: record.round.clone(),
            ..OfApproval::default()
        }
    }
}

const ASKED: &str = "asked";
const DECIDED: &str = "decided";
const CONSUMED: &str = "consumed";

impl Line {
    pub(super) fn asked(record: &ApprovalRecord) -> Line {
        let of = OfApproval {
            action: Some(Asked {
                text: record.action.clone(),
                digest: record.digest.clone(),
                reason: record.reason.clone(),
                expires: record.expires,
            }),
            ..OfApproval::of(record)
        };
        of_approval(ASKED, record.since, &record.by, of)
    }

    pub(super) fn decided(
        at: DateTime<Utc>,
        by: &str,
        record: &ApprovalRecord,
        decision: ApprovalStatus,
        because: Option<String>,
    ) -> Line {
        let of = OfApproval {
            decision: Some(decision.as_str().to_owned()),
            because,
            ..OfApproval::of(record)
        };
        of_approval(DECIDED, at, by, of)
    }

    pub(super) fn consumed(at: DateTime<Utc>, by: &str, record: &ApprovalRecord) -> Line {
        of_approval(CONSUMED, at, by, OfApproval::of(record))
    }
}

fn of_approval(is: &str, at: DateTime<Utc>, by: &str, of: OfApproval) -> Line {
    let mut line = Line::new(is, at, by);
    line.approval = Some(of);
    line
}

/// Adds the part of a line about an approval: `None` if there is none, `false` if it is unknown.
pub(super) fn add(approvals: &mut Vec<ApprovalRecord>, line: &Line) -> Option<bool> {
    let of = line.approval.as_ref()?;
    let found = approvals.iter_mut().find(|it| it.id == of.id);
    match (&*line.is, &of.action) {
        (ASKED, Some(asked)) => {
            let record = ApprovalRecord {
                id: of.id.clone(),
                status: ApprovalStatus::Pending,
                action: asked.text.clone(),
                digest: asked.digest.clone(),
                reason: asked.reason.clone(),
                asked_by: line.by.clone(),
                since: line.at,
                by: line.by.clone(),
                decided_by: None,
                because: None,
                expires: asked.expires,
                effect: None,
                round: of.round.clone(),
            };
            match found {
                Some(found) => *found = record,
                None => approvals.push(record),
            }
            return Some(true);
        }
        (DECIDED | CONSUMED | Line::BEGUN, _) => {}
        _ => return Some(false),
    }
    let status = match (&*line.is, of.decision.as_deref()) {
        (DECIDED, Some("approved")) => ApprovalStatus::Approved,
        (DECIDED, Some("denied")) => ApprovalStatus::Denied,
        (DECIDED, _) => return Some(false),
        _ => ApprovalStatus::Consumed,
    };
    // A line about an earlier round does not change a later one. A consumed approval stays consumed, and a denied one
    // cannot be approved afterwards.
    if let Some(found) = found.filter(|found| found.round == of.round) {
        let is_in_vain = match (found.status, status) {
            (ApprovalStatus::Consumed, _) => true,
            (ApprovalStatus::Denied, ApprovalStatus::Approved) => true,
            (there, now) => there == now,
        };
        if !is_in_vain {
            found.because.clone_from(&of.because);
            found.effect.clone_from(&line.effect);
            found.becomes(status, line.at, &line.by);
        }
    }
    Some(true)
}

/// The beginning of a digest, for a message.
pub(super) fn digest_begins(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}
