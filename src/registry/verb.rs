//! Verbs that the command has for one format.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::checkpoint::{CheckpointFile, Fence, Given, Input, Key, Result};
use crate::checkpoints::Checkpoints;
use crate::store::{FileStore, Saved};

/// A verb that the command has for one format: [`Format::with_verbs`](super::Format::with_verbs).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct OwnVerb {
    /// Its words, such as `lead begin`. With the words of a verb that all formats have, such as `reassign`, it takes the
    /// place of that one.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub help: &'static str,
    /// What the first of two words is about, for `--help`.
    pub group: &'static str,
    /// Its options.
    pub inputs: &'static [Input],
    /// Does it.
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

    /// One of a group that is about this.
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

/// What an [`OwnVerb`] works on.
#[derive(Debug)]
#[non_exhaustive]
pub struct VerbCall<'a> {
    /// The checkpoints of the store, with the settings of the command line.
    pub view: Checkpoints<()>,
    /// The store, where each checkpoint is a file of its own.
    pub files: Option<&'a FileStore>,
    /// The checkpoint.
    pub key: &'a Key,
    /// Its file.
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
    /// A call on this checkpoint.
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

/// What an [`OwnVerb`] did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerbDone {
    /// What came of it, in a line.
    pub line: String,
    /// What else the user is to know.
    pub notes: Vec<String>,
    /// How it was saved.
    pub saved: Saved,
    /// Whether the task has to wait, where the verb is about that.
    pub waits: Option<bool>,
}

impl VerbDone {
    /// Done, and saved like this.
    pub fn new(line: impl Into<String>, saved: Saved) -> Self {
        VerbDone {
            line: line.into(),
            notes: Vec::new(),
            saved,
            waits: None,
        }
    }

    /// With something else that the user is to know.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says whether the task has to wait.
    #[must_use]
    pub fn with_waits(mut self, waits: bool) -> Self {
        self.waits = Some(waits);
        self
    }
}
