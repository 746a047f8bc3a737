//! A whole or fractional number.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in a file, such as a stage, a score or a count.
///
/// It may be whole or fractional; a whole one is written without a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Number(f64);

/// Up to this number an `f64` represents every whole number exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Number {
    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// The number, if it is whole and not negative.
    #[must_use]
    pub fn whole(self) -> Option<u64> {
        let whole = self.0.fract() == 0.0 && (0.0..=EXACT).contains(&self.0);
        whole.then_some(self.0 as u64)
    }

    /// An error text if the number is outside this range, bounds included.
    pub(super) fn outside(self, least: u32, most: u32) -> Option<String> {
        let is_within = (f64::from(least)..=f64::from(most)).contains(&self.0);
        (!is_within).then(|| format!("{self} is not within {least} to {most}"))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Number(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Number(number.into())
    }
}

impl From<u8> for Number {
    fn from(number: u8) -> Self {
        Number(number.into())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.fract() == 0.0 && number.abs() <= EXACT => {
                serializer.serialize_i64(number as i64)
            }
            number => serializer.serialize_f64(number),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Number)
    }
}

#[cfg(feature = "proptest")]
crate::checkpoint::arbitrary! {
    /// Whole from 0 to 100 3 of 4, else with one digit after the point.
    Number => Number::between(0, 100);
}

#[cfg(feature = "proptest")]
impl Number {
    /// Whole 3 of 4, else with one digit after the point.
    pub(super) fn between(
        least: u32,
        most: u32,
    ) -> impl proptest::strategy::Strategy<Value = Number> {
        use proptest::strategy::Strategy;
        proptest::prop_oneof![
            3 => (least..=most).prop_map(Number::from),
            1 => (least * 10..=most * 10).prop_map(|tenths| Number::from(f64::from(tenths) / 10.0)),
        ]
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn a_whole_number_is_written_without_a_fraction() {
        for (read, written) in [("4", "4"), ("4.0", "4"), ("92.5", "92.5"), ("-1", "-1")] {
            let number: Number = serde_json::from_str(read).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), written);
            assert_eq!(number.to_string(), written);
        }
        assert_eq!(Number::from(2.5).whole(), None);
        assert_eq!(Number::from(-1.0).whole(), None);
        assert_eq!(Number::from(3_u32).whole(), Some(3));
    }
}
