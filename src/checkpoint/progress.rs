//! How far a task is, in numbers.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::pulse::seconds;
use super::{Handoff, Status, Timestamp};

/// How far a task is, in numbers; an unknown number is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// How many parts are done.
    pub done: Option<u64>,
    /// How many parts there are.
    pub total: Option<u64>,
    /// How much is done, in whole percent, rounded down: 100 is all of it.
    pub percent: Option<u8>,
    /// How long the task has gone on, in seconds.
    #[serde(rename = "elapsed_seconds", serialize_with = "seconds")]
    pub elapsed: Option<TimeDelta>,
    /// How long the rest will take, in seconds, where the format estimates it.
    #[serde(rename = "rest_seconds", serialize_with = "seconds")]
    pub rest: Option<TimeDelta>,
}

impl Progress {
    /// `done` of `total` parts.
    #[must_use]
    pub fn counted(done: u64, total: u64) -> Progress {
        let percent = (total > 0).then(|| {
            let percent = u128::from(done.min(total)) * 100 / u128::from(total);
            u8::try_from(percent).unwrap_or(100)
        });
        Progress {
            done: Some(done),
            total: Some(total),
            percent,
            ..Progress::default()
        }
    }

    /// Sets the percentage, if the format has a better one than the counts give.
    #[must_use]
    pub fn with_percent(mut self, percent: Option<u8>) -> Progress {
        self.percent = percent.or(self.percent);
        self
    }

    /// Sets how long the task has taken, and how long the rest will take.
    #[must_use]
    pub fn with_times(mut self, elapsed: Option<TimeDelta>, rest: Option<TimeDelta>) -> Progress {
        self.elapsed = elapsed.or(self.elapsed);
        self.rest = rest.or(self.rest);
        self
    }

    /// Adds the unreadable items to numbers that were counted from the lists of `handoff` without them. Numbers
    /// that the checkpoint states stay as they are.
    pub(crate) fn counting_unreadable(mut self, handoff: &Handoff, now: DateTime<Utc>) -> Progress {
        if handoff.unreadable.is_empty() {
            return self;
        }
        let readable = Handoff {
            unreadable: Vec::new(),
            ..handoff.clone()
        };
        let (whole, readable) = (Progress::of(handoff, now), Progress::of(&readable, now));
        let is_of_lists = (self.done, self.total) == (readable.done, readable.total);
        if is_of_lists && (whole.done, whole.total) != (readable.done, readable.total) {
            (self.done, self.total) = (whole.done, whole.total);
            self.percent = whole.percent;
        }
        self
    }

    /// The progress of a hand-off: finished work out of all work that it names.
    ///
    /// The time runs from the first stamp of an item to the last change of a complete task, or else to `now`.
    #[must_use]
    pub fn of(handoff: &Handoff, now: DateTime<Utc>) -> Progress {
        let mut progress = Progress::counted(handoff.count_done(), handoff.count_all());
        if handoff.status == Status::Complete && progress.total == Some(0) {
            progress.percent = Some(100);
        }
        let utc = |stamp: &Option<Timestamp>| Some(stamp.as_ref()?.time()?.to_utc());
        let finished = handoff.done.iter().filter_map(|item| utc(&item.at));
        let started = handoff
            .in_progress
            .iter()
            .filter_map(|item| utc(&item.started_at));
        let end = match handoff.status {
            Status::Complete => utc(&handoff.updated_at),
            _ => Some(now),
        };
        let start = finished.chain(started).min();
        let elapsed = end.zip(start).map(|(end, start)| end - start);
        progress.elapsed = elapsed.filter(|elapsed| *elapsed >= TimeDelta::zero());
        progress
    }
}
