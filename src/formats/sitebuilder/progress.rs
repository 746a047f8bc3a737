//! What is derived from the counts and the stamps: percent, time, and what is left.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{SitebuilderCheckpoint, Subtask, SubtaskStatus, Subtasks, TaskStatus};
use crate::checkpoint::{Progress, Timestamp};

impl Subtasks {
    /// How much is done, in percent: completed by total; `None` where the counts do not tell.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let (total, completed) = (self.total?, self.completed?);
        (total > 0.0 && completed >= 0.0).then(|| 100.0 * completed / total)
    }

    /// How many are not finished; failed ones count. `None` where there is no total.
    #[must_use]
    pub fn remaining(&self) -> Option<f64> {
        Some((self.total? - self.completed.unwrap_or_default()).max(0.0))
    }

    /// Whether as many are listed as there are said to be, or more.
    #[must_use]
    pub(super) fn lists_all(&self) -> bool {
        let listed = count(self.items.iter());
        self.total
            .is_some_and(|total| (0.0..=listed).contains(&total))
    }

    /// The listed ones that a resume goes on with: all that are not complete, in order. One whose id is complete
    /// elsewhere in the list is complete.
    pub fn open(&self) -> impl Iterator<Item = &Subtask> {
        let complete = self.items.iter();
        let complete = complete.filter(|item| item.is(&SubtaskStatus::Complete));
        let complete: HashSet<&str> = complete.filter_map(|item| item.id.as_deref()).collect();
        self.items.iter().filter(move |item| {
            let is_done_elsewhere = item.id.as_deref().is_some_and(|id| complete.contains(id));
            !item.is(&SubtaskStatus::Complete) && !is_done_elsewhere
        })
    }

    /// How many of the listed ones have this state.
    pub(super) fn listed(&self, status: &SubtaskStatus) -> f64 {
        count(self.items.iter().filter(|item| item.is(status)))
    }
}

/// How many there are, as the file counts.
#[allow(
    clippy::cast_precision_loss,
    reason = "no list has more than 2^53 elements"
)]
pub(super) fn count<T>(items: impl Iterator<Item = T>) -> f64 {
    items.count() as f64
}

impl SitebuilderCheckpoint {
    /// How much is done, in whole percent, 0 to 100: from the subtasks, rounded down so that 100 is
    /// all of them; what the file says where the subtasks do not tell.
    #[must_use]
    pub fn percent(&self) -> Option<u8> {
        let percent = self.subtasks.percent().or(self.progress_percent)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within 0 to 100"
        )]
        // A hair more, so that 29 of 100 is not 28.
        Some((percent + 1e-9).floor().clamp(0.0, 100.0) as u8)
    }

    /// The acceptance criteria that are not met: those that say `false`.
    #[must_use]
    pub fn open_criteria(&self) -> Vec<&str> {
        self.acceptance_criteria_met
            .iter()
            .filter(|(_, met)| **met == Some(false))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The time since the task was begun: until it was completed, else until `now`. `None` where the
    /// stamps do not tell or run backwards.
    #[must_use]
    pub fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let end = match self.state() {
            Some(TaskStatus::Complete) => self.completed_at.as_ref().and_then(utc),
            _ => Some(now),
        };
        since(self.started_at.as_ref(), end)
    }

    /// The time that work is known to have gone on: until completion, else until the last change. What
    /// follows a session that ended does not count.
    #[must_use]
    pub fn time_worked(&self) -> Option<TimeDelta> {
        let end = match self.state() {
            Some(TaskStatus::Complete) => self.completed_at.as_ref(),
            _ => self.updated_at.as_ref(),
        };
        since(self.started_at.as_ref(), end.and_then(utc))
    }

    /// The time that one finished subtask took on average; `None` while none is finished.
    #[must_use]
    pub fn time_per_subtask(&self) -> Option<TimeDelta> {
        let completed = self.subtasks.completed.filter(|count| *count > 0.0)?;
        scale(self.time_worked()?, completed.recip())
    }

    /// The time that the rest takes if it goes on as so far; `None` while no subtask is finished.
    #[must_use]
    pub fn estimate_of_rest(&self) -> Option<TimeDelta> {
        scale(self.time_per_subtask()?, self.subtasks.remaining()?)
    }
}

/// The hand-off of the checkpoint, as of every format.
pub(super) fn progress(checkpoint: &SitebuilderCheckpoint, now: DateTime<Utc>) -> Progress {
    let subtasks = &checkpoint.subtasks;
    let mut progress = Progress::default()
        .with_percent(checkpoint.percent())
        .with_times(checkpoint.elapsed(now), checkpoint.estimate_of_rest());
    progress.done = subtasks.completed.map(whole);
    progress.total = subtasks.total.map(whole);
    progress
}

/// A count of the file as a number of pieces.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a negative count is 0, and no number of subtasks is beyond 2^64"
)]
pub(super) fn whole(count: f64) -> u64 {
    count as u64
}

fn utc(stamp: &Timestamp) -> Option<DateTime<Utc>> {
    Some(stamp.time()?.to_utc())
}

fn since(start: Option<&Timestamp>, end: Option<DateTime<Utc>>) -> Option<TimeDelta> {
    let elapsed = end?.signed_duration_since(start.and_then(utc)?);
    (elapsed >= TimeDelta::zero()).then_some(elapsed)
}

fn scale(time: TimeDelta, factor: f64) -> Option<TimeDelta> {
    let seconds = time.as_seconds_f64() * factor;
    let duration = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    TimeDelta::from_std(duration).ok()
}
