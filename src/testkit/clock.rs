//! A clock that a test sets forward and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

use crate::checkpoint::Clock;

/// A clock that changes only when a test moves it, forward or back. Its clones are the same clock.
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
    /// Creates a clock at a fixed time in the year 2027.
    #[must_use]
    pub fn new() -> Self {
        MovableClock(Arc::new(AtomicI64::new(START)))
    }

    /// Moves the clock by this many seconds, back if they are negative.
    pub fn step(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.0.load(Ordering::Relaxed), 0).unwrap_or_default()
    }
}
