//! Inputs of a resume from outside the checkpoint.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::checkpoint::{Handoff, Inputs, Key, ResumePlan, RuleContext};

/// Inputs of a resume from outside the checkpoint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// The project's folder, to which the checkpoint's files are relative.
    pub root: PathBuf,
    /// The description of the task. If `None`: the store's.
    pub(crate) description: Option<String>,
    /// Further inputs of the format.
    pub(crate) inputs: Inputs,
    /// The owner that asks, named as in a claim: while the claim lasts, no other may resume.
    pub(crate) asker: Option<String>,
    /// Whether claims are ignored, for a caller that claims the task before it resumes.
    pub(crate) ignores_claims: bool,
    /// The file of the checkpoint, for the prompt; a store need not have one.
    pub(crate) file: Option<String>,
    /// How the next agent records its work, for the prompt: one line for each command.
    pub(crate) recording: Vec<String>,
    /// Looks up the criteria of a verification contract.
    pub(crate) contract_reader: Option<ContractReader>,
    /// The number of attempts without progress after which a task is refused.
    most_attempts: Option<usize>,
}

impl ResumeOptions {
    /// Options for a resume in the project at `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        ResumeOptions {
            root: root.as_ref().to_path_buf(),
            ..ResumeOptions::default()
        }
    }

    /// Adds a further input of the format, such as the
    /// [`ExecutionSpec`](crate::formats::build_pipeline::ExecutionSpec) of a build.
    #[must_use]
    pub fn with_input<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.inputs = self.inputs.with(value);
        self
    }

    /// Sets all further inputs of the format.
    #[must_use]
    pub fn with_inputs(mut self, inputs: Inputs) -> Self {
        self.inputs = inputs;
        self
    }

    /// Sets the owner that asks, named as in a claim ([`ClaimRequest::owner`]). A task that another owner has claimed
    /// is refused. Without an asker every claimed task is refused, unless the [`Checkpoints`](crate::Checkpoints) have
    /// the claim's fence.
    ///
    /// [`ClaimRequest::owner`]: crate::ClaimRequest::owner
    #[must_use]
    pub fn with_asker(mut self, owner: impl Into<String>) -> Self {
        self.asker = Some(owner.into());
        self
    }

    /// Plans as if the task were not claimed, for a caller that claims it before it resumes and then gets the answer of
    /// the store.
    #[must_use]
    pub fn ignoring_claims(mut self) -> Self {
        self.ignores_claims = true;
        self
    }

    /// Refuses a task after this many attempts in a row without progress, three by default: see
    /// [`LedgerState::failed_attempts`](crate::ledger::LedgerState::failed_attempts).
    #[must_use]
    pub fn with_most_attempts(mut self, most: usize) -> Self {
        self.most_attempts = Some(most.max(1));
        self
    }

    pub(super) fn most_attempts(&self) -> usize {
        self.most_attempts.unwrap_or(3)
    }

    /// Sets the function that looks up the verification contract that a checkpoint names: one text for each criterion,
    /// or `None` if there is no such contract, which becomes a warning.
    #[must_use]
    pub fn with_contract_reader(
        mut self,
        read: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.contract_reader = Some(ContractReader::new(read));
        self
    }

    /// Sets the file of the checkpoint. The prompt names it, so that the next agent can read there what the prompt
    /// omits.
    #[must_use]
    pub fn with_file(mut self, path: impl AsRef<Path>) -> Self {
        self.file = Some(path.as_ref().display().to_string());
        self
    }

    /// Sets how the next agent records its work, for the prompt: lines such as
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

    /// Sets the description of the task.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// Looks up the criteria of a verification contract by the reference in a checkpoint, such as
/// `US-003.verificationContract`.
#[derive(Clone)]
pub struct ContractReader(Arc<Read>);

type Read = dyn Fn(&str) -> Option<Vec<String>> + Send + Sync;

impl ContractReader {
    /// Creates a reader that calls `read(reference)`: one text for each criterion, `None` if there is no such contract.
    pub fn new(read: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static) -> Self {
        ContractReader(Arc::new(read))
    }
}

impl fmt::Debug for ContractReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContractReader")
    }
}

/// The criteria of the contract that the checkpoint names; adds a warning if it is not found.
pub(super) fn criteria(
    reader: Option<&ContractReader>,
    handoff: &Handoff,
    plan: &mut ResumePlan,
) -> Vec<String> {
    let contract = handoff.verification.as_ref();
    let reference = contract.and_then(|shown| shown.contract.as_deref());
    let (Some(reader), Some(reference)) = (reader, reference) else {
        return Vec::new();
    };
    (reader.0)(reference).unwrap_or_else(|| {
        plan.warn(format!(
            "The verification contract {} cannot be found; ask what success looks like.",
            crate::shown::line(reference)
        ));
        Vec::new()
    })
}
