//! Times for people.

use agent_checkpoint::Timestamp;
use agent_checkpoint::quoted;
use chrono::{DateTime, Utc};

/// How long ago a stamp was, such as `3 h 20 min ago`.
pub(crate) fn age(stamp: Option<&Timestamp>, now: DateTime<Utc>) -> String {
    let Some(stamp) = stamp else {
        return "unknown".to_owned();
    };
    let Some(time) = stamp.time() else {
        let text: String = stamp.text().chars().take(80).collect();
        return format!(
            "unknown: {text} is no time with a zone",
            text = quoted(&text)
        );
    };
    let seconds = now.signed_duration_since(time).num_seconds();
    let length = span(seconds.unsigned_abs());
    if seconds < 0 {
        format!("{length} in the future")
    } else {
        format!("{length} ago")
    }
}

fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        (730.., _, _) => format!("{} years", days / 365),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = Timestamp::parse("2026-03-02T12:00:00Z")
            .time()
            .unwrap()
            .to_utc();
        for (stamp, text) in [
            ("2026-03-02T11:59:59Z", "1 s ago"),
            ("2026-03-02T11:45:59Z", "14 min ago"),
            ("2026-03-02T08:40:00Z", "3 h 20 min ago"),
            ("2026-02-28T11:00:00Z", "2 d 1 h ago"),
            ("2026-03-02T14:05:00+02:00", "5 min in the future"),
            ("2098-11-28T06:00:00Z", "72 years in the future"),
            ("2024-03-03T12:00:00Z", "729 d 0 h ago"),
            ("soon", "unknown: \"soon\" is no time with a zone"),
        ] {
            let stamp = Timestamp::parse(stamp);
            assert_eq!(age(Some(&stamp), now), text);
        }
        assert_eq!(age(None, now), "unknown");
    }
}
