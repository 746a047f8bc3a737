//! What is no row, so that nothing is passed over silently.

use std::path::PathBuf;

use serde::Serialize;

/// A `.json` file, or a key of a store, that is no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Which: a path, or the name of a store and the key.
    pub what: String,
    /// Why.
    pub why: WhyLeftOut,
}

/// Why a file is no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyLeftOut {
    /// It is of no format that is known.
    Foreign,
    /// It is no document, and nothing speaks for its being a checkpoint.
    NoDocument,
    /// A checkpoint that was put aside, or a backup.
    Archive,
    /// A host file without a checkpoint in it.
    NoCheckpoint,
    /// A symbolic link; what it leads to is a row where it lies.
    Link,
    /// No file: a pipe, a socket, a device.
    NotAFile,
}

/// A folder or store that was not looked into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotScanned {
    /// The folder, or the store by its name.
    pub place: PathBuf,
    /// Why.
    pub why: WhyNotScanned,
}

/// Why a folder was not looked into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyNotScanned {
    /// It is deeper than was asked for.
    TooDeep,
    /// It is a symbolic link to a folder.
    Link,
    /// It holds dependencies, what a build makes, or version control.
    Ignored,
    /// It could not be read.
    Unreadable(String),
}
