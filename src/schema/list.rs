//! The schemas of several formats, with ids and files.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{schema, sorted};
use crate::checkpoint::{Checkpoint, Error, Result, SchemaVersion};
use crate::fsio::{self, Present};
use crate::quoted;

/// The prefix of the ids of the library's own schemas. They are names and not addresses.
pub(crate) const BASE: &str = "urn:agent-checkpoint:";

/// The schemas of several formats; by default those of every format of the library.
///
/// ```
/// use agent_checkpoint::schema::{Contract, Schemas};
///
/// let task = Schemas::default().get("task", Contract::Read).unwrap();
/// assert_eq!(task["$id"], "urn:agent-checkpoint:task.1.read");
/// assert_eq!(task["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// ```
#[derive(Clone, Debug)]
pub struct Schemas(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    base: String,
    versions: &'static [SchemaVersion],
    make: fn() -> Value,
}

impl Schemas {
    /// No schemas.
    #[must_use]
    pub fn none() -> Schemas {
        Schemas(Vec::new())
    }

    /// Adds the schema of a format, replacing one with the same name. Its ids begin with `urn:agent-checkpoint:`.
    #[must_use]
    pub fn with<C: Checkpoint + JsonSchema>(self) -> Schemas {
        self.with_ids_from::<C>(BASE)
    }

    /// Adds the schema of a format, with ids that begin with your own prefix, such as
    /// `https://orchestrator.example/schemas/`.
    #[must_use]
    pub fn with_ids_from<C: Checkpoint + JsonSchema>(self, base: impl Into<String>) -> Schemas {
        self.with_entry(C::FORMAT, base, C::SCHEMA_VERSIONS, schema::<C>)
    }

    pub(crate) fn with_entry(
        mut self,
        name: &str,
        base: impl Into<String>,
        versions: &'static [SchemaVersion],
        make: fn() -> Value,
    ) -> Schemas {
        self.0.retain(|entry| entry.name != name);
        self.0.push(Entry {
            name: name.to_owned(),
            base: base.into(),
            versions,
            make,
        });
        self
    }

    /// Keeps only the schemas of one format; none if no format has this name.
    #[must_use]
    pub fn only(mut self, name: &str) -> Schemas {
        self.0.retain(|entry| entry.name == name);
        self
    }

    /// The names of the formats.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.name.as_str())
    }

    /// The released versions of a format's schema, oldest first, each with a one-line summary.
    #[must_use]
    pub fn versions(&self, name: &str) -> &'static [SchemaVersion] {
        self.entry(name).map_or(&[], |entry| entry.versions)
    }

    /// The schema of a format, with an `$id` that names the version, and a comment with all versions; `None` if no
    /// format has this name.
    #[must_use]
    pub fn get(&self, name: &str, contract: Contract) -> Option<Value> {
        self.entry(name).map(|entry| entry.schema(contract))
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.name == name)
    }

    /// Writes all schemas into a folder, which is created if missing, and returns the files:
    /// `{format}.{contract}.schema.json` for each format and each [`Contract`].
    ///
    /// A file that already has these bytes is not touched, so that a build script causes no rebuild. Each file is
    /// replaced as a whole, so that no reader sees half of one.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::checkpoint::ErrorKind::Refused) when the name of a format cannot be a file name, which must
    /// consist of lower case letters, digits, `-`, `_` and, after the first, `.`; and the errors of creating the folder
    /// or writing a file, with the path.
    pub fn write_all(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for &contract in Contract::ALL {
            files.extend(self.write(folder.as_ref(), contract)?);
        }
        files.sort();
        Ok(files)
    }

    /// Writes the schemas of one contract into a folder, like [`write_all`](Schemas::write_all).
    ///
    /// # Errors
    ///
    /// Those of [`write_all`](Schemas::write_all).
    pub fn write(&self, folder: impl AsRef<Path>, contract: Contract) -> Result<Vec<PathBuf>> {
        let folder = folder.as_ref();
        for entry in &self.0 {
            check_name(&entry.name)?;
        }
        fsio::create_folder_durably(folder)?;
        let written = self.0.iter().map(|entry| {
            let path = folder.join(format!("{}.{contract}.schema.json", entry.name));
            let text = format!("{:#}\n", entry.schema(contract));
            if !std::fs::read(&path).is_ok_and(|present| present == text.as_bytes()) {
                fsio::replace(&path, text.as_bytes(), Present::Whatever)?;
            }
            Ok(path)
        });
        written.collect()
    }
}

/// Refuses a name that cannot be part of a file name, or would lead out of the folder.
fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if !name.is_empty() && !name.starts_with('.') && name.chars().all(fits) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the format {name} can name no file of a schema: use lower case letters, digits, `-`, `_`, and `.` after \
         the first",
        name = quoted(name)
    )))
}

impl Entry {
    fn schema(&self, contract: Contract) -> Value {
        let version = self.versions.last().map_or(1, |version| version.number);
        let mut members = Map::new();
        members.insert(
            "$id".to_owned(),
            format!("{}{}.{version}.{contract}", self.base, self.name).into(),
        );
        if !self.versions.is_empty() {
            let notes = self.versions.iter();
            let notes: Vec<_> = notes
                .map(|version| format!("{}: {}", version.number, version.summary))
                .collect();
            let comment = format!("Versions of {}. {}", self.name, notes.join(" "));
            members.insert("$comment".to_owned(), comment.into());
        }
        if let Value::Object(of_type) = (self.make)() {
            members.extend(of_type);
        }
        sorted(Value::Object(members))
    }
}

/// The contract of a schema: whether it describes what is read or what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Contract {
    /// The documents that are read without a violation of shape.
    Read,
    /// The documents that this library writes: the same. A new text has every list, even an empty one; but a save edits
    /// the existing text, and adds nothing that it lacks.
    Write,
}

impl Contract {
    /// Both contracts.
    pub const ALL: &'static [Contract] = &[Contract::Read, Contract::Write];

    /// Its name in file names and ids: `read`, `write`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Contract::Read => "read",
            Contract::Write => "write",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
