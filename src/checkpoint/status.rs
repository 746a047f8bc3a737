//! The state of a task, in terms common to all formats, and why an agent leaves one that is not done.

use std::fmt;

use serde::Serialize;

/// The state of a task, in terms common to all formats.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Planned; no work done.
    #[default]
    NotStarted,
    /// Being worked on.
    InProgress,
    /// Paused, to go on later.
    Paused,
    /// Something outside the task keeps it from going on.
    Blocked,
    /// Ended without success; can be resumed.
    Failed,
    /// Nothing is left to do.
    Complete,
    /// A status that the format does not list, as spelled in the file.
    #[serde(untagged)]
    Other(String),
}

impl Status {
    /// The state as text, such as `in_progress`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Status::NotStarted => "not_started",
            Status::InProgress => "in_progress",
            Status::Paused => "paused",
            Status::Blocked => "blocked",
            Status::Failed => "failed",
            Status::Complete => "complete",
            Status::Other(text) => text,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an agent stops although its task is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// The work failed with an error or a panic. The failure is a blocker until it is resolved.
    Failed(String),
    /// The agent was asked to stop, for example by a signal. Nothing is wrong, so the next agent can go on at once.
    Stopped(String),
}

impl Interruption {
    /// The reason as text.
    #[must_use]
    pub fn because(&self) -> &str {
        match self {
            Interruption::Failed(because) | Interruption::Stopped(because) => because,
        }
    }
}
