//! Task checkpoints.

use chrono::{DateTime, Utc};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::checkpoint::{Precision, Timestamp};
use crate::formats::task::{
    CompletedStep, CurrentStep, Decision, Metadata, Phase, Reason, ResultStatus, TaskCheckpoint,
    Verification, VerificationResult,
};

/// A valid stamp between 2020 and 2030, in UTC; whole seconds two times in three, else with 3 or 9
/// digits.
pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    let precision = prop_oneof![
        4 => Just(Precision::SECONDS),
        1 => Just(Precision::MILLISECONDS),
        1 => Just(Precision::NANOSECONDS),
    ];
    let seconds = 1_577_836_800_i64..1_893_456_000;
    (seconds, 0..1_000_000_000_u32, precision).prop_map(|(seconds, nanos, precision)| {
        let time = DateTime::<Utc>::from_timestamp(seconds, nanos).unwrap_or_default();
        Timestamp::at(time, precision)
    })
}

fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}",
        1 => "\\PC{1,20}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    "src(/[a-z]{1,6}){1,3}\\.(rs|ts|md)"
}

/// A valid [`TaskCheckpoint`] within the protocol's length limits (not its size): 0 to 12 finished
/// and pending steps, a current step every other time, 0 to 4 decisions, seldom blockers.
pub fn task_checkpoint() -> impl Strategy<Value = TaskCheckpoint> {
    let completed = (phrase(), vec(path(), 0..3), vec(path(), 0..3), timestamp()).prop_map(
        |(step, created, modified, at)| CompletedStep {
            step: Some(step),
            files_created: created,
            files_modified: modified,
            timestamp: Some(at),
        },
    );
    let current = (phrase(), timestamp(), option::of("\\PC{0,60}")).prop_map(
        |(description, started, note)| CurrentStep {
            description: Some(description),
            started_at: Some(started),
            partial_work: note,
        },
    );
    let decision =
        (phrase(), option::of("\\PC{0,60}"), timestamp()).prop_map(|(decision, rationale, at)| {
            Decision {
                decision: Some(decision),
                rationale,
                timestamp: Some(at),
            }
        });
    let result = (
        phrase(),
        proptest::sample::select(vec![
            ResultStatus::Pending,
            ResultStatus::Passed,
            ResultStatus::Failed,
            ResultStatus::Skipped,
        ]),
        option::of(timestamp()),
    )
        .prop_map(|(activity, status, at)| {
            let mut result = VerificationResult::new(activity, status);
            result.run_at = at;
            result
        });
    let verification = (option::of("US-[0-9]{3}\\.contract"), vec(result, 0..3)).prop_map(
        |(contract, results)| Verification {
            contract_ref: contract,
            results,
        },
    );
    let metadata = (
        "[a-z]{2,6}-dev",
        timestamp(),
        proptest::sample::select(vec![
            Reason::Periodic,
            Reason::ContextLimit,
            Reason::Failure,
            Reason::Reassignment,
            Reason::RateLimit,
            Reason::Manual,
        ]),
        vec("[a-z]{2,6}-dev", 0..3),
    )
        .prop_map(|(created_by, at, reason, previous)| Metadata {
            created_by: Some(created_by),
            last_updated_at: Some(at),
            reason: Some(reason),
            previous_agents: previous,
        });
    let phase = proptest::sample::select(vec![
        Phase::Planning,
        Phase::Implementation,
        Phase::Verification,
        Phase::Documentation,
    ]);
    (
        phase,
        vec(completed, 0..12),
        vec(phrase(), 0..12),
        option::of(current),
        vec(decision, 0..4),
        prop_oneof![4 => Just(Vec::new()), 1 => vec(phrase(), 1..3)],
        option::of(verification),
        metadata,
    )
        .prop_map(
            |(phase, completed, pending, current, decisions, blockers, verification, metadata)| {
                TaskCheckpoint {
                    schema_version: None,
                    phase: Some(phase),
                    completed_steps: completed,
                    pending_steps: pending,
                    current_step: current,
                    decisions,
                    blockers,
                    verification,
                    metadata,
                }
            },
        )
}
