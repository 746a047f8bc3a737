//! The signals of life of a checkpoint, which show whether its agent is alive.

use chrono::TimeDelta;
use serde::Serialize;

use super::{FUTURE_TOLERANCE, Handoff, Status, Timestamp};

/// What an agent states about its activity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activity {
    /// It works, so its signals count.
    #[default]
    Working,
    /// It waits for others, for its turn, or for a decision.
    Waiting,
    /// It has a blocker that must be resolved.
    Blocked,
    /// Its work is done.
    Finished,
    /// A status of unknown meaning, as spelled in the file.
    Unclear(String),
}

impl From<&Status> for Activity {
    fn from(status: &Status) -> Activity {
        match status {
            Status::NotStarted | Status::InProgress => Activity::Working,
            Status::Paused => Activity::Waiting,
            // The agent ended without success. The task can go on once the cause is resolved.
            Status::Blocked | Status::Failed => Activity::Blocked,
            Status::Complete => Activity::Finished,
            Status::Other(text) => Activity::Unclear(text.clone()),
        }
    }
}

/// What a checkpoint states about whether its agent is alive: its stamps, and what the agent announced about
/// the next ones. [`Liveness::judge`](crate::liveness::Liveness::judge) turns this into a verdict.
///
/// Heartbeat and progress are separate signals, because an agent may send heartbeats for hours without progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pulse {
    pub(crate) activity: Activity,
    pub(crate) heartbeat: Option<Timestamp>,
    pub(crate) progress: Option<Timestamp>,
    #[serde(serialize_with = "seconds")]
    pub(crate) interval: Option<TimeDelta>,
    pub(crate) next_expected: Option<Timestamp>,
    pub(crate) busy_until: Option<Timestamp>,
}

impl Pulse {
    /// The signals of a hand-off: its status, and its last change as progress.
    #[must_use]
    pub fn of(handoff: &Handoff) -> Pulse {
        Pulse {
            activity: Activity::from(&handoff.status),
            progress: handoff.updated_at.clone(),
            ..Pulse::default()
        }
    }

    /// Sets what the agent states about its activity.
    #[must_use]
    pub fn with_activity(mut self, activity: Activity) -> Pulse {
        self.activity = activity;
        self
    }

    /// Sets the last heartbeat, for a format that keeps it apart from progress. A heartbeat that is already set
    /// stays: one from a host file or from a pipeline's state only fills a gap.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Option<Timestamp>) -> Pulse {
        self.heartbeat = self.heartbeat.or(heartbeat);
        self
    }

    /// Sets when the agent last made progress.
    #[must_use]
    pub fn with_progress(mut self, progress: Option<Timestamp>) -> Pulse {
        self.progress = progress;
        self
    }

    /// Sets the interval between heartbeats that the agent announced.
    #[must_use]
    pub fn with_interval(mut self, interval: Option<TimeDelta>) -> Pulse {
        self.interval = interval;
        self
    }

    /// Sets the time of the next signal that the agent announced.
    #[must_use]
    pub fn with_next_expected(mut self, next: Option<Timestamp>) -> Pulse {
        self.next_expected = next;
        self
    }

    /// Sets the time until which the agent announced to be busy and silent.
    #[must_use]
    pub fn with_busy_until(mut self, until: Option<Timestamp>) -> Pulse {
        self.busy_until = until;
        self
    }
}

/// How long an agent may be silent. A limit counts as crossed as soon as it is reached.
///
/// Each format has its own limits: [`Checkpoint::thresholds`](super::Checkpoint::thresholds). A supervisor may
/// use others. `docs/liveness.md` gives the source of each number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thresholds {
    /// The age of the last signal from which an agent is late.
    #[serde(serialize_with = "whole_seconds")]
    pub late: TimeDelta,
    /// The age of the last signal from which an agent is stalled.
    #[serde(serialize_with = "whole_seconds")]
    pub stalled: TimeDelta,
    /// The age of the last progress from which an agent that still sends heartbeats is stuck.
    #[serde(serialize_with = "whole_seconds")]
    pub stuck: TimeDelta,
    /// The age of the last signal from which the agent's session counts as ended and the task may be resumed,
    /// in protocols that have such a limit.
    #[serde(serialize_with = "seconds")]
    pub session_timeout: Option<TimeDelta>,
    /// How far a stamp may be ahead of the clock.
    #[serde(serialize_with = "whole_seconds")]
    pub tolerance: TimeDelta,
}

impl Default for Thresholds {
    /// Late at 30 minutes, stalled at 60, stuck at 2 hours, no session timeout, 5 s of tolerance.
    fn default() -> Self {
        Thresholds {
            late: TimeDelta::minutes(30),
            stalled: TimeDelta::minutes(60),
            stuck: TimeDelta::hours(2),
            session_timeout: None,
            tolerance: FUTURE_TOLERANCE,
        }
    }
}

impl Thresholds {
    /// Late and stalled at these ages.
    #[must_use]
    pub fn at(late: TimeDelta, stalled: TimeDelta) -> Thresholds {
        Thresholds {
            late,
            stalled,
            ..Thresholds::default()
        }
    }
}

/// The message that is due about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// The agent is late: the message asks the agent itself.
    Late,
    /// The agent is stalled: the message goes to the deciding agent.
    Stalled,
}

/// Serializes a span as seconds.
pub(crate) fn whole_seconds<S: serde::Serializer>(
    span: &TimeDelta,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.num_seconds())
}

/// Serializes an optional span as seconds.
pub(crate) fn seconds<S: serde::Serializer>(
    span: &Option<TimeDelta>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => whole_seconds(span, serializer),
        None => serializer.serialize_none(),
    }
}
