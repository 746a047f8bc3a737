//! JSON Schema of checkpoint types.
//!
//! Feature `schema`. A schema describes the files that are *valid* by their protocol; the reader takes
//! many more, and reports what is wrong with them. Call it from a `build.rs` to have the schemas beside your own at build time.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// For which side a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contract {
    /// A valid file: it has what the protocol requires.
    Read,
    /// A file as this library writes it: it has the empty lists as well.
    Write,
}

/// The JSON Schema (draft 2020-12) of a type, with sorted keys: the same on every run, whatever
/// features other crates switch on.
#[must_use]
pub fn schema<T: JsonSchema>(contract: Contract) -> Value {
    // A default of the reader is no default of the format: what is absent has no value.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
    });
    let settings = SchemaSettings::draft2020_12().with_transform(without_defaults);
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
