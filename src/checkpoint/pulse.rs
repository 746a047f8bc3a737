//! The signals of a checkpoint: what shows whether its agent is alive.

use chrono::TimeDelta;
use serde::Serialize;

use super::{FUTURE_TOLERANCE, Handoff, Status, Timestamp};

/// What an agent states that it is doing.
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
    /// A status of unknown meaning, as it stands in the file.
    Unclear(String),
}

impl From<&Status> for Activity {
    fn from(status: &Status) -> Activity {
        match status {
            Status::NotStarted | Status::InProgress => Activity::Working,
            Status::Paused => Activity::Waiting,
            // It ended without success, and goes on once the cause is resolved.
            Status::Blocked | Status::Failed => Activity::Blocked,
            Status::Complete => Activity::Finished,
            Status::Other(text) => Activity::Unclear(text.clone()),
        }
    }
}

/// What a checkpoint says about whether its agent is alive: stamps, and what the agent declared of the next
/// ones. [`Liveness::judge`](crate::liveness::Liveness::judge) makes a verdict of it.
///
/// Heartbeat and progress are two signals: an agent may send heartbeats for hours and get nowhere.
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
    /// The pulse of a hand-off: its status, and its last change as progress.
    #[must_use]
    pub fn of(handoff: &Handoff) -> Pulse {
        Pulse {
            activity: Activity::from(&handoff.status),
            progress: handoff.updated_at.clone(),
            ..Pulse::default()
        }
    }

    /// What the agent states that it is doing.
    #[must_use]
    pub fn with_activity(mut self, activity: Activity) -> Pulse {
        self.activity = activity;
        self
    }

    /// The last heartbeat, in a format that has it apart from progress. A heartbeat that is set already stays: that of
    /// a host file or of a pipeline's state only fills a gap.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Option<Timestamp>) -> Pulse {
        self.heartbeat = self.heartbeat.or(heartbeat);
        self
    }

    /// When the agent last made progress.
    #[must_use]
    pub fn with_progress(mut self, progress: Option<Timestamp>) -> Pulse {
        self.progress = progress;
        self
    }

    /// The interval of heartbeats that the agent declares.
    #[must_use]
    pub fn with_interval(mut self, interval: Option<TimeDelta>) -> Pulse {
        self.interval = interval;
        self
    }

    /// The time of the next signal that the agent declares.
    #[must_use]
    pub fn with_next_expected(mut self, next: Option<Timestamp>) -> Pulse {
        self.next_expected = next;
        self
    }

    /// The time until which the agent declares to be busy and silent.
    #[must_use]
    pub fn with_busy_until(mut self, until: Option<Timestamp>) -> Pulse {
        self.busy_until = until;
        self
    }
}

/// How long a silence may be. A limit that is reached is crossed.
///
/// Each format has its own by [`Checkpoint::thresholds`](super::Checkpoint::thresholds); a supervisor may
/// judge by others. `docs/liveness.md` says where each number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thresholds {
    /// From this age of the last signal on an agent is late.
    #[serde(serialize_with = "whole_seconds")]
    pub late: TimeDelta,
    /// From this age on it is stalled.
    #[serde(serialize_with = "whole_seconds")]
    pub stalled: TimeDelta,
    /// From this age of the last progress on an agent that still sends heartbeats is stuck.
    #[serde(serialize_with = "whole_seconds")]
    pub stuck: TimeDelta,
    /// From this age of the last signal on the agent's session counts as ended, in protocols that have such a limit: it
    /// may be resumed.
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
    /// It is late: the agent itself is asked.
    Late,
    /// It is stalled: the message to the deciding agent.
    Stalled,
}

/// A span as seconds.
pub(crate) fn whole_seconds<S: serde::Serializer>(
    span: &TimeDelta,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.num_seconds())
}

/// A span that may be absent as seconds.
pub(crate) fn seconds<S: serde::Serializer>(
    span: &Option<TimeDelta>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => whole_seconds(span, serializer),
        None => serializer.serialize_none(),
    }
}
