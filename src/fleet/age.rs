//! Ages, in the words of the STATUS table.

use chrono::{DateTime, Utc};

use crate::checkpoint::{FUTURE_TOLERANCE, Timestamp};

/// How long ago a stamp was, such as `2 min ago`; the stamp itself where it is no time, or ahead of the
/// clock.
pub(super) fn age(stamp: Option<&Timestamp>, now: DateTime<Utc>) -> String {
    let Some(stamp) = stamp else {
        return "—".to_owned();
    };
    let Some(time) = stamp.time() else {
        return stamp.to_string();
    };
    let age = now.signed_duration_since(time);
    match age.num_minutes() {
        _ if age < -FUTURE_TOLERANCE => stamp.to_string(),
        ..=0 => "just now".to_owned(),
        minutes @ 1..60 => format!("{minutes} min ago"),
        minutes @ 60..1440 => format!("{} h ago", minutes / 60),
        minutes => format!("{} d ago", minutes / 1440),
    }
}
