//! The states of a build and the ways between them.

use super::{BuildCheckpoint, BuildStatus};
use crate::checkpoint::{Error, Result, Status};

impl BuildStatus {
    /// The status that a text of another spelling means, such as `COMPLETE` or `in-progress`; the text
    /// itself stays as it is.
    #[must_use]
    pub fn understood(&self) -> Option<BuildStatus> {
        let BuildStatus::Other(text) = self else {
            return Some(self.clone());
        };
        let plain = text.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        match BuildStatus::from(plain.as_str()) {
            BuildStatus::Other(text) if ["completed", "done"].contains(&text.as_str()) => {
                Some(BuildStatus::Complete)
            }
            BuildStatus::Other(_) => None,
            known => Some(known),
        }
    }

    /// The states that can follow this one.
    #[must_use]
    pub fn next(&self) -> &'static [BuildStatus] {
        use BuildStatus::{Complete, Failed, InProgress, Paused};
        match self.understood() {
            Some(BuildStatus::Initialized) => &[InProgress],
            Some(InProgress) => &[Paused, Failed, Complete],
            Some(Paused) => &[InProgress, Complete],
            Some(Failed) => &[InProgress, Paused],
            Some(Complete | BuildStatus::Other(_)) | None => &[],
        }
    }

    /// What is to be done next by a build in this state, in a sentence.
    #[must_use]
    pub fn next_action(&self) -> &'static str {
        match self.understood() {
            Some(BuildStatus::Initialized) => "Begin phase 1.",
            Some(BuildStatus::InProgress) => "Wait until the workstreams in progress are done.",
            Some(BuildStatus::Paused) => "Somebody approves at the gate, then the build goes on.",
            Some(BuildStatus::Failed) => "Fix what failed by hand, then resume.",
            Some(BuildStatus::Complete) => "Update the roadmap (MVP-ROADMAP).",
            Some(BuildStatus::Other(_)) | None => "Find out what state the build is in.",
        }
    }
}

/// Whether a build is in this state, in whatever spelling.
pub(super) fn is(build: &BuildCheckpoint, status: &BuildStatus) -> bool {
    let understood = build.status.as_ref().and_then(BuildStatus::understood);
    understood.as_ref() == Some(status)
}

/// The state in the words all formats share.
pub(super) fn common(status: Option<&BuildStatus>) -> Status {
    let Some(status) = status else {
        return Status::NotStarted;
    };
    match status.understood() {
        Some(BuildStatus::Initialized) => Status::NotStarted,
        Some(BuildStatus::InProgress) => Status::InProgress,
        Some(BuildStatus::Paused) => Status::Paused,
        Some(BuildStatus::Failed) => Status::Failed,
        Some(BuildStatus::Complete) => Status::Complete,
        Some(BuildStatus::Other(_)) | None => Status::Other(status.to_string()),
    }
}

/// Refuses a transition that the protocol does not have, unless it is forced.
pub(super) fn check(build: &BuildCheckpoint, to: &BuildStatus, force: bool) -> Result<()> {
    let allowed = build.status.as_ref().map_or(&[][..], BuildStatus::next);
    if force || allowed.contains(to) {
        return Ok(());
    }
    let from = build
        .status
        .as_ref()
        .map_or("no status", BuildStatus::as_str);
    Err(Error::transition(from, to.as_str(), allowed))
}
