//! Numbers that a file may spell whole or fractional.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// The largest number up to which every whole one has its own `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

struct Number(f64);

impl Serialize for Number {
    /// A whole number without a fraction: `65`, not `65.0`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.0;
        let negative_zero = number == 0.0 && number.is_sign_negative();
        if number.fract() == 0.0 && number.abs() < EXACT && !negative_zero {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "whole and within the range"
            )]
            serializer.serialize_i64(number as i64)
        } else {
            serializer.serialize_f64(number)
        }
    }
}

#[allow(clippy::ref_option, reason = "serde gives the field by reference")]
pub(super) fn plain<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(Number).serialize(serializer)
}

pub(super) fn plain_in_map<S: Serializer>(
    numbers: &BTreeMap<String, Option<f64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        numbers
            .iter()
            .map(|(name, number)| (name, number.map(Number))),
    )
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn a_whole_number_has_no_fraction() {
        for (number, text) in [
            (65.0, "65"),
            (65.5, "65.5"),
            (-1.0, "-1"),
            (-0.0, "-0.0"),
            (1e300, "1e+300"),
        ] {
            assert_eq!(serde_json::to_string(&Number(number)).unwrap(), text);
        }
    }
}
