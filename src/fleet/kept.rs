//! What a row keeps of its checkpoint besides its public fields: what the comparison of rows needs, and what a later
//! scan needs to judge it again without reading it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use chrono::TimeDelta;

use crate::checkpoint::{Key, Notice, Pulse};
use crate::fsio::FileStamp;
use crate::staleness::FILE_CLOCK_TICK;
use crate::store::ListedLedger;

/// What the comparison of rows and a later scan need of a checkpoint.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The index of its source.
    pub(super) project: usize,
    /// The id in the document.
    pub(super) id: Option<Key>,
    /// Whether the id is the agent's, so that the checkpoint belongs to an agent and not to a task.
    pub(super) is_agent: bool,
    /// The position of its folder in a repository.
    pub(super) checkout: Option<Arc<InRepository>>,
    /// Hashes of what it shares only with copies of its file.
    pub(super) traces: Box<[u64]>,
    /// The files that no other active checkpoint should name.
    pub(super) files: Files,
    /// What a later scan judges it by; `None` if it must be read again.
    pub(super) again: Option<Again>,
}

/// A folder in a checkout: the git folder common to all checkouts, and the path from the top of the checkout.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InRepository {
    pub(super) repository: PathBuf,
    pub(super) folder: PathBuf,
}

/// What an unchanged checkpoint is judged by at a later time. The rest of its row depends only on the document.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) version: Version,
    pub(super) pulse: Pulse,
    /// The time that the work had taken when it was read, and whether it continued.
    pub(super) elapsed: Elapsed,
    pub(super) rest: Option<TimeDelta>,
    /// The notice for which the protocol defines no message.
    pub(super) silent: Option<Notice>,
}

/// The version of a checkpoint that was read, with its claims and ledger.
#[derive(Debug)]
pub(super) enum Version {
    /// In a file.
    File(FileVersion),
    /// The version that its store names, and the ledger.
    Store(String, ListedLedger),
}

#[derive(Debug, PartialEq)]
pub(super) struct FileVersion {
    pub(super) file: FileStamp,
    /// The stamp of its claim file; `None` if there is none.
    pub(super) claims: Option<FileStamp>,
    /// The stamp of its ledger; `None` if there is none.
    pub(super) ledger: Option<FileStamp>,
    /// Whether a store kept files in its folder.
    pub(super) has_store: bool,
}

impl FileVersion {
    /// Whether it changed in the clock tick in which it was read. Such a file may change again and have the same stamp.
    pub(super) fn is_racy(&self, read_at: SystemTime) -> bool {
        let own = std::iter::once(&self.file);
        let mut stamps = own.chain(&self.claims).chain(&self.ledger);
        stamps.any(|stamp| stamp.is_racy(read_at, FILE_CLOCK_TICK))
    }
}

/// The time that a task has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elapsed {
    Ended(Option<TimeDelta>),
    /// The work continues, and began at this time.
    Since(chrono::DateTime<chrono::Utc>),
}

/// Many paths in one text, each with its hash, so that the rows of a fleet are compared without hashing them again.
#[derive(Debug, Default)]
pub(super) struct Files {
    text: Box<str>,
    /// The end and the hash of each path.
    ends: Box<[(u32, u32)]>,
}

impl Files {
    /// Normalizes and hashes paths.
    pub(super) fn of<'p>(
        paths: impl Iterator<Item = &'p String>,
        push_normalized: fn(&mut String, &str),
        hash: impl Fn(&str) -> u32,
    ) -> Files {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for path in paths {
            let start = text.len();
            push_normalized(&mut text, path);
            let path = &text[start..];
            if !path.is_empty() {
                ends.extend(u32::try_from(text.len()).map(|end| (end, hash(path))));
            }
        }
        Files {
            text: text.into(),
            ends: ends.into(),
        }
    }

    /// The paths with their hashes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut start = 0;
        self.ends.iter().map(move |(end, hash)| {
            let end = *end as usize;
            let path = self.text.get(start..end).unwrap_or_default();
            start = end;
            (path, *hash)
        })
    }
}
