//! Decides which tasks were kept long enough.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Row, RowState};
use crate::checkpoint::{Error, Expect, Key, Result, Status};
use crate::store::{CheckpointStore, DeleteOptions};

/// How long tasks are kept. Nothing expires until one of the ages is set.
///
/// This only judges rows of a scan; [`forget`](Expired::forget) then removes the expired tasks one by one.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use agent_checkpoint::fleet::{Fleet, FleetOptions, Retention, Source};
/// use agent_checkpoint::store::MemoryStore;
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let store = MemoryStore::new();
/// let now = chrono::Utc::now();
/// let fleet = Fleet::scan(&[Source::store("tasks", &store)], &FleetOptions::new(), now);
/// let month = Duration::from_secs(30 * 24 * 3600);
/// let retention = Retention::new().ended_after(month).keep_newest(100);
/// for expired in retention.expired(fleet.rows(), now) {
///     println!("{}: {:?}", expired.row.place, expired.why);
///     expired.forget(&store)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    ended: Option<Duration>,
    taken_over: Option<Duration>,
    idle: Option<Duration>,
    newest: usize,
}

/// Why a task expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Expiry {
    /// The task is complete.
    Ended,
    /// Another agent took it over into its own checkpoint.
    TakenOver,
    /// The task did not change for long enough, whatever its status.
    Idle,
}

/// A task that was kept long enough.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Expired<'r> {
    /// The row of the task.
    pub row: &'r Row,
    /// Why it expired.
    pub why: Expiry,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

impl Retention {
    /// Keeps every task.
    #[must_use]
    pub const fn new() -> Self {
        Retention {
            ended: None,
            taken_over: None,
            idle: None,
            newest: 0,
        }
    }

    /// Sets how long after their last change complete tasks expire.
    #[must_use]
    pub const fn ended_after(mut self, age: Duration) -> Self {
        self.ended = Some(age);
        self
    }

    /// Sets how long after their last change tasks expire that another agent took over into its own checkpoint.
    #[must_use]
    pub const fn taken_over_after(mut self, age: Duration) -> Self {
        self.taken_over = Some(age);
        self
    }

    /// Sets how long after their last change all tasks expire, including those that are not complete.
    #[must_use]
    pub const fn idle_after(mut self, age: Duration) -> Self {
        self.idle = Some(age);
        self
    }

    /// Keeps the `count` last changed ones of the tasks that would expire.
    #[must_use]
    pub const fn keep_newest(mut self, count: usize) -> Self {
        self.newest = count;
        self
    }

    /// Returns the rows that have expired at `now`, oldest first.
    ///
    /// Never among them are rows that are claimed or unreadable, rows that are no tasks, and rows whose last change is
    /// unknown or in the future.
    #[must_use]
    pub fn expired<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r Row>,
        now: DateTime<Utc>,
    ) -> Vec<Expired<'r>> {
        let rows = rows.into_iter();
        let mut expired: Vec<Expired<'r>> = rows.filter_map(|row| self.judge(row, now)).collect();
        expired.sort_by_key(|expired| expired.updated_at);
        expired.truncate(expired.len().saturating_sub(self.newest));
        expired
    }

    fn judge<'r>(&self, row: &'r Row, now: DateTime<Utc>) -> Option<Expired<'r>> {
        let is_claimed = row.owner.as_ref().is_some_and(|owner| owner.stands);
        if is_claimed || !row.is_task {
            return None;
        }
        let updated_at = row.updated_at.as_ref()?.time()?.to_utc();
        let age = now.signed_duration_since(updated_at).to_std().ok()?;
        let is_over = |limit: Option<Duration>| limit.is_some_and(|limit| age >= limit);
        let is_complete = row.status.as_deref() == Some(Status::Complete.as_str());
        let why = match &row.state {
            RowState::Checkpoint { .. } if is_complete && is_over(self.ended) => Expiry::Ended,
            RowState::TakenOver { .. } if is_over(self.taken_over) => Expiry::TakenOver,
            RowState::Checkpoint { .. } | RowState::TakenOver { .. } if is_over(self.idle) => {
                Expiry::Idle
            }
            _ => return None,
        };
        Some(Expired {
            row,
            why,
            updated_at,
        })
    }
}

impl Expired<'_> {
    /// Forgets the task in its store, if it is still as the scan found it.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointStore::forget`]: [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the checkpoint
    /// was changed or removed since; [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a row that was not found in
    /// a store.
    pub fn forget(&self, store: &dyn CheckpointStore) -> Result<()> {
        let (Some(key), Some(revision)) = (&self.row.place.key, &self.row.revision) else {
            return Err(Error::refused(format!(
                "{}: no open store has it; scan its store itself",
                self.row.place
            )));
        };
        let expect = Expect::Revision(revision.clone());
        let options = DeleteOptions::new().with_expect(expect);
        store.forget(&Key::new(key)?, &options).map(drop)
    }
}
