//! Whether the agent of a task is alive: the checkpoint's own stamps, and the protocol's limits.

use std::time::Duration;

use chrono::TimeDelta;

use super::SitebuilderCheckpoint;
use crate::checkpoint::{Checkpoint, Pulse, Thresholds};

/// Without a signal for so long an agent is late: the protocol's *warning*.
pub const LATE_AT: TimeDelta = TimeDelta::minutes(10);

/// Without a signal for so long an agent is stalled.
pub const STALLED_AT: TimeDelta = TimeDelta::minutes(30);

/// In progress and without a signal for so long, the agent's session counts as ended.
pub const SESSION_TIMEOUT: TimeDelta = TimeDelta::minutes(10);

/// The limits in the protocol's text for supervisors, which differ from those for heartbeats: late at 30
/// minutes, stalled at 2 hours.
#[must_use]
pub fn supervisor_thresholds() -> Thresholds {
    Thresholds {
        session_timeout: Some(SESSION_TIMEOUT),
        ..Thresholds::at(TimeDelta::minutes(30), TimeDelta::hours(2))
    }
}

/// A heartbeat is no progress, so the two are separate.
pub(super) fn pulse(checkpoint: &SitebuilderCheckpoint) -> Pulse {
    let beat = checkpoint.heartbeat.as_ref();
    let seconds = beat.and_then(|beat| beat.interval_seconds);
    // An interval that is no span of time declares nothing.
    let interval = seconds.and_then(|seconds| {
        let span = Duration::try_from_secs_f64(seconds).ok()?;
        TimeDelta::from_std(span).ok()
    });
    Pulse::of(&checkpoint.handoff())
        .with_heartbeat(beat.and_then(|beat| beat.last_beat.clone()))
        .with_interval(interval)
}
