//! Generates the texts of an enum as people write them.

use proptest::prelude::*;
use proptest::sample::select;

use crate::checkpoint::OpenEnum;

/// A value of an enum that keeps unknown texts: 3 of 4 a listed text, 1 of 5 a listed text as people write it (in the
/// other case, with blanks, with `-` for `_`, in a sentence), 1 of 20 any text.
///
/// It shrinks to the listed texts.
pub fn any_spelling<E>() -> impl Strategy<Value = E>
where
    E: OpenEnum + Clone + std::fmt::Debug + for<'t> From<&'t str> + 'static,
{
    let known = || select(E::KNOWN);
    prop_oneof![
        15 => known().prop_map(|text| E::from(text)),
        4 => (known(), 0..6_u8).prop_map(|(text, how)| E::from(&respelled(text, how))),
        1 => any::<String>().prop_map(|text| E::from(&text)),
    ]
}

/// Changes a listed text to another spelling.
pub(super) fn respelled(text: &str, how: u8) -> String {
    let other_case: String = if text.chars().any(char::is_lowercase) {
        text.to_uppercase()
    } else {
        text.to_lowercase()
    };
    match how {
        0 => other_case,
        1 => format!("{text} "),
        2 => format!(" {text}"),
        3 if text.contains('_') => text.replace('_', "-"),
        4 => format!("{text} - see the report"),
        _ => text.chars().take(text.chars().count() / 2).collect(),
    }
}
