//! Counts subtasks, and derives percent, times and what is left from the counts and stamps.
//!
//! The file has no member for an estimate; the planner of the task passes it in.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{SitebuilderCheckpoint, Subtask, SubtaskStatus, Subtasks, TaskStatus};
use crate::checkpoint::{Progress, Timestamp};

impl Subtasks {
    /// How much is done, in percent: completed by total; `None` if a count is missing or the total is 0.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let (total, completed) = (self.total?, self.completed?);
        (total > 0.0 && completed >= 0.0).then(|| 100.0 * completed / total)
    }

    /// How many are not finished, failed ones included. `None` without a total.
    #[must_use]
    pub fn remaining(&self) -> Option<f64> {
        Some((self.total? - self.completed.unwrap_or_default()).max(0.0))
    }

    /// Whether at least as many subtasks are listed as the total states.
    #[must_use]
    pub(super) fn lists_all(&self) -> bool {
        let listed = count(self.items.iter());
        self.total
            .is_some_and(|total| (0.0..=listed).contains(&total))
    }

    /// The listed subtasks that a resume continues with: all that are not complete, in order. If another entry with the
    /// same id is complete, the subtask counts as complete.
    pub fn open(&self) -> impl Iterator<Item = &Subtask> {
        let complete = self.items.iter();
        let complete = complete.filter(|item| item.is(&SubtaskStatus::Complete));
        let complete: HashSet<&str> = complete.filter_map(|item| item.id.as_deref()).collect();
        self.items.iter().filter(move |item| {
            let is_done_elsewhere = item.id.as_deref().is_some_and(|id| complete.contains(id));
            !item.is(&SubtaskStatus::Complete) && !is_done_elsewhere
        })
    }

    /// The name of an item: its id, or its position if the id is not readable.
    pub(super) fn name(&self, item: &Subtask) -> String {
        item.id.clone().unwrap_or_else(|| {
            let place = self
                .items
                .iter()
                .position(|other| std::ptr::eq(other, item));
            format!("(no id, item {})", place.map_or(0, |place| place + 1))
        })
    }

    /// How many listed subtasks have this state.
    pub(super) fn listed(&self, status: &SubtaskStatus) -> f64 {
        count(self.items.iter().filter(|item| item.is(status)))
    }
}

/// The number of items, in the type of the file's counts.
#[allow(
    clippy::cast_precision_loss,
    reason = "no list has more than 2^53 elements"
)]
pub(super) fn count<T>(items: impl Iterator<Item = T>) -> f64 {
    items.count() as f64
}

impl SitebuilderCheckpoint {
    pub(super) fn subtask(&self, id: &str) -> Option<&Subtask> {
        self.subtasks.items.get(self.place_of(id)?)
    }

    /// The index of a subtask; of two with the id, the one that is not complete.
    fn place_of(&self, id: &str) -> Option<usize> {
        let items = self.subtasks.items.iter().enumerate();
        let fitting = items.filter(|(_, item)| item.id.as_deref() == Some(id));
        let first = fitting.min_by_key(|(_, item)| item.is(&SubtaskStatus::Complete));
        first.map(|(place, _)| place)
    }

    pub(super) fn is_finished(&self, id: &str) -> bool {
        let item = self.subtask(id);
        item.is_some_and(|item| item.is(&SubtaskStatus::Complete))
    }

    pub(super) fn subtask_mut(&mut self, id: &str) -> Option<&mut Subtask> {
        let place = self.place_of(id)?;
        self.subtasks.items.get_mut(place)
    }

