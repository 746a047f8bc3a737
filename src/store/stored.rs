//! What goes into a store and comes out of it.

use std::path::PathBuf;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::checkpoint::{
    Archive, Dropped, Error, ErrorKind, Expect, Fence, FilesTold, Key, Result, Revision, Timestamp,
    Truncation,
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
        Stored {
            revision: Revision::of(document.text().as_bytes()),
            document,
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

/// What a put asks of the store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PutOptions {
    /// What must be there.
    pub expect: Expect,
    /// What was left out of the document; the store keeps it before it writes the document.
    pub overflow: Vec<Dropped>,
    /// The fence of the writer's claim; without one a write to a key that is claimed is refused.
    pub fence: Option<Fence>,
    /// What is known of the files that the document names, as a text of the caller's: see
    /// [`CheckpointStore::companion`](super::CheckpointStore::companion).
    pub companion: Option<String>,
    /// Whether the document shows no more than that its agent is alive: then what it replaces is no state of
    /// the history.
    pub sign_of_life: bool,
    /// Why what it replaces is archived before it goes, and when; a store that has no archives replaces it all the
    /// same.
    pub archive: Option<(Archive, DateTime<Utc>)>,
    /// Whether the document is a state of the task that was deleted: then that goes on where nothing is, with its
    /// history and what was left out of it.
    pub brings_back: bool,
}

impl PutOptions {
    /// Over whatever is there.
    #[must_use]
    pub fn new() -> Self {
        PutOptions::default()
    }

    /// Only over what is expected.
    #[must_use]
    pub fn expecting(expect: Expect) -> Self {
        PutOptions {
            expect,
            ..PutOptions::default()
        }
    }

    /// Keeps what was left out of the document.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Vec<Dropped>) -> Self {
        self.overflow = overflow;
        self
    }

    /// Shows the fence of the writer's claim.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Keeps a text beside the document, for as long as it is at this revision.
    #[must_use]
    pub fn with_companion(mut self, companion: Option<String>) -> Self {
        self.companion = companion;
        self
    }

    /// Says that the document shows no more than that its agent is alive.
    #[must_use]
    pub fn as_sign_of_life(mut self, sign_of_life: bool) -> Self {
        self.sign_of_life = sign_of_life;
        self
    }

    /// Archives what it replaces, at this time.
    #[must_use]
    pub fn archiving(mut self, archive: Option<(Archive, DateTime<Utc>)>) -> Self {
        self.archive = archive;
        self
    }

    /// Says that the document is a state of the task that was deleted.
    #[must_use]
    pub fn as_brought_back(mut self, brings_back: bool) -> Self {
        self.brings_back = brings_back;
        self
    }
}

/// What a transaction decided.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Leave what is there.
    Keep,
    /// Put a document.
    Put(Put),
}

/// A document to put.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Put {
    /// The document.
    pub document: Document,
    /// What was left out of it.
    pub overflow: Vec<Dropped>,
    /// The fence of the writer's claim.
    pub fence: Option<Fence>,
    /// What is known of the files that the document names, as a text of the caller's: see
    /// [`CheckpointStore::companion`](super::CheckpointStore::companion).
    pub companion: Option<String>,
    /// Whether the document shows no more than that its agent is alive: then what it replaces is no state of
    /// the history.
    pub sign_of_life: bool,
    /// Why what it replaces is archived before it goes, and when; a store that has no archives replaces it all the
    /// same.
    pub archive: Option<(Archive, DateTime<Utc>)>,
    /// Whether the document is a state of the task that was deleted: then that goes on where nothing is, with its
    /// history and what was left out of it.
    pub brings_back: bool,
}

impl Put {
    /// A document from which nothing was left out.
    #[must_use]
    pub fn new(document: Document) -> Self {
        Put {
            document,
            overflow: Vec::new(),
            fence: None,
            companion: None,
            sign_of_life: false,
            archive: None,
            brings_back: false,
        }
    }

    /// Says what was left out of the document.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Vec<Dropped>) -> Self {
        self.overflow = overflow;
        self
    }

    /// Shows the fence of the writer's claim.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Keeps a text beside the document, for as long as it is at this revision.
    #[must_use]
    pub fn with_companion(mut self, companion: Option<String>) -> Self {
        self.companion = companion;
        self
    }

    /// Says that the document shows no more than that its agent is alive.
    #[must_use]
    pub fn as_sign_of_life(mut self, sign_of_life: bool) -> Self {
        self.sign_of_life = sign_of_life;
        self
    }

    /// Archives what it replaces, at this time.
    #[must_use]
    pub fn archiving(mut self, archive: Option<(Archive, DateTime<Utc>)>) -> Self {
        self.archive = archive;
        self
    }

    /// Says that the document is a state of the task that was deleted.
    #[must_use]
    pub fn as_brought_back(mut self, brings_back: bool) -> Self {
        self.brings_back = brings_back;
        self
    }
}

impl Change {
    /// Puts a document from which nothing was left out.
    #[must_use]
    pub fn put(document: Document) -> Self {
        Change::Put(Put::new(document))
    }
}

/// What a delete asks of the store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// What must be there.
    pub expect: Expect,
    /// The fence of the writer's claim.
    pub fence: Option<Fence>,
}

impl DeleteOptions {
    /// Whatever is there.
    #[must_use]
    pub fn new() -> Self {
        DeleteOptions::default()
    }

    /// Only what is expected.
    #[must_use]
    pub fn expecting(expect: Expect) -> Self {
        DeleteOptions {
            expect,
            fence: None,
        }
    }

    /// Shows the fence of the writer's claim.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
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
    pub files: FilesTold,
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
            files: FilesTold::default(),
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
    /// Keys can be claimed, and old owners are kept out.
    pub claims: bool,
    /// Earlier states are kept, and can be listed and loaded.
    pub history: bool,
    /// A document that cannot be read can be put aside and replaced.
    pub recovery: bool,
    /// Documents stand inside a larger file, so a checkpoint has no version of its own.
    pub embedded: bool,
    /// The store itself keeps a sign of life beside the documents: see
    /// [`CheckpointStore::beat`](super::CheckpointStore::beat).
    pub heartbeat: bool,
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
