//! What goes into a store and comes out of it.

use std::path::PathBuf;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::checkpoint::{
    Archive, Dropped, Error, ErrorKind, Expect, Fence, Key, Result, Revision, SavedFiles,
    Timestamp, Truncation,
};
use crate::json::{Document, Violation};
use crate::staleness::Reason;

/// A document as a store has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stored {
    /// Its text.
    pub document: Document,
    /// The token of its state.
    pub revision: Revision,
    /// When it was last written, if the store has that.
    pub modified: Option<SystemTime>,
    /// What the store knows of the task beside the document.
    pub context: TaskContext,
    /// Whether it is not what the last save wrote, where the store looked.
    pub(crate) changed_without: Option<bool>,
}

impl Stored {
    /// A document without anything beside it.
    #[must_use]
    pub fn new(document: Document) -> Self {
        let revision = Revision::of(document.text().as_bytes());
        Stored::of_revision(document, revision)
    }

    /// A document as it was read, when it was written, and of how many bytes: the text need not be there where those are over
    /// the limit. For whoever writes a store.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] and [`ErrorKind::Corrupt`].
    pub fn read(text: &[u8], modified: Option<SystemTime>, size: u64, limit: u64) -> Result<Self> {
        if size > limit {
            let is_new = false;
            return Err(Error::new(ErrorKind::TooLarge {
                size,
                limit,
                is_new,
            }));
        }
        let mut stored = Stored::new(Document::parse(text)?);
        stored.modified = modified;
        Ok(stored)
    }

    /// A document whose revision is known.
    pub(crate) fn of_revision(document: Document, revision: Revision) -> Self {
        Stored {
            document,
            revision,
            modified: None,
            context: TaskContext::default(),
            changed_without: None,
        }
    }
}

/// What the surroundings of a checkpoint tell of its task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskContext {
    /// The id of the checkpoint's task.
    pub task: Option<String>,
    /// The task that the checkpoint's place is for by now, where that is another: whoever goes on with it does
    /// not go on from this checkpoint.
    pub place_is_for: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// When whoever works on it last showed that it is alive, apart from progress.
    pub heartbeat: Option<Timestamp>,
}

impl TaskContext {
    /// Refuses work on a checkpoint whose place is for another task by now.
    pub(crate) fn refuse_former_task(&self) -> Result<()> {
        let Some(now_for) = &self.place_is_for else {
            return Ok(());
        };
        let own = self.task.as_deref().unwrap_or("another task");
        Err(Error::refused(format!(
            "the checkpoint is that of {own}, and its place is for {now_for} by now; put it aside with `ckpt archive`, \
             then start anew"
        )))
    }
}

/// A document to put, and what the store is to do with it.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::json::Document;
/// use agent_checkpoint::store::{CheckpointStore, MemoryStore, Put};
/// use agent_checkpoint::{Expect, Key};
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let store = MemoryStore::new();
/// let document = Document::new(&serde_json::json!({ "status": "in_progress" }))?;
/// let key = Key::new("US-003")?;
/// store.put(&key, Put::new(document).with_expect(Expect::Absent))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Put {
    pub(crate) document: Document,
    pub(crate) expect: Expect,
    pub(crate) fence: Option<Fence>,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) fingerprints: Option<String>,
    pub(crate) archive: Option<(Archive, DateTime<Utc>)>,
    pub(crate) skips_history: bool,
    pub(crate) continues_task: bool,
}

impl Put {
    /// A document to put over whatever is there.
    #[must_use]
    pub fn new(document: Document) -> Self {
        Put {
            document,
            expect: Expect::Any,
            fence: None,
            dropped: Vec::new(),
            fingerprints: None,
            archive: None,
            skips_history: false,
            continues_task: false,
        }
    }

    /// Sets another document: for a store that changes the text before it hands the put on.
    #[must_use]
    pub fn with_document(mut self, document: Document) -> Self {
        self.document = document;
        self
    }

    /// Sets what must be there.
    #[must_use]
    pub fn with_expect(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }

