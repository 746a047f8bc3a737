//! Every rule of `task` and `builder-state`, shown broken; and the operations that have no page of
//! their own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use agent_checkpoint::checkpoint::{Circumstances, Operation};
use agent_checkpoint::formats::task::{Reason, ResultStatus};
use agent_checkpoint::{Checkpoint, Document, ErrorKind, Formats, Knowledge, TaskCheckpoint};
use common::{EXAMPLE, task, time};
use serde_json::{Value, json};

/// A valid checkpoint with one of everything.
fn whole() -> Value {
    json!({
        "schemaVersion": 1,
        "phase": "implementation",
        "completedSteps": [
            {"step": "a", "filesCreated": [], "filesModified": [], "timestamp": "2026-03-02T08:00:00Z"}
        ],
        "pendingSteps": ["b"],
        "currentStep": {"description": "b", "startedAt": "2026-03-02T08:00:00Z", "partialWork": "half"},
        "decisions": [{"decision": "d", "rationale": "r", "timestamp": "2026-03-02T08:00:00Z"}],
        "blockers": [],
        "verification": {
            "contractRef": "c",
            "results": [{"activity": "unit", "status": "passed", "runAt": "2026-03-02T08:00:00Z"}]
        },
        "metadata": {
            "createdBy": "dev", "lastUpdatedAt": "2026-03-02T08:00:00Z",
            "reason": "periodic", "previousAgents": []
        }
    })
}

fn examine(format: &str, value: &Value) -> Vec<String> {
    let document = Document::from_text(value.to_string()).unwrap();
    let knowledge = Knowledge::none().with_now(time("2026-03-02T09:00:00Z"));
    let formats = Formats::default();
    (formats.get(format).unwrap().examine)(&document, &knowledge)
        .unwrap()
        .iter()
        .map(|violation| format!("{} {}", violation.pointer, violation.code))
        .collect()
}

/// The checkpoint with one value changed, as a task and in every place of a host file.
fn gives(pointer: &str, value: &Value, code: Option<&str>) {
    let mut broken = whole();
    *broken.pointer_mut(pointer).unwrap() = value.clone();
    let expected = |prefix: &str| -> Vec<String> {
        code.iter()
            .map(|code| format!("{prefix}{pointer} {code}"))
            .collect()
    };
    assert_eq!(
        examine("task", &broken),
        expected(""),
        "{pointer} = {value}"
    );
    for (prefix, host) in [
        ("/checkpoint", json!({"checkpoint": broken})),
        (
            "/activePrd/checkpoint",
            json!({"activePrd": {"checkpoint": broken}}),
        ),
        (
            "/activeWork/checkpoint",
            json!({"activeWork": {"checkpoint": broken}}),
        ),
        (
            "/adhocQueue/1/checkpoint",
            json!({"adhocQueue": [{"id": "x"}, {"id": "y", "checkpoint": broken}]}),
        ),
    ] {
        assert_eq!(
            examine("builder-state", &host),
            expected(prefix),
            "{prefix}{pointer}"
        );
    }
}

#[test]
fn each_required_member_is_missed_when_it_is_null() {
    assert!(examine("task", &whole()).is_empty());
    for pointer in [
        "/phase",
        "/completedSteps",
        "/completedSteps/0/step",
        "/completedSteps/0/timestamp",
        "/pendingSteps",
        "/currentStep/description",
        "/currentStep/startedAt",
        "/decisions/0/decision",
        "/decisions/0/timestamp",
        "/verification/results/0/activity",
        "/verification/results/0/status",
        "/metadata",
        "/metadata/createdBy",
        "/metadata/lastUpdatedAt",
        "/metadata/reason",
    ] {
        gives(pointer, &Value::Null, Some("missing"));
    }
}

#[test]
fn any_other_member_may_be_null() {
    for pointer in [
        "/schemaVersion",
        "/completedSteps/0/filesCreated",
        "/completedSteps/0/filesModified",
        "/currentStep",
        "/currentStep/partialWork",
        "/decisions",
        "/decisions/0/rationale",
        "/blockers",
        "/verification",
        "/verification/contractRef",
        "/verification/results",
        "/verification/results/0/runAt",
        "/metadata/previousAgents",
    ] {
        gives(pointer, &Value::Null, None);
    }
}

#[test]
fn each_stamp_is_a_time_with_a_zone_and_not_in_the_future() {
    for pointer in [
        "/completedSteps/0/timestamp",
        "/currentStep/startedAt",
        "/decisions/0/timestamp",
        "/verification/results/0/runAt",
        "/metadata/lastUpdatedAt",
    ] {
        for bad in ["soon", "2026-03-02", "2026-03-02T08:00:00", ""] {
            gives(pointer, &json!(bad), Some("bad-timestamp"));
        }
        gives(
            pointer,
            &json!("2026-03-02T09:00:06Z"),
            Some("future-timestamp"),
        );
        gives(pointer, &json!("2026-03-02T09:00:05Z"), None);
        gives(pointer, &json!("2026-03-02 10:00:00+02:00"), None);
        gives(pointer, &json!(1_700_000_000), Some("wrong-type"));
    }
    for (stamp, expected) in [
        ("soon", vec!["/lastHeartbeat bad-timestamp"]),
        (
            "2026-03-02T09:00:06Z",
            vec!["/lastHeartbeat future-timestamp"],
        ),
        ("2026-03-02T09:00:00Z", vec![]),
    ] {
        let host = json!({"lastHeartbeat": stamp, "activePrd": null});
        assert_eq!(examine("builder-state", &host), expected);
    }
}

