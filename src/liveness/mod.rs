//! Whether the agent of a checkpoint is alive, judged by its signals and a clock.
//!
//! Only [`Liveness::judge`] decides this, so two monitors that read the same checkpoint at the same time with
//! the same thresholds agree. `docs/liveness.md` lists the thresholds of each protocol with their sources.

mod judge;
mod words;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::checkpoint::whole_seconds;

pub(crate) use words::span;

pub use crate::checkpoint::{Activity, Notice, Pulse, Thresholds};

/// The verdict on whether the agent of a checkpoint is alive.
///
/// As JSON it is an object whose `verdict` is the word that [`as_str`](Liveness::as_str) returns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[must_use]
#[non_exhaustive]
pub enum Liveness {
    /// Its last signal is recent, or it declared that it would be silent for longer.
    Active {
        /// Its last signal.
        last: Signal,
        /// Whether its session counts as ended by the rules of the protocol, so that it may be resumed although
        /// it is active.
        session_timed_out: bool,
    },
    /// It has been silent for longer than it should.
    Late {
        /// Its last signal.
        last: Signal,
        /// The limit that was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended by the rules of the protocol, so that it may be resumed.
        session_timed_out: bool,
    },
    /// It has been silent for so long that it counts as crashed.
    Stalled {
        /// Its last signal.
        last: Signal,
        /// The limit that was crossed.
        crossed: Crossed,
        /// Whether its session counts as ended by the rules of the protocol, so that it may be resumed.
        session_timed_out: bool,
    },
    /// It sends heartbeats but has made no progress for longer than the limit.
    Stuck {
        /// Its last progress.
        last: Signal,
        /// The limit that was crossed.
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
    /// A stamp lies in the future, so its age is unknown: a clock is wrong, or the stamp was invented. Such a
    /// stamp never counts as fresh.
    ClockSuspect {
        /// The stamp.
        stamp: Signal,
    },
    /// Its state cannot be judged.
    Unknown {
        /// Why it cannot be judged.
        reason: String,
    },
}

/// A heartbeat or progress stamp: it shows that the agent was alive at that time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Signal {
    /// The kind of the signal.
    pub by: SignalKind,
    /// The time of the signal, in UTC.
    pub at: DateTime<Utc>,
    /// Its age, in seconds; negative if it lies in the future.
    #[serde(rename = "age_seconds", serialize_with = "whole_seconds")]
    pub age: TimeDelta,
}

/// The two kinds of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignalKind {
    /// A heartbeat, in a format that keeps it apart from progress.
    Heartbeat,
    /// A change of the checkpoint that counts as progress.
    Progress,
}

/// A limit that was crossed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Crossed {
    /// What set the limit.
    pub limit: Limit,
    /// How long after the signal the limit is reached, in seconds.
    #[serde(rename = "after_seconds", serialize_with = "whole_seconds")]
    pub after: TimeDelta,
    /// The time at which it was crossed.
    pub since: DateTime<Utc>,
}

/// What sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The threshold of the protocol, or the caller's threshold that replaces it.
    Threshold,
    /// The interval that the checkpoint declares: twice the interval for late, four times for stalled.
    DeclaredInterval,
    /// The time at which the checkpoint announced the next signal of its agent.
    NextExpected,
    /// The time until which the agent announced to be busy.
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

    /// The signal on which the verdict rests.
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

    /// The limit that was crossed, if the agent is late, stalled or stuck.
    #[must_use]
    pub fn crossed(&self) -> Option<&Crossed> {
        match self {
            Liveness::Late { crossed, .. }
            | Liveness::Stalled { crossed, .. }
            | Liveness::Stuck { crossed, .. } => Some(crossed),
            _ => None,
        }
    }

    /// Whether the agent needs attention: it is late, stalled or stuck, its clock is suspect, or its state is
    /// unknown.
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

    /// Whether the session of the agent counts as ended by the rules of its protocol.
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

    /// The message of the protocol that is due, if any.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        match self {
            Liveness::Late { .. } => Some(Notice::Late),
            Liveness::Stalled { .. } | Liveness::Stuck { .. } => Some(Notice::Stalled),
            _ => None,
        }
    }
}
