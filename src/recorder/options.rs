//! The options of a recorder.

use std::time::Duration;

use super::Owner;
use crate::checkpoint::SourceFiles;
use crate::resume::ResumeOptions;

/// How long a claim lasts unless it is renewed: the longest time within which the protocols expect the next
/// checkpoint.
const CLAIM: Duration = Duration::from_secs(15 * 60);

/// The owner in whose name a recorder records, and its settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecorderOptions {
    /// The owner.
    pub owner: Owner,
    /// How long the claim on the task lasts unless a call renews it, 15 minutes by default. `None` records
    /// without a claim. A store without claims is no error.
    pub claim_for: Option<Duration>,
    /// Whether to claim the task even from an owner whose claim is still valid, because that owner is known to
    /// be dead.
    pub take_over: bool,
    /// Which files are source files. Others are removed from the files that a step made and changed, and
    /// returned to the caller.
    pub sources: SourceFiles,
    /// What a resume, and the rules of some operations, need from outside the checkpoint: the project's folder,
    /// the plan of a build, the state of a story.
    pub resume: ResumeOptions,
}

impl RecorderOptions {
    /// Options for this owner, with a claim for 15 minutes at a time if the store has claims.
    pub fn new(owner: impl Into<Owner>) -> Self {
        RecorderOptions {
            owner: owner.into(),
            claim_for: Some(CLAIM),
            take_over: false,
            sources: SourceFiles::default(),
            resume: ResumeOptions::default(),
        }
    }

    /// Sets how long a claim lasts unless a call renews it.
    #[must_use]
    pub fn claiming_for(mut self, time: Duration) -> Self {
        self.claim_for = Some(time);
        self
    }

    /// Records without a claim. Another owner is then only noticed through the checkpoint.
    #[must_use]
    pub fn without_claim(mut self) -> Self {
        self.claim_for = None;
        self
    }

    /// Takes the task even from an owner whose claim is still valid, for a caller that knows that the owner is dead.
    #[must_use]
    pub fn taking_over(mut self) -> Self {
        self.take_over = true;
        self
    }

    /// Sets which files are source files.
    #[must_use]
    pub fn with_sources(mut self, sources: SourceFiles) -> Self {
        self.sources = sources;
        self
    }

    /// Sets what a resume needs from outside the checkpoint.
    #[must_use]
    pub fn resuming_with(mut self, options: ResumeOptions) -> Self {
        self.resume = options;
        self
    }
}

impl<O: Into<Owner>> From<O> for RecorderOptions {
    fn from(owner: O) -> RecorderOptions {
        RecorderOptions::new(owner)
    }
}
