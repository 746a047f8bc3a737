//! The rows of a fleet.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use super::bounded;
use super::kept::Kept;
use crate::checkpoint::{
    Claim, Fence, Progress, ResumeDecision, ResumePlan, ResumeReason, Revision, Timestamp, moved_to,
};
use crate::ledger::Waiting;
use crate::liveness::Liveness;
use crate::registry::Format;

/// One checkpoint of a fleet, or one that should exist and does not.
///
/// Texts are cut to 256 bytes, so that a row stays small whatever its document holds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// The name of its format, if known.
    pub format: Option<&'static str>,
    /// The agent that works on it.
    pub agent: Option<String>,
    /// The agents that worked on it before, oldest first.
    pub previous_agents: Vec<String>,
    /// The name of the task.
    pub task: Option<String>,
    /// The phase or stage, in the words of the format.
    pub phase: Option<String>,
    /// The status in terms common to all formats.
    pub status: Option<String>,
    /// How far it is.
    pub progress: Progress,
    /// How many finished steps were moved out of it, as the checkpoint states.
    pub done_elsewhere: u64,
    /// The dropped log with these steps: a path relative to the folder of the checkpoint's file.
    pub elsewhere: Option<String>,
    /// How many of these steps are missing there. All are missing if the dropped log cannot be read.
    pub elsewhere_missing: u64,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// Whether it was read, and the verdict.
    #[serde(flatten)]
    pub state: RowState,
    /// The last claim on it.
    pub owner: Option<ClaimHolder>,
    /// What the task waits for.
    pub waiting: Option<Waiting>,
    /// Whether and where to resume it.
    pub next: Option<PlanSummary>,
    /// How many violations it has.
    pub violations: usize,
    /// The revision of its text.
    pub revision: Option<Revision>,
    /// The message that the protocol defines about a late or stalled agent, if it does.
    pub message: Option<String>,
    /// Whether it counts as a task in totals.
    #[serde(skip)]
    pub(super) is_task: bool,
    /// Whether its agent is a role, so that only agent and task together identify it.
    #[serde(skip)]
    pub(super) agent_is_role: bool,
    #[serde(skip)]
    pub(super) kept: Option<Arc<Kept>>,
}

/// Where a checkpoint is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// The file, if it was found in a folder. In JSON, bytes of its name that are not UTF-8 become `\u{fffd}`.
    #[serde(serialize_with = "lossy")]
    pub file: Option<PathBuf>,
    /// The name of the store, if it was found in one.
    pub store: Option<String>,
    /// The key in the store.
    pub key: Option<String>,
    /// The slot in the host file.
    pub slot: Option<String>,
}

/// The kind of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowState {
    /// A checkpoint that was read.
    Checkpoint {
        /// Whether its agent is alive.
        liveness: Liveness,
    },
    /// A file that is no JSON document.
    Corrupt {
        /// Why.
        reason: String,
    },
    /// A file that could not be read, or that fits several formats equally well.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// A checkpoint whose work another agent took over into its own checkpoint.
    TakenOver {
        /// The other agent.
        by: String,
    },
    /// A task that is claimed and has no checkpoint.
    Claimed,
    /// A task that is planned and has no checkpoint.
    NotStarted,
    /// An agent that should have a checkpoint and has none.
    Missing,
}

/// The holder of the last claim on a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClaimHolder {
    /// The name of the holder.
    pub name: String,
    /// The fence of the claim.
    pub fence: Fence,
    /// When the claim expires or expired.
    pub until: DateTime<Utc>,
    /// Whether it keeps other agents out now.
    pub stands: bool,
    /// Whether the holder gave it back.
    pub released: bool,
}

impl ClaimHolder {
    pub(super) fn of(claim: &Claim, now: DateTime<Utc>) -> ClaimHolder {
        ClaimHolder {
            name: bounded::text(&claim.owner),
            fence: claim.fence,
            until: claim.expires,
            stands: claim.stands(now),
            released: claim.released,
        }
    }
}

/// Whether and where to resume: the short form of a [`ResumePlan`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanSummary {
    /// What to do.
    pub decision: ResumeDecision,
    /// Where to begin.
    pub start_at: Option<String>,
    /// What to do, in a sentence.
    pub message: String,
    /// Whether the task is refused because attempt after attempt failed.
    pub poisoned: bool,
}

impl PlanSummary {
    pub(super) fn of(plan: &ResumePlan) -> PlanSummary {
        PlanSummary {
            decision: plan.decision,
            start_at: bounded::said(plan.start_at.as_deref()),
            message: bounded::text(&plan.message),
            poisoned: plan
                .reasons
                .iter()
                .any(|reason| matches!(reason, ResumeReason::Poisoned { .. })),
        }
    }
}

