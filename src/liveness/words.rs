//! The verdict as text.

use std::fmt;

use chrono::TimeDelta;

use super::{Crossed, Limit, Liveness, Signal, SignalKind};

impl fmt::Display for Liveness {
    /// The verdict as a sentence, such as `late: last heartbeat 12 min ago, limit 10 min`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Liveness::Active { last, .. } => write!(f, "active: {last}"),
            Liveness::Late { last, crossed, .. } => write!(f, "late: {last}, {crossed}"),
            Liveness::Stalled { last, crossed, .. } => write!(f, "stalled: {last}, {crossed}"),
            Liveness::Stuck { last, crossed } => {
                write!(f, "stuck: it sends heartbeats, but {last}, {crossed}")
            }
            Liveness::Waiting { last }
            | Liveness::Blocked { last }
            | Liveness::Finished { last } => {
                f.write_str(self.as_str())?;
                last.iter().try_for_each(|last| write!(f, ": {last}"))
            }
            Liveness::ClockSuspect { stamp } => write!(
                f,
                "clock suspect: its {} lies {} in the future",
                stamp.by.as_str(),
                span(-stamp.age)
            ),
            Liveness::Unknown { reason } => write!(f, "unknown: {reason}"),
        }
    }
}

impl SignalKind {
    /// The kind as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SignalKind::Heartbeat => "heartbeat",
            SignalKind::Progress => "progress",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last {} {} ago", self.by.as_str(), span(self.age))
    }
}

impl fmt::Display for Crossed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = span(self.after);
        match self.limit {
            Limit::Threshold => write!(f, "limit {after}"),
            Limit::DeclaredInterval => write!(f, "limit {after}, from its own interval"),
            Limit::NextExpected => write!(f, "limit {after}, from the next time that it announced"),
            Limit::BusyUntil => write!(f, "limit {after}, from the busy time that it announced"),
        }
    }
}

/// A time span as text for a person, such as `3 h 20 min`.
pub(crate) fn span(span: TimeDelta) -> String {
    let seconds = span.num_seconds().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let with_rest = |whole: i64, unit: &str, rest: i64, small: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {small}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => with_rest(hours, "h", minutes % 60, "min"),
        _ => with_rest(days, "d", hours % 24, "h"),
    }
}
