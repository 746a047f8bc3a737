//! What recording costs.

use std::time::Duration;

/// What the calls of a recorder cost its run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Calls, also those that wrote nothing or were refused.
    pub calls: u64,
    /// Calls that wrote.
    pub saves: u64,
    /// The time in the calls, in all.
    pub spent: Duration,
    /// The sizes of the checkpoints in their compact form, one for each save, added up.
    pub bytes: u64,
}

impl Cost {
    /// The time of a save on average; `None` before the first.
    #[must_use]
    pub fn per_save(&self) -> Option<Duration> {
        let saves = u32::try_from(self.saves).ok().filter(|saves| *saves > 0)?;
        Some(self.spent / saves)
    }

    /// The size of a checkpoint on average, in bytes; `None` before the first save.
    #[must_use]
    pub fn bytes_per_save(&self) -> Option<u64> {
        self.bytes.checked_div(self.saves)
    }

    /// The part of `task`, the time of the run, that went into recording.
    #[must_use]
    pub fn share_of(&self, task: Duration) -> f64 {
        self.spent.as_secs_f64() / task.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(super) fn add(&mut self, spent: Duration, bytes: Option<u64>) {
        self.calls += 1;
        self.spent += spent;
        if let Some(bytes) = bytes {
            self.saves += 1;
            self.bytes += bytes;
        }
    }
}
