//! How a recorder works.

use std::time::Duration;

use super::Owner;
use crate::checkpoint::SourceFiles;
use crate::resume::ResumeOptions;

/// How long a claim stands unless it is renewed: the time within which the protocols expect the next
/// checkpoint at the latest.
const CLAIM: Duration = Duration::from_secs(15 * 60);

/// Who records, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecorderOptions {
    /// Who records.
    pub owner: Owner,
    /// How long the claim on the task stands unless a call renews it, 15 minutes by default; `None` records
    /// without a claim. A store that has no claims is no error.
    pub claim_for: Option<Duration>,
    /// Whether the task is claimed also from an owner whose claim still stands, because that one is known to
    /// be dead.
    pub take_over: bool,
    /// Which files are sources; the others are skipped of what a step made and changed, and handed back.
    pub sources: SourceFiles,
    /// What a resume takes from outside the checkpoint, and the rules of some operations: the project's
    /// folder, the plan of a build, the state of a story.
    pub resume: ResumeOptions,
}

impl RecorderOptions {
    /// This owner records, with a claim for 15 minutes at a time where the store has claims.
    pub fn new(owner: impl Into<Owner>) -> Self {
        RecorderOptions {
            owner: owner.into(),
            claim_for: Some(CLAIM),
            take_over: false,
            sources: SourceFiles::default(),
            resume: ResumeOptions::default(),
        }
    }

    /// Sets how long a claim stands unless a call renews it.
    #[must_use]
    pub fn claiming_for(mut self, time: Duration) -> Self {
        self.claim_for = Some(time);
        self
    }

    /// Records without a claim: another owner is noticed by the checkpoint alone.
    #[must_use]
    pub fn without_claim(mut self) -> Self {
        self.claim_for = None;
        self
    }

    /// Takes the task also from an owner whose claim still stands: for a caller that knows that the owner is dead.
    #[must_use]
    pub fn taking_over(mut self) -> Self {
        self.take_over = true;
        self
    }

    /// Sets which files are sources.
    #[must_use]
    pub fn with_sources(mut self, sources: SourceFiles) -> Self {
        self.sources = sources;
        self
    }

    /// Sets what a resume takes from outside the checkpoint.
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