#[test]
fn each_text_of_a_list_is_of_its_list() {
    for pointer in [
        "/phase",
        "/metadata/reason",
        "/verification/results/0/status",
    ] {
        for other in ["Planning", "lunch", ""] {
            gives(pointer, &json!(other), Some("unknown-value"));
        }
    }
    for phase in [
        "planning",
        "implementation",
        "verification",
        "documentation",
    ] {
        gives("/phase", &json!(phase), None);
    }
    for reason in [
        "periodic",
        "context_limit",
        "failure",
        "reassignment",
        "rate_limit",
        "manual",
    ] {
        gives("/metadata/reason", &json!(reason), None);
    }
    for status in ["pending", "passed", "failed", "skipped"] {
        gives("/verification/results/0/status", &json!(status), None);
    }
}

#[test]
fn texts_are_as_long_as_the_protocol_lets_them() {
    for (pointer, most) in [
        ("/currentStep/partialWork", 200),
        ("/decisions/0/rationale", 100),
    ] {
        gives(pointer, &json!("ä".repeat(most)), None);
        gives(pointer, &json!("ä".repeat(most + 1)), Some("too-long"));
    }
    // Other texts have no length of their own.
    gives("/decisions/0/decision", &json!("x".repeat(5000)), None);
}

#[test]
fn a_later_version_is_reported_wherever_it_stands() {
    gives("/schemaVersion", &json!(2), Some("newer-schema"));
    gives("/schemaVersion", &json!(1.0), None);
    gives("/schemaVersion", &json!("1"), Some("wrong-type"));
}

#[test]
fn the_protocols_example_breaks_no_rule() {
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    assert!(examine("builder-state", &example).is_empty());
}

#[test]
fn a_failure_is_a_blocker_and_unblocking_ends_it() {
    let mut failed = task(&["one"]);
    failed.fail("no disk");
    failed.fail("no disk");
    assert_eq!(failed.blockers, ["no disk"]);
    assert_eq!(failed.metadata.reason, Some(Reason::Failure));
    failed.unblock();
    assert!(failed.blockers.is_empty());
    assert_eq!(failed.metadata.reason, Some(Reason::Manual));
}

#[test]
fn a_later_result_takes_the_place_of_an_earlier() {
    let mut verified = task(&["one"]);
    let now = time("2026-03-02T08:00:00Z");
    verified.verify("unit", ResultStatus::Failed, now);
    verified.verify("e2e", ResultStatus::Passed, now);
    verified.verify("unit", ResultStatus::Passed, now);
    let results = verified.verification.unwrap().results;
    let found: Vec<_> = results
        .iter()
        .map(|result| {
            (
                result.activity.as_deref().unwrap(),
                result.status.clone().unwrap(),
            )
        })
        .collect();
    let passed = ResultStatus::Passed;
    assert_eq!(found, [("unit", passed.clone()), ("e2e", passed)]);
}

#[test]
fn every_operation_that_is_listed_is_taken_and_others_are_refused_unchanged() {
    let text = || "x".to_owned();
    let all = [
        Operation::StepStart { text: text() },
        Operation::StepDone {
            text: Some(text()),
            pending: None,
            files_created: Vec::new(),
            files_modified: Vec::new(),
        },
        Operation::Decide {
            text: text(),
            rationale: None,
        },
        Operation::Note { text: text() },
        Operation::Block { text: text() },
        Operation::Unblock,
        Operation::Fail { text: text() },
        Operation::Phase {
            name: "planning".to_owned(),
        },
        Operation::Verify {
            activity: text(),
            status: "passed".to_owned(),
        },
        Operation::Pause,
        Operation::Heartbeat,
        Operation::GatePass { name: text() },
        Operation::Stage { name: text() },
        Operation::Sync { name: text() },
        Operation::Restart { because: text() },
    ];
    let circumstances = Circumstances::at(time("2026-03-02T08:00:00Z"));
    for operation in all {
        let mut changed = task(&["one"]);
        changed.start_step("one", time("2026-03-02T08:00:00Z"));
        let before = changed.clone();
        let result = changed.apply(&operation, &circumstances);
        if TaskCheckpoint::OPERATIONS.contains(&operation.name()) {
            result.unwrap();
        } else {
            let error = result.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Unsupported { .. }),
                "{error}"
            );
            assert_eq!(changed, before);
        }
    }
}

/// The builder has its own fields in whatever types it likes.
#[test]
fn the_hosts_own_fields_are_not_judged() {
    let host = json!({
        "sessionId": 5,
        "activePrd": {"id": 1, "storiesCompleted": [{"id": "US-1"}], "storiesPending": "none"},
        "adhocQueue": [{"id": 7, "description": {"x": 1}, "status": 3}, "fix footer"],
    });
    assert!(examine("builder-state", &host).is_empty());
    for (member, wrong) in [
        ("activePrd", json!([])),
        ("adhocQueue", json!({})),
        ("checkpoint", json!("x")),
    ] {
        let host = json!({member: wrong});
        assert_eq!(
            examine("builder-state", &host),
            [format!("/{member} wrong-type")]
        );
    }
}

#[test]
fn recording_a_step_leaves_out_what_tools_make() {
    let mut changed = task(&["one"]);
    let done = Operation::StepDone {
        text: Some("one".to_owned()),
        pending: None,
        files_created: vec![
            "node_modules/x.js".to_owned(),
            "src/a.rs".to_owned(),
            "src/a.rs".to_owned(),
        ],
        files_modified: vec!["target/debug/a".to_owned()],
    };
    let circumstances = Circumstances::at(time("2026-03-02T08:00:00Z"));
    changed.apply(&done, &circumstances).unwrap();
    assert_eq!(changed.files(), ["src/a.rs"]);
    assert!(changed.completed_steps[0].files_modified.is_empty());
}
