//! JSON Schema of checkpoint types.
//!
//! Feature `schema`. Call it from a `build.rs` to have the schemas beside your own at build time.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// For which side a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contract {
    /// What may be read: `null` stands for an absent value where the type takes it.
    Read,
    /// What is written.
    Write,
}

/// The JSON Schema (draft 2020-12) of a type, with sorted keys: the same on every run, whatever
/// features other crates switch on.
#[must_use]
pub fn schema<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings = match contract {
        Contract::Read => settings.for_deserialize(),
        Contract::Write => settings.for_serialize(),
    };
    sorted(
        settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value(),
    )
}

/// Whether members keep their order depends on a feature of serde_json that any crate may switch on.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            let members = members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(elements) => elements.into_iter().map(sorted).collect(),
        scalar => scalar,
    }
}
