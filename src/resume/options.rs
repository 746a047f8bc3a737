//! What a resume takes from outside the checkpoint.

use std::any::Any;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::ContractReader;
use crate::checkpoint::{Inputs, Key, RuleContext};

/// What a resume takes from outside the checkpoint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// The project's folder, which the checkpoint's files are relative to.
    pub root: PathBuf,
    /// The name of the task. If `None`: the store's, else the key.
    pub(crate) task: Option<String>,
    /// The description of the task. If `None`: the store's.
    pub(crate) description: Option<String>,
    /// What the format takes besides.
    pub(crate) inputs: Inputs,
    /// The asking owner, as a claim names it: no other may go on while the claim lasts.
    pub(crate) asker: Option<String>,
    /// Whether claims do not count, for a caller that claims the task before going on.
    pub(crate) ignores_claims: bool,
    /// The file that the checkpoint is in, for the prompt; a store need not have one.
    pub(crate) file: Option<String>,
    /// How the next agent records its work, for the prompt: one line for each command.
    pub(crate) recording: Vec<String>,
    /// Finds out what a verification contract asks for.
    pub(crate) contract_reader: Option<ContractReader>,
    /// After how many attempts without progress a task is refused.
    most_attempts: Option<usize>,
}

impl ResumeOptions {
    /// A resume in the project at `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        ResumeOptions {
            root: root.as_ref().to_path_buf(),
            ..ResumeOptions::default()
        }
    }

    /// Names the task.
    #[must_use]
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Gives what the format takes besides, such as the
    /// [`ExecutionSpec`](crate::formats::build_pipeline::ExecutionSpec) of a build.
    #[must_use]
    pub fn with_input<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.inputs = self.inputs.with(value);
        self
    }

    /// Gives all that the format takes besides.
    #[must_use]
    pub fn with_inputs(mut self, inputs: Inputs) -> Self {
        self.inputs = inputs;
        self
    }

    /// Says who asks, with the name that the owner of a claim has ([`ClaimRequest::owner`]). A task that another has
    /// claimed is refused; so is every claimed task if no asker is given, unless the
    /// [`Checkpoints`](crate::Checkpoints) show the claim's fence.
    ///
    /// [`ClaimRequest::owner`]: crate::ClaimRequest::owner
    #[must_use]
    pub fn with_asker(mut self, owner: impl Into<String>) -> Self {
        self.asker = Some(owner.into());
        self
    }

    /// Plans as if the task were not claimed: for a caller that claims it before going on, and gets the store's own
    /// answer then.
    #[must_use]
    pub fn ignoring_claims(mut self) -> Self {
        self.ignores_claims = true;
        self
    }

    /// Refuses a task at which so many attempts in a row ended without progress, three by default: see
    /// [`LedgerState::failed_attempts`](crate::ledger::LedgerState::failed_attempts).
    #[must_use]
    pub fn with_most_attempts(mut self, most: usize) -> Self {
        self.most_attempts = Some(most.max(1));
        self
    }

    pub(super) fn most_attempts(&self) -> usize {
        self.most_attempts.unwrap_or(3)
    }

    /// Finds out with `read` what the verification contract asks for that a checkpoint names: one text for each
    /// criterion, or `None` when there is no such contract, which is then a warning.
    #[must_use]
    pub fn with_contract_reader(
        mut self,
        read: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.contract_reader = Some(ContractReader::new(read));
        self
    }

    /// Names the file that the checkpoint is in, which the prompt then tells: the next agent can read there what no
    /// prompt shows.
    #[must_use]
    pub fn with_file(mut self, path: impl AsRef<Path>) -> Self {
        self.file = Some(path.as_ref().display().to_string());
        self
    }

    /// Tells the next agent how it records its work: lines such as
    /// `ckpt step done 'TEXT' --store c --key US-003`.
    #[must_use]
    pub fn with_recording(mut self, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.recording = lines.into_iter().map(Into::into).collect();
        self
    }

    pub(crate) fn context<'k>(
        &'k self,
        now: DateTime<Utc>,
        key: Option<&'k Key>,
    ) -> RuleContext<'k> {
        RuleContext {
            now: Some(now),
            key,
            inputs: Some(&self.inputs),
            ..RuleContext::none()
        }
    }

    /// Says what is to be done.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
