//! `task`: a [`TaskCheckpoint`], alone in a file or inside a `builder-state` host file.

mod handoff;
mod operations;
pub(super) mod rules;
mod shrink;
#[cfg(feature = "proptest")]
mod strategies;

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{
    Checkpoint, Evidence, Handoff, Input, InputKind, Inspection, Interruption, ItemState, Limits,
    Operation, OperationContext, Result, ResumePlan, RuleContext, SchemaVersion, Start, Status,
    Timestamp, Truncation, open_enum,
};
use crate::formats::fields::null_is_default;
use crate::formats::steps::each_once;
use crate::json::{Document, Identity};

/// The document that defines the members and their limits.
#[cfg(feature = "schema")]
const SOURCE: &str = "the builder-state protocol, Checkpoint Schema Addition";

open_enum! {
    /// The phase a task is in.
    Phase {
        /// Finding out what to do.
        Planning = "planning",
        /// Doing it.
        Implementation = "implementation",
        /// Showing that it works.
        Verification = "verification",
        /// Writing it down.
        Documentation = "documentation",
    }
}

open_enum! {
    /// Why a checkpoint was made or changed.
    Reason {
        /// A step or a decision was finished.
        Periodic = "periodic",
        /// The agent's context is nearly full.
        ContextLimit = "context_limit",
        /// The task failed.
        Failure = "failure",
        /// Another agent takes over.
        Reassignment = "reassignment",
        /// The model's service asked to wait.
        RateLimit = "rate_limit",
        /// Somebody asked for it.
        Manual = "manual",
    }
}

open_enum! {
    /// What came of one activity of verification.
    ResultStatus {
        /// Not run yet.
        Pending = "pending",
        /// Run, with success.
        Passed = "passed",
        /// Run, without success.
        Failed = "failed",
        /// Left out.
        Skipped = "skipped",
    }
}

/// The finished and remaining work of a task, with its decisions.
///
/// Member names in the file are `camelCase`. Times are RFC 3339 with a zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskCheckpoint {
    /// The version of the format, counted from 1; only if the checkpoint is a file of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub schema_version: Option<u64>,
    /// The phase the task is in.
    pub phase: Option<Phase>,
    /// Steps that are finished, oldest first.
    #[serde(deserialize_with = "null_is_default")]
    pub completed_steps: Vec<CompletedStep>,
    /// Steps that are left, in order. The current step stays in it until it is finished.
    #[serde(deserialize_with = "null_is_default")]
    pub pending_steps: Vec<String>,
    /// The step that is being worked on.
    pub current_step: Option<CurrentStep>,
    /// What was decided, oldest first.
    #[serde(deserialize_with = "null_is_default")]
    pub decisions: Vec<Decision>,
    /// The reasons why the task cannot continue.
    #[serde(deserialize_with = "null_is_default")]
    pub blockers: Vec<String>,
    /// How success is shown, and the results so far.
    pub verification: Option<Verification>,
    /// The number of finished steps that the checkpoint no longer holds, and where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DroppedSteps>,
    /// The agent of the checkpoint, with the time and the reason of the last save.
    #[serde(deserialize_with = "null_is_default")]
    pub metadata: Metadata,
}

/// The finished steps that saves moved out of a checkpoint to stay within its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new("the dropped log of this library").null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct DroppedSteps {
    /// The number of moved steps; all of them are older than those in `completedSteps`.
    pub completed_steps: Option<u64>,
    /// The dropped log that has them, as a path relative to the folder of the checkpoint's file.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A finished step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletedStep {
    /// What was done: an action and its object, in a few words.
    pub step: Option<String>,
    /// Files that the step created, relative to the project's root.
    #[serde(deserialize_with = "null_is_default")]
    pub files_created: Vec<String>,
    /// Files that the step changed, relative to the project's root.
    #[serde(deserialize_with = "null_is_default")]
    pub files_modified: Vec<String>,
    /// When it was finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

impl CompletedStep {
    /// A finished step without files or time.
    pub fn new(step: impl Into<String>) -> Self {
        CompletedStep {
            step: Some(step.into()),
            ..CompletedStep::default()
        }
    }
}

/// The step that is being worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CurrentStep {
    /// What is being done, as the plan has it.
    pub description: Option<String>,
    /// When it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The progress of the step, in at most 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
    pub partial_work: Option<String>,
}

impl CurrentStep {
    /// A step that begins, without time or note.
    pub fn new(description: impl Into<String>) -> Self {
        CurrentStep {
            description: Some(description.into()),
            ..CurrentStep::default()
        }
    }
}

/// A decision that the next agent must respect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Decision {
    /// What was decided.
    pub decision: Option<String>,
    /// Why, in at most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100)))]
    pub rationale: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

impl Decision {
    /// A decision without reason or time.
    pub fn new(decision: impl Into<String>) -> Self {
        Decision {
            decision: Some(decision.into()),
            ..Decision::default()
        }
    }
}

/// How success is shown, and the results so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent()))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verification {
    /// The place of the criteria, such as `US-003.verificationContract`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<String>,
    /// The result of each activity.
    #[serde(deserialize_with = "null_is_default")]
    pub results: Vec<VerificationResult>,
}

