//! Sorts schemas, so that their bytes are always the same.

use serde_json::{Map, Value};

/// Sorts members and required names. Whether serde_json keeps the order of members depends on a feature that any crate
/// may enable, and required names come in the order of the fields.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            let members = members.into_iter().map(|(name, value)| {
                let mut value = sorted(value);
                if let ("required", Value::Array(names)) = (name.as_str(), &mut value) {
                    names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                }
                (name, value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(elements) => elements.into_iter().map(sorted).collect(),
        scalar => scalar,
    }
}
