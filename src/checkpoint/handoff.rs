//! What one agent leaves to the next, in the words all formats share.

use serde::Serialize;

use super::{Status, Timestamp};

/// The common view of a checkpoint: all that an agent needs to carry on, whatever the format.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Handoff {
    /// What the task is called, where the checkpoint itself says so.
    pub task: Option<String>,
    /// What is to be done, where the checkpoint itself says so.
    pub description: Option<String>,
    /// The state of the task.
    pub status: Status,
    /// The phase or stage, as the format names it.
    pub phase: Option<String>,
    /// Who made the checkpoint.
    pub agent: Option<String>,
    /// Who worked on the task before, oldest first.
    pub previous_agents: Vec<String>,
    /// When the checkpoint was last changed.
    pub updated_at: Option<Timestamp>,
    /// Why it was last changed, where the format says that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Work that is finished, oldest first.
    pub done: Vec<DoneItem>,
    /// Work that was begun and not finished.
    pub in_progress: Vec<OpenItem>,
    /// Work that is left, in order. It may name the work in progress as well.
    pub pending: Vec<String>,
    /// What was decided, oldest first.
    pub decisions: Vec<DecisionItem>,
    /// What keeps the task from going on.
    pub blockers: Vec<String>,
    /// The files that the finished work made or changed, each once, in order of first mention.
    pub files: Vec<String>,
    /// How success is shown.
    pub verification: Option<VerificationItem>,
    /// What the format tells the next agent besides.
    pub instructions: Vec<String>,
}

/// One piece of finished work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DoneItem {
    /// What was done.
    pub text: String,
    /// Files it made.
    pub files_created: Vec<String>,
    /// Files it changed.
    pub files_modified: Vec<String>,
    /// When it was finished.
    pub at: Option<Timestamp>,
}

impl DoneItem {
    /// Finished work without files or time.
    pub fn new(text: impl Into<String>) -> Self {
        DoneItem {
            text: text.into(),
            ..DoneItem::default()
        }
    }
}

/// One piece of work in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OpenItem {
    /// What is being done.
    pub text: String,
    /// When it was begun.
    pub started_at: Option<Timestamp>,
    /// How far it is.
    pub note: Option<String>,
}

impl OpenItem {
    /// Work in progress without time or note.
    pub fn new(text: impl Into<String>) -> Self {
        OpenItem {
            text: text.into(),
            ..OpenItem::default()
        }
    }
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecisionItem {
    /// What was decided.
    pub text: String,
    /// Why.
    pub rationale: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

impl DecisionItem {
    /// A decision without reason or time.
    pub fn new(text: impl Into<String>) -> Self {
        DecisionItem {
            text: text.into(),
            ..DecisionItem::default()
        }
    }
}

/// How success is shown, and what has been shown so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerificationItem {
    /// Where the criteria stand.
    pub contract: Option<String>,
    /// Each activity with its state.
    pub results: Vec<(String, String)>,
}

impl Handoff {
    /// Gathers [`files`](Handoff::files) from the finished work: each file once, in order of first
    /// mention.
    pub fn gather_files(&mut self) {
        let mut seen = std::collections::HashSet::new();
        self.files = self
            .done
            .iter()
            .flat_map(|item| item.files_created.iter().chain(&item.files_modified))
            .filter(|file| seen.insert(file.as_str()))
            .cloned()
            .collect();
    }

    /// Where the next agent begins: the work in progress, else the first that is pending.
    #[must_use]
    pub fn start_at(&self) -> Option<&str> {
        let current = self.in_progress.first().map(|item| item.text.as_str());
        let named = current.filter(|text| !text.is_empty());
        named.or(self.pending.first().map(String::as_str))
    }
}
