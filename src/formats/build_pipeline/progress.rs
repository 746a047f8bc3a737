//! How far a build is, derived and never stored.

use chrono::{DateTime, TimeDelta, Utc};

use super::BuildCheckpoint;
use crate::checkpoint::Progress;

impl BuildCheckpoint {
    /// Workstreams that are done, and all of them without the dormant ones.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let done = self.completed_workstreams.len();
        (done, done + self.open_workstreams().count())
    }

    /// How much is done, 0 to 100; `None` while there are no workstreams.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn percent(&self) -> Option<f64> {
        let (done, all) = self.counts();
        (all > 0).then(|| 100.0 * done as f64 / all as f64)
    }

    /// The time since the checkpoint was made, until it was complete or else until `now`; only the later
    /// revision tells.
    #[must_use]
    pub fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let begun = self.created_at.as_ref()?.time()?.to_utc();
        let complete = self
            .status
            .as_ref()
            .and_then(super::BuildStatus::understood)
            == Some(super::BuildStatus::Complete);
        let until = if complete {
            self.updated_at.as_ref()?.time()?.to_utc()
        } else {
            now
        };
        Some(until - begun).filter(|elapsed| *elapsed >= TimeDelta::zero())
    }
}

/// The hand-off of the checkpoint, as of every format.
pub(super) fn progress(build: &BuildCheckpoint, now: DateTime<Utc>) -> Progress {
    let (done, all) = build.counts();
    let whole = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Progress::counted(whole(done), whole(all)).with_times(build.elapsed(now), None)
}
