//! Generates checkpoints of builds for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::workstreams::Bucket;
use super::{
    AdversarialReview, BuildCheckpoint, BuildError, BuildStatus, Fix, PresenceClass,
    RenderProofWaiver, Verdict,
};
use crate::checkpoint::Timestamp;
use crate::checkpoint::arbitrary::{arbitrary, json_value};

/// A workstream's bucket and its artifact; the bucket is used if the build's status allows it.
fn workstream() -> impl Strategy<Value = (Bucket, Value)> {
    use Bucket::{Completed, Dormant, InProgress, Pending};
    (
        select(vec![Completed, InProgress, Pending, Dormant]),
        artifact(),
    )
}

fn artifact() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => vec("src(/[a-z]{1,6}){1,3}\\.(ts|sql|md)", 0..4).prop_map(Value::from),
        1 => json_value(),
    ]
}

prop_compose! {
    fn fix()(file in "src/[a-z]{1,6}\\.ts", change in "[a-z ]{1,20}") -> Fix {
        Fix::new(file, change)
    }
}

prop_compose! {
    fn review()(
        verdict in any::<Verdict>(),
        p0 in 0..4_u8,
        p1 in 0..9_u8,
        attempt in 1..=2_u8,
        reason in "[a-z][a-z ]{0,19}",
    ) -> AdversarialReview {
        let overridden = verdict == Verdict::Overridden;
        AdversarialReview {
            verdict: Some(verdict),
            p0_count: Some(p0.into()),
            p1_count: Some(p1.into()),
            attempt: Some(attempt.into()),
            override_reason: overridden.then_some(reason),
            findings_path: None,
        }
    }
}

/// The results of gate B.
fn presence() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("pass".to_owned()),
        Just("not_applicable".to_owned()),
        Just("blocked:stack_down".to_owned()),
        "(fail|blocked):[a-z_]{1,8}",
        "waived:ISS-[0-9]{1,3}",
    ]
}

prop_compose! {
    fn build_checkpoint()(
        prd in prop_oneof![
            3 => "PRD-[0-9]{3}",
            1 => "(EXEC|ADR|FIB|GAP|PERF|ISS)-[A-Za-z0-9._-]{1,12}",
        ],
        prd_title in option::of("[A-Z][a-z]{2,8}( [a-z]{2,8}){0,2}"),
        status in any::<BuildStatus>(),
        workstreams in vec(workstream(), 0..10),
        dormant_by_older_name in any::<bool>(),
        gates in vec("[a-z]{3,8}-check", 0..4),
        passed in 0..4_usize,
        stamp in any::<Timestamp>(),
        later in any::<Option<Timestamp>>(),
        adversarial_review in option::of(review()),
        gate_a_fidelity in option::weighted(0.3, prop_oneof![Just("pass".to_owned()), "fail:[0-9]{1,2}"]),
        gate_b_classification in option::weighted(0.3, any::<PresenceClass>()),
        gate_b_presence in option::weighted(0.3, presence()),
        key_fixes in option::weighted(0.2, vec(fix(), 0..3)),
        eslint_fixes in option::weighted(0.2, vec(fix(), 0..3)),
        cleanup_done in option::weighted(0.2, vec("[a-z ]{1,20}", 0..3)),
        message in "[a-z ]{1,30}",
        line in option::of(1..500_u32),
    ) -> BuildCheckpoint {
        let mut build = BuildCheckpoint {
            prd: Some(prd),
            prd_title,
            status: Some(status.clone()),
            adversarial_review,
            gate_a_fidelity,
            gate_b_classification,
            gate_b_presence,
            key_fixes,
            eslint_fixes,
            cleanup_done,
            ..BuildCheckpoint::default()
        };
        put_workstreams(&mut build, &status, workstreams);
        if dormant_by_older_name {
            build.skipped_workstreams = build.dormant_workstreams.take();
        }
        for (index, gate) in gates.into_iter().enumerate() {
            if index < passed || status == BuildStatus::Complete {
                build.gates_passed.push(format!("{gate} (WS{})", index + 1));
            } else if !build.gates_pending.contains(&gate) {
                build.gates_pending.push(gate);
            }
        }
        build.current_phase = Some(build.gates_passed.len() as f64);
        if status == BuildStatus::Failed {
            build.error = Some(BuildError {
                workstream: Some("WS1".to_owned()),
                message: Some(message),
                file: line.map(|_| "src/a.ts".to_owned()),
                line: line.map(f64::from),
                ..BuildError::default()
            });
        }
        settle_proofs(&mut build, &status);
        match later {
            None => build.timestamp = Some(stamp),
            Some(later) => {
                let is_before = stamp.time() <= later.time();
                let (created, updated) = if is_before { (stamp, later) } else { (later, stamp) };
                build.created_at = Some(created);
                build.updated_at = Some(updated);
            }
        }
        build
    }
}

fn put_workstreams(
    build: &mut BuildCheckpoint,
    status: &BuildStatus,
    workstreams: Vec<(Bucket, Value)>,
) {
    for (index, (bucket, artifact)) in workstreams.into_iter().enumerate() {
        let id = format!("WS{}", index + 1);
        match (bucket, status) {
            (Bucket::Dormant, _) => {
                let value = json!({"status": "dormant", "reason": "not in this run"});
                build.artifacts.insert(id.clone(), value);
                build.dormant_workstreams.get_or_insert_default().push(id);
            }
            (Bucket::Completed, _) | (_, BuildStatus::Complete) => {
                build.artifacts.insert(id.clone(), artifact);
                build.completed_workstreams.push(id);
            }
            (Bucket::InProgress, BuildStatus::InProgress) => build.in_progress_workstreams.push(id),
            _ => build.pending_workstreams.push(id),
        }
    }
    if *status == BuildStatus::InProgress && build.in_progress_workstreams.is_empty() {
        build.in_progress_workstreams.push("WS0".to_owned());
    }
}

/// Makes the proofs fit: a complete build passes both gates, and a waived gate B has its waiver.
fn settle_proofs(build: &mut BuildCheckpoint, status: &BuildStatus) {
    if *status == BuildStatus::Complete {
        build.gate_a_fidelity = build
            .gate_a_fidelity
            .take()
            .filter(|result| result == "pass");
        if build.gate_b_presence.as_deref() == Some("blocked:stack_down") {
            build.gate_b_presence = Some("pass".to_owned());
        }
    }
    let presence = build.gate_b_presence.as_deref().unwrap_or_default();
    let issue = match presence.split_once(':') {
        Some(("waived", issue)) => issue,
        Some(_) => "ISS-1",
        None => return,
    };
    build.render_proof_waiver = Some(RenderProofWaiver {
        reason: Some("there is no derived value".to_owned()),
        issue_id: Some(issue.to_owned()),
    });
}

arbitrary! {
    /// The five statuses are equally frequent. 0 to 9 workstreams in the buckets that the status allows. 1 of 2 has the
    /// stamps of the later revision; each proof 3 of 10, where the status allows it. 1 of 5 artifacts is of any type.
    BuildCheckpoint => build_checkpoint();
}
