//! Every rule of `task` and `builder-state`, shown broken; and the operations that have no page of
//! their own.

use crate::common::{EXAMPLE, task, time};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::{Phase, Reason, ResultStatus, TaskCheckpoint};
use agent_checkpoint::formats::{Formats, Interruption};
use agent_checkpoint::json::Document;
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::{
    Checkpoint, ContextLevel, ContextUse, Detail, ErrorKind, Operation, OperationContext,
    RuleContext, Status, Timestamp,
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

#[test]
fn a_failure_is_a_blocker_and_unblocking_ends_it() {
    let mut failed = task(&["one"]);
    failed.fail("no disk").unwrap();
    failed.fail("no disk").unwrap();
    assert_eq!(failed.blockers, ["no disk"]);
    assert_eq!(failed.metadata.reason, Some(Reason::Failure));
    failed.unblock();
    assert!(failed.blockers.is_empty());
    assert_eq!(failed.metadata.reason, Some(Reason::Periodic));
}

#[test]
fn a_later_result_takes_the_place_of_an_earlier() {
    let mut verified = task(&["one"]);
    let now = time("2026-03-02T08:00:00Z");
    verified.verify("unit", ResultStatus::Failed, now).unwrap();
    verified.verify("e2e", ResultStatus::Passed, now).unwrap();
    verified.verify("unit", ResultStatus::Passed, now).unwrap();
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
    let mut detail = Detail::default();
    detail.contract = Some("US-003.verificationContract".to_owned());
    let text = || "x".to_owned();
    let all = [
        Operation::StepStart { text: text() },
        StepDone::new(text()).into(),
        Operation::Decide {
            text: text(),
            rationale: None,
        },
        Operation::Note { text: text() },
        Operation::Block {
            text: text(),
            kind: None,
        },
        Operation::Unblock,
        Operation::Fail { text: text() },
        Operation::RateLimit { note: Some(text()) },
        Operation::Context {
            used: ContextUse::new(0.8).unwrap(),
        },
        Operation::Reassign { to: text() },
        Operation::Phase {
            name: "planning".to_owned(),
        },
        Operation::Verify {
            activity: text(),
            status: "passed".to_owned(),
        },
        Operation::Pause,
        Operation::Heartbeat,
        Operation::GatePass {
            name: text(),
            phase: None,
        },
        Operation::Stage { name: text() },
        Operation::Sync { name: text() },
        Operation::Restart { because: text() },
        Operation::Detail(detail),
    ];
    let context = OperationContext::at(time("2026-03-02T08:00:00Z"));
    for operation in all {
        let mut changed = task(&["one"]);
        changed
            .start_step("one", time("2026-03-02T08:00:00Z"))
            .unwrap();
        let before = changed.clone();
        let result = changed.apply(&operation, &context);
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
    let done = StepDone::new("one")
        .with_created("node_modules/x.js")
        .with_created("src/a.rs")
        .with_created("src/a.rs")
        .with_modified("target/debug/a")
        .into();
    let context = OperationContext::at(time("2026-03-02T08:00:00Z"));
    changed.apply(&done, &context).unwrap();
    assert_eq!(changed.files(), ["src/a.rs"]);
    assert!(changed.completed_steps[0].files_modified.is_empty());
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
            changed
                .start_step("one", time("2026-03-02T08:00:00Z"))
                .unwrap();
            let before = changed.clone();
            let error = changed.apply(&operation, &by("other").with_force(force));
            let error = error.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
            assert_eq!(changed, before, "{operation:?}");
        }
    }
}

#[test]
fn a_phase_or_result_of_no_list_is_refused_with_the_list_unless_forced() {
    let phase = Operation::Phase {
        name: "lunch".to_owned(),
    };
    let verify = Operation::Verify {
        activity: "unit".to_owned(),
        status: "green".to_owned(),
    };
    for (operation, list) in [
        (
            &phase,
            "planning, implementation, verification, documentation",
        ),
        (&verify, "pending, passed, failed, skipped"),
    ] {
        let before = task(&["one"]);
        let mut changed = before.clone();
        let error = changed.apply(operation, &by("dev")).unwrap_err();
        assert!(error.to_string().contains(list), "{error}");
        assert_eq!(changed, before);
        changed
            .apply(operation, &by("dev").with_force(true))
            .unwrap();
        assert_ne!(changed, before);
    }
}

