//! Where "now" comes from.

use chrono::{DateTime, Utc};

/// A source of the present time.
///
/// Whatever decides something takes the time from a clock that the caller gave, so that a verdict
/// can be repeated.
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

/// A clock that stands still, for tests and for replaying a decision.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub DateTime<Utc>);

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}
