//! Translates the limits of Rust's number types to keywords of JSON Schema.

use schemars::Schema;
use serde_json::{Number, Value};

/// Replaces the `format` of schemars (`uint64`) by keywords that validators check.
pub(super) fn in_keywords(schema: &mut Schema) {
    let limits: (Number, Number) = match schema.get("format").and_then(Value::as_str) {
        Some("double" | "float") => {
            schema.remove("format");
            return;
        }
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0.into(), u8::MAX.into()),
        Some("uint16") => (0.into(), u16::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("uint64" | "uint") => (0.into(), u64::MAX.into()),
        Some("int128") => return beyond_integers(schema, Some(-I128_END), I128_END),
        Some("uint128") => return beyond_integers(schema, None, U128_END),
        _ => return,
    };
    schema.remove("format");
    for (keyword, limit) in [("minimum", limits.0), ("maximum", limits.1)] {
        if !schema.get(keyword).is_some_and(Value::is_number) {
            schema.insert(keyword.to_owned(), limit.into());
        }
    }
}

/// 2^127 and 2^128. As powers of two they are exact.
const I128_END: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
const U128_END: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;

/// Adds the limits of 128-bit numbers. JSON readers have no integers of that size, and only the first float beyond the
/// limit is exact.
fn beyond_integers(schema: &mut Schema, least: Option<f64>, end: f64) {
    schema.remove("format");
    let least = least.map_or_else(|| Value::from(0), Value::from);
    for (keyword, limit) in [("minimum", least), ("exclusiveMaximum", end.into())] {
        if !schema.get(keyword).is_some_and(Value::is_number) {
            schema.insert(keyword.to_owned(), limit);
        }
    }
}