impl Row {
    pub(super) fn new(place: Place, state: RowState) -> Row {
        Row {
            place,
            format: None,
            agent: None,
            previous_agents: Vec::new(),
            task: None,
            phase: None,
            status: None,
            progress: Progress::default(),
            done_elsewhere: 0,
            elsewhere: None,
            elsewhere_missing: 0,
            updated_at: None,
            state,
            owner: None,
            waiting: None,
            next: None,
            violations: 0,
            revision: None,
            message: None,
            is_task: true,
            agent_is_role: false,
            kept: None,
        }
    }

    pub(super) fn set_format(&mut self, format: Option<&Format>) {
        self.format = format.map(Format::name);
        self.is_task = format.is_none_or(Format::is_task);
        self.agent_is_role = format.is_some_and(Format::agents_are_roles);
    }

    /// The result in one word: that of [`Liveness::as_str`], or `corrupt`, `unreadable`, `taken_over`, `claimed`,
    /// `not_started`, `missing`.
    #[must_use]
    pub fn result(&self) -> &'static str {
        match &self.state {
            RowState::Checkpoint { liveness } => liveness.as_str(),
            RowState::Corrupt { .. } => "corrupt",
            RowState::Unreadable { .. } => "unreadable",
            RowState::TakenOver { .. } => "taken_over",
            RowState::Claimed => "claimed",
            RowState::NotStarted => "not_started",
            RowState::Missing => "missing",
        }
    }

    /// A sentence about dropped steps that are missing where the checkpoint states that they are; `None` if none is
    /// missing.
    ///
    /// This alone does not [need attention](Row::needs_attention): a copy of a checkpoint has no dropped log.
    #[must_use]
    pub fn steps_missing(&self) -> Option<String> {
        let word = if self.done_elsewhere == 1 {
            "step"
        } else {
            "steps"
        };
        let moved_to = moved_to(self.elsewhere.as_deref(), self.elsewhere_missing);
        (self.elsewhere_missing > 0).then(|| {
            format!(
                "{} earlier {word} no longer in the checkpoint, {moved_to}",
                self.done_elsewhere
            )
        })
    }

    /// The liveness of its agent; `None` if no checkpoint was read.
    #[must_use]
    pub fn liveness(&self) -> Option<&Liveness> {
        match &self.state {
            RowState::Checkpoint { liveness } => Some(liveness),
            _ => None,
        }
    }

    /// Whether its plan lets another agent resume it.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        let next = self.next.as_ref();
        next.is_some_and(|next| next.decision < ResumeDecision::Wait)
    }

    /// Whether another agent may resume it at `now`, which must not be before the time of its scan: it is
    /// [resumable](Row::is_resumable) or its wait has ended by then, and no claim keeps others out.
    #[must_use]
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        let may_go_on = match &self.waiting {
            Some(waiting) => {
                let waits = |next: &PlanSummary| next.decision == ResumeDecision::Wait;
                waiting.is_over(now) && self.next.as_ref().is_some_and(waits)
            }
            None => self.is_resumable(),
        };
        let is_free = |owner: &ClaimHolder| owner.released || owner.until <= now;
        may_go_on && self.owner.as_ref().is_none_or(is_free)
    }

    /// Whether a person has to act. Tasks that are only planned or claimed need no attention, and work that was taken
    /// over is reported as a finding.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        match &self.state {
            RowState::Checkpoint { liveness } => liveness.needs_attention(),
            RowState::NotStarted | RowState::Claimed | RowState::TakenOver { .. } => false,
            _ => true,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, &self.store, &self.key) {
            (Some(file), _, _) => write!(f, "{}", file.display())?,
            (None, Some(store), Some(key)) => write!(f, "{store}: {key}")?,
            (None, store, key) => {
                f.write_str(store.as_ref().or(key.as_ref()).map_or("—", |t| t))?
            }
        }
        match &self.slot {
            Some(slot) => write!(f, " ({slot})"),
            None => Ok(()),
        }
    }
}

/// A name that is not UTF-8 would otherwise make the serialization of all rows fail.
fn lossy<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let path = path.as_ref().map(|path| path.to_string_lossy());
    path.serialize(serializer)
}

impl Place {
    pub(super) fn file(path: impl Into<PathBuf>) -> Place {
        Place {
            file: Some(path.into()),
            ..Place::default()
        }
    }

    pub(super) fn with_slot(mut self, slot: impl Into<String>) -> Place {
        self.slot = Some(slot.into());
        self
    }
}
