//! The `build-pipeline` format: its cases, the examples of its document, its rules and operations.

use crate::common;

use std::path::{Path, PathBuf};

use crate::common::{Reporting, clock, key, line, time};
use agent_checkpoint::formats::build_pipeline::{
    AdversarialReview, BuildCheckpoint, BuildError, BuildStatus, ExecutionSpec, FOLDER, Fix,
    RenderProofWaiver, SpecPhase,
};
use agent_checkpoint::formats::{Evidence, FileRole, Formats, Inputs, convert, violations};
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::{CheckpointStore, FileStore, MemoryStore, Outcome, Put};
use agent_checkpoint::strategies::{json_object, json_value, restyled};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ErrorKind, Operation, OperationContext,
    RuleContext, Status, Timestamp,
};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

const EXAMPLES: [&str; 7] = [
    include_str!("../fixtures/build-pipeline/1-initialize.json"),
    include_str!("../fixtures/build-pipeline/2-start-workstream.json"),
    include_str!("../fixtures/build-pipeline/3-complete-workstream.json"),
    include_str!("../fixtures/build-pipeline/4-pass-gate.json"),
    include_str!("../fixtures/build-pipeline/5-parallel-workstreams.json"),
    include_str!("../fixtures/build-pipeline/6-failure.json"),
    include_str!("../fixtures/build-pipeline/7-complete.json"),
];

/// The examples 1 to `count`, the partial ones applied by replacing top-level values.
fn example(count: usize) -> Value {
    let mut value: Value = serde_json::from_str(EXAMPLES[0]).unwrap();
    for partial in &EXAMPLES[1..count] {
        let partial: Value = serde_json::from_str(partial).unwrap();
        for (name, member) in partial.as_object().unwrap() {
            value[name] = member.clone();
        }
    }
    value
}

fn build(value: &Value) -> BuildCheckpoint {
    serde_json::from_value(value.clone()).unwrap()
}

fn example_build(count: usize) -> BuildCheckpoint {
    build(&example(count))
}

fn spec() -> ExecutionSpec {
    ExecutionSpec::new(
        [
            SpecPhase::new(1, [("WS1", "Database Layer")]),
            SpecPhase::new(2, [("WS2", "Service Layer"), ("WS3", "Route Handlers")]),
            SpecPhase::new(3, [("WS4", "Hooks"), ("WS5", "Tests")]),
        ],
        ["schema-validation", "type-check", "lint", "test-pass"],
    )
}

/// Pointer and code of each violation, sorted.
fn found(text: &str, context: &RuleContext<'_>) -> Vec<(String, String)> {
    let document = Document::from_text(text).unwrap();
    let format = *Formats::default().get("build-pipeline").unwrap();
    let all = format.violations(&document, context).unwrap();
    let pair = |violation: &agent_checkpoint::json::Violation| {
        (violation.pointer.clone(), violation.code.to_string())
    };
    let mut pairs: Vec<_> = all.iter().map(pair).collect();
    pairs.sort();
    pairs
}

/// The violations of a value.
#[track_caller]
fn expect(value: &Value, expected: &[(&str, &str)]) {
    let found = found(&value.to_string(), &RuleContext::none());
    let found: Vec<_> = found
        .iter()
        .map(|(p, c)| (p.as_str(), c.as_str()))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{value:#}");
}

/// The violations of a checkpoint as it is written.
fn rules_broken(build: &BuildCheckpoint) -> Vec<(String, String)> {
    found(&serde_json::to_string(build).unwrap(), &RuleContext::none())
}

/// `value` with other top-level members; `null` removes one.
fn with(value: &Value, members: Value) -> Value {
    let mut value = value.clone();
    for (name, member) in members.as_object().unwrap() {
        if member.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            value[name] = member.clone();
        }
    }
    value
}

fn complete() -> Value {
    serde_json::from_str(EXAMPLES[6]).unwrap()
}

fn start(id: &str) -> Operation {
    Operation::WorkstreamStart { id: id.to_owned() }
}

fn done(id: &str, files: &[&str]) -> Operation {
    Operation::WorkstreamDone {
        id: id.to_owned(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
    }
}

fn gate(name: &str) -> Operation {
    Operation::GatePass {
        name: name.to_owned(),
        phase: None,
    }
}

fn at(text: &str) -> OperationContext<'static> {
    OperationContext::at(time(text))
}

/// Asserts that the operation is refused and nothing is changed.
#[track_caller]
fn refused(build: &BuildCheckpoint, operation: &Operation) -> ErrorKind {
    let mut changed = build.clone();
    let error = changed
        .apply(operation, &at("2026-01-01T00:00:00Z"))
        .unwrap_err();
    assert_eq!(&changed, build);
    error.kind().clone()
}

// Cases and examples

#[test]
fn every_readable_case_is_detected_and_an_unchanged_save_writes_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/build-pipeline");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(document) = Document::parse(&std::fs::read(&path).unwrap()) else {
            continue;
        };
        let detected = Formats::default().detect(&path, Some(&document)).unwrap();
        assert_eq!(
            detected.format.name(),
            "build-pipeline",
            "{}",
            path.display()
        );
        let store = MemoryStore::new();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let builds = store.checkpoints::<BuildCheckpoint>();
        let saved = builds.update(&key("a"), |_| {}).unwrap();
        assert_eq!(saved.outcome, Outcome::Unchanged);
    }
}

#[test]
fn the_whole_examples_are_valid_and_come_back_as_the_same_bytes() {
    for text in [EXAMPLES[0], EXAMPLES[6]] {
        assert_eq!(found(text, &RuleContext::none()), []);
        let store = MemoryStore::new();
        let document = Document::from_text(text).unwrap();
        store
            .put(&key("PRD-009"), Put::new(document.clone()))
            .unwrap();
        let builds = store.checkpoints::<BuildCheckpoint>();
        let loaded = builds.get(&key("PRD-009")).unwrap();
        assert_eq!(loaded.violations, []);
        let saved = builds.update(&key("PRD-009"), |_| {}).unwrap();
        assert_eq!(saved.outcome, Outcome::Unchanged);
        let after = store.load(&key("PRD-009")).unwrap().unwrap();
        assert_eq!(after.document.text(), text);
    }
}

