//! Whether the agent of a checkpoint is alive: its signals against a clock.
//!
//! Only [`Liveness::judge`] decides this, so two monitors that read the
//! same checkpoint at the same time with the same thresholds agree. `docs/liveness.md` lists the
//! thresholds of each protocol with their sources.

mod judge;
mod words;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::checkpoint::whole_seconds;

pub(crate) use words::span;

pub use crate::checkpoint::{Activity, Notice, Pulse, Thresholds};

/// The verdict on the agent of a checkpoint.
///
/// As JSON an object whose `verdict` is the word that [`as_str`](Liveness::as_str) gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[must_use]
#[non_exhaustive]
pub enum Liveness {
    /// Its last signal is recent, or it declared that it would be silent for longer.
    Active {
        /// Its last signal.
        last: Signal,
        /// Whether its session counts as ended all the same, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It has been silent for longer than it should.
    Late {
        /// Its last signal.
        last: Signal,
        /// What was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It has been silent for so long that it is taken for crashed.
    Stalled {
        /// Its last signal.
        last: Signal,
        /// What was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended, as the protocol has it: it may be resumed.
        session_timed_out: bool,
    },
    /// It shows that it is alive and has not got on for longer than the limit.
    Stuck {
        /// Its last progress.
        last: Signal,
        /// What was crossed.
        crossed: Crossed,
    },
    /// It waits for others or for a decision, so it need not send heartbeats.
    Waiting {
        /// Its last signal.
        last: Option<Signal>,
    },
    /// It has a blocker that must be resolved.
    Blocked {
        /// Its last signal.
        last: Option<Signal>,
    },
    /// Its work is done.
    Finished {
        /// Its last signal.
        last: Option<Signal>,
    },
    /// A stamp lies in the future, so its age is unknown: a clock is wrong, or the stamp was
    /// invented. It is never taken for fresh.
    ClockSuspect {
        /// The stamp.
        stamp: Signal,
    },
    /// Its state cannot be judged.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// A heartbeat or a progress: a stamp that shows that an agent was alive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Signal {
    /// Which of the two it is.
    pub by: SignalKind,
    /// When, in UTC.
    pub at: DateTime<Utc>,
    /// How long ago, in seconds; below 0 in the future.
    #[serde(rename = "age_seconds", serialize_with = "whole_seconds")]
    pub age: TimeDelta,
}

/// The two kinds of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignalKind {
    /// A heartbeat, in a format that has it apart from progress.
    Heartbeat,
    /// A change of the checkpoint that is progress.
    Progress,
}

/// A limit that was crossed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Crossed {
    /// Which.
    pub limit: Limit,
    /// How long the limit was, from the signal on, in seconds.
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

    /// The signal that the verdict depends on.
    #[must_use]
    pub fn signal(&self) -> Option<&Signal> {
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
