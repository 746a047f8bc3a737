//! Numbers that a file may write whole or with a fraction.

use serde::Serializer;

/// The largest whole number that a double holds exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a whole number without a fraction, as the protocol does.
#[allow(
    clippy::cast_possible_truncation,
    reason = "only whole numbers that fit are cast"
)]
pub(super) fn serialize<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        None => serializer.serialize_none(),
        Some(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
            serializer.serialize_i64(*number as i64)
        }
        Some(number) => serializer.serialize_f64(*number),
    }
}

/// A number for a person: without a fraction where it has none.
pub(super) fn text(number: f64) -> String {
    // `Display` of a whole double has no fraction.
    number.to_string()
}

/// The number in a text such as `2` or `Phase 2`.
pub(super) fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let head = text
        .get(..5)
        .filter(|head| head.eq_ignore_ascii_case("phase"));
    let rest = head.map_or(text, |head| {
        text[head.len()..].trim_start_matches([' ', '-', '_', ':'])
    });
    let number: f64 = rest.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_phase_is_a_number_with_or_without_the_word() {
        assert_eq!(parse("2"), Some(2.0));
        assert_eq!(parse(" Phase 2 "), Some(2.0));
        assert_eq!(parse("phase-2.5"), Some(2.5));
        for none in ["", "phase", "two", "-1", "inf", "NaN", "Phäse 2"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
