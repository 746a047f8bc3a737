//! Every rule of `task` and `builder-state`, shown broken, and the operations that have no separate page.

use crate::common::{EXAMPLE, Reporting, task, time};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::formats::{Formats, Interruption};
use agent_checkpoint::json::Document;
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::{
    Checkpoint, ContextUse, ErrorKind, Operation, OperationContext, RuleContext, Status, Timestamp,
};
use proptest::prelude::*;
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
        "dropped": {"completedSteps": 4, "in": ".agent-checkpoint/overflow/a.json.jsonl"},
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
    let context = RuleContext::none().with_now(time("2026-03-02T09:00:00Z"));
    let formats = Formats::default();
    formats
        .get(format)
        .unwrap()
        .violations(&document, &context)
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

fn by<'a>(agent: &'a str) -> OperationContext<'a> {
    OperationContext::at(time("2026-03-02T08:30:00Z")).by(Some(agent), None)
}

/// An unset variable of a script is no step.
#[test]
fn a_report_that_says_nothing_is_refused_unchanged() {
    let blank = || " ".to_owned();
    for operation in [
        Operation::StepStart {
            text: String::new(),
        },
        Operation::StepStart { text: blank() },
        StepDone::new(blank()).into(),
        Operation::Decide {
            text: blank(),
            rationale: None,
        },
        Operation::Note { text: blank() },
        Operation::Block {
            text: blank(),
            kind: None,
        },
        Operation::Fail { text: blank() },
        Operation::Reassign { to: blank() },
        Operation::Phase { name: blank() },
        Operation::Verify {
            activity: blank(),
            status: "passed".to_owned(),
        },
    ] {
        for force in [false, true] {
            let mut changed = task(&["one"]);
            let text = "one".to_owned();
            changed.report(Operation::StepStart { text }).unwrap();
            let before = changed.clone();
            let error = changed.apply(&operation, &by("other").with_force(force));
            let error = error.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
            assert_eq!(changed, before, "{operation:?}");
        }
    }
}

#[test]
fn a_reassigned_task_belongs_to_the_other_and_was_left_by_the_one_before() {
    let mut given = task(&["one"]);
    let to = |agent: &str| Operation::Reassign {
        to: agent.to_owned(),
    };
    for agent in ["second", "second", "third"] {
        given.apply(&to(agent), &by("lead")).unwrap();
    }
    let metadata = &given.metadata;
    // Neither of them has done any work yet.
    assert_eq!(metadata.created_by.as_deref(), Some("dev"));
    assert_eq!(metadata.previous_agents, ["dev"]);
    assert_eq!(metadata.reason, Some(Reason::Reassignment));
    let plan = given.resume_plan(&RuleContext::none());
    assert_eq!(plan.message, "Resuming from checkpoint (created by dev)");
    let note = Operation::StepStart {
        text: "one".to_owned(),
    };
    given.apply(&note, &by("third")).unwrap();
    let plan = given.resume_plan(&RuleContext::none());
    assert_eq!(plan.message, "Resuming from checkpoint (created by third)");
    assert_eq!(given.metadata.previous_agents, ["dev"]);
}

/// A script prints local time with a `Z`: 10:00 in a zone two hours ahead is really 08:00.
#[test]
fn local_time_that_is_marked_as_utc_lies_in_the_future() {
    let now = time("2026-03-02T08:00:00Z");
    let mut wrong = whole();
    wrong["metadata"]["lastUpdatedAt"] = json!("2026-03-02T10:00:00Z");
    let document = Document::from_text(wrong.to_string()).unwrap();
    let task = *Formats::default().get("task").unwrap();
    let found = |context: &RuleContext<'_>| -> Vec<String> {
        let found = task.violations(&document, context).unwrap();
        found
            .iter()
            .map(|violation| format!("{} {}", violation.pointer, violation.code))
            .collect()
    };
    assert_eq!(
        found(&RuleContext::none().with_now(now)),
        ["/metadata/lastUpdatedAt future-timestamp"]
    );
    assert!(
        found(&RuleContext::none()).is_empty(),
        "without a clock nobody knows"
    );
    // A file that was written since then does not count as older.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "").unwrap();
    let stamp = Timestamp::parse("2999-03-02T10:00:00Z");
    let now = chrono::Utc::now();
    let verdict = Staleness::of(["a.rs"], Some(&stamp), folder.path(), Some(now));
    assert_eq!(verdict.as_str(), "indeterminate");
}

