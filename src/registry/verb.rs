//! Verbs of the command for a single format.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::checkpoint::{CheckpointFile, Fence, Given, Input, Key, Result};
use crate::checkpoints::Checkpoints;
use crate::store::{FileStore, Saved};

/// A verb that the command has for one format; see [`Format::with_verbs`](super::Format::with_verbs).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct OwnVerb {
    /// Its words, such as `lead begin`. A verb with the words of one that all formats have, such as `reassign`,
    /// replaces that one.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub help: &'static str,
    /// What the group of a two-word verb is about, for `--help`.
    pub group: &'static str,
    /// Its options.
    pub inputs: &'static [Input],
    /// The function that runs it.
    pub run: fn(&VerbCall<'_>) -> Result<VerbDone>,
}

impl OwnVerb {
    /// A verb.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        inputs: &'static [Input],
        run: fn(&VerbCall<'_>) -> Result<VerbDone>,
    ) -> Self {
        OwnVerb {
            name,
            help,
            group: "",
            inputs,
            run,
        }
    }

    /// Makes it a verb of a group; `about` describes the group.
    #[must_use]
    pub const fn in_group(mut self, about: &'static str) -> Self {
        self.group = about;
        self
    }
}

impl fmt::Debug for OwnVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnVerb").field(&self.name).finish()
    }
}

/// The arguments of an [`OwnVerb`].
#[derive(Debug)]
#[non_exhaustive]
pub struct VerbCall<'a> {
    /// The checkpoints of the store, with the settings of the command line.
    pub view: Checkpoints<()>,
    /// The store, if each checkpoint is a file of its own.
    pub files: Option<&'a FileStore>,
    /// The key of the checkpoint.
    pub key: &'a Key,
    /// The file of the checkpoint.
    pub file: CheckpointFile<'a>,
    /// The values of the verb's options.
    pub given: &'a Given,
    /// The session that is writing.
    pub session: Option<&'a str>,
    /// The fence of the caller's claim.
    pub fence: Option<Fence>,
    /// The present time.
    pub now: DateTime<Utc>,
}

impl<'a> VerbCall<'a> {
    /// A call for this checkpoint.
    pub fn new(
        view: Checkpoints<()>,
        key: &'a Key,
        file: CheckpointFile<'a>,
        given: &'a Given,
        now: DateTime<Utc>,
    ) -> Self {
        VerbCall {
            view,
            files: None,
            key,
            file,
            given,
            session: None,
            fence: None,
            now,
        }
    }
}

/// The result of an [`OwnVerb`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerbDone {
    /// The result in one line.
    pub line: String,
    /// Further notes for the user.
    pub notes: Vec<String>,
    /// How the change was saved.
    pub saved: Saved,
    /// Whether the task has to wait, for a verb that decides this.
    pub waits: Option<bool>,
}

impl VerbDone {
    /// The result of a saved change.
    pub fn new(line: impl Into<String>, saved: Saved) -> Self {
        VerbDone {
            line: line.into(),
            notes: Vec::new(),
            saved,
            waits: None,
        }
    }

    /// Adds a note for the user.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets whether the task has to wait.
    #[must_use]
    pub fn with_waits(mut self, waits: bool) -> Self {
        self.waits = Some(waits);
        self
    }
}
