//! The rules of the format, from the checkpoint schema of the builder-state protocol.

use super::{
    CompletedStep, CurrentStep, Decision, DroppedSteps, Metadata, TaskCheckpoint, Verification,
    VerificationResult,
};
use crate::checkpoint::Inspection;
use crate::json::Code;

impl TaskCheckpoint {
    /// Members that are required.
    pub(in crate::formats) const REQUIRED: &'static [&'static str] =
        &["phase", "completedSteps", "pendingSteps", "metadata"];
}

impl DroppedSteps {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["completedSteps"];
}

impl CompletedStep {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["step", "timestamp"];
}

impl CurrentStep {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["description", "startedAt"];
}

impl Decision {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["decision", "timestamp"];
}

impl VerificationResult {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["activity", "status"];
}

impl Metadata {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["createdBy", "lastUpdatedAt", "reason"];
}

pub(in crate::formats) fn inspect(checkpoint: &TaskCheckpoint, inspection: &mut Inspection<'_>) {
    if checkpoint.schema_version == Some(0) {
        let message = "versions are counted from 1";
        inspection.report("/schemaVersion", Code::OUT_OF_RANGE, message);
    }
    inspection.require_all(TaskCheckpoint::REQUIRED);
    inspection.known("/phase", checkpoint.phase.as_ref());
    inspection.each(
        "completedSteps",
        &checkpoint.completed_steps,
        completed_step,
    );
    if let Some(step) = &checkpoint.current_step {
        inspection.within("currentStep", |inspection| current_step(step, inspection));
    }
    inspection.each("decisions", &checkpoint.decisions, decision);
    if let Some(shown) = &checkpoint.verification {
        inspection.within("verification", |inspection| verification(shown, inspection));
    }
    if checkpoint.dropped.is_some() {
        inspection.within("dropped", |inspection| {
            inspection.require_all(DroppedSteps::REQUIRED);
        });
    }
    if inspection.is_present("metadata") {
        inspection.within("metadata", |inspection| {
            metadata(&checkpoint.metadata, inspection);
        });
    }
}

fn completed_step(step: &CompletedStep, inspection: &mut Inspection<'_>) {
    inspection.require_all(CompletedStep::REQUIRED);
    inspection.timestamp("/timestamp", step.timestamp.as_ref());
}

fn current_step(step: &CurrentStep, inspection: &mut Inspection<'_>) {
    inspection.require_all(CurrentStep::REQUIRED);
    inspection.timestamp("/startedAt", step.started_at.as_ref());
    let limit = inspection.limits().partial_work;
    inspection.at_most("/partialWork", step.partial_work.as_deref(), limit);
}

fn decision(decision: &Decision, inspection: &mut Inspection<'_>) {
    inspection.require_all(Decision::REQUIRED);
    inspection.timestamp("/timestamp", decision.timestamp.as_ref());
    let limit = inspection.limits().rationale;
    inspection.at_most("/rationale", decision.rationale.as_deref(), limit);
}

fn verification(verification: &Verification, inspection: &mut Inspection<'_>) {
    inspection.each("results", &verification.results, |result, inspection| {
        inspection.require_all(VerificationResult::REQUIRED);
        inspection.known("/status", result.status.as_ref());
        inspection.timestamp("/runAt", result.run_at.as_ref());
    });
}

fn metadata(metadata: &Metadata, inspection: &mut Inspection<'_>) {
    inspection.require_all(Metadata::REQUIRED);
    inspection.timestamp("/lastUpdatedAt", metadata.last_updated_at.as_ref());
    inspection.known("/reason", metadata.reason.as_ref());
}