#[test]
fn the_operations_make_the_examples() {
    let now = time("2025-12-11T10:00:00Z");
    let fresh = BuildCheckpoint::initialize("PRD-009", "Cashier Workflows", &spec(), now).unwrap();
    assert_eq!(fresh, example_build(1));

    let store = MemoryStore::new();
    let name = key("PRD-009");
    let document = Document::from_text(EXAMPLES[0]).unwrap();
    store.put(&name, Put::new(document.clone())).unwrap();
    let step = |operation: &Operation, now: &str, count: usize, broken: usize| {
        let builds: Checkpoints<BuildCheckpoint> =
            Checkpoints::new(store.clone()).with_clock(clock(now));
        let saved = builds
            .try_update(&name, |build| build.apply(operation, &at(now)))
            .unwrap();
        assert_eq!(saved.violations, []);
        assert_eq!(saved.transient.len(), broken);
        let text = store.load(&name).unwrap().unwrap().document.into_text();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, example(count));
    };
    step(&start("WS1"), "2025-12-11T10:05:00Z", 2, 0);
    let files = [
        "supabase/migrations/xxx.sql",
        "services/domain/dtos.ts",
        "services/domain/schemas.ts",
    ];
    step(&done("WS1", &files), "2025-12-11T10:15:00Z", 3, 1);
    let passed = line(r#"{"op": "gate pass", "name": "schema-validation (WS1)", "phase": 1}"#);
    step(&passed.operation, "2025-12-11T10:16:00Z", 4, 0);

    let mut parallel = example_build(4);
    for id in ["WS2", "WS3"] {
        parallel
            .apply(&start(id), &at("2025-12-11T10:20:00Z"))
            .unwrap();
    }
    parallel.stamp(time("2025-12-11T10:20:00Z"));
    assert_eq!(parallel, example_build(5));

    let failed = r#"{"op": "workstream fail", "id": "WS3", "because": "Property 'player_id' does not exist on type 'PlayerDTO'"}"#;
    parallel.report(line(failed)).unwrap();
    parallel.stamp(time("2025-12-11T10:25:00Z"));
    // The example omits the work in progress; here it is pending again.
    let mut expected = example_build(6);
    let error = expected.error.as_mut().unwrap();
    (error.file, error.line) = (None, None);
    expected.pending_workstreams = ["WS2", "WS3", "WS4", "WS5"].map(str::to_owned).to_vec();
    assert_eq!(parallel, expected);
}

#[test]
fn a_build_can_be_brought_from_its_plan_to_the_complete_example() {
    let now = time("2025-12-11T10:00:00Z");
    let phases = (1..=5).map(|n| {
        let id = format!("WS{n}");
        SpecPhase::new(n, [(id.as_str(), "")])
    });
    let gates = ["schema-validation", "type-check", "lint", "test-pass"];
    let plan = ExecutionSpec::new(phases, gates);
    let mut build =
        BuildCheckpoint::initialize("PRD-009", "Cashier Workflows", &plan, now).unwrap();
    let wanted = example_of_complete();
    for (index, passed) in wanted.gates_passed.iter().enumerate() {
        let id = format!("WS{}", index + 1);
        let files = &wanted.handoff().done[index].files_created;
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        // The plan shows which phase is finished.
        let here = at("2025-12-11T11:00:00Z");
        let inputs = Inputs::of(plan.clone());
        let here = here.with_rules(RuleContext::none().with_inputs(&inputs));
        for operation in [start(&id), done(&id, &files), gate(passed)] {
            build.apply(&operation, &here).unwrap();
        }
        assert_eq!(rules_broken(&build), []);
        let before = build.clone();
        build
            .apply(&gate(passed), &at("2025-12-11T11:00:00Z"))
            .unwrap();
        assert_eq!(build, before, "passed twice");
    }
    build
        .apply(&Operation::Complete, &at("2025-12-11T11:00:00Z"))
        .unwrap();
    build.stamp(time("2025-12-11T11:00:00Z"));
    assert_eq!(build, wanted);
}

fn example_of_complete() -> BuildCheckpoint {
    build(&complete())
}

// Rules

#[test]
fn an_id_under_another_name_is_read_but_stays_missing() {
    let value = with(
        &example(1),
        json!({"prd": null, "prd_id": 9, "id": "PRD-009"}),
    );
    expect(&value, &[("/prd", "missing")]);
    assert_eq!(build(&value).id(), Some("PRD-009"));
    assert_eq!(build(&value).handoff().task.as_deref(), Some("PRD-009"));
    let value = with(&example(1), json!({"prd": null, "spec_id": "PERF-003"}));
    expect(&value, &[("/prd", "missing")]);
    let plan = build(&value).resume_plan(&RuleContext::none());
    assert!(plan.message.contains("PERF-003"), "{}", plan.message);
}

