//! JSON Schema (draft 2020-12) of checkpoint types: those of the library and your own.
//!
//! Feature `schema`. A schema accepts exactly the documents that load without a violation of shape: a value of the
//! wrong type, a required member that is missing, a text that the format does not list, a number out of range, a
//! text that is too long, an id or a time that is none. The reader takes many more, and reports what is wrong with
//! them. Rules that compare values (counts, buckets, what goes with a status) are not in the schema: those are
//! [`inspect`](crate::Checkpoint::inspect)'s.
//!
//! Write them from a `build.rs`, so that they lie beside your own at build time:
//!
//! ```
//! use agent_checkpoint::schema::Schemas;
//! # use agent_checkpoint::TaskCheckpoint as Errand;
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
//! There are three of each type, one for each [`Contract`]. The bytes are the same on every run and whatever
//! features other crates switch on: keys are sorted, and nothing depends on the order of anything.

mod contract;
mod list;
mod number;
mod sorted;
mod tool;

use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

pub use crate::checkpoint::Shape;
pub use contract::Contract;
pub use list::Schemas;
pub use tool::value_of_tool_input;

use crate::checkpoint::{Error, Result};

/// The JSON Schema of a type, without `$id`: that is given by [`Schemas`], which knows formats and versions.
///
/// For [`Contract::Tool`], a type that no strict schema can say has one that leaves something out; [`tool_schema`]
/// tells.
#[must_use]
pub fn schema<T: JsonSchema>(contract: Contract) -> Value {
    with_refusals::<T>(contract).0
}

/// The strict JSON Schema of a type, for the input of a model's tool: that of [`Contract::Tool`].
///
/// ```
/// use agent_checkpoint::schema::tool_schema;
///
/// #[derive(schemars::JsonSchema)]
/// struct Place {
///     at: (f64, f64),
/// }
///
/// let error = tool_schema::<Place>().unwrap_err().to_string();
/// assert!(error.contains("Place") && error.contains("/properties/at"), "{error}");
/// ```
///
/// # Errors
///
/// [`Refused`](crate::checkpoint::ErrorKind::Refused), with the type and the place, where a strict schema cannot say
/// it: tuples, flattened maps and enums, internally tagged variants that hold a type of their own, `allOf`.
pub fn tool_schema<T: JsonSchema>() -> Result<Value> {
    let (value, refused) = with_refusals::<T>(Contract::Tool);
    if refused.is_empty() {
        return Ok(value);
    }
    Err(Error::refused(format!(
        "no strict schema can say {}: {}",
        T::schema_name(),
        refused.join("; ")
    )))
}

fn with_refusals<T: JsonSchema>(contract: Contract) -> (Value, Vec<String>) {
    let mut value = raw::<T>();
    let mut refused = Vec::new();
    if contract == Contract::Tool {
        tool::strict(&mut value, "#", &mut refused);
    }
    sorted::without_marks(&mut value);
    (sorted::sorted(value), refused)
}

/// Writes the schemas of all formats of the library into a folder: see [`Schemas::write_all`].
///
/// # Errors
///
/// Those of [`Schemas::write_all`].
pub fn write_all(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    Schemas::default().write_all(folder)
}

/// The schema with the marks of [`Shape`].
fn raw<T: JsonSchema>() -> Value {
    // A default of the reader is no default of the format: what is absent has no value.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
    });
    let settings = SchemaSettings::draft2020_12()
        .with_transform(without_defaults)
        .with_transform(RecursiveTransform(number::in_keywords));
    // A save edits the text that is there, so what it writes lacks no more and no less than what is read.
    settings
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
