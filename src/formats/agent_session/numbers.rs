//! Numbers that may be whole or fractional.

use serde::Serializer;

/// The largest whole number up to which every one is a number of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a whole number without a fraction: `0`, not `0.0`.
#[allow(clippy::ref_option, reason = "serde gives a reference to the member")]
pub(super) fn whole_where_it_is<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        None => serializer.serialize_none(),
        Some(number) if number.fract() == 0.0 && number.abs() <= EXACT =>
        {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "whole and within what both types hold"
            )]
            serializer.serialize_i64(*number as i64)
        }
        Some(number) => serializer.serialize_f64(*number),
    }
}