#[test]
fn an_error_that_is_no_object_counts_like_one() {
    let wrong = ("/error", "wrong-type");
    for error in [json!("boom"), json!(["boom"]), json!(true)] {
        let value = with(&example(1), json!({"error": error}));
        expect(&value, &[wrong, ("/error", "status-rule")]);
        let value = with(&value, json!({"status": "failed"}));
        expect(&value, &[wrong]);
    }
    let odd =
        json!({"workstream": "WS3", "message": ["no", "column"], "file": "a.ts", "line": "45"});
    let value = with(&example(6), json!({"error": odd}));
    expect(
        &value,
        &[
            ("/error/message", "wrong-type"),
            ("/error/line", "wrong-type"),
        ],
    );
    let odd = build(&value);
    let shown = r#"WS3: ["no","column"] (a.ts:45)"#;
    assert_eq!(odd.error.as_ref().unwrap().text(), shown);
    assert!(plan_of(&odd).questions[0].contains(shown));

    let text = with(&example(6), json!({"error": "no such column"}));
    let failed = build(&text);
    assert_eq!(failed.handoff().blockers, ["no such column"]);
    assert!(plan_of(&failed).questions[0].contains("no such column"));
    assert_eq!(
        serde_json::to_value(&failed).unwrap()["error"],
        "no such column"
    );
}

/// A failure that is no object is cleared where an object is expected, and kept byte for byte elsewhere.
#[test]
fn an_error_that_is_no_object_goes_with_the_failure() {
    for error in [
        json!("no such column"),
        json!({"message": "m", "line": "45"}),
    ] {
        let text = format!("{:#}", with(&example(6), json!({"error": error})));
        let store = MemoryStore::new();
        let document = Document::from_text(text.as_str()).unwrap();
        store
            .put(&key("PRD-009"), Put::new(document.clone()))
            .unwrap();
        let builds: Checkpoints<BuildCheckpoint> =
            Checkpoints::new(store.clone()).with_clock(clock("2026-01-01T00:00:00Z"));
        let now = at("2026-01-01T00:00:00Z");
        builds
            .try_update(&key("PRD-009"), |build| {
                build.apply(&gate("schema-validation"), &now)
            })
            .unwrap();
        let after = store.load(&key("PRD-009")).unwrap().unwrap().document;
        let kept: Value = serde_json::from_str(after.text()).unwrap();
        assert_eq!(kept["error"], error);
        builds
            .try_update(&key("PRD-009"), |build| build.apply(&start("WS4"), &now))
            .unwrap();
        let after = store.load(&key("PRD-009")).unwrap().unwrap().document;
        assert!(after.root().get("error").is_none());
        assert_eq!(found(after.text(), &RuleContext::none()), []);
    }
}

#[test]
fn a_complete_build_says_what_comes_after_it() {
    let next = "Update the roadmap (MVP-ROADMAP).";
    let tells = |value: &Value| {
        build(value)
            .handoff()
            .instructions
            .iter()
            .any(|it| it == next)
    };
    assert!(!tells(&example(1)));
    let complete = json!({"status": "complete", "in_progress_workstreams": [],
        "pending_workstreams": [], "gates_pending": []});
    assert!(tells(&with(&example(1), complete)));
}

// Operations

