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
//! There are two of each type, one for each [`Contract`]. The bytes are the same on every run and whatever
//! features other crates switch on: keys are sorted, and nothing depends on the order of anything.

mod contract;
mod list;
mod number;
mod sorted;

use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

pub use crate::checkpoint::Shape;
pub use contract::Contract;
pub(crate) use list::BASE;
pub use list::Schemas;

use crate::checkpoint::Result;

/// The JSON Schema of a type, for reading and writing alike, without `$id`: [`Schemas`] adds it, from the format and its versions.
#[must_use]
pub fn schema<T: JsonSchema>() -> Value {
    // A default of the reader is no default of the format: what is absent has no value.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
    });
    let settings = SchemaSettings::draft2020_12()
        .with_transform(without_defaults)
        .with_transform(RecursiveTransform(number::in_keywords));
    // A save edits the text that is there, so what it writes lacks no more and no less than what is read.
    let generator = settings.for_deserialize().into_generator();
    sorted::sorted(generator.into_root_schema_for::<T>().to_value())
}

/// Writes the schemas of all formats of the library into a folder: see [`Schemas::write_all`].
///
/// # Errors
///
/// Those of [`Schemas::write_all`].
pub fn write_all(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    Schemas::default().write_all(folder)
}
