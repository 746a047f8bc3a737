//! The lines about approvals, and what they come to for each.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Approval;
use super::record::Line;
use crate::checkpoint::random_name;

/// An approval as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// Its identity within the task.
    pub id: String,
    /// How it stands.
    #[serde(flatten)]
    pub status: ApprovalStatus,
    /// The action as a person reads it.
    pub action: String,
    /// The SHA-256 digest of the action, as `sha256:` and 64 digits.
    pub digest: String,
    /// Why it is needed, in the words of who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked.
    pub asked_by: String,
    /// When it was asked, decided or used, whichever is the latest.
    pub since: DateTime<Utc>,
    /// Who asked, decided or used it. A name and no proof.
    pub by: String,
    /// Who approved or denied it. A name and no proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// From when on it is neither decided nor used.
    pub expires: DateTime<Utc>,
    /// The effect that was begun with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Which time of asking this is: a decision counts for this one alone.
    pub round: String,
}

/// How an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalStatus {
    /// It was asked for, and nobody has decided.
    Pending,
    /// It may be used, once.
    Approved,
    /// It must not be done.
    Denied,
    /// It was approved, and is used up.
    Consumed,
    /// Its time passed before it was decided, or before it was used.
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

    /// Whether a person is still to decide, at this time.
    #[must_use]
    pub fn is_pending(&self, now: DateTime<Utc>) -> bool {
        self.status == ApprovalStatus::Pending && now < self.expires
    }

    /// Whether it can still be decided or used, as it was looked at.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self.status,
            ApprovalStatus::Pending | ApprovalStatus::Approved
        )
    }

    /// Whether both are of the same time of asking.
    pub(super) fn is_round_of(&self, other: &ApprovalRecord) -> bool {
        self.round == other.round && self.digest == other.digest
    }

    /// What is open at this time is expired once its time has passed.
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

/// What a line says of an approval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OfApproval {
    id: String,
    round: String,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Asked>,
    /// What was decided. A text, so that one of a later version is an error that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// What a person is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    text: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    expires: DateTime<Utc>,
}

impl OfApproval {
    pub(super) fn new(id: &str, round: &str) -> OfApproval {
        OfApproval {
            id: id.to_owned(),
            round: round.to_owned(),
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

/// Adds what a line says of an approval: `None` where that is nothing, `false` where it is not known.
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
    // What is said of an earlier round changes nothing of a later one. What was used stays so, and what was denied is not
    // approved by a later word.
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

/// The beginning of a digest, for a sentence.
pub(super) fn digest_begins(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}