#[test]
fn what_failed_has_failed_also_where_its_agent_is_stopped() {
    let mut failed = task(&["one"]);
    let text = "no licence".to_owned();
    failed.report(Operation::Fail { text }).unwrap();
    let stopped = Interruption::Stopped("SIGTERM".to_owned());
    failed.interrupt(&stopped, &by("dev")).unwrap();
    assert_eq!(failed.status(), Status::Failed);
}

fn operations() -> impl Strategy<Value = Operation> {
    let text = || prop_oneof![3 => "[A-Z][a-z]{1,8}", 1 => "[ ]{0,2}", 1 => "\\PC{1,60}"];
    let files = || proptest::collection::vec("(src|target)/[a-c]\\.rs", 0..3);
    prop_oneof![
        text().prop_map(|text| Operation::StepStart { text }),
        (proptest::option::of(text()), files(), files()).prop_map(|(text, created, modified)| {
            let done = text.map_or_else(StepDone::current, StepDone::new);
            let done = created.into_iter().fold(done, StepDone::with_created);
            modified
                .into_iter()
                .fold(done, StepDone::with_modified)
                .into()
        }),
        (text(), proptest::option::of(text()))
            .prop_map(|(text, rationale)| Operation::Decide { text, rationale }),
        text().prop_map(|text| Operation::Note { text }),
        text().prop_map(|text| Operation::Block { text, kind: None }),
        Just(Operation::Unblock),
        text().prop_map(|text| Operation::Fail { text }),
        proptest::option::of(text()).prop_map(|note| Operation::RateLimit { note, until: None }),
        (0.0..1.5_f64).prop_map(|used| Operation::Context {
            used: ContextUse::new(used).unwrap()
        }),
        text().prop_map(|to| Operation::Reassign { to }),
        prop_oneof![text(), Just("planning".to_owned())].prop_map(|name| Operation::Phase { name }),
        (text(), prop_oneof![text(), Just("passed".to_owned())])
            .prop_map(|(activity, status)| Operation::Verify { activity, status }),
        Just(Operation::Pause { until: None }),
    ]
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn an_operation_keeps_the_rules_or_is_refused_unchanged(
        before in any::<TaskCheckpoint>(),
        operation in operations(),
        agent in proptest::option::of("[a-z]{0,3}"),
    ) {
        let mut changed = before.clone();
        let context = OperationContext::at(time("2031-03-02T08:00:00Z")).by(agent.as_deref(), None);
        if changed.apply(&operation, &context).is_err() {
            prop_assert_eq!(changed, before);
            return Ok(());
        }
        let found = examine("task", &serde_json::to_value(&changed).unwrap());
        // The clock of `examine` is before these stamps.
        let found: Vec<_> = found.iter().filter(|found| !found.ends_with("future-timestamp")).collect();
        prop_assert_eq!(found, Vec::<&String>::new(), "{:?}", operation);
        // No agent that worked on the task is forgotten.
        let worked = |task: &TaskCheckpoint, agent: &String| {
            task.metadata.created_by.as_ref() == Some(agent) || task.metadata.previous_agents.contains(agent)
        };
        for agent in before.metadata.previous_agents.iter().chain(&before.metadata.created_by) {
            prop_assert!(worked(&changed, agent), "{}", agent);
        }
    }
}

