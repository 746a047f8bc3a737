//! The protocol's method: compares the time of a file's last change with the checkpoint's stamp.

use crate::quoted;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use super::FileState;
use crate::checkpoint::{FUTURE_TOLERANCE, Timestamp};

/// How much earlier than its true time the kernel may stamp a file.
///
/// Linux stamps files from a clock that ticks every 4 to 10 ms, Windows every 15.6 ms. So a file that was
/// written *after* a time was read can have an earlier stamp.
pub(crate) const FILE_CLOCK_TICK: Duration =
    Duration::from_millis(if cfg!(windows) { 16 } else { 10 });

/// The time of a checkpoint, as precisely as its stamp states it.
pub(super) enum Saved {
    /// At or after the first time and before the second.
    Between(SystemTime, SystemTime),
    /// There is no stamp, or it is not usable.
    Unknown(String),
}

impl Saved {
    pub(super) fn new(stamp: Option<&Timestamp>, now: Option<DateTime<Utc>>) -> Saved {
        let Some(stamp) = stamp else {
            return Saved::Unknown("the checkpoint has no time stamp".to_owned());
        };
        let latest = now.and_then(|now| now.checked_add_signed(FUTURE_TOLERANCE));
        if latest.is_some_and(|latest| stamp.time().is_some_and(|time| time > latest)) {
            return Saved::Unknown(format!(
                "the checkpoint's time stamp {stamp} lies in the future"
            ));
        }
        let times = stamp.system_time().zip(stamp.precision());
        let between = times.and_then(|(from, precision)| {
            Some(Saved::Between(from, from.checked_add(precision.unit())?))
        });
        between.unwrap_or_else(|| {
            Saved::Unknown(format!(
                "the checkpoint's time stamp {} is not a time",
                quoted(stamp.text())
            ))
        })
    }

    pub(super) fn judge(&self, modified: SystemTime) -> FileState {
        match self {
            Saved::Unknown(reason) => FileState::Indeterminate {
                reason: reason.clone(),
            },
            Saved::Between(from, until) => compare(modified, *from, *until),
        }
    }
}

fn compare(modified: SystemTime, from: SystemTime, until: SystemTime) -> FileState {
    let surely_before = modified
        .checked_add(FILE_CLOCK_TICK)
        .is_some_and(|latest| latest < from);
    if surely_before {
        FileState::Unchanged
    } else if modified >= until {
        FileState::Modified { modified }
    } else {
        FileState::Indeterminate {
            reason:
                "modified too close to the time stamp of the checkpoint to tell which came first"
                    .to_owned(),
        }
    }
}
