//! Generates task checkpoints and their parts for property tests.

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
    /// A step of 1 to 5 words (4 of 5) or up to 20 letters of any script, with 0 to 2 files created, 0 to 2 modified,
    /// and its time.
    CompletedStep => (phrase(), vec(path(), 0..3), vec(path(), 0..3), stamp()).prop_map(
        |(step, files_created, files_modified, timestamp)| CompletedStep {
            step: Some(step),
            files_created,
            files_modified,
            timestamp,
        },
    );

    /// A step with its time; 1 of 2 with a note of up to 60 characters.
    CurrentStep => (phrase(), stamp(), option::of("\\PC{0,60}")).prop_map(
        |(description, started_at, partial_work)| CurrentStep {
            description: Some(description),
            started_at,
            partial_work,
        },
    );

    /// A decision with its time; 1 of 2 with a reason of up to 60 characters.
    Decision => (phrase(), option::of("\\PC{0,60}"), stamp()).prop_map(
        |(decision, rationale, timestamp)| Decision {
            decision: Some(decision),
            rationale,
            timestamp,
        },
    );

    /// An activity; the listed results are equally frequent; 1 of 2 with the time of the run.
    VerificationResult => (phrase(), any::<ResultStatus>(), any::<Option<Timestamp>>()).prop_map(
        |(activity, status, run_at)| VerificationResult {
            run_at,
            ..VerificationResult::new(activity, status)
        },
    );

    /// 0 to 2 results; 1 of 2 with the reference to the criteria.
    Verification => (option::of("US-[0-9]{3}\\.contract"), vec(any::<VerificationResult>(), 0..3))
        .prop_map(|(contract_ref, results)| Verification { contract_ref, results });

    /// An agent, a time and a reason, the listed ones equally frequent; 0 to 2 previous agents.
    Metadata => ("[a-z]{2,6}-dev", stamp(), any::<Reason>(), vec("[a-z]{2,6}-dev", 0..3)).prop_map(
        |(created_by, last_updated_at, reason, previous_agents)| Metadata {
            created_by: Some(created_by),
            last_updated_at,
            reason: Some(reason),
            previous_agents,
        },
    );

    /// 1 to 99 steps; 1 of 2 with the path of the dropped log.
    DroppedSteps => (1..100_u64, option::of(path())).prop_map(|(completed_steps, place)| DroppedSteps {
        completed_steps: Some(completed_steps),
        place,
    });

    /// The phases are equally frequent. 0 to 11 finished and 0 to 11 pending steps, a current step 1 of 2, 0 to 3
    /// decisions, 1 or 2 blockers 1 of 5, a verification 1 of 2, dropped steps and a schema version 1 of 5 each.
    ///
    /// Texts keep the protocol's lengths; the whole may exceed the target size of a save.
    TaskCheckpoint => task_checkpoint();
}