#[test]
fn the_plan_changes_in_one_edit_each() {
    let store = agent_checkpoint::store::MemoryStore::new();
    let tasks = agent_checkpoint::CheckpointStoreExt::checkpoints::<TaskCheckpoint>(&store);
    let key = agent_checkpoint::Key::new("T").unwrap();
    let at = time("2026-03-02T08:10:00Z");
    let first = TaskCheckpoint::begin("dev", ["a", "b", "c"], at);
    tasks.create(&key, &first).unwrap();
    let text = || {
        let stored = agent_checkpoint::store::CheckpointStore::load(&store, &key);
        stored.unwrap().unwrap().document.text().to_owned()
    };
    let report = |operation: Operation| -> agent_checkpoint::Result<Vec<String>> {
        let before = text();
        tasks.try_update(&key, |task| {
            task.apply(&operation, &OperationContext::at(at))
        })?;
        let after = text();
        let same = |line: &&str| !line.contains("lastUpdatedAt") && !before.contains(line.trim());
        let changed: Vec<String> = after.lines().filter(same).map(str::to_owned).collect();
        Ok(changed)
    };
    let owned = str::to_owned;
    let add = |text, before: Option<&str>| Operation::StepAdd {
        text: owned(text),
        before: before.map(owned),
    };
    assert_eq!(report(add("x", Some("b"))).unwrap(), ["    \"x\","]);
    assert!(
        report(add("x", None)).unwrap().is_empty(),
        "planned already"
    );
    assert!(report(add("y", Some("nowhere"))).is_err());
    let to = owned("B");
    let edit = Operation::StepEdit {
        text: owned("b"),
        to,
    };
    assert_eq!(report(edit).unwrap(), ["    \"B\","]);
    let taken = Operation::StepEdit {
        text: owned("x"),
        to: owned("c"),
    };
    assert!(report(taken).is_err());
    let before = owned("a");
    let moved = Operation::StepMove {
        text: owned("c"),
        before,
    };
    report(moved).unwrap();
    let because = owned("it is there");
    let drop = Operation::StepDrop {
        text: owned("x"),
        because,
    };
    let changed = report(drop.clone()).unwrap().join("\n");
    assert!(changed.contains("Dropped the step: x"), "{changed}");
    assert!(changed.contains("it is there"), "{changed}");
    assert!(report(drop).is_err(), "it is no longer planned");
    assert_eq!(
        tasks.get(&key).unwrap().checkpoint.pending_steps,
        ["c", "a", "B"]
    );
}

/// The status and the counts that a document gives, as every supervisor sees them.
fn counted(value: &Value) -> (String, u64, u64) {
    let document = Document::from_text(value.to_string()).unwrap();
    let formats = Formats::default();
    let task = formats.get("task").unwrap();
    let handoff = task
        .inspect(&document, &RuleContext::none())
        .unwrap()
        .handoff;
    let status = handoff.status.to_string();
    (status, handoff.count_done(), handoff.count_all())
}

#[test]
fn what_could_not_be_read_counts() {
    let mut done = whole();
    done["pendingSteps"] = json!([]);
    done["currentStep"] = json!(null);
    done["dropped"] = json!(null);
    assert_eq!(counted(&done), ("complete".to_owned(), 1, 1));
    for (pointer, value, status, of) in [
        (
            "/pendingSteps",
            json!([{"title": "x"}, 7]),
            "in_progress",
            (1, 3),
        ),
        ("/pendingSteps", json!("write tests"), "in_progress", (1, 2)),
        (
            "/completedSteps",
            json!(["a", {"step": "b", "timestamp": "2026-03-02T08:00:00Z"}]),
            "complete",
            (2, 2),
        ),
        ("/currentStep", json!("write tests"), "in_progress", (1, 2)),
        (
            "/blockers",
            json!([{"what": "no account"}]),
            "blocked",
            (1, 1),
        ),
        ("/verification/results", json!([1]), "in_progress", (1, 1)),
    ] {
        let mut partly = done.clone();
        *partly.pointer_mut(pointer).unwrap() = value;
        assert_eq!(
            counted(&partly),
            (status.to_owned(), of.0, of.1),
            "{pointer}"
        );
    }
}

/// The count of dropped steps is judged like any other member.
#[test]
fn bad_counts_of_dropped_steps_are_violations() {
    gives("/dropped/completedSteps", &Value::Null, Some("missing"));
    gives(
        "/dropped/completedSteps",
        &json!("many"),
        Some("wrong-type"),
    );
    gives("/dropped/in", &json!(5), Some("wrong-type"));
    gives("/dropped", &json!(5), Some("wrong-type"));
    for pointer in ["/dropped", "/dropped/in"] {
        gives(pointer, &Value::Null, None);
    }
    gives(
        "/dropped",
        &json!({"completedSteps": 4, "by": "hand"}),
        None,
    );
}
