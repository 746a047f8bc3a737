//! JSON Schemas (draft 2020-12) of checkpoint types: those of the library and your own.
//!
//! Feature `schema`. A schema accepts exactly the documents that load without a violation of shape. Such violations are
//! a value of the wrong type, a missing required member, a text that the format does not list, a number out of range, a
//! text that is too long, and a text that is no valid id or time. The reader accepts many more documents, and reports
//! their violations. Rules that compare values (counts, buckets, what belongs to a status) are not in the schema;
//! [`inspect`](crate::Checkpoint::inspect) checks those.
//!
//! Write them from a `build.rs`, so that they are available beside your own at build time:
//!
//! ```
//! use agent_checkpoint::schema::Schemas;
//! # use agent_checkpoint::formats::task::TaskCheckpoint as Errand;
//!
//! # fn build() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! // let folder = std::env::var("OUT_DIR")?;
//! let written = Schemas::default().with::<Errand>().write_all(folder)?;
//! assert!(written.iter().any(|path| path.ends_with("task.read.schema.json")));
//! # Ok(())
//! # }
//! # build().unwrap();
//! ```
//!
//! Each type has two schemas, one for each [`Contract`]. Their bytes are the same on every run and with any features
//! that other crates enable: keys are sorted, and nothing depends on an order.

mod list;
mod number;

use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

pub use crate::checkpoint::Shape;
pub(crate) use list::BASE;
pub use list::{Contract, Schemas};

use crate::checkpoint::Result;

/// The JSON Schema of a type, the same for reading and writing. It has no `$id`; [`Schemas`] adds one for the format
/// and its version.
#[must_use]
pub fn schema<T: JsonSchema>() -> Value {
    // A default of the reader is no default of the format: an absent member has no value.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
    });
    let settings = SchemaSettings::draft2020_12()
        .with_transform(without_defaults)
        .with_transform(RecursiveTransform(number::in_keywords));
    // A save edits the existing text, so what is written has the same members as what is read.
    let generator = settings.for_deserialize().into_generator();
    sorted(generator.into_root_schema_for::<T>().to_value())
}

/// Writes the schemas of all formats of the library into a folder; see [`Schemas::write_all`].
///
/// # Errors
///
/// Those of [`Schemas::write_all`].
pub fn write_all(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    Schemas::default().write_all(folder)
}

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
