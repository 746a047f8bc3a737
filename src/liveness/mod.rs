//! Whether the agent of a checkpoint is alive: its signs of life against a clock.
//!
//! Only [`Liveness::judge`] decides this, so two monitors that read the
//! same checkpoint at the same time with the same thresholds agree. `docs/liveness.md` lists the
//! thresholds of each protocol with their sources.

mod judge;
pub(crate) mod words;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::checkpoint::whole_seconds;

pub use crate::checkpoint::{Activity, Notice, Pulse, Thresholds};

/// The verdict on the agent of a checkpoint.
///
/// As JSON an object whose `verdict` is the word that [`as_str`](Liveness::as_str) gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[must_use]
#[non_exhaustive]
pub enum Liveness {
    /// It showed that it is alive, or said that it would be silent for longer.
    Active {
        /// Its last sign of life.
        last: Sign,
        /// Whether its session counts as ended all the same, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It has been silent for longer than it should.
    Late {
        /// Its last sign of life.
        last: Sign,
        /// What was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It has been silent for so long that it is taken for crashed.
    Stalled {
        /// Its last sign of life.
        last: Sign,
        /// What was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It shows that it is alive and has not got on for longer than the limit.
    Stuck {
        /// Its last progress.
        last: Sign,
        /// What was crossed.
        crossed: Crossed,
    },
    /// It waits for others or for a decision, so it need not send heartbeats.
    Waiting {
        /// Its last sign of life.
        last: Option<Sign>,
    },
    /// It has a blocker that must be resolved.
    Blocked {
        /// Its last sign of life.
        last: Option<Sign>,
    },
    /// Its work is done.
    Finished {
        /// Its last sign of life.
        last: Option<Sign>,
    },
    /// A stamp lies in the future, so its age is unknown: a clock is wrong, or the stamp was
    /// invented. It is never taken for fresh.
    ClockSuspect {
        /// The stamp.
        stamp: Sign,
    },
    /// Nobody can tell.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// A stamp by which a verdict was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sign {
    /// Which of the checkpoint's stamps it is.
    pub by: Signal,
    /// When, in UTC.
    pub at: DateTime<Utc>,
    /// How long ago, in seconds; below 0 in the future.
    #[serde(rename = "age_seconds", serialize_with = "whole_seconds")]
    pub age: TimeDelta,
}

/// Which stamp of a checkpoint it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// The sign of life apart from progress.
    Heartbeat,
    /// The last change of the checkpoint.
    Progress,
}

/// A limit that was crossed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Crossed {
    /// Which.
    pub limit: Limit,
    /// What the limit was, from the sign on, in seconds.
    #[serde(rename = "after_seconds", serialize_with = "whole_seconds")]
    pub after: TimeDelta,
    /// When it was crossed.
    pub since: DateTime<Utc>,
}

/// What sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The threshold of the protocol, or the caller's in its place.
    Threshold,
    /// The interval that the checkpoint declares: twice of it for late, four times for stalled.
    DeclaredInterval,
    /// The time at which the checkpoint said that its agent would be heard of next.
    NextExpected,
    /// The time until which the agent said that it would be busy.
    BusyUntil,
}

impl Liveness {
    /// The verdict in a word: `active`, `late`, `stalled`, `stuck`, `waiting`, `blocked`, `finished`,
    /// `clock_suspect` or `unknown`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Liveness::Active { .. } => "active",
            Liveness::Late { .. } => "late",
            Liveness::Stalled { .. } => "stalled",
            Liveness::Stuck { .. } => "stuck",
            Liveness::Waiting { .. } => "waiting",
            Liveness::Blocked { .. } => "blocked",
            Liveness::Finished { .. } => "finished",
            Liveness::ClockSuspect { .. } => "clock_suspect",
            Liveness::Unknown { .. } => "unknown",
        }
    }

    /// The stamp that the verdict was made by.
    #[must_use]
    pub fn sign(&self) -> Option<&Sign> {
        match self {
            Liveness::Active { last, .. }
            | Liveness::Late { last, .. }
            | Liveness::Stalled { last, .. }
            | Liveness::Stuck { last, .. } => Some(last),
            Liveness::Waiting { last }
            | Liveness::Blocked { last }
            | Liveness::Finished { last } => last.as_ref(),
            Liveness::ClockSuspect { stamp } => Some(stamp),
            Liveness::Unknown { .. } => None,
        }
    }

    /// The limit that was crossed, of an agent that is late, stalled or stuck.
    #[must_use]
    pub fn crossed(&self) -> Option<&Crossed> {
        match self {
            Liveness::Late { crossed, .. }
            | Liveness::Stalled { crossed, .. }
            | Liveness::Stuck { crossed, .. } => Some(crossed),
            _ => None,
        }
    }

    /// Whether this needs attention: the agent is late, stalled or stuck, or its state is unknown.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        matches!(
            self,
            Liveness::Late { .. }
                | Liveness::Stalled { .. }
                | Liveness::Stuck { .. }
                | Liveness::ClockSuspect { .. }
                | Liveness::Unknown { .. }
        )
    }

    /// Whether the session of the agent counts as ended, as its protocol has it.
    #[must_use]
    pub fn session_timed_out(&self) -> bool {
        match self {
            Liveness::Active {
                session_timed_out, ..
            }
            | Liveness::Late {
                session_timed_out, ..
            }
            | Liveness::Stalled {
                session_timed_out, ..
            } => *session_timed_out,
            _ => false,
        }
    }

    /// Which of the protocol's messages is due, if one is.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        match self {
            Liveness::Late { .. } => Some(Notice::Late),
            Liveness::Stalled { .. } | Liveness::Stuck { .. } => Some(Notice::Stalled),
            _ => None,
        }
    }
}
