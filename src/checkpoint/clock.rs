//! The source of the present time.

use chrono::{DateTime, Utc};

/// A source of the present time.
///
/// Everything that decides by time takes it from a clock that the caller passes in, so that a verdict can be
/// repeated.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that never advances, for tests and for replaying a decision.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub DateTime<Utc>);

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}