#[test]
fn a_stack_that_is_down_is_waived_in_no_way() {
    let mut build = example_build(4);
    build.gate_b_presence = Some("blocked: stack_down".into());
    for wrong in [
        r#"{"op": "verify", "activity": "gate_b_presence", "status": "waived:ISS-7"}"#,
        r#"{"op": "verify", "activity": "gate_b_presence", "status": "not_applicable"}"#,
        r#"{"op": "waive", "issue": "ISS-7", "because": "no time"}"#,
    ] {
        let kind = refused(&build, &line(wrong).operation);
        assert!(matches!(kind, ErrorKind::Refused { .. }), "{wrong}");
    }
    // A change of the value itself does not do it either, nor is the creation time changed.
    let store = MemoryStore::new();
    let builds = store.checkpoints::<BuildCheckpoint>();
    let name = key("PRD-009");
    builds
        .create(&name, &build.clone().in_later_revision())
        .unwrap();
    let changes: [fn(&mut BuildCheckpoint); 3] = [
        |build| build.gate_b_presence = Some("waived:ISS-7".into()),
        |build| build.gate_b_presence = None,
        |build| build.created_at = None,
    ];
    for change in changes {
        let error = builds.update(&name, change).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    }
    // Once it was verified again, the build continues, and a restart begins anew.
    for report in [
        r#"{"op": "verify", "activity": "gate_b_presence", "status": "fail:no total"}"#,
        r#"{"op": "waive", "issue": "ISS-7", "because": "known"}"#,
    ] {
        build.report(line(report)).unwrap();
    }
    builds
        .try_update(&name, |build| {
            build.report(line(r#"{"op": "restart", "because": "known"}"#))
        })
        .unwrap();
}

#[test]
fn an_operation_of_another_format_is_refused_with_the_list() {
    let subtask = Operation::SubtaskStart { id: "1".into() };
    for operation in [
        subtask,
        Operation::Block {
            text: "x".into(),
            kind: None,
        },
        Operation::StepStart { text: "x".into() },
    ] {
        match refused(&example_build(5), &operation) {
            ErrorKind::Unsupported { supported, .. } => {
                assert_eq!(supported, BuildCheckpoint::OPERATIONS);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_build_begins_only_under_an_id_of_the_protocol() {
    let now = time("2026-01-01T00:00:00Z");
    assert!(BuildCheckpoint::initialize("docs/PRD-001.md", "x", &spec(), now).is_err());
    let build = BuildCheckpoint::initialize("EXEC-1", "x", &spec(), now).unwrap();
    let later = build.in_later_revision();
    assert_eq!(later.timestamp, None);
    assert_eq!(later.created_at, later.updated_at);
    assert_eq!(rules_broken(&later), []);
}

#[test]
fn a_restart_begins_anew_in_the_same_file_and_keeps_what_was_there() {
    let text = r#"{
  "prd": "PRD-001", "mine": {"a": 1.50},
  "status": "failed",
  "completed_workstreams": ["WS1"],
  "in_progress_workstreams": [],
  "pending_workstreams": ["WS2"],
  "artifacts": {"WS1": ["a.ts"]},
  "gates_passed": ["lint:WS1"],
  "gates_pending": ["test-pass"],
  "error": "boom",
  "created_at": "2026-03-02T08:00:00Z",
  "updated_at": "2026-03-02T09:00:00Z"
}
"#;
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store
        .put(&key("PRD-001"), Put::new(document.clone()))
        .unwrap();
    let builds: Checkpoints<BuildCheckpoint> =
        Checkpoints::new(store.clone()).with_clock(clock("2026-03-02T10:00:00Z"));
    let restart = Operation::Restart {
        because: "the schema changed".into(),
    };
    let now = at("2026-03-02T10:00:00Z");
    let saved = builds
        .try_update(&key("PRD-001"), |build| build.apply(&restart, &now))
        .unwrap();
    let aside = &saved.truncation.dropped[0];
    let before: Value = serde_json::from_str(text).unwrap();
    assert_eq!((aside.pointer.as_str(), &aside.value), ("", &before));
    let after = store.load(&key("PRD-001")).unwrap().unwrap().document;
    assert!(after.text().contains(r#""mine": {"a": 1.50}"#));
    assert_eq!(found(after.text(), &RuleContext::none()), []);
    let fresh = builds.get(&key("PRD-001")).unwrap().checkpoint;
    assert_eq!(fresh.status, Some(BuildStatus::Initialized));
    assert_eq!(fresh.pending_workstreams, ["WS1", "WS2"]);
    assert_eq!(fresh.gates_pending, ["lint", "test-pass"]);
    assert_eq!(fresh.created_at.unwrap().text(), "2026-03-02T08:00:00Z");
    assert_eq!(fresh.updated_at.unwrap().text(), "2026-03-02T10:00:00Z");
    // Again: nothing was begun meanwhile.
    let again = builds
        .try_update(&key("PRD-001"), |build| build.apply(&restart, &now))
        .unwrap();
    assert_eq!(again.outcome, Outcome::Unchanged);
    // A complete build begins anew only with `force`.
    let complete = example_of_complete();
    assert!(matches!(
        refused(&complete, &restart),
        ErrorKind::Refused { .. }
    ));
    let mut forced = complete.clone();
    forced.apply(&restart, &now.with_force(true)).unwrap();
    assert_eq!(forced.completed_workstreams.len(), 0);
}

// Stamps

#[test]
fn a_save_keeps_the_stamps_of_the_files_revision() {
    let now = "2026-07-01T00:00:00.123456Z";
    let cases: [(Value, Value); 3] = [
        (json!({}), json!({"timestamp": "2026-07-01T00:00:00Z"})),
        (
            json!({"timestamp": null, "created_at": "2026-05-01T08:00:00Z", "updated_at": "2026-05-01T08:00:00.1Z"}),
            json!({"created_at": "2026-05-01T08:00:00Z", "updated_at": "2026-07-01T00:00:00.123Z"}),
        ),
        (
            json!({"created_at": "2026-05-01T08:00:00Z", "updated_at": "2026-05-01T08:00:00Z"}),
            json!({"timestamp": "2026-07-01T00:00:00Z", "created_at": "2026-05-01T08:00:00Z",
                "updated_at": "2026-07-01T00:00:00Z"}),
        ),
    ];
    for (members, expected) in cases {
        let store = MemoryStore::new();
        let text = with(&example(5), members).to_string();
        let document = Document::from_text(text).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let builds: Checkpoints<BuildCheckpoint> =
            Checkpoints::new(store.clone()).with_clock(clock(now));
        builds
            .try_update(&key("a"), |build| {
                build.report(Operation::Pause { until: None })
            })
            .unwrap();
        let after: Value =
            serde_json::from_str(store.load(&key("a")).unwrap().unwrap().document.text()).unwrap();
        for stamp in ["timestamp", "created_at", "updated_at"] {
            assert_eq!(after.get(stamp), expected.get(stamp), "{stamp}");
        }
        assert_eq!(found(&after.to_string(), &RuleContext::none()), []);
    }
}

#[test]
fn a_fresh_stamp_is_not_before_the_time_of_making() {
    let mut build = example_build(1);
    build.timestamp = Some(Timestamp::parse("2026-01-01T00:00:00.900Z"));
    let mut build = build.in_later_revision();
    build.updated_at = Some(Timestamp::parse("2026-01-01T00:00:01Z"));
    build.stamp(time("2026-01-01T00:00:00.950Z"));
    assert_eq!(rules_broken(&build), []);
}

#[test]
fn the_last_of_two_statuses_is_edited_and_nothing_else() {
    let text = include_str!("../cases/build-pipeline/second-status-appended.json");
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let builds: Checkpoints<BuildCheckpoint> =
        Checkpoints::new(store.clone()).with_clock(clock("2026-03-04T09:15:42Z"));
    builds
        .update(&key("a"), |build| {
            build.status = Some(BuildStatus::InProgress)
        })
        .unwrap();
    let after = store.load(&key("a")).unwrap().unwrap().document.into_text();
    assert_eq!(
        after,
        text.replace("\"status\": \"complete\"", "\"status\": \"in_progress\"")
    );
}

// Resume

fn plan_of(build: &BuildCheckpoint) -> agent_checkpoint::resume::ResumePlan {
    build.resume_plan(&RuleContext::none().with_inputs(&Inputs::of(spec())))
}

#[test]
fn a_complete_build_is_not_resumed() {
    let plan = plan_of(&example_of_complete());
    assert_eq!(plan.decision, ResumeDecision::Refuse);
    assert_eq!(plan.message, "PRD-009 already complete");
    let unnamed = plan_of(&build(&json!({"status": "complete"})));
    assert_eq!(unnamed.message, "The build is already complete");
    assert_eq!(plan.start_at, None);
    let mut shouted = example_of_complete();
    shouted.status = Some(BuildStatus::from("COMPLETE"));
    assert_eq!(plan_of(&shouted).decision, ResumeDecision::Refuse);
}

#[test]
fn a_failed_build_shows_its_error_and_asks_whether_it_is_fixed() {
    let plan = plan_of(&example_build(6));
    assert_eq!(plan.decision, ResumeDecision::Ask);
    let [question] = plan.questions.as_slice() else {
        panic!("{:?}", plan.questions);
    };
    assert!(
        question.contains("WS3: Property 'player_id' does not exist"),
        "{question}"
    );
    assert!(
        question.contains("(services/player/index.ts:45)"),
        "{question}"
    );
    assert!(question.ends_with("Is it fixed?"), "{question}");
}

#[test]
fn a_paused_build_shows_its_last_gate_and_goes_on_with_the_next_phase() {
    let plan = plan_of(&example_build(4));
    assert_eq!(plan.decision, ResumeDecision::Continue);
    assert_eq!(plan.start_at.as_deref(), Some("WS2"));
    insta::assert_snapshot!(plan.message, @r"
    Resuming PRD-009 from Phase 2

    Completed:
      WS1: Database Layer ✅

    Pending:
      WS2: Service Layer
      WS3: Route Handlers
      WS4: Hooks
      WS5: Tests

    Last gate passed: schema-validation (WS1)
    Continue from Phase 2.
    ");
}

#[test]
fn a_build_in_progress_warns_and_asks_to_restart_or_continue() {
    let plan = plan_of(&example_build(5));
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert_eq!(plan.questions, ["Restart the build, or continue it?"]);
    assert!(plan.warnings[0].contains("WS2, WS3"), "{:?}", plan.warnings);
    assert_eq!(plan.start_at.as_deref(), Some("WS2"));
    assert!(
        plan.message
            .contains("In progress:\n  WS2: Service Layer\n  WS3: Route Handlers")
    );
}

#[test]
fn a_build_that_has_not_begun_begins_with_phase_1() {
    let plan = plan_of(&example_build(1));
    assert_eq!(plan.decision, ResumeDecision::Continue);
    assert!(
        plan.message
            .starts_with("Resuming PRD-009 from Phase 1\n\nPending:\n  WS1: Database")
    );
    let alone = example_build(1).resume_plan(&RuleContext::none());
    assert!(
        alone
            .message
            .starts_with("Resuming PRD-009 from Phase 1\n\nPending:\n  WS1\n  WS2")
    );
    assert_eq!(alone.start_at.as_deref(), Some("WS1"));
}

#[test]
fn an_unknown_status_asks() {
    let mut build = example_build(5);
    build.status = Some(BuildStatus::from("approved by all"));
    let plan = plan_of(&build);
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert!(plan.questions[0].contains("approved by all"));
    assert_eq!(build.status(), Status::Other("approved by all".into()));
}

#[test]
fn resume_begins_at_the_first_phase_with_open_work_and_skips_what_is_dormant() {
    let mut build = example_build(4);
    for dormant in [
        r#"{"op": "workstream dormant", "id": "WS2", "because": "not in this run"}"#,
        r#"{"op": "workstream dormant", "id": "WS3", "because": "no time"}"#,
    ] {
        build.report(line(dormant)).unwrap();
    }
    let plan = plan_of(&build);
    assert_eq!(plan.start_at.as_deref(), Some("WS4"));
    assert!(plan.message.starts_with("Resuming PRD-009 from Phase 3\n"));
    let dormant =
        "Dormant:\n  WS2: Service Layer (not in this run)\n  WS3: Route Handlers (no time)";
    assert!(plan.message.contains(dormant), "{}", plan.message);
    assert_eq!(
        build.handoff().instructions[0],
        "Skip WS2, it is dormant: not in this run"
    );

    // Work in progress counts as well as pending work.
    let mut build = example_build(5);
    build.in_progress_workstreams = vec!["WS4".into()];
    build.pending_workstreams = vec!["WS5".into(), "WS3".into()];
    let plan = plan_of(&build);
    assert_eq!(plan.start_at.as_deref(), Some("WS3"));
    build.pending_workstreams = vec!["WS5".into()];
    assert_eq!(plan_of(&build).start_at.as_deref(), Some("WS4"));
    // Without the plan: the current phase, or the next one after its gate.
    let running = build.resume_plan(&RuleContext::none());
    assert!(
        running
            .message
            .starts_with("Resuming PRD-009 from Phase 1\n")
    );
    let paused = example_build(4).resume_plan(&RuleContext::none());
    assert!(
        paused
            .message
            .starts_with("Resuming PRD-009 from Phase 2\n")
    );
}

#[test]
fn a_checkpoint_that_is_further_than_the_work_is_told() {
    let mut build = example_build(4);
    build.completed_workstreams = ["WS1", "WS2", "WS3"].map(str::to_owned).to_vec();
    build.pending_workstreams = ["WS4", "WS5"].map(str::to_owned).to_vec();
    build.current_phase = Some(7.0);
    let plan = plan_of(&build);
    assert!(plan.warnings[0].contains("is at phase 7"), "{plan:?}");
    assert_eq!(plan.phase.as_deref(), Some("3"));
}

/// In the state in which the protocol's own example of a failure leaves it.
#[test]
fn the_failed_workstream_of_the_example_is_resumed() {
    let failed = example_build(6);
    assert_eq!(failed.failed_workstream(), Some("WS3"));
    assert_eq!(failed.handoff().pending, ["WS3", "WS4", "WS5"]);
    let plan = plan_of(&failed);
    assert_eq!(plan.start_at.as_deref(), Some("WS3"));
    assert!(plan.message.contains("Pending:\n  WS3"), "{}", plan.message);
}

#[test]
fn a_build_with_only_gates_left_says_so() {
    let mut build = example_of_complete();
    build.status = Some(BuildStatus::Paused);
    build.gates_pending = vec!["test-pass".into()];
    let plan = plan_of(&build);
    assert_eq!(plan.start_at, None);
    assert!(
        plan.message
            .contains("pass the pending gates and complete the build: test-pass")
    );
}

// The common view

#[test]
fn the_handoff_has_all_that_the_next_agent_needs() {
    let mut build = example_build(6);
    let review = json!({"verdict": "ship", "p0_count": 0, "p1_count": 0});
    build.adversarial_review = serde_json::from_value(review).unwrap();
    build.key_fixes = Some(vec![Fix::new("src/a.ts", "null check")]);
    build.eslint_fixes = Some(vec![
        Fix::new("src/a.ts", "no any"),
        Fix::new("src/b.ts", "const"),
    ]);
    build.cleanup_done = Some(vec!["old hooks removed".into()]);
    build
        .artifacts
        .insert("WS1".into(), json!(["a.sql", "*.test.ts", 7]));
    let handoff = build.handoff();
    assert_eq!(handoff.task.as_deref(), Some("PRD-009"));
    assert_eq!(handoff.description.as_deref(), Some("Cashier Workflows"));
    assert_eq!(handoff.status, Status::Failed);
    assert_eq!(handoff.phase.as_deref(), Some("1"));
    assert_eq!(handoff.done[0].text, "WS1");
    assert_eq!(handoff.pending, ["WS3", "WS4", "WS5"]);
    assert!(handoff.blockers[0].starts_with("WS3: Property"));
    assert_eq!(
        handoff.decisions[0].text,
        "Adversarial review: ship, 0 P0, 0 P1"
    );
    assert_eq!(handoff.files, ["a.sql", "src/a.ts", "src/b.ts"]);
    assert_eq!(
        handoff.instructions,
        [
            "Fixed: src/a.ts: null check",
            "Fixed for the linter: src/a.ts: no any",
            "Fixed for the linter: src/b.ts: const",
            "Tidied up: old hooks removed",
        ]
    );
    let results = handoff.verification.unwrap().results;
    assert_eq!(
        results[0],
        ("schema-validation (WS1)".into(), "passed".into())
    );
    assert_eq!(results[1], ("type-check".into(), "pending".into()));
}

#[test]
fn progress_and_times_are_derived() {
    let mut build = example_build(5).in_later_revision();
    build.created_at = Some(Timestamp::parse("2026-01-01T00:00:00Z"));
    let now = time("2026-01-01T01:00:00Z");
    let progress = |build: &BuildCheckpoint, now| build.progress(&build.handoff(), now);
    let found = progress(&build, now);
    let counts = (found.done, found.total, found.percent);
    assert_eq!(counts, (Some(1), Some(5), Some(20)));
    assert_eq!(found.elapsed, Some(TimeDelta::hours(1)));
    let before = time("2025-01-01T00:00:00Z");
    assert_eq!(progress(&build, before).elapsed, None);
    let first = progress(&example_build(5), now);
    assert_eq!(first.elapsed, None, "the first revision does not tell");
    assert_eq!(progress(&BuildCheckpoint::default(), now).percent, None);
}

#[test]
fn another_formats_handoff_becomes_a_build() {
    let now = time("2026-03-02T09:00:00Z");
    let task = common::task(&["one", "two"]);
    let converted = convert::<BuildCheckpoint>(&task.handoff(), now).unwrap();
    let build = converted.checkpoint;
    assert_eq!(build.pending_workstreams, ["one", "two"]);
    assert_eq!(build.status, Some(BuildStatus::Initialized));
    let lost = converted.not_held;
    assert!(lost.contains(&"agent: dev".to_owned()), "{lost:?}");
}

// Where it is

#[test]
fn a_build_is_recognised_by_folder_name_and_content() {
    let recognise = |path: &str, text: Option<&str>| -> Option<Evidence> {
        let document = text.map(|text| Document::from_text(text).unwrap());
        BuildCheckpoint::recognise(Path::new(path), document.as_ref())
    };
    let own = format!("{FOLDER}/PRD-009.json");
    assert_eq!(recognise(&own, None).unwrap().strength, 4);
    // A path is no evidence without a member of the format.
    assert_eq!(recognise(&own, Some("{}")), None);
    let status = Some(r#"{"status": "failed"}"#);
    assert_eq!(recognise(&own, status).unwrap().strength, 4);
    assert_eq!(recognise(&own, Some(EXAMPLES[0])).unwrap().strength, 10);
    assert_eq!(
        recognise("x/notes.json", Some(EXAMPLES[0]))
            .unwrap()
            .strength,
        6
    );
    assert_eq!(recognise("x/PRD-009.json", None).unwrap().strength, 4);
    assert_eq!(recognise("x/PRD-009.json", Some("{}")), None);
    assert_eq!(
        recognise("x/notes.json", Some("{\"status\": \"failed\"}")),
        None
    );
    assert_eq!(recognise(&format!("{FOLDER}/notes.md"), None), None);

    let formats = Formats::default();
    let document = Document::from_text(EXAMPLES[1]).unwrap();
    let detected = formats
        .detect(Path::new("any.json"), Some(&document))
        .unwrap();
    assert_eq!(detected.format.name(), "build-pipeline");
    // A task with such an id stays a task.
    let task = Document::new(&common::task(&["one"])).unwrap();
    let detected = formats
        .detect(Path::new("tasks/PRD-009.json"), Some(&task))
        .unwrap();
    assert_eq!(detected.format.name(), "task");
}

#[test]
fn a_file_is_named_by_its_id_and_an_id_never_leaves_the_folder() {
    let layout = BuildCheckpoint::layout();
    let name = (layout.file_name)(&key("PRD-009")).unwrap();
    assert_eq!(name, "PRD-009.json");
    assert_eq!(
        (layout.role)(&name),
        FileRole::Current(Some(key("PRD-009")))
    );
    let odd = (layout.file_name)(&key("docs/specs/PRD-041.md")).unwrap();
    assert!(!odd.contains('/'), "{odd}");
    let stem = (layout.archive_stem)(
        "PRD-009",
        agent_checkpoint::formats::Archive::Aborted,
        time("2026-01-01T00:00:00Z"),
    );
    assert_eq!((layout.role)(&format!("{stem}.json")), FileRole::Archive);
    assert_eq!((layout.role)("README.md"), FileRole::Foreign);
    let key_in = layout.key_in.unwrap();
    assert_eq!(
        key_in(&Document::from_text(EXAMPLES[0]).unwrap()),
        Some(key("PRD-009"))
    );
    assert_eq!(key_in(&Document::from_text("{\"prd\": 9}").unwrap()), None);
}

#[test]
fn a_build_is_kept_in_the_protocols_folder() {
    let project = tempfile::tempdir().unwrap();
    let folder: PathBuf = project.path().join(FOLDER);
    let store = FileStore::open(&folder);
    let builds = store.checkpoints::<BuildCheckpoint>();
    assert!(builds.load(&key("PRD-009")).unwrap().is_none());
    let now = time("2026-01-01T00:00:00Z");
    let fresh = BuildCheckpoint::initialize("PRD-009", "Cashier Workflows", &spec(), now).unwrap();
    builds.create(&key("PRD-009"), &fresh).unwrap();
    assert!(folder.join("PRD-009.json").is_file());
    assert_eq!(builds.get(&key("PRD-009")).unwrap().violations, []);
}

// Any text and any checkpoint

#[test]
fn an_empty_object_is_every_struct() {
    fn check<T: serde::de::DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
        assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    }
    check::<BuildCheckpoint>();
    check::<BuildError>();
    check::<AdversarialReview>();
    check::<RenderProofWaiver>();
    check::<Fix>();
}

#[cfg(feature = "schema")]
fn validator() -> jsonschema::Validator {
    use agent_checkpoint::schema::schema;
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema::<BuildCheckpoint>())
        .unwrap()
}

#[cfg(feature = "schema")]
#[test]
fn the_schema_takes_the_examples_and_refuses_what_is_broken() {
    let validator = validator();
    for value in [example(1), example(5), example(6), complete()] {
        assert!(validator.is_valid(&value), "{value:#}");
    }
    for members in [
        json!({"prd": null}),
        json!({"prd": "PRD-1"}),
        json!({"status": "COMPLETE"}),
        json!({"timestamp": null}),
        json!({"created_at": "2026-01-01T00:00:00Z"}),
        json!({"status": "failed"}),
        json!({"current_phase": -1}),
        json!({"gate_a_fidelity": "fail"}),
        json!({"gate_b_presence": "waived:"}),
        json!({"adversarial_review": {"attempt": 3}}),
        json!({"adversarial_review": {"verdict": "overridden"}}),
    ] {
        let broken = with(&example(1), members);
        assert!(!validator.is_valid(&broken), "{broken:#}");
    }
}

fn operations() -> impl Strategy<Value = Operation> {
    let id = || "WS[0-9]";
    prop_oneof![
        3 => id().prop_map(move |id| Operation::WorkstreamStart { id }),
        3 => (id(), proptest::collection::vec("[a-c]\\.ts", 0..3))
            .prop_map(move |(id, files)| Operation::WorkstreamDone { id, files }),
        1 => (id(), proptest::option::of("[a-z]{1,5}"))
            .prop_map(move |(id, because)| Operation::WorkstreamFail { id, because }),
        3 => "[a-z]{3,8}-check( \\(WS[0-9]\\))?".prop_map(|name| Operation::GatePass { name, phase: None }),
        1 => "[a-z]{1,5}".prop_map(|text| Operation::Fail { text }),
        1 => Just(Operation::Pause { until: None }),
        1 => Just(Operation::Unblock),
        1 => Just(Operation::Restart { because: "x".into() }),
        2 => Just(Operation::Complete),
        1 => "[0-9x]".prop_map(|name| Operation::Phase { name }),
        2 => (
            proptest::sample::select(vec!["gate_a_fidelity", "gate_b_presence", "gate_b_classification"]),
            proptest::sample::select(vec!["pass", "fail:2", "blocked:stack_down", "waived:ISS-1", "none"]),
        )
            .prop_map(|(activity, status)| Operation::Verify {
                activity: activity.into(),
                status: status.into(),
            }),
        1 => Just(Operation::Heartbeat),
    ]
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_valid_build_comes_back_from_its_text_equal_and_valid(build in any::<BuildCheckpoint>()) {
        let document = Document::new(&build).unwrap();
        let reading = document.read::<BuildCheckpoint>().unwrap();
        prop_assert_eq!(violations(&document, &reading, &RuleContext::none()), vec![]);
        prop_assert_eq!(reading.value, build);
    }

    #[test]
    fn any_object_loads_or_is_reported_and_never_panics(text in json_object().prop_flat_map(restyled)) {
        let document = Document::from_text(text).unwrap();
        let spec = Inputs::of(spec());
        let context = RuleContext::none()
            .with_now(time("2026-01-01T00:00:00Z"))
            .with_inputs(&spec);
        let reading = document.read::<BuildCheckpoint>().unwrap();
        violations(&document, &reading, &context);
        let build = reading.value;
        build.handoff();
        let _ = build.resume_plan(&context);
        let _ = build.clone().report(line(r#"{"op": "restart", "because": "x", "force": true}"#));
    }

    /// Files are near the format, with values of other types here and there.
    #[test]
    fn a_deviating_build_loads_and_an_operation_goes_through_whole_or_not_at_all(
        build in any::<BuildCheckpoint>(),
        odd in proptest::collection::vec((any::<proptest::sample::Index>(), json_value()), 1..4),
        operation in operations(),
    ) {
        let mut value = serde_json::to_value(&build).unwrap();
        let names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        for (index, odd) in odd {
            value[index.get(&names)] = odd;
        }
        let text = format!("{value:#}");
        let store = MemoryStore::new();
        let document = Document::from_text(text.as_str()).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let builds: Checkpoints<BuildCheckpoint> =
            Checkpoints::new(store.clone()).with_clock(clock("2031-01-01T00:00:00Z"));
        let loaded = builds.get(&key("a")).unwrap();
        let _ = loaded.checkpoint.resume_plan(&RuleContext::none());
        let now = at("2031-01-01T00:00:00Z");
        let result = builds.try_update(&key("a"), |build| build.apply(&operation, &now));
        let after = store.load(&key("a")).unwrap().unwrap().document;
        if result.is_err() {
            prop_assert_eq!(after.text(), &text);
        } else {
            let mut wanted = loaded.checkpoint.clone();
            wanted.apply(&operation, &now).unwrap();
            if wanted != loaded.checkpoint {
                wanted.stamp(now.now);
            }
            prop_assert_eq!(after.read::<BuildCheckpoint>().unwrap().value, wanted);
        }
    }

    #[test]
    fn an_operation_keeps_the_rules_or_is_refused_unchanged(
        build in any::<BuildCheckpoint>(),
        operation in operations(),
        force in any::<bool>(),
    ) {
        let now = OperationContext::at(time("2031-01-01T00:00:00Z")).with_force(force);
        let mut changed = build.clone();
        if changed.apply(&operation, &now).is_err() {
            prop_assert_eq!(changed, build);
            return Ok(());
        }
        changed.stamp(now.now);
        let mut broken = rules_broken(&changed);
        // Between the end of one workstream and the next one, nothing is in progress.
        if matches!(operation, Operation::WorkstreamDone { .. }) {
            let between = ("/in_progress_workstreams".to_owned(), "status-rule".to_owned());
            broken.retain(|found| *found != between);
        }
        prop_assert_eq!(broken, vec![], "{:?}", operation);
        // Nothing is lost from the buckets.
        let all = |build: &BuildCheckpoint| {
            let mut all: Vec<String> = build
                .completed_workstreams
                .iter()
                .map(String::as_str)
                .chain(build.open_workstreams())
                .chain(build.dormant())
                .map(str::to_owned)
                .collect();
            all.sort();
            all
        };
        prop_assert_eq!(all(&changed), all(&build));
    }

    #[test]
    fn every_resume_plan_begins_with_open_work(build in any::<BuildCheckpoint>()) {
        let plan = build.resume_plan(&RuleContext::none());
        if let Some(start) = &plan.start_at {
            prop_assert!(build.open_workstreams().any(|open| open == start));
        } else {
            let complete = build.status() == Status::Complete;
            prop_assert!(complete || build.open_workstreams().next().is_none());
        }
    }

    #[test]
    fn a_task_becomes_a_build_that_keeps_the_rules(task in any::<agent_checkpoint::formats::task::TaskCheckpoint>()) {
        let now = time("2031-01-01T00:00:00Z");
        let mut handoff = task.handoff();
        handoff.task = Some("PRD-001".to_owned());
        let build = convert::<BuildCheckpoint>(&handoff, now).unwrap().checkpoint;
        prop_assert_eq!(rules_broken(&build), vec![]);
    }

    #[test]
    fn a_build_becomes_a_build_that_keeps_the_rules(build in any::<BuildCheckpoint>()) {
        let now = time("2031-01-01T00:00:00Z");
        let handoff = build.handoff();
        let again = convert::<BuildCheckpoint>(&handoff, now).unwrap().checkpoint;
        prop_assert_eq!(rules_broken(&again), vec![]);
        prop_assert_eq!(&again.completed_workstreams, &build.completed_workstreams);
    }

    #[test]
    #[cfg(feature = "schema")]
    fn whatever_is_written_is_valid_by_the_schema(build in any::<BuildCheckpoint>()) {
        let written = serde_json::to_value(&build).unwrap();
        let validator = validator();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }
}

fn build_of(value: &Value) -> BuildCheckpoint {
    let document = Document::from_text(value.to_string()).unwrap();
    document.read::<BuildCheckpoint>().unwrap().value
}

/// The shapes in which agents write the artifacts of a workstream.
#[test]
fn files_are_read_out_of_whatever_shape_an_artifact_has() {
    let build = build_of(&json!({
        "prd": "PRD-001", "status": "paused", "timestamp": "2026-03-02T08:00:00Z",
        "completed_workstreams": ["A", "B", "C", "D", "E", "F"],
        "dormant_workstreams": ["G"],
        "artifacts": {
            "A": "a.rs",
            "B": {"outputs": ["b.rs"], "branch": "feature/labels", "summary": "Wired it all up"},
            "C": ["c.rs (new)", "Implemented the service layer", "*.test.ts", "bin/run", "done"],
            "D": [{"path": "d.rs", "action": "created"}, {"path": "gone.rs", "action": "deleted"}],
            "E": {"files": {"e.rs": "the router", "old.rs": "removed"}, "deleted": ["older.rs"]},
            "F": {"created": ["f.rs"], "tests": {"unit": "tests/f.rs"}, "count": 3},
            "G": {"status": "dormant", "reason": "docs/later.md"},
        },
        "key_fixes": [{"file": "k.rs", "change": "x"}, {"file": "several files", "change": "y"}],
    }));
    assert_eq!(
        build.files(),
        [
            "a.rs",
            "b.rs",
            "c.rs",
            "bin/run",
            "d.rs",
            "e.rs",
            "f.rs",
            "tests/f.rs",
            "k.rs"
        ]
    );
    let named = &build.handoff().done[2].files_created;
    assert_eq!(named, &["c.rs", "*.test.ts", "bin/run"]);
}
