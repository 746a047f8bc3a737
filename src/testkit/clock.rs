//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

use crate::checkpoint::Clock;

/// A clock that stands still until it is moved, forward or back. Its clones are the same clock.
#[derive(Clone, Debug)]
pub struct MovableClock(Arc<AtomicI64>);

/// In the year 2027.
const START: i64 = 1_800_000_000;

impl Default for MovableClock {
    fn default() -> Self {
        MovableClock::new()
    }
}

impl MovableClock {
    /// A clock at a time that is always the same.
    #[must_use]
    pub fn new() -> Self {
        MovableClock(Arc::new(AtomicI64::new(START)))
    }

    /// Moves it by so many seconds, back when they are negative.
    pub fn step(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.0.load(Ordering::Relaxed), 0).unwrap_or_default()
    }
}
