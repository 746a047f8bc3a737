//! The rules of the format; source: the checkpoint schema of the builder-state protocol.

use super::{CompletedStep, CurrentStep, Decision, Metadata, TaskCheckpoint, Verification};
use crate::checkpoint::{Checkpoint, Inspection};
use crate::json::Code;

pub(in crate::formats) fn inspect(checkpoint: &TaskCheckpoint, inspection: &mut Inspection<'_>) {
    if let (Some(found), Some(known)) = (checkpoint.schema_version, TaskCheckpoint::SCHEMA_VERSION)
        && found > known
    {
        inspection.report(
            "/schemaVersion",
            Code::NEWER_SCHEMA,
            format!("version {found}; this library knows up to {known}"),
        );
    }
    inspection.require("phase");
    inspection.known("/phase", checkpoint.phase.as_ref());
    inspection.require("completedSteps");
    inspection.each(
        "completedSteps",
        &checkpoint.completed_steps,
        completed_step,
    );
    inspection.require("pendingSteps");
    if let Some(step) = &checkpoint.current_step {
        inspection.within("currentStep", |inspection| current_step(step, inspection));
    }
    inspection.each("decisions", &checkpoint.decisions, decision);
    if let Some(shown) = &checkpoint.verification {
        inspection.within("verification", |inspection| verification(shown, inspection));
    }
    if inspection.require("metadata") {
        inspection.within("metadata", |inspection| {
            metadata(&checkpoint.metadata, inspection);
        });
    }
}

fn completed_step(step: &CompletedStep, inspection: &mut Inspection<'_>) {
    inspection.require("step");
    inspection.require("timestamp");
    inspection.timestamp("/timestamp", step.timestamp.as_ref());
}

fn current_step(step: &CurrentStep, inspection: &mut Inspection<'_>) {
    inspection.require("description");
    inspection.require("startedAt");
    inspection.timestamp("/startedAt", step.started_at.as_ref());
    let limit = inspection.limits().partial_work;
    inspection.at_most("/partialWork", step.partial_work.as_deref(), limit);
}

fn decision(decision: &Decision, inspection: &mut Inspection<'_>) {
    inspection.require("decision");
    inspection.require("timestamp");
    inspection.timestamp("/timestamp", decision.timestamp.as_ref());
    let limit = inspection.limits().rationale;
    inspection.at_most("/rationale", decision.rationale.as_deref(), limit);
}

fn verification(verification: &Verification, inspection: &mut Inspection<'_>) {
    inspection.each("results", &verification.results, |result, inspection| {
        inspection.require("activity");
        inspection.require("status");
        inspection.known("/status", result.status.as_ref());
        inspection.timestamp("/runAt", result.run_at.as_ref());
    });
}

fn metadata(metadata: &Metadata, inspection: &mut Inspection<'_>) {
    inspection.require("createdBy");
    inspection.require("lastUpdatedAt");
    inspection.timestamp("/lastUpdatedAt", metadata.last_updated_at.as_ref());
    inspection.require("reason");
    inspection.known("/reason", metadata.reason.as_ref());
}