#[test]
fn who_reports_work_has_the_task() {
    let mut shared = task(&["one", "two"]);
    let start = |text: &str| Operation::StepStart {
        text: text.to_owned(),
    };
    shared.apply(&start("one"), &by("second")).unwrap();
    let metadata = &shared.metadata;
    assert_eq!(metadata.created_by.as_deref(), Some("second"));
    assert_eq!(metadata.previous_agents, ["dev"]);
    assert_eq!(metadata.reason, Some(Reason::Periodic));
    // The same agent, an agent without a name, and one that only directs change nothing of it.
    let before = shared.metadata.clone();
    shared.apply(&start("two"), &by("second")).unwrap();
    shared.apply(&start("one"), &by("")).unwrap();
    shared
        .apply(
            &start("two"),
            &OperationContext::at(time("2026-03-02T08:30:00Z")),
        )
        .unwrap();
    shared.apply(&Operation::Unblock, &by("lead")).unwrap();
    assert_eq!(shared.metadata, before);
    // What stays as it was for the first one is another's word now.
    shared.block("no disk").unwrap();
    let block = Operation::Block {
        text: "no disk".to_owned(),
        kind: None,
    };
    shared.apply(&block, &by("third")).unwrap();
    assert_eq!(shared.metadata.previous_agents, ["dev", "second"]);
    assert_eq!(shared.metadata.reason, Some(Reason::Periodic));
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
    // Neither of them has done anything yet.
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

#[test]
fn a_task_with_work_left_is_not_complete_and_says_what_is_left() {
    let mut open = task(&["one", "two"]);
    let error = open.apply(&Operation::Complete, &by("dev")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }));
    assert!(
        error.to_string().contains("pending: one, pending: two"),
        "{error}"
    );
    for step in ["one", "two"] {
        open.finish_step(&StepDone::new(step), by("dev").now)
            .unwrap();
    }
    let before = open.clone();
    open.apply(&Operation::Complete, &by("dev")).unwrap();
    assert_eq!(open, before);
}

#[test]
fn what_failed_has_failed_whatever_is_recorded_after_it() {
    let mut failed = task(&["one"]);
    failed.fail("no licence").unwrap();
    for operation in [
        Operation::Context {
            used: ContextUse::new(0.8).unwrap(),
        },
        Operation::RateLimit { note: None },
        Operation::Decide {
            text: "ask for one".to_owned(),
            rationale: None,
        },
    ] {
        failed.apply(&operation, &by("dev")).unwrap();
        assert_eq!(failed.status(), Status::Failed, "{}", operation.name());
    }
    failed.interrupted(&Interruption::Stopped("SIGTERM".to_owned()), by("dev").now);
    assert_eq!(failed.status(), Status::Failed);
}

#[test]
fn a_rate_limit_is_a_full_checkpoint_with_what_was_half_done() {
    let now = "2026-03-02T08:30:00Z";
    let limit = |note: Option<&str>| Operation::RateLimit {
        note: note.map(str::to_owned),
    };
    let mut limited = task(&["one"]);
    limited
        .start_step("one", time("2026-03-02T08:00:00Z"))
        .unwrap();
    limited.apply(&limit(Some("half")), &by("dev")).unwrap();
    assert_eq!(limited.metadata.reason, Some(Reason::RateLimit));
    assert_eq!(limited.updated_at().unwrap().text(), now);
    let step = limited.current_step.clone().unwrap();
    assert_eq!(step.description.as_deref(), Some("one"));
    assert_eq!(step.partial_work.as_deref(), Some("half"));
    // Without a word the note stays.
    limited.apply(&limit(None), &by("dev")).unwrap();
    assert_eq!(limited.current_step, Some(step));
    // No step is in progress: it is of the first planned one.
    let mut limited = task(&["one"]);
    limited
        .apply(&limit(Some("Sketched it")), &by("dev"))
        .unwrap();
    let step = limited.current_step.unwrap();
    assert_eq!(step.description.as_deref(), Some("one"));
    assert_eq!(step.partial_work.as_deref(), Some("Sketched it"));
    assert_eq!(step.started_at.unwrap().text(), now);
    assert_eq!(limited.pending_steps, ["one"]);
}

