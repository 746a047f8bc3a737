//! The signals that the agent of a task is alive, and the protocol's thresholds.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Heartbeat, SitebuilderCheckpoint};
use crate::checkpoint::{Checkpoint, Pulse, Thresholds, Timestamp};

/// How often an agent sends a heartbeat, in seconds, unless its checkpoint states another interval.
pub const HEARTBEAT_INTERVAL: f64 = 300.0;

/// An agent is late after this time without a signal: the protocol's *warning*.
pub const LATE_AT: TimeDelta = TimeDelta::minutes(10);

/// An agent is stalled after this time without a signal.
pub const STALLED_AT: TimeDelta = TimeDelta::minutes(30);

/// The session of an agent in progress counts as ended after this time without a signal.
pub const SESSION_TIMEOUT: TimeDelta = TimeDelta::minutes(10);

/// The thresholds in the protocol's text for supervisors, which differ from those for heartbeats: late at 30 minutes,
/// stalled at 2 hours.
#[must_use]
pub fn supervisor_thresholds() -> Thresholds {
    Thresholds {
        session_timeout: Some(SESSION_TIMEOUT),
        ..Thresholds::at(TimeDelta::minutes(30), TimeDelta::hours(2))
    }
}

/// Heartbeat and progress are separate signals, since a heartbeat is no progress.
pub(super) fn pulse(checkpoint: &SitebuilderCheckpoint) -> Pulse {
    let beat = checkpoint.heartbeat.as_ref();
    let seconds = beat.and_then(|beat| beat.interval_seconds);
    // An interval that is no time span is ignored.
    let interval = seconds.and_then(span);
    Pulse::of(&checkpoint.handoff())
        .with_heartbeat(beat.and_then(|beat| beat.last_beat.clone()))
        .with_interval(interval)
}

fn span(seconds: f64) -> Option<TimeDelta> {
    TimeDelta::from_std(Duration::try_from_secs_f64(seconds).ok()?).ok()
}

impl SitebuilderCheckpoint {
    /// Records a heartbeat.
    pub(super) fn beat(&mut self, now: DateTime<Utc>) {
        let before = self
            .heartbeat
            .as_ref()
            .and_then(|beat| beat.last_beat.as_ref());
        let beat = Timestamp::like(before.or(self.updated_at.as_ref()), now);
        let heartbeat = self.heartbeat.get_or_insert_with(|| Heartbeat {
            interval_seconds: Some(HEARTBEAT_INTERVAL),
            ..Heartbeat::default()
        });
        heartbeat.last_beat = Some(beat);
        heartbeat.status = Some("alive".to_owned());
    }

    /// When the next heartbeat is due: one interval after the last heartbeat or the last change, whichever is later.
    #[must_use]
    pub fn next_beat_due(&self) -> Option<DateTime<Utc>> {
        let beat = self.heartbeat.as_ref();
        let seconds = beat.and_then(|beat| beat.interval_seconds);
        let seconds = seconds.unwrap_or(HEARTBEAT_INTERVAL);
        let last = [
            beat.and_then(|beat| beat.last_beat.as_ref()),
            self.updated_at.as_ref(),
        ];
        let last = last
            .into_iter()
            .flatten()
            .filter_map(Timestamp::time)
            .max()?;
        last.to_utc().checked_add_signed(span(seconds)?)
    }
}
