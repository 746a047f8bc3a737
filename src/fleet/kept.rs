//! What a row keeps of its checkpoint besides what it shows: by what it is compared with other rows, and by what it is
//! judged again without being read again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use chrono::TimeDelta;

use crate::checkpoint::{Key, Notice, Pulse};
use crate::fsio::FileStamp;
use crate::staleness::FILE_CLOCK_TICK;
use crate::store::ListedLedger;

/// What the comparison of rows needs, and a later scan.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The number of its source.
    pub(super) project: usize,
    /// The id in the document.
    pub(super) id: Option<Key>,
    /// Whether the id is that of the agent: then the checkpoint belongs to its agent.
    pub(super) is_agent: bool,
    /// Where its folder is in a repository.
    pub(super) checkout: Option<Arc<InRepository>>,
    /// Hashes of what it has in common only with copies of its file.
    pub(super) traces: Box<[u64]>,
    /// The files of which no other active checkpoint should name one.
    pub(super) files: Files,
    /// By what it is judged again; `None` where it has to be read again.
    pub(super) again: Option<Again>,
}

/// A folder in a checkout: the folder of git that all checkouts have in common, and the path from the top.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InRepository {
    pub(super) repository: PathBuf,
    pub(super) folder: PathBuf,
}

/// What a checkpoint that is as it was is judged again by. All else that a row shows depends on the document alone.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) version: Version,
    pub(super) pulse: Pulse,
    /// The time that the work had taken when it was read, and whether it went on.
    pub(super) elapsed: Elapsed,
    pub(super) rest: Option<TimeDelta>,
    /// The notice for which its protocol has no message.
    pub(super) silent: Option<Notice>,
}

/// Which version of a checkpoint was read, with its claims and its ledger.
#[derive(Debug)]
pub(super) enum Version {
    /// In a file.
    File(FileVersion),
    /// As its store names it, with its ledger.
    Store(String, ListedLedger),
}

#[derive(Debug, PartialEq)]
pub(super) struct FileVersion {
    pub(super) file: FileStamp,
    /// Of the record of its claims; `None` where there is none.
    pub(super) claims: Option<FileStamp>,
    /// Of its ledger; `None` where there is none.
    pub(super) ledger: Option<FileStamp>,
    /// Whether a store kept something in its folder.
    pub(super) has_store: bool,
}

impl FileVersion {
    /// Whether it was changed in the tick of the clock in which it was read: such a file may change once more and look
    /// the same.
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
    /// Since this time.
    Since(chrono::DateTime<chrono::Utc>),
}

/// Paths in one text, each with a hash, so that those of many rows are compared without being hashed again.
#[derive(Debug, Default)]
pub(super) struct Files {
    text: Box<str>,
    /// Where each path ends, and its hash.
    ends: Box<[(u32, u32)]>,
}

impl Files {
    /// The paths as all agents would write them.
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
