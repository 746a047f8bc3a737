//! Values at the limits of a format: numbers, times and texts.

use proptest::prelude::*;
use proptest::sample::select;

use super::edit::{Edit, is_text, quoted};
use super::spelling::respelled;
use crate::checkpoint::Limits;

/// Numbers in spellings on which readers disagree.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.0",
    "0.5",
    "1e2",
    "1E+2",
    "100e-2",
    "2",
    "3",
    "4",
    "5",
    "10",
    "11",
    "99.5",
    "100",
    "100.5",
    "101",
    "4.0000000000000001",
    "2147483648",
    "4294967296",
    "9007199254740991",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "1.7976931348623157e308",
    "5e-324",
    "1e-400",
];

/// Numbers beyond the range of `f64`: many readers refuse the whole text.
const BEYOND_F64: &[&str] = &["1e400", "-1e400", "1.8e308"];

/// Times, and texts that look like times, at the edges of RFC 3339.
const TIMES: &[&str] = &[
    "2026-03-04T09:15:42Z",
    "2026-03-04 09:15:42Z",
    "2026-03-04t09:15:42z",
    "2026-03-04T09:15:42z",
    "2026-03-04_09:15:42Z",
    "2026-03-04T09:15:42",
    "2026-03-04",
    "09:15:42Z",
    "2026-03-04T09:15Z",
    "2026-03-04T09:15:42 Z",
    " 2026-03-04T09:15:42Z",
    "2026-03-04T09:15:42Z ",
    "2026-03-04T09:15:42Z\n",
    "2026-03-04T24:00:00Z",
    "2026-03-04T23:59:60Z",
    "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:61Z",
    "2026-03-04T12:00:60Z",
    "2017-01-01T00:59:60+01:00",
    "2026-03-04T09:60:00Z",
    "2026-03-04T09:15:42+14:00",
    "2026-03-04T09:15:42-12:00",
    "2026-03-04T09:15:42+23:59",
    "2026-03-04T09:15:42+24:00",
    "2026-03-04T09:15:42+00:60",
    "2026-03-04T09:15:42-00:00",
    "2026-03-04T09:15:42+00:00",
    "2026-03-04T09:15:42+0100",
    "2026-03-04T09:15:42+01",
    "2026-03-04T09:15:42\u{2212}01:00",
    "2026-03-04T09:15:42 UTC",
    "2026-02-30T00:00:00Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "2024-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-00-10T00:00:00Z",
    "2026-13-10T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-1-2T3:04:05Z",
    "2026-03-04T09:15:42.Z",
    "2026-03-04T09:15:42.1Z",
    "2026-03-04T09:15:42,5Z",
    "2026-03-04T09:15:42.123456789Z",
    "2026-03-04T09:15:42.1234567891Z",
    "2026-03-04T09:15:42.123456789012345678901234567890Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.5Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z",
    "+2026-03-04T09:15:42Z",
    "２０２６-03-04T09:15:42Z",
    "2026-W10-3T09:15:42Z",
    "2026-063T09:15:42Z",
    "20260304T091542Z",
    "Wed, 04 Mar 2026 09:15:42 GMT",
    "1772615742",
    "soon",
    "",
];

/// The letters of long texts, each of one or more code points: ASCII, two bytes, outside the basic plane, and a letter
/// with a combining mark.
const LETTERS: &[&str] = &["x", "é", "😀", "e\u{301}"];

/// A number in some spelling: 1 of 20 is beyond `f64`, 1 of 5 any `i64`, `u64` or `f64`, the rest are at an edge.
pub(super) fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        15 => select(NUMBERS).prop_map(str::to_owned),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<u64>().prop_map(|number| number.to_string()),
        2 => (-1e9..1e9).prop_map(|number: f64| number.to_string()),
        1 => select(BEYOND_F64).prop_map(str::to_owned),
    ]
}

/// A time or a text that looks like one, in quotes. All spellings are equally frequent; about half are invalid in RFC
/// 3339.
pub(super) fn time() -> impl Strategy<Value = String> {
    select(TIMES).prop_map(quoted)
}

/// JSON of any type: `null`, a boolean, a number, a time, any text, an empty list or object, or (1 of 12) lists or
/// objects nested up to 60 levels deep.
pub(super) fn scalar_or_deep() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("null".to_owned()),
        1 => any::<bool>().prop_map(|value| value.to_string()),
        3 => number(),
        1 => time(),
        2 => any::<String>().prop_map(|text| quoted(&text)),
        1 => Just("[]".to_owned()),
        1 => Just("{}".to_owned()),
        1 => (1..60_usize, any::<bool>()).prop_map(|(depth, in_lists)| {
            let (open, close) = if in_lists { ("[", "]") } else { ("{\"deep\":", "}") };
            format!("{}null{}", open.repeat(depth), close.repeat(depth))
        }),
    ]
}

/// Changes a text slightly (9 of 10, each way equally frequent): empty, as long as a limit (100 or 200 code points) or
/// one longer, another spelling, an addition at one end, other digits, one letter more or less. Otherwise any text.
pub(super) fn near_text() -> impl Strategy<Value = Edit> {
    let limits = Limits::default();
    let lengths: Vec<usize> = [limits.rationale, limits.partial_work]
        .into_iter()
        .flatten()
        .flat_map(|limit| [limit, limit + 1])
        .collect();
    let before = select(vec![" ", "-", "x", "../", "\u{feff}", "0"]);
    // A `$` in a pattern may ignore a final line end.
    let after = select(vec![" ", "\n", "-", "x", "/x", "\0", "0", "\u{301}"]);
    prop_oneof![
        2 => Just(edit(|_| String::new())),
        2 => (select(LETTERS), select(lengths)).prop_map(|(letter, length)| {
            edit(move |_| letter.chars().cycle().take(length).collect())
        }),
        4 => (0..6_u8).prop_map(|how| edit(move |text| respelled(text, how))),
        2 => before.prop_map(|more| edit(move |text| format!("{more}{text}"))),
        2 => after.prop_map(|more| edit(move |text| format!("{text}{more}"))),
        2 => Just(edit(|text| text.chars().map(in_other_digits).collect())),
        1 => Just(edit(|text| text.chars().chain(text.chars().last().or(Some('x'))).collect())),
        1 => Just(edit(|text| text.chars().take(text.chars().count().saturating_sub(1)).collect())),
        2 => any::<String>().prop_map(|other| edit(move |_| other.clone())),
    ]
}

fn edit(change: impl Fn(&str) -> String + Send + Sync + 'static) -> Edit {
    Edit::of("text", is_text, move |value| {
        quoted(&change(&value.as_str().unwrap_or_default()))
    })
}

/// The digit in Arabic script; other letters are unchanged.
fn in_other_digits(letter: char) -> char {
    letter
        .to_digit(10)
        .and_then(|digit| char::from_u32(u32::from('٠') + digit))
        .unwrap_or(letter)
}
