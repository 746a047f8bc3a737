//! What a scan skips and why. No file or folder is skipped silently.

use serde::{Serialize, Serializer};

/// A `.json` file or a key that is no row, or a folder or store that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// A path, the name of a store, or the name of a store and a key.
    pub what: String,
    /// The reason.
    pub why: SkipReason,
}

/// Why a file, a key, a folder or a store was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// A file of no known format.
    Foreign,
    /// A file that is no JSON document, without evidence that it is a checkpoint.
    NoDocument,
    /// An archived checkpoint, or a backup.
    Archive,
    /// A host file without a checkpoint in it.
    NoCheckpoint,
    /// A symbolic link to a file. The file itself is a row where it lies.
    Link,
    /// A pipe, a socket, or a device.
    NotAFile,
    /// A folder that is deeper than [`FleetOptions::with_depth`](super::FleetOptions::with_depth) allows.
    TooDeep,
    /// A symbolic link to a folder.
    #[serde(rename = "link")]
    LinkedFolder,
    /// A folder of dependencies, build output, or version control.
    Ignored,
    /// A folder or a store that could not be read.
    Unreadable(String),
}

impl SkipReason {
    /// Whether the reason concerns a folder or a store, and not a file or a key.
    #[must_use]
    pub fn is_of_folder(&self) -> bool {
        use SkipReason::{Ignored, LinkedFolder, TooDeep, Unreadable};
        matches!(self, TooDeep | LinkedFolder | Ignored | Unreadable(_))
    }
}

/// Writes files and folders as two lists.
pub(super) fn as_two_lists<S: Serializer>(
    skipped: &[Skipped],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct File<'s> {
        what: &'s str,
        why: &'s SkipReason,
    }
    #[derive(Serialize)]
    struct Folder<'s> {
        place: &'s str,
        why: &'s SkipReason,
    }
    #[derive(Serialize)]
    struct Lists<'s> {
        left_out: Vec<File<'s>>,
        not_scanned: Vec<Folder<'s>>,
    }
    let (folders, files): (Vec<_>, Vec<_>) = skipped.iter().partition(|it| it.why.is_of_folder());
    let lists = Lists {
        left_out: files
            .into_iter()
            .map(|Skipped { what, why }| File { what, why })
            .collect(),
        not_scanned: folders
            .into_iter()
            .map(|Skipped { what, why }| Folder { place: what, why })
            .collect(),
    };
    lists.serialize(serializer)
}
