//! JSON values as templates see them.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// A value whose numbers serialize as numbers. If another crate of the program enables serde_json's feature
/// `arbitrary_precision`, a number would serialize as a map with a private name.
pub(super) struct Plain<'v>(pub(super) &'v Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), ..) => serializer.serialize_i64(whole),
                (None, Some(whole), _) => serializer.serialize_u64(whole),
                (None, None, Some(number)) => serializer.serialize_f64(number),
                (None, None, None) => serializer.serialize_str(&number.to_string()),
            },
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Plain(value))?;
                }
                list.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &Plain(value))?;
                }
                map.end()
            }
        }
    }
}