    /// Sets the state of a subtask and updates the counts.
    pub(super) fn set_subtask(&mut self, id: &str, status: SubtaskStatus) {
        let subtasks = &self.subtasks;
        // With a stated total of 0 and no items the list is not counted: the total is a statement of the agent.
        let all_listed = subtasks.lists_all() && !subtasks.items.is_empty();
        let listed_complete = subtasks.listed(&SubtaskStatus::Complete);
        let listed_failed = subtasks.listed(&SubtaskStatus::Failed);
        let before = match self.subtask_mut(id) {
            Some(item) if item.is(&status) => return,
            Some(item) => item.status.replace(status.clone()),
            None => {
                self.subtasks.items.push(Subtask::new(id, status.clone()));
                None
            }
        };
        if all_listed {
            self.recount();
            return;
        }
        // The counts cover unlisted subtasks too, so they change by one; a count that was absent stays absent.
        let before = before.as_ref().and_then(SubtaskStatus::meaning);
        let moved =
            |of: SubtaskStatus| f64::from(status == of) - f64::from(before.as_ref() == Some(&of));
        let subtasks = &mut self.subtasks;
        let counted = subtasks.total.is_some() || subtasks.completed.is_some();
        let completed = subtasks.completed.unwrap_or(listed_complete);
        let completed = (completed + moved(SubtaskStatus::Complete)).max(0.0);
        if counted {
            subtasks.completed = Some(completed);
        }
        let failed = subtasks.failed.unwrap_or(listed_failed) + moved(SubtaskStatus::Failed);
        if subtasks.failed.is_some() || (counted && failed > 0.0) {
            subtasks.failed = Some(failed.max(0.0));
        }
        let ended = [SubtaskStatus::Complete, SubtaskStatus::Failed];
        let open = subtasks
            .items
            .iter()
            .filter(|item| !ended.iter().any(|state| item.is(state)));
        let least = completed + failed.max(0.0) + count(open);
        // An unplanned subtask increases the total.
        let least = least.max(count(subtasks.items.iter()));
        subtasks.total = subtasks.total.map(|total| total.max(least));
        if subtasks.lists_all() {
            // The list is now complete, so it is counted.
            self.recount();
        }
        self.keep_percent();
    }

    /// Sets the counts from the list, which has all subtasks.
    pub(super) fn recount(&mut self) {
        let subtasks = &mut self.subtasks;
        subtasks.total = Some(count(subtasks.items.iter()));
        subtasks.completed = Some(subtasks.listed(&SubtaskStatus::Complete));
        let failed = subtasks.listed(&SubtaskStatus::Failed);
        if subtasks.failed.is_some() || failed > 0.0 {
            subtasks.failed = Some(failed);
        }
        self.keep_percent();
    }

    pub(super) fn keep_percent(&mut self) {
        if self.subtasks.percent().is_some() {
            self.progress_percent = self.percent().map(f64::from);
        }
    }

    /// How much is done, in whole percent from 0 to 100: from the subtasks, rounded down so that 100 means all of them;
    /// else `progress_percent`.
    #[must_use]
    pub fn percent(&self) -> Option<u8> {
        let percent = self.subtasks.percent().or(self.progress_percent)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within 0 to 100"
        )]
        // The small addition keeps 29 of 100 from becoming 28.
        Some((percent + 1e-9).floor().clamp(0.0, 100.0) as u8)
    }

    /// The acceptance criteria whose value is `false`.
    #[must_use]
    pub fn open_criteria(&self) -> Vec<&str> {
        self.acceptance_criteria_met
            .iter()
            .filter(|(_, met)| **met == Some(false))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The time since the task began: until it was completed, else until `now`. `None` if a stamp is missing or they
    /// run backwards.
    #[must_use]
    pub fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let end = match self.state() {
            Some(TaskStatus::Complete) => self.completed_at.as_ref().and_then(utc),
            _ => Some(now),
        };
        since(self.started_at.as_ref(), end)
    }

    /// The time that work is known to have lasted: from the start until completion, else until the last change. Time
    /// after the session ended does not count.
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

    /// The time that the remaining subtasks take at the average pace; `None` while no subtask is finished.
    #[must_use]
    pub fn estimate_of_rest(&self) -> Option<TimeDelta> {
        scale(self.time_per_subtask()?, self.subtasks.remaining()?)
    }
}

/// The progress of the checkpoint, in terms common to all formats.
pub(super) fn progress(checkpoint: &SitebuilderCheckpoint, now: DateTime<Utc>) -> Progress {
    let subtasks = &checkpoint.subtasks;
    let mut progress = Progress::default()
        .with_percent(checkpoint.percent())
        .with_times(checkpoint.elapsed(now), checkpoint.estimate_of_rest());
    progress.done = subtasks.completed.map(whole);
    progress.total = subtasks.total.map(whole);
    progress
}

/// A count of the file as an integer.
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
