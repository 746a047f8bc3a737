//! Task checkpoints and their parts for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{
    CompletedStep, CurrentStep, Decision, DroppedSteps, Metadata, Phase, Reason, ResultStatus,
    TaskCheckpoint, Verification, VerificationResult,
};
use crate::checkpoint::{Checkpoint, Timestamp, arbitrary};

fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}",
        1 => "\\PC{1,20}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    "src(/[a-z]{1,6}){1,3}\\.(rs|ts|md)"
}

fn stamp() -> impl Strategy<Value = Option<Timestamp>> {
    any::<Timestamp>().prop_map(Some)
}

prop_compose! {
    fn task_checkpoint()(
        schema_version in prop_oneof![4 => Just(None), 1 => Just(TaskCheckpoint::latest_version())],
        phase in any::<Phase>().prop_map(Some),
        completed_steps in vec(any::<CompletedStep>(), 0..12),
        pending_steps in vec(phrase(), 0..12),
        current_step in any::<Option<CurrentStep>>(),
        decisions in vec(any::<Decision>(), 0..4),
        blockers in prop_oneof![4 => Just(Vec::new()), 1 => vec(phrase(), 1..3)],
        verification in any::<Option<Verification>>(),
        dropped in option::weighted(0.2, any::<DroppedSteps>()),
        metadata in any::<Metadata>(),
    ) -> TaskCheckpoint {
        TaskCheckpoint {
            schema_version,
            phase,
            completed_steps,
            pending_steps,
            current_step,
            decisions,
            blockers,
            verification,
            dropped,
            metadata,
        }
    }
}

arbitrary! {
    /// A step in 1 to 5 words (4 of 5) or up to 20 letters of any script, with 0 to 2 files made, as many
    /// changed, and its time.
    CompletedStep => (phrase(), vec(path(), 0..3), vec(path(), 0..3), stamp()).prop_map(
        |(step, files_created, files_modified, timestamp)| CompletedStep {
            step: Some(step),
            files_created,
            files_modified,
            timestamp,
        },
    );

    /// A step with its time; every other time with a note of up to 60 characters.
    CurrentStep => (phrase(), stamp(), option::of("\\PC{0,60}")).prop_map(
        |(description, started_at, partial_work)| CurrentStep {
            description: Some(description),
            started_at,
            partial_work,
        },
    );

    /// A decision with its time; every other time with a reason of up to 60 characters.
    Decision => (phrase(), option::of("\\PC{0,60}"), stamp()).prop_map(
        |(decision, rationale, timestamp)| Decision {
            decision: Some(decision),
            rationale,
            timestamp,
        },
    );

    /// An activity with each of the listed results as often; every other time with the time it was run.
    VerificationResult => (phrase(), any::<ResultStatus>(), any::<Option<Timestamp>>()).prop_map(
        |(activity, status, run_at)| VerificationResult {
            run_at,
            ..VerificationResult::new(activity, status)
        },
    );

    /// 0 to 2 results; every other time with the place of the criteria.
    Verification => (option::of("US-[0-9]{3}\\.contract"), vec(any::<VerificationResult>(), 0..3))
        .prop_map(|(contract_ref, results)| Verification { contract_ref, results });

    /// Who, when and why, each of the listed reasons as often; 0 to 2 agents before.
    Metadata => ("[a-z]{2,6}-dev", stamp(), any::<Reason>(), vec("[a-z]{2,6}-dev", 0..3)).prop_map(
        |(created_by, last_updated_at, reason, previous_agents)| Metadata {
            created_by: Some(created_by),
            last_updated_at,
            reason: Some(reason),
            previous_agents,
        },
    );

    /// 1 to 99 steps; every other time with the place.
    DroppedSteps => (1..100_u64, option::of(path())).prop_map(|(completed_steps, place)| DroppedSteps {
        completed_steps: Some(completed_steps),
        place,
    });

    /// Each phase as often; 0 to 11 finished and as many pending steps, a current step every other time,
    /// 0 to 3 decisions, 1 or 2 blockers (1 of 5), a verification every other time, dropped
    /// steps and the schema's version 1 of 5 times.
    ///
    /// Texts keep the protocol's lengths; the whole may be over the size that a save keeps to.
    TaskCheckpoint => task_checkpoint();
}
