//! Checkpoints of builds.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::arbitrary::arbitrary;
use crate::checkpoint::Timestamp;
use crate::formats::BuildCheckpoint;
use crate::formats::build_pipeline::{
    AdversarialReview, BuildError, BuildStatus, Fix, PresenceClass, RenderProofWaiver, Verdict,
};

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "PRD-[0-9]{3}",
        1 => "(EXEC|ADR|FIB|GAP|PERF|ISS)-[A-Za-z0-9._-]{1,12}",
    ]
}

fn files() -> impl Strategy<Value = Vec<String>> {
    vec("src(/[a-z]{1,6}){1,3}\\.(ts|sql|md)", 0..4)
}

fn artifact() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => files().prop_map(Value::from),
        1 => super::json_value(),
    ]
}

fn fixes() -> impl Strategy<Value = Option<Vec<Fix>>> {
    let fix =
        ("src/[a-z]{1,6}\\.ts", "[a-z ]{1,20}").prop_map(|(file, change)| Fix::new(file, change));
    option::weighted(0.2, vec(fix, 0..3))
}

fn review() -> impl Strategy<Value = AdversarialReview> {
    let verdict = proptest::sample::select(vec![
        Verdict::Ship,
        Verdict::ShipWithGates,
        Verdict::DoNotShip,
        Verdict::Overridden,
    ]);
    (verdict, 0..4_u8, 0..9_u8, 1..=2_u8, "[a-z][a-z ]{0,19}").prop_map(
        |(verdict, p0, p1, attempt, reason)| {
            let overridden = verdict == Verdict::Overridden;
            let mut review = AdversarialReview::new(verdict);
            review.p0_count = Some(p0.into());
            review.p1_count = Some(p1.into());
            review.attempt = Some(attempt.into());
            review.override_reason = overridden.then_some(reason);
            review
        },
    )
}

/// How the workstreams lie: each with the number of its bucket (0 completed, 1 in progress, 2 pending, 3
/// dormant) and its artifact.
fn workstreams() -> impl Strategy<Value = Vec<(u8, Value)>> {
    vec((0..4_u8, artifact()), 0..10)
}

fn statuses() -> impl Strategy<Value = BuildStatus> {
    proptest::sample::select(vec![
        BuildStatus::Initialized,
        BuildStatus::InProgress,
        BuildStatus::Paused,
        BuildStatus::Failed,
        BuildStatus::Complete,
    ])
}

#[derive(Clone, Debug)]
enum Stamps {
    First(Timestamp),
    Later(Timestamp, Timestamp),
}

fn stamps() -> impl Strategy<Value = Stamps> {
    prop_oneof![
        any::<Timestamp>().prop_map(Stamps::First),
        (any::<Timestamp>(), any::<Timestamp>()).prop_map(|(a, b)| {
            if a.time() <= b.time() {
                Stamps::Later(a, b)
            } else {
                Stamps::Later(b, a)
            }
        }),
    ]
}

fn proofs() -> impl Strategy<Value = (Option<String>, Option<PresenceClass>, Option<String>)> {
    let fidelity = prop_oneof![Just("pass".to_owned()), "fail:[0-9]{1,2}"];
    let class = prop_oneof![Just(PresenceClass::DerivedValue), Just(PresenceClass::None)];
    let presence = prop_oneof![
        Just("pass".to_owned()),
        Just("not_applicable".to_owned()),
        Just("blocked:stack_down".to_owned()),
        "(fail|blocked):[a-z_]{1,8}",
        "waived:ISS-[0-9]{1,3}",
    ];
    (
        option::weighted(0.3, fidelity),
        option::weighted(0.3, class),
        option::weighted(0.3, presence),
    )
}

