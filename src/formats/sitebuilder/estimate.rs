//! How long a task takes against how long it was meant to take.
//!
//! The file has no member for an estimate: the planner of the task passes it in.

use chrono::TimeDelta;

use super::{SitebuilderCheckpoint, TaskStatus};

/// The time that a task takes, against an estimate of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgainstEstimate {
    /// How long the task was meant to take.
    pub estimated: TimeDelta,
    /// How long it has been worked on: until it was completed, else until its last change.
    pub actual: TimeDelta,
    /// How long it takes in all: of a complete task what it took, else what it has taken and the rest at
    /// the pace so far; `None` while no finished subtask gives a pace.
    pub whole: Option<TimeDelta>,
}

impl AgainstEstimate {
    /// By how much the task takes longer than was estimated, or will at the pace so far; negative where
    /// it is shorter. Without a pace, the time spent so far counts.
    #[must_use]
    pub fn over(&self) -> TimeDelta {
        self.whole.unwrap_or(self.actual) - self.estimated
    }

    /// How many times the estimate the task takes, or will at the pace so far: 1.5 is half as long
    /// again. `None` where the pace or a time to compare with is not known.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let estimated = self.estimated.as_seconds_f64();
        (estimated > 0.0).then_some(self.whole?.as_seconds_f64() / estimated)
    }
}

impl SitebuilderCheckpoint {
    /// The time that the task takes, against how long it was meant to take; `None` where the stamps do
    /// not tell or run backwards.
    #[must_use]
    pub fn against(&self, estimated: TimeDelta) -> Option<AgainstEstimate> {
        let actual = self.time_worked()?;
        let whole = match self.state() {
            Some(TaskStatus::Complete) => Some(actual),
            _ => self
                .estimate_of_rest()
                .and_then(|rest| actual.checked_add(&rest)),
        };
        Some(AgainstEstimate {
            estimated,
            actual,
            whole,
        })
    }
}