    /// Sets the fence of the writer's claim; without one a write to a key that is claimed is refused.
    #[must_use]
    pub fn with_fence(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Sets the items that were dropped from the document; the store keeps them before it writes the document.
    #[must_use]
    pub fn with_dropped(mut self, dropped: Vec<Dropped>) -> Self {
        self.dropped = dropped;
        self
    }

    /// Sets the fingerprints of the files that the document names, as a text of the caller's. The store keeps it
    /// for as long as the document is at this revision.
    #[must_use]
    pub fn with_fingerprints(mut self, fingerprints: impl Into<Option<String>>) -> Self {
        self.fingerprints = fingerprints.into();
        self
    }

    /// Archives the document that is replaced, for this reason and at this time. A store that has no archives
    /// replaces it all the same.
    #[must_use]
    pub fn with_archive(mut self, archive: impl Into<Option<(Archive, DateTime<Utc>)>>) -> Self {
        self.archive = archive.into();
        self
    }

    /// Makes no entry of the history of the document that is replaced: the new one is only a heartbeat.
    #[must_use]
    pub fn skip_history(mut self) -> Self {
        self.skips_history = true;
        self
    }

    /// Goes on with the task that was deleted, with its history and its dropped items. Without this a document
    /// where none is begins a new task.
    #[must_use]
    pub fn continue_task(mut self) -> Self {
        self.continues_task = true;
        self
    }

    /// The document.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What must be there.
    #[must_use]
    pub fn expect(&self) -> &Expect {
        &self.expect
    }

    /// The fence of the writer's claim.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// The items that were dropped from the document.
    #[must_use]
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// The fingerprints of the files that the document names.
    #[must_use]
    pub fn fingerprints(&self) -> Option<&str> {
        self.fingerprints.as_deref()
    }

    /// Why and when the document that is replaced is archived.
    #[must_use]
    pub fn archive(&self) -> Option<(Archive, DateTime<Utc>)> {
        self.archive
    }

    /// Whether the document that is replaced makes no entry of the history.
    #[must_use]
    pub fn skips_history(&self) -> bool {
        self.skips_history
    }

    /// Whether the task that was deleted goes on.
    #[must_use]
    pub fn continues_task(&self) -> bool {
        self.continues_task
    }

    /// What comes of this where that document is present. For whoever writes a store.
    #[must_use]
    pub fn saved(&self, present: Option<&Stored>) -> Saved {
        let revision = Revision::of(self.document.text().as_bytes());
        let previous = present.map(|present| present.revision.clone());
        let outcome = Outcome::of(previous.as_ref(), &revision);
        Saved::new(outcome, revision, previous)
    }

    /// Whether this ends the task whose document it replaces: an archive does, unless another agent goes on with
    /// a crashed task. For whoever writes a store.
    #[must_use]
    pub fn ends_task(&self, outcome: Outcome) -> bool {
        let archive = self.archive.filter(|_| outcome == Outcome::Replaced);
        archive.is_some_and(|(why, _)| why != Archive::Crashed)
    }

    /// Whether a task begins with this under the key: the dropped items of the one before go. For whoever writes a store.
    #[must_use]
    pub fn begins_task(&self, outcome: Outcome) -> bool {
        let is_first = outcome == Outcome::Created && !self.continues_task;
        is_first || self.ends_task(outcome)
    }
}

/// What a delete asks of the store.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub(crate) expect: Expect,
    pub(crate) fence: Option<Fence>,
}

impl DeleteOptions {
    /// Deletes whatever is there.
    #[must_use]
    pub fn new() -> Self {
        DeleteOptions::default()
    }

    /// Sets what must be there.
    #[must_use]
    pub fn with_expect(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }

    /// Sets the fence of the writer's claim.
    #[must_use]
    pub fn with_fence(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// What must be there.
    #[must_use]
    pub fn expect(&self) -> &Expect {
        &self.expect
    }

    /// The fence of the writer's claim.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }
}

/// What came of a save.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Saved {
    /// Whether anything was written.
    pub outcome: Outcome,
    /// The token of the state that is there now.
    pub revision: Revision,
    /// The token of the state before; `None` when there was none.
    pub previous: Option<Revision>,
    /// What was cut to keep within the limits.
    pub truncation: Truncation,
    /// Where values that could not be read were overwritten, as the caller allowed; they are kept with
    /// what was cut.
    pub lost: Vec<String>,
    /// Violations of the format's rules that were not there before the save.
    pub violations: Vec<Violation>,
    /// Of the same, those that the protocol itself passes through
    /// ([`Checkpoint::TRANSIENT`](crate::Checkpoint::TRANSIENT)): ordinary work makes them, and its next report ends them.
    pub transient: Vec<Violation>,
    /// What is to be told of the files that the checkpoint names, where they are
    /// [tracked](crate::Checkpoints::tracking).
    pub files: SavedFiles,
    /// Where the state before was archived, if that was asked for and the store has archives.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "path_as_text"
    )]
    pub archive: Option<PathBuf>,
    /// That the state before was an older one that had come back without the store
    /// ([`Reason::RolledBack`](crate::staleness::Reason::RolledBack)), so that the save went on from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came_back: Option<Reason>,
}

/// A path need not be UTF-8, and a report of a save must not fail for it.
fn path_as_text<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.display().to_string());
    text.serialize(serializer)
}

impl Saved {
    /// A save of this outcome, with nothing cut and nothing violated.
    pub fn new(outcome: Outcome, revision: Revision, previous: Option<Revision>) -> Self {
        Saved {
            outcome,
            revision,
            previous,
            truncation: Truncation::default(),
            came_back: None,
            lost: Vec::new(),
            violations: Vec::new(),
            transient: Vec::new(),
            files: SavedFiles::default(),
            archive: None,
        }
    }

    /// A save that left what was there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when nothing was there to leave.
    pub fn unchanged(key: &Key, stored: Option<&Stored>) -> Result<Saved> {
        let stored = stored.ok_or_else(|| Error::new(ErrorKind::NotFound).with_key(key))?;
        let revision = stored.revision.clone();
        Ok(Saved::new(
            Outcome::Unchanged,
            revision.clone(),
            Some(revision),
        ))
    }
}

/// Whether a save wrote anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// There was none before.
    Created,
    /// There was another before.
    Replaced,
    /// The document was there already; nothing was written.
    Unchanged,
}

impl Outcome {
    /// What becomes of a document of this revision where the previous one is there.
    #[must_use]
    pub fn of(previous: Option<&Revision>, revision: &Revision) -> Self {
        match previous {
            None => Outcome::Created,
            Some(previous) if previous == revision => Outcome::Unchanged,
            Some(_) => Outcome::Replaced,
        }
    }
}

/// What a store can promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// What was saved survives a crash of the machine and a loss of power.
    pub survives_power_loss: bool,
    /// Writers in other processes are kept apart.
    pub excludes_processes: bool,
    /// Writers on other machines are kept apart.
    pub excludes_machines: bool,
    /// Documents stand inside a larger file, so a checkpoint has no version of its own.
    pub embedded: bool,
    /// Keys are only names of places, such as a file that somebody named as they liked: ids inside the
    /// documents are not judged by them.
    pub keys_are_places: bool,
}

impl Capabilities {
    /// No promise but the contract itself.
    #[must_use]
    pub fn none() -> Self {
        Capabilities::default()
    }
}
