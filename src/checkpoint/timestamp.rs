//! A point in time that preserves the text it was read from.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time stamp that preserves its text.
///
/// The text is written back exactly as it was read. A text that is not an RFC 3339 time with a zone (a space in
/// place of the `T` is tolerated) has no [`time`](Timestamp::time) and is reported as `bad-timestamp`; it is
/// never dropped. Two stamps are equal if their texts are.
#[derive(Clone)]
pub struct Timestamp {
    text: String,
    time: Option<DateTime<FixedOffset>>,
}

impl Timestamp {
    /// Takes any text; it need not be a time.
    pub fn parse(text: impl Into<String>) -> Timestamp {
        let text = text.into();
        let time = DateTime::parse_from_rfc3339(&text).ok();
        Timestamp { text, time }
    }

    /// A new stamp in UTC, `…Z`, with at least as many digits as `precision` has: 0, 3, 6 or 9.
    #[must_use]
    pub fn at(time: DateTime<Utc>, precision: Precision) -> Timestamp {
        let format = match precision.digits() {
            0 => SecondsFormat::Secs,
            1..=3 => SecondsFormat::Millis,
            4..=6 => SecondsFormat::Micros,
            _ => SecondsFormat::Nanos,
        };
        Timestamp::parse(time.to_rfc3339_opts(format, true))
    }

    /// A new stamp with the precision of the one it replaces; whole seconds where there was none.
    #[must_use]
    pub fn like(before: Option<&Timestamp>, time: DateTime<Utc>) -> Timestamp {
        let precision = before.and_then(Timestamp::precision).unwrap_or_default();
        Timestamp::at(time, precision)
    }

    /// The text, as in the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The time, or `None` if the text is not a time.
    #[must_use]
    pub fn time(&self) -> Option<DateTime<FixedOffset>> {
        self.time
    }

    /// The time as a [`SystemTime`], or `None` if the text is not a time or the platform cannot represent it.
    #[must_use]
    pub fn system_time(&self) -> Option<SystemTime> {
        let time = self.time?;
        let seconds = Duration::from_secs(time.timestamp().unsigned_abs());
        let whole = if time.timestamp() >= 0 {
            SystemTime::UNIX_EPOCH.checked_add(seconds)?
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(seconds)?
        };
        whole.checked_add(Duration::from_nanos(time.timestamp_subsec_nanos().into()))
    }

    /// The precision of the text, or `None` if it is not a time.
    #[must_use]
    pub fn precision(&self) -> Option<Precision> {
        self.time?;
        let digits = self.text.split_once('.').map_or(0, |(_, rest)| {
            rest.bytes().take_while(u8::is_ascii_digit).count()
        });
        Some(Precision(u8::try_from(digits.min(9)).unwrap_or(9)))
    }
}

/// How many digits after the second a stamp has, 0 to 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precision(u8);

impl Precision {
    /// Whole seconds, as the protocols write them.
    pub const SECONDS: Precision = Precision(0);
    /// Milliseconds.
    pub const MILLISECONDS: Precision = Precision(3);
    /// Nanoseconds.
    pub const NANOSECONDS: Precision = Precision(9);

    /// The number of digits after the second.
    #[must_use]
    pub fn digits(self) -> u8 {
        self.0
    }

    /// The duration that one unit of the last digit stands for.
    #[must_use]
    pub fn unit(self) -> Duration {
        Duration::from_nanos(10_u64.pow(9 - u32::from(self.0.min(9))))
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.text == other.text
    }
}

impl Eq for Timestamp {}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({:?})", self.text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer).map(Timestamp::parse)
    }
}

/// The texts that [`Timestamp::parse`] accepts as a time, as a pattern. It is needed beside the format
/// `date-time` of JSON Schema, which refuses the tolerated space.
#[cfg(feature = "schema")]
impl Timestamp {
    const PATTERN: &'static str = concat!(
        "^(",
        // The days of every year,
        "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
        // and the leap day.
        "|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29",
        ")[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)([.][0-9]+)?",
        "([Zz]|[+\u{2212}-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    );
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "anyOf": [{ "format": "date-time" }, { "pattern": Self::PATTERN }]
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_as_it_was() {
        for text in [
            "2026-03-02T08:05:00Z",
            "2026-03-02 08:05:00Z",
            "2026-03-02T08:05:00.1234567+01:00",
            "2026-02-30T00:00:00Z",
            "soon",
            "",
        ] {
            let stamp = Timestamp::parse(text);
            assert_eq!(serde_json::to_string(&stamp).unwrap(), format!("{text:?}"));
        }
    }

    #[test]
    fn only_times_with_a_zone_are_times() {
        for good in [
            "2026-03-02T08:05:00Z",
            "2026-03-02 08:05:00Z",
            "2026-03-02T08:05:00.123-05:00",
        ] {
            assert!(Timestamp::parse(good).time().is_some(), "{good}");
        }
        for bad in [
            "2026-03-02",
            "2026-03-02T08:05:00",
            "2026-02-30T08:05:00Z",
            "N/A",
        ] {
            assert!(Timestamp::parse(bad).time().is_none(), "{bad}");
        }
    }

    #[test]
    fn an_offset_is_honoured() {
        let utc = Timestamp::parse("2026-03-02T08:05:00Z");
        let east = Timestamp::parse("2026-03-02T10:05:00+02:00");
        assert_eq!(utc.system_time(), east.system_time());
        assert_ne!(utc, east);
    }

    #[test]
    fn far_times_do_not_panic() {
        for text in [
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:60Z",
            "1969-12-31T23:59:59.5Z",
        ] {
            assert!(Timestamp::parse(text).system_time().is_some(), "{text}");
        }
    }

    #[test]
    fn new_stamps_have_the_precision_of_the_old() {
        let now = Timestamp::parse("2026-03-02T08:05:00.987654321Z")
            .time()
            .unwrap()
            .to_utc();
        let cases = [
            (None, "2026-03-02T08:05:00Z"),
            (Some("2020-01-01T00:00:00Z"), "2026-03-02T08:05:00Z"),
            (Some("2020-01-01T00:00:00.1Z"), "2026-03-02T08:05:00.987Z"),
            (
                Some("2020-01-01T00:00:00.1234567Z"),
                "2026-03-02T08:05:00.987654321Z",
            ),
            (Some("pending"), "2026-03-02T08:05:00Z"),
        ];
        for (before, after) in cases {
            let before = before.map(Timestamp::parse);
            assert_eq!(Timestamp::like(before.as_ref(), now).text(), after);
        }
    }
}