/// The result of one verification activity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct VerificationResult {
    /// What was run.
    pub activity: Option<String>,
    /// The result of the activity.
    pub status: Option<ResultStatus>,
    /// When it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
}

impl VerificationResult {
    /// A result without the time of the run.
    pub fn new(activity: impl Into<String>, status: ResultStatus) -> Self {
        VerificationResult {
            activity: Some(activity.into()),
            status: Some(status),
            run_at: None,
        }
    }
}

/// The agent of the checkpoint, with the time and the reason of the last save.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metadata {
    /// The agent that made the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When the checkpoint was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_at: Option<Timestamp>,
    /// Why it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The agents that worked on the task before, oldest first.
    #[serde(deserialize_with = "null_is_default")]
    pub previous_agents: Vec<String>,
}

impl Checkpoint for TaskCheckpoint {
    const FORMAT: &'static str = "task";
    const VERSION_POINTER: Option<&'static str> = Some("/schemaVersion");
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[SchemaVersion::new(
        1,
        "The checkpoint object of the builder-state protocol, alone in a file that states its version.",
    )];
    const IDENTITIES: &'static [Identity] = &[
        Identity {
            list: "completedSteps",
            by: &["step", "timestamp"],
        },
        Identity {
            list: "decisions",
            by: &["decision"],
        },
        Identity {
            list: "results",
            by: &["activity"],
        },
    ];

    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/completedSteps/*", ItemState::Finished),
        ("/pendingSteps/*", ItemState::Pending),
        ("/currentStep", ItemState::Begun),
        ("/blockers/*", ItemState::Blocker),
        ("/verification/results/*", ItemState::Criterion),
    ];
    const STATUS_IS_DERIVED: bool = true;

    const NAMES_SOURCES_ONLY: bool = true;
    const INPUTS: &'static [Input] = &[Input::new(
        "contract",
        InputKind::Text,
        "What success is measured by, such as US-003.verificationContract",
        &["start"],
    )];
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));

    fn schema_version(&self) -> Option<u64> {
        self.schema_version
    }

    fn set_schema_version(&mut self, version: u64) {
        self.schema_version = Some(version);
    }

    fn updated_at(&self) -> Option<&Timestamp> {
        self.metadata.last_updated_at.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        let stamp = Timestamp::like(self.metadata.last_updated_at.as_ref(), now);
        self.metadata.last_updated_at = Some(stamp);
    }

    /// A heartbeat changes only the stamp; it does not vouch for files.
    fn is_heartbeat(&self, before: &Self) -> bool {
        // Most saves change one of these; comparing them first saves a copy.
        let is_same_work = self.completed_steps == before.completed_steps
            && self.pending_steps == before.pending_steps
            && self.current_step == before.current_step
            && self.blockers == before.blockers;
        if !is_same_work {
            return false;
        }
        let mut before = before.clone();
        let stamp = &self.metadata.last_updated_at;
        before.metadata.last_updated_at.clone_from(stamp);
        before == *self
    }

    fn files(&self) -> Vec<&str> {
        let steps = self.completed_steps.iter();
        each_once(steps.flat_map(|step| step.files_created.iter().chain(&step.files_modified)))
    }

    fn status(&self) -> Status {
        handoff::status(self)
    }

    fn handoff(&self) -> Handoff {
        handoff::handoff(self)
    }

    fn outline(&self) -> Handoff {
        handoff::outline(self)
    }

    fn has_finished(&self, text: &str) -> bool {
        self.is_finished(text)
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, _: &RuleContext<'_>) -> ResumePlan {
        let files = self.files().into_iter();
        ResumePlan::of(&Handoff {
            agent: self.left_by().map(str::to_owned),
            files: files.map(str::to_owned).collect(),
            ..handoff::outline(self)
        })
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        let agent = start.agent.unwrap_or("ckpt");
        let mut checkpoint = TaskCheckpoint::begin(agent, start.plan, start.now);
        if let Some(contract) = start.given.text("contract") {
            let verification = checkpoint.verification.get_or_insert_default();
            verification.contract_ref = Some(contract.to_owned());
        }
        Ok(checkpoint)
    }

    /// No protocol names the file, so only its content counts.
    fn recognise(_: &Path, document: Option<&Document>) -> Option<Evidence> {
        let root = document?.root();
        let mut members = vec![
            "completedSteps",
            "pendingSteps",
            "currentStep",
            "decisions",
            "metadata",
            "schemaVersion",
        ];
        members.retain(|member| root.get(member).is_some());
        // Other formats may have one of these members, so one alone is not enough.
        let enough = members.len() >= 2 && members.iter().any(|member| member.ends_with("Steps"));
        enough.then(|| Evidence::gather(None, &members)).flatten()
    }

    fn take_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        self.take_over(context);
        Ok(())
    }

    fn interrupt(
        &mut self,
        interruption: &Interruption,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        self.interrupted(interruption, context.now);
        Ok(())
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> Option<Self> {
        Some(handoff::from_handoff(handoff, now))
    }

    fn shrink(&mut self, limits: &Limits, before: Option<&Self>) -> Truncation {
        shrink::shrink(self, limits, before)
    }
}