fn build_checkpoint() -> impl Strategy<Value = BuildCheckpoint> {
    (
        (
            id(),
            option::of("[A-Z][a-z]{2,8}( [a-z]{2,8}){0,2}"),
            statuses(),
        ),
        workstreams(),
        (vec("[a-z]{3,8}-check", 0..4), 0..4_usize),
        stamps(),
        option::of(review()),
        proofs(),
        (
            fixes(),
            fixes(),
            option::weighted(0.2, vec("[a-z ]{1,20}", 0..3)),
        ),
        (any::<bool>(), "[a-z ]{1,30}", option::of(1..500_u32)),
    )
        .prop_map(
            |(
                (id, title, status),
                workstreams,
                (gates, passed),
                stamps,
                review,
                proofs,
                (key_fixes, eslint_fixes, cleanup_done),
                (older_name, message, line),
            )| {
                let mut build = BuildCheckpoint {
                    prd: Some(id),
                    prd_title: title,
                    adversarial_review: review,
                    key_fixes,
                    eslint_fixes,
                    cleanup_done,
                    ..BuildCheckpoint::default()
                };
                put_workstreams(&mut build, &status, workstreams, older_name);
                for (index, gate) in gates.into_iter().enumerate() {
                    if index < passed || status == BuildStatus::Complete {
                        build.gates_passed.push(format!("{gate} (WS{})", index + 1));
                    } else if !build.gates_pending.contains(&gate) {
                        build.gates_pending.push(gate);
                    }
                }
                build.current_phase = Some(build.gates_passed.len() as f64);
                if status == BuildStatus::Failed {
                    let mut error = BuildError::new("WS1", message);
                    if let Some(line) = line {
                        error = error.at("src/a.ts", line);
                    }
                    build.error = Some(error);
                }
                (
                    build.gate_a_fidelity,
                    build.gate_b_classification,
                    build.gate_b_presence,
                ) = proofs;
                settle_proofs(&mut build, &status);
                build.status = Some(status);
                match stamps {
                    Stamps::First(at) => build.timestamp = Some(at),
                    Stamps::Later(created, updated) => {
                        build.created_at = Some(created);
                        build.updated_at = Some(updated);
                    }
                }
                build
            },
        )
}

fn put_workstreams(
    build: &mut BuildCheckpoint,
    status: &BuildStatus,
    workstreams: Vec<(u8, Value)>,
    older_name: bool,
) {
    let mut dormant = Vec::new();
    let mut artifacts = BTreeMap::new();
    for (index, (bucket, artifact)) in workstreams.into_iter().enumerate() {
        let id = format!("WS{}", index + 1);
        match (bucket, status) {
            (3, _) => {
                let value = json!({"status": "dormant", "reason": "not in this run"});
                artifacts.insert(id.clone(), value);
                dormant.push(id);
            }
            (0, _) | (_, BuildStatus::Complete) => {
                artifacts.insert(id.clone(), artifact);
                build.completed_workstreams.push(id);
            }
            (1, BuildStatus::InProgress) => build.in_progress_workstreams.push(id),
            _ => build.pending_workstreams.push(id),
        }
    }
    if *status == BuildStatus::InProgress && build.in_progress_workstreams.is_empty() {
        build.in_progress_workstreams.push("WS0".to_owned());
    }
    build.artifacts = artifacts;
    if !dormant.is_empty() {
        let list = if older_name {
            &mut build.skipped_workstreams
        } else {
            &mut build.dormant_workstreams
        };
        *list = Some(dormant);
    }
}

/// A complete build has proofs that let it be complete; a waived gate B has its waiver.
fn settle_proofs(build: &mut BuildCheckpoint, status: &BuildStatus) {
    let presence = build.gate_b_presence.clone().unwrap_or_default();
    if *status == BuildStatus::Complete {
        if build
            .gate_a_fidelity
            .as_deref()
            .is_some_and(|text| text != "pass")
        {
            build.gate_a_fidelity = None;
        }
        if presence == "blocked:stack_down" {
            build.gate_b_presence = Some("pass".to_owned());
        }
    }
    let issue = match presence.split_once(':') {
        Some(("waived", issue)) => issue,
        Some(("fail" | "blocked", _)) => "ISS-1",
        _ => return,
    };
    build.render_proof_waiver = Some(RenderProofWaiver {
        reason: Some("there is no derived value".to_owned()),
        issue_id: Some(issue.to_owned()),
    });
}

arbitrary! {
    /// Each of the five statuses as often; 0 to 9 workstreams in the buckets that the status allows; the
    /// stamps of the later revision 1 of 2; each of the proofs 3 of 10, where the status allows it. 1 of 5
    /// artifacts is of any type.
    BuildCheckpoint => build_checkpoint();
}