#[test]
fn a_context_that_fills_up_is_a_full_checkpoint() {
    let mut filled = task(&["one"]);
    let before = filled.clone();
    for (used, level) in [
        (0.5, ContextLevel::Enough),
        (0.75, ContextLevel::Approaching),
        (0.9, ContextLevel::Reached),
    ] {
        let used = ContextUse::new(used).unwrap();
        let mut changed = before.clone();
        changed
            .apply(&Operation::Context { used }, &by("dev"))
            .unwrap();
        assert_eq!(
            filled.use_context(used, time("2026-03-02T08:30:00Z")),
            level
        );
        if level == ContextLevel::Enough {
            assert_eq!(changed, before);
        } else {
            assert_eq!(changed, filled);
            assert_eq!(filled.metadata.reason, Some(Reason::ContextLimit));
            assert_eq!(filled.updated_at().unwrap().text(), "2026-03-02T08:30:00Z");
        }
    }
}

/// A script that prints local time with a `Z`: at 10:00 in a zone two hours ahead it is 08:00.
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
    // A file that was written since is not taken for older.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "").unwrap();
    let stamp = Timestamp::parse("2999-03-02T10:00:00Z");
    let now = chrono::Utc::now();
    let verdict = Staleness::of(["a.rs"], Some(&stamp), folder.path(), Some(now));
    assert_eq!(verdict.as_str(), "indeterminate");
}

#[test]
fn a_contract_without_results_is_not_fulfilled() {
    let mut verified = task(&["one"]).with_contract("US-003.verificationContract");
    let now = time("2026-03-02T08:00:00Z");
    verified.finish_step(&StepDone::new("one"), now).unwrap();
    assert_eq!(verified.phase, Some(Phase::Implementation));
    assert_eq!(verified.status().as_str(), "in_progress");
    verified.verify("unit", ResultStatus::Passed, now).unwrap();
    assert_eq!(verified.status().as_str(), "complete");
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
        proptest::option::of(text()).prop_map(|note| Operation::RateLimit { note }),
        (0.0..1.5_f64).prop_map(|used| Operation::Context {
            used: ContextUse::new(used).unwrap()
        }),
        text().prop_map(|to| Operation::Reassign { to }),
        prop_oneof![text(), Just("planning".to_owned())].prop_map(|name| Operation::Phase { name }),
        (text(), prop_oneof![text(), Just("passed".to_owned())])
            .prop_map(|(activity, status)| Operation::Verify { activity, status }),
        Just(Operation::Pause),
    ]
}

proptest! {
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
        // The clock of `examine` stands before these stamps.
        let found: Vec<_> = found.iter().filter(|found| !found.ends_with("future-timestamp")).collect();
        prop_assert_eq!(found, Vec::<&String>::new(), "{:?}", operation);
        // Nobody who worked on the task is forgotten.
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

#[test]
fn a_step_in_progress_can_be_dropped_and_reworded() {
    let at = time("2026-03-02T08:10:00Z");
    let mut task = TaskCheckpoint::begin("dev", ["a"], at);
    task.start_step("a", at).unwrap();
    task.reword_step("a", "A").unwrap();
    let current = task.current_step.as_ref().unwrap();
    assert_eq!(current.description.as_deref(), Some("A"));
    assert_eq!(task.pending_steps, ["A"]);
    task.drop_step("A", "it is there", at).unwrap();
    assert!(task.current_step.is_none() && task.pending_steps.is_empty());
}

#[test]
fn a_note_is_of_the_first_planned_step_where_none_is_current() {
    let at = time("2026-03-02T08:10:00Z");
    let mut task = TaskCheckpoint::begin("dev", ["a", "b"], at);
    task.rate_limited(Some("half"), at).unwrap();
    let current = task.current_step.clone().unwrap();
    assert_eq!(current.description.as_deref(), Some("a"));
    assert_eq!(current.partial_work.as_deref(), Some("half"));
    let mut done = TaskCheckpoint::begin("dev", Vec::<String>::new(), at);
    assert!(done.rate_limited(Some("half"), at).is_err());
    assert!(done.note_progress("half", at).is_err());
    done.rate_limited(None, at).unwrap();
    assert!(done.current_step.is_none());
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

/// The count of the steps that were moved out is judged as any member is.
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
