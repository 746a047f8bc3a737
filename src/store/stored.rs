//! The values that go into a store and come out of it.

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

/// A document in a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stored {
    /// Its text.
    pub document: Document,
    /// Its revision.
    pub revision: Revision,
    /// When it was last written, if the store knows.
    pub modified: Option<SystemTime>,
    /// What the store knows about the task besides the document.
    pub context: TaskContext,
    /// Whether the last save did not write it; `None` if the store did not check.
    pub(crate) changed_without: Option<bool>,
}

impl Stored {
    /// A document without anything beside it.
    #[must_use]
    pub fn new(document: Document) -> Self {
        let revision = Revision::of(document.text().as_bytes());
        Stored::of_revision(document, revision)
    }

    /// A document that was read from `text`, with its time and its size in bytes. If the size is over the
    /// limit, `text` may be empty. For authors of stores.
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

/// What the surroundings of a checkpoint state about its task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskContext {
    /// The id of the checkpoint's task.
    pub task: Option<String>,
    /// The task that the checkpoint's slot now belongs to, if that is another one. An agent that works on that
    /// task must not carry on from this checkpoint.
    pub place_is_for: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// The last heartbeat of the agent that works on it, if it is kept apart from progress.
    pub heartbeat: Option<Timestamp>,
}

impl TaskContext {
    /// Refuses work on a checkpoint whose slot now belongs to another task.
    pub(crate) fn refuse_former_task(&self) -> Result<()> {
        let Some(now_for) = &self.place_is_for else {
            return Ok(());
        };
        let own = self.task.as_deref().unwrap_or("another task");
        Err(Error::refused(format!(
            "the checkpoint belongs to {own}, but its place is now for {now_for}; archive it with `ckpt archive`, \
             then start again"
        )))
    }
}

/// A document to put, with instructions for the store.
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
    /// Puts a document over whatever is there.
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

    /// Sets another document, for a store that changes the text before it passes the put on.
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

    /// Sets the fence of the writer's claim. Without one, a write to a claimed key is refused.
    #[must_use]
    pub fn with_fence(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Sets the items that were dropped from the document. The store keeps them before it writes the document.
    #[must_use]
    pub fn with_dropped(mut self, dropped: Vec<Dropped>) -> Self {
        self.dropped = dropped;
        self
    }

    /// Sets the fingerprints of the files that the document names, as an opaque text. The store keeps it as
    /// long as the document has this revision.
    #[must_use]
    pub fn with_fingerprints(mut self, fingerprints: impl Into<Option<String>>) -> Self {
        self.fingerprints = fingerprints.into();
        self
    }

    /// Archives the replaced document, for this reason and at this time. A store without archives still replaces it.
    #[must_use]
    pub fn with_archive(mut self, archive: impl Into<Option<(Archive, DateTime<Utc>)>>) -> Self {
        self.archive = archive.into();
        self
    }

    /// Makes no history entry of the replaced document, because the new one is only a heartbeat.
    #[must_use]
    pub fn skip_history(mut self) -> Self {
        self.skips_history = true;
        self
    }

    /// Continues the deleted task, with its history and dropped items. Without this, a document where there is
    /// none begins a new task.
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

    /// The reason and the time with which the replaced document is archived.
    #[must_use]
    pub fn archive(&self) -> Option<(Archive, DateTime<Utc>)> {
        self.archive
    }

    /// Whether the replaced document makes no history entry.
    #[must_use]
    pub fn skips_history(&self) -> bool {
        self.skips_history
    }

    /// Whether the deleted task continues.
    #[must_use]
    pub fn continues_task(&self) -> bool {
        self.continues_task
    }

    /// The result of this put over the present document. For authors of stores.
    #[must_use]
    pub fn saved(&self, present: Option<&Stored>) -> Saved {
        let revision = Revision::of(self.document.text().as_bytes());
        let previous = present.map(|present| present.revision.clone());
        let outcome = Outcome::of(previous.as_ref(), &revision);
        Saved::new(outcome, revision, previous)
    }

    /// Whether this put ends the task whose document it replaces. An archive does, unless it is one of a
    /// crashed task that another agent continues. For authors of stores.
    #[must_use]
    pub fn ends_task(&self, outcome: Outcome) -> bool {
        let archive = self.archive.filter(|_| outcome == Outcome::Replaced);
        archive.is_some_and(|(why, _)| why != Archive::Crashed)
    }

    /// Whether a task begins under the key with this put, so that the dropped items of the previous one are
    /// removed. For authors of stores.
    #[must_use]
    pub fn begins_task(&self, outcome: Outcome) -> bool {
        let is_first = outcome == Outcome::Created && !self.continues_task;
        is_first || self.ends_task(outcome)
    }
}

/// The conditions of a delete.
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

/// The result of a save.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Saved {
    /// Whether anything was written.
    pub outcome: Outcome,
    /// The revision that is there now.
    pub revision: Revision,
    /// The previous revision; `None` if there was no document.
    pub previous: Option<Revision>,
    /// What was dropped to stay within the limits.
    pub truncation: Truncation,
    /// The pointers of unreadable values that were overwritten because the caller allowed it. The values are
    /// kept with the dropped items.
    pub lost: Vec<String>,
    /// New violations of the format's rules, which the save introduced.
    pub violations: Vec<Violation>,
    /// New violations of transient states of the protocol ([`Checkpoint::TRANSIENT`](crate::Checkpoint::TRANSIENT)).
    /// Ordinary work causes them, and its next report ends them.
    pub transient: Vec<Violation>,
    /// What the caller should know about the files that the checkpoint names, if they are
    /// [tracked](crate::Checkpoints::tracking).
    pub files: SavedFiles,
    /// Where the previous state was archived, if that was requested and the store has archives.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "path_as_text"
    )]
    pub archive: Option<PathBuf>,
    /// Set if the previous state was an older one that was put back without the store
    /// ([`Reason::RolledBack`](crate::staleness::Reason::RolledBack)), so that the save continued from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came_back: Option<Reason>,
}

/// A path need not be UTF-8, but a report of a save must not fail because of that.
fn path_as_text<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.display().to_string());
    text.serialize(serializer)
}

impl Saved {
    /// The report of a save with this outcome, with nothing dropped and no violations.
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

    /// The report of a save that changed nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no document.
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
    /// There was no document before.
    Created,
    /// There was another document before.
    Replaced,
    /// The same document was already there; nothing was written.
    Unchanged,
}

impl Outcome {
    /// The outcome of putting a document with this revision over the previous one.
    #[must_use]
    pub fn of(previous: Option<&Revision>, revision: &Revision) -> Self {
        match previous {
            None => Outcome::Created,
            Some(previous) if previous == revision => Outcome::Unchanged,
            Some(_) => Outcome::Replaced,
        }
    }
}

/// What a store promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Saved documents survive a crash of the machine and a loss of power.
    pub survives_power_loss: bool,
    /// Writers in other processes are excluded.
    pub excludes_processes: bool,
    /// Writers on other machines are excluded.
    pub excludes_machines: bool,
    /// Documents are inside a larger file, so a checkpoint has no schema version of its own.
    pub embedded: bool,
    /// Keys are only names of places, for example a file with an arbitrary name, so ids inside the documents
    /// are not compared with them.
    pub keys_are_places: bool,
}

impl Capabilities {
    /// No promise beyond the contract.
    #[must_use]
    pub fn none() -> Self {
        Capabilities::default()
    }
}
