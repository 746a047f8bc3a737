//! The limits of Rust's numbers as keywords of JSON Schema.

use schemars::Schema;
use serde_json::{Number, Value};

/// Puts what schemars says in `format` (`uint64`) into keywords that validators look at.
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
        _ => return,
    };
    schema.remove("format");
    for (keyword, limit) in [("minimum", limits.0), ("maximum", limits.1)] {
        if !schema.get(keyword).is_some_and(Value::is_number) {
            schema.insert(keyword.to_owned(), limit.into());
        }
    }
}
