//! The numbers of phases and counts, as texts.

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
    // From 2^53 on a number in the file would be another than the one that was given.
    (0.0..9_007_199_254_740_992.0)
        .contains(&number)
        .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_phase_is_a_number_with_or_without_the_word() {
        assert_eq!(parse("2"), Some(2.0));
        assert_eq!(parse(" Phase 2 "), Some(2.0));
        assert_eq!(parse("phase-2.5"), Some(2.5));
        for none in [
            "",
            "phase",
            "two",
            "-1",
            "inf",
            "NaN",
            "9007199254740993",
            "Phäse 2",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
