//! The `build-pipeline` format: its cases, the examples of its document, its rules and operations.

use crate::common;

use std::path::{Path, PathBuf};

use crate::common::{clock, key, time};
use agent_checkpoint::formats::build_pipeline::{
    AdversarialReview, Bucket, BuildCheckpoint, BuildError, BuildStatus, ExecutionSpec, FOLDER,
    FidelityGate, Fix, PresenceGate, RenderProofWaiver, SpecPhase, Verdict,
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

#[track_caller]
fn expect_with(value: &Value, context: &RuleContext<'_>, expected: &[(&str, &str)]) {
    let found = found(&value.to_string(), context);
    let found: Vec<_> = found
        .iter()
        .map(|(p, c)| (p.as_str(), c.as_str()))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{value:#}");
}

/// The violations of a value.
#[track_caller]
fn expect(value: &Value, expected: &[(&str, &str)]) {
    expect_with(value, &RuleContext::none(), expected);
}

/// The violations of a checkpoint as it is written.
fn rules_broken(build: &BuildCheckpoint) -> Vec<(String, String)> {
    found(&serde_json::to_string(build).unwrap(), &RuleContext::none())
}

/// A value like `value` with other top-level members; `null` takes one away.
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

fn gate_of_phase(name: &str, phase: u32) -> Operation {
    Operation::GatePass {
        name: name.to_owned(),
        phase: Some(phase),
    }
}

fn at(text: &str) -> OperationContext<'static> {
    OperationContext::at(time(text))
}

/// Refused, with nothing changed.
#[track_caller]
fn refused(build: &BuildCheckpoint, operation: &Operation) -> ErrorKind {
    let mut changed = build.clone();
    let error = changed
        .apply(operation, &at("2026-01-01T00:00:00Z"))
        .unwrap_err();
    assert_eq!(&changed, build);
    error.kind().clone()
}

#[track_caller]
fn refused_transition(build: &BuildCheckpoint, operation: &Operation, allowed: &[&str]) {
    match refused(build, operation) {
        ErrorKind::Transition { allowed: found, .. } => assert_eq!(found, allowed),
        other => panic!("{other:?}"),
    }
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
    step(
        &gate_of_phase("schema-validation (WS1)", 1),
        "2025-12-11T10:16:00Z",
        4,
        0,
    );

    let mut parallel = example_build(4);
    for id in ["WS2", "WS3"] {
        parallel
            .apply(&start(id), &at("2025-12-11T10:20:00Z"))
            .unwrap();
    }
    parallel.stamp(time("2025-12-11T10:20:00Z"));
    assert_eq!(parallel, example_build(5));

    let error = BuildError::new(
        "WS3",
        "Property 'player_id' does not exist on type 'PlayerDTO'",
    )
    .at("services/player/index.ts", 45);
    parallel.fail(error, false).unwrap();
    parallel.stamp(time("2025-12-11T10:25:00Z"));
    // The example forgets what was in progress; it is pending again.
    let mut expected = example_build(6);
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
        let files: Vec<&str> = wanted.files_of(&id).collect();
        // The plan tells which phase is finished.
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

/// Cleared where an object would be, and kept to the byte elsewhere.
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
fn proofs_have_the_values_of_the_protocol() {
    let value = json!({"gate_a_fidelity": "fail", "gate_b_classification": "derived",
        "gate_b_presence": "waived:"});
    expect(
        &with(&example(1), value),
        &[
            ("/gate_a_fidelity", "unknown-value"),
            ("/gate_b_classification", "unknown-value"),
            ("/gate_b_presence", "unknown-value"),
        ],
    );
    for class in ["derived_value", "none"] {
        expect(
            &with(&example(1), json!({"gate_b_classification": class})),
            &[],
        );
    }
    let build = build(&with(
        &example(1),
        json!({"gate_a_fidelity": "fail:2", "gate_b_presence": "blocked:no data"}),
    ));
    assert_eq!(build.fidelity(), Some(FidelityGate::Fail(Some(2))));
    assert_eq!(build.presence(), Some(PresenceGate::Blocked("no data")));
}

#[test]
fn a_complete_build_says_what_comes_after_it() {
    let next = BuildStatus::Complete.next_action();
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

#[test]
fn the_buckets_and_gates_are_those_of_the_plan() {
    let spec = Inputs::of(spec());
    let context = RuleContext::none().with_inputs(&spec);
    for count in [1, 2, 4, 5] {
        expect_with(&example(count), &context, &[]);
    }
    expect_with(&complete(), &context, &[]);
    // The failure example forgets two workstreams.
    let pending = ("/pending_workstreams", "not-subset");
    expect_with(&example(6), &context, &[pending, pending]);
    let value = with(
        &example(1),
        json!({
            "pending_workstreams": ["WS1", "WS2", "WS3", "WS9"],
            "dormant_workstreams": ["WS4"],
            "gates_passed": ["schema-validation (WS1)", "magic (WS1)"],
            "gates_pending": ["type-check", "lint"],
        }),
    );
    expect_with(
        &value,
        &context,
        &[
            ("/pending_workstreams/3", "not-subset"),
            pending,
            ("/gates_passed/1", "not-subset"),
            ("/gates_pending", "not-subset"),
        ],
    );
    // Of lists that could not be read whole it is not said what is missing.
    let unread = with(
        &value,
        json!({"dormant_workstreams": ["WS4", {}], "gates_pending": "none"}),
    );
    expect_with(
        &unread,
        &context,
        &[
            ("/dormant_workstreams/1", "wrong-type"),
            ("/gates_pending", "wrong-type"),
            ("/pending_workstreams/3", "not-subset"),
            ("/gates_passed/1", "not-subset"),
        ],
    );
}

// Operations

#[test]
fn only_the_transitions_of_the_protocol_are_made() {
    let fail = Operation::Fail { text: "x".into() };
    let (pause, complete_it) = (Operation::Pause, Operation::Complete);
    let initialized = example_build(1);
    for operation in [&fail, &pause, &complete_it, &gate("lint")] {
        refused_transition(&initialized, operation, &["in_progress"]);
    }
    let paused = example_build(4);
    for operation in [&fail, &pause] {
        refused_transition(&paused, operation, &["in_progress", "complete"]);
    }
    let failed = example_build(6);
    for operation in [&fail, &complete_it] {
        refused_transition(&failed, operation, &["in_progress", "paused"]);
    }
    let complete = example_of_complete();
    for operation in [&start("WS1"), &fail, &pause, &complete_it] {
        refused_transition(&complete, operation, &[]);
    }
    let mut odd = example_build(1);
    odd.status = Some(BuildStatus::from("COMPLETE"));
    refused_transition(&odd, &start("WS1"), &[]);
    odd.status = None;
    refused_transition(&odd, &start("WS1"), &[]);
    // A spelling that is understood goes on as what it means, and is mended.
    odd.status = Some(BuildStatus::from("Initialized"));
    odd.apply(&start("WS1"), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(odd.status, Some(BuildStatus::InProgress));

    let mut running = example_build(5);
    running.apply(&pause, &at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(running.status, Some(BuildStatus::Paused));
    let mut mended = failed;
    mended.apply(&pause, &at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(
        (mended.status, mended.error),
        (Some(BuildStatus::Paused), None)
    );
}

#[test]
fn a_transition_can_be_forced_but_not_the_rules() {
    let forced = at("2026-01-01T00:00:00Z").with_force(true);
    let mut build = example_build(1);
    build.apply(&Operation::Pause, &forced).unwrap();
    assert_eq!(rules_broken(&build), []);
    let mut build = example_build(1);
    build
        .apply(&Operation::Fail { text: "no".into() }, &forced)
        .unwrap();
    assert_eq!(rules_broken(&build), []);
    let mut build = example_build(1);
    let error = build.apply(&Operation::Complete, &forced).unwrap_err();
    assert!(error.to_string().contains("WS1"), "{error}");
    assert_eq!(build, example_build(1));
    let mut build = example_build(1);
    build.apply(&done("WS1", &[]), &forced).unwrap();
    assert_eq!(build.completed_workstreams, ["WS1"]);
}

#[test]
fn a_workstream_starts_only_from_pending() {
    let mut build = example_build(5);
    let before = build.clone();
    build
        .apply(&start("WS2"), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(build, before, "it is in progress already");
    for id in ["WS1", "WS9"] {
        assert!(matches!(
            refused(&build, &start(id)),
            ErrorKind::Refused { .. }
        ));
    }
    assert_eq!(build.bucket("WS4"), Some(Bucket::Pending));
    build.start_workstream("WS4", false).unwrap();
    assert_eq!(build.in_progress_workstreams, ["WS2", "WS3", "WS4"]);
    assert_eq!(build.pending_workstreams, ["WS5"]);
}

/// What an interrupted start leaves behind.
#[test]
fn a_workstream_that_is_pending_and_in_progress_is_only_begun() {
    let mut torn = build(&with(
        &example(5),
        json!({"pending_workstreams": ["WS2", "WS4", "WS5"]}),
    ));
    torn.apply(&start("WS2"), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(torn.in_progress_workstreams, ["WS2", "WS3"]);
    assert_eq!(torn.pending_workstreams, ["WS4", "WS5"]);
    assert_eq!(rules_broken(&torn), []);
}

#[test]
fn a_workstream_that_is_completed_or_dormant_besides_does_not_start_silently() {
    let says = |build: &BuildCheckpoint, id: &str| {
        let mut build = build.clone();
        let error = build.start_workstream(id, false).unwrap_err();
        error.to_string()
    };
    let mut torn = build(&with(
        &example(5),
        json!({"pending_workstreams": ["WS1", "WS4", "WS5"], "dormant_workstreams": ["WS4"],
            "skipped_workstreams": ["WS4"],
            "artifacts": {"WS4": {"status": "dormant", "reason": "later"}}}),
    ));
    let said = says(&torn, "WS1");
    assert!(said.contains("completed and pending at once"), "{said}");
    let said = says(&torn, "WS4");
    assert!(said.contains("pending and dormant at once"), "{said}");
    assert!(torn.start_workstream("WS1", true).is_err());
    torn.start_workstream("WS4", true).unwrap();
    assert_eq!(torn.dormant().count(), 0);
    assert_eq!(torn.in_progress_workstreams, ["WS2", "WS3", "WS4"]);
    assert!(torn.artifacts.is_empty());
    torn.complete_workstream("WS1", &[], false).unwrap();
    assert_eq!(rules_broken(&torn), []);
}

#[test]
fn starting_after_a_failure_takes_the_error_away() {
    let mut build = example_build(6);
    build.start_workstream("WS4", false).unwrap();
    assert_eq!(build.error, None);
    assert_eq!(rules_broken(&build), []);
}

#[test]
fn a_done_workstream_leaves_its_files() {
    let mut build = example_build(5);
    assert!(matches!(
        refused(&build, &done("WS4", &[])),
        ErrorKind::Refused { .. }
    ));
    build
        .apply(
            &done("WS2", &["a.ts", "a.ts", "b.ts"]),
            &at("2026-01-01T00:00:00Z"),
        )
        .unwrap();
    assert_eq!(build.artifacts["WS2"], json!(["a.ts", "b.ts"]));
    assert_eq!(rules_broken(&build), []);
    build
        .apply(&done("WS2", &["b.ts", "c.ts"]), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(build.artifacts["WS2"], json!(["a.ts", "b.ts", "c.ts"]));
    assert_eq!(build.completed_workstreams, ["WS1", "WS2"]);
    for (artifact, wanted) in [
        (json!("a.ts"), json!(["a.ts", "d.ts"])),
        (
            json!({"outputs": ["a.ts"], "pr": 7}),
            json!({"outputs": ["a.ts", "d.ts"], "pr": 7}),
        ),
    ] {
        build.artifacts.insert("WS2".into(), artifact);
        build
            .complete_workstream("WS2", &["d.ts".into()], false)
            .unwrap();
        assert_eq!(build.artifacts["WS2"], wanted);
    }
    build.artifacts.insert("WS2".into(), json!({"pr": 7}));
    assert!(matches!(
        refused(&build, &done("WS2", &["d.ts"])),
        ErrorKind::Refused { .. }
    ));
    build
        .apply(&done("WS3", &[]), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert!(!build.artifacts.contains_key("WS3"));
}

#[test]
fn failing_moves_what_was_in_progress_back_to_pending() {
    let mut build = example_build(5);
    let operation = Operation::WorkstreamFail {
        id: "WS3".into(),
        because: Some("no column".into()),
    };
    build
        .apply(&operation, &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(build.pending_workstreams, ["WS2", "WS3", "WS4", "WS5"]);
    assert_eq!(build.error, Some(BuildError::new("WS3", "no column")));
    assert_eq!(rules_broken(&build), []);
    let unknown = BuildError::new("WS9", "?");
    let mut running = example_build(5);
    assert!(running.fail(unknown, false).is_err());
    assert_eq!(running, example_build(5));
}

#[test]
fn a_failure_without_a_name_is_that_of_the_only_workstream_in_progress() {
    let fail = Operation::Fail {
        text: "boom".into(),
    };
    let mut build = example_build(2);
    build.apply(&fail, &at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(build.error, Some(BuildError::new("WS1", "boom")));
    let mut build = example_build(5);
    build.apply(&fail, &at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(build.error.unwrap().workstream, None);
}

#[test]
fn a_gate_is_known_by_the_name_before_its_workstream() {
    let mut build = example_build(3);
    assert!(matches!(
        refused(&build, &gate("magic")),
        ErrorKind::Refused { .. }
    ));
    build.pass_gate("type-check (WS1)", Some(1), false).unwrap();
    assert_eq!(
        build.gates_pending,
        ["schema-validation", "lint", "test-pass"]
    );
    // A further gate of the same pause is of the same phase.
    build.pass_gate("lint", None, false).unwrap();
    assert_eq!(build.current_phase, Some(1.0));
    // The same check for another workstream.
    build.pass_gate("type-check (WS2)", Some(2), false).unwrap();
    assert_eq!(build.current_phase, Some(2.0));
    assert_eq!(
        build.gates_passed,
        ["type-check (WS1)", "lint", "type-check (WS2)"]
    );

    let mut named = example_build(3);
    named.gates_pending = ["lint (WS1)", "lint (WS2)"].map(str::to_owned).to_vec();
    assert!(matches!(
        refused(&named, &gate("lint")),
        ErrorKind::Refused { .. }
    ));
    assert!(matches!(
        refused(&named, &gate("lint (WS3)")),
        ErrorKind::Refused { .. }
    ));
    named.pass_gate("lint (WS2)", None, false).unwrap();
    assert_eq!(named.gates_pending, ["lint (WS1)"]);
}

#[test]
fn a_gate_that_is_passed_while_others_work_does_not_stop_them() {
    let mut build = example_build(5);
    build
        .apply(&gate("type-check (WS2)"), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(build.status, Some(BuildStatus::InProgress));
    assert_eq!(build.current_phase, Some(1.0));
    assert_eq!(build.last_gate(), Some("type-check (WS2)"));
    assert_eq!(rules_broken(&build), []);
}

#[test]
fn the_phase_moves_only_where_it_is_named_or_the_plan_tells() {
    let mut build = example_build(4);
    for id in ["WS2", "WS3"] {
        let here = at("2026-01-01T00:00:00Z");
        build.apply(&start(id), &here).unwrap();
        build.apply(&done(id, &[]), &here).unwrap();
        let passed = gate(&format!("type-check ({id})"));
        build.apply(&passed, &here).unwrap();
        assert_eq!(build.current_phase, Some(1.0), "a gate ends no phase");
    }
    let plan = spec();
    let here = at("2026-01-01T00:00:00Z");
    let inputs = Inputs::of(plan.clone());
    let here = here.with_rules(RuleContext::none().with_inputs(&inputs));
    build.apply(&gate("lint"), &here).unwrap();
    assert_eq!(build.current_phase, Some(2.0));
    assert_eq!(build.finished_phase(&plan), None, "it is there already");
    // One phase is open: the checkpoint is further than the work.
    build.set_phase(7.0, false).unwrap();
    let plan = build.resume_plan(&RuleContext::none().with_inputs(&inputs));
    assert!(
        plan.warnings[0].contains("is at phase 7"),
        "{:?}",
        plan.warnings
    );
    assert_eq!(plan.phase.as_deref(), Some("3"));
}

#[test]
fn a_gate_can_fail_where_it_is_judged_and_says_where() {
    let fail = |workstream: Option<&str>| Operation::GateFail {
        name: "type-check".into(),
        because: "no such property".into(),
        workstream: workstream.map(str::to_owned),
        file: Some("src/a.ts".into()),
        line: Some(45),
    };
    let here = at("2026-01-01T00:00:00Z");
    // At the review of a paused build, for a workstream that is done.
    let mut build = example_build(4);
    build.apply(&fail(Some("WS1")), &here).unwrap();
    let error = build.error.clone().unwrap();
    assert_eq!(error.workstream.as_deref(), Some("WS1"));
    assert_eq!(
        error.text(),
        "WS1: type-check: no such property (src/a.ts:45)"
    );
    assert_eq!(build.completed_workstreams, ["WS1"]);
    assert!(build.gates_pending.contains(&"type-check".to_owned()));
    assert_eq!(rules_broken(&build), []);
    // `fail` alone has no way there.
    let text = Operation::Fail { text: "x".into() };
    assert!(example_build(4).apply(&text, &here).is_err());
    // While it is in progress.
    let mut build = example_build(2);
    build.apply(&fail(None), &here).unwrap();
    assert_eq!(
        build.error.clone().unwrap().workstream.as_deref(),
        Some("WS1")
    );
    assert_eq!(build.pending_workstreams[0], "WS1");
    for wrong in [
        fail(Some("WS9")),
        Operation::GateFail {
            name: "magic".into(),
            because: "x".into(),
            workstream: None,
            file: None,
            line: None,
        },
    ] {
        assert!(matches!(
            refused(&example_build(4), &wrong),
            ErrorKind::Refused { .. }
        ));
    }
}

#[test]
fn a_build_pauses_when_the_workstream_of_a_passed_gate_is_done() {
    let mut build = example_build(2);
    build.pass_gate("lint (WS1)", None, false).unwrap();
    assert_eq!(build.status, Some(BuildStatus::InProgress));
    build.complete_workstream("WS1", &[], false).unwrap();
    assert_eq!(build.status, Some(BuildStatus::Paused));
    // And so it does when the gate is reported again.
    let mut build = example_build(2);
    build.pass_gate("lint", None, false).unwrap();
    build.complete_workstream("WS1", &[], false).unwrap();
    build.pass_gate("lint", None, false).unwrap();
    assert_eq!(build.status, Some(BuildStatus::Paused));
    assert_eq!(build.gates_passed, ["lint"]);
}

#[test]
fn a_stack_that_is_down_is_waived_in_no_way() {
    let mut build = example_build(4);
    build.gate_b_presence = Some("blocked: stack_down".into());
    for value in ["waived:ISS-7", "not_applicable"] {
        assert!(
            build
                .clone()
                .record_proof("gate_b_presence", value)
                .is_err(),
            "{value}"
        );
    }
    let waive = Operation::Waive {
        issue: "ISS-7".into(),
        because: "no time".into(),
    };
    assert!(matches!(refused(&build, &waive), ErrorKind::Refused { .. }));
    // Nor by a change of the value itself, nor is the time of making changed.
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
    // Once it was looked at again, the build goes on, and a restart begins anew.
    let mut again = build.clone();
    again
        .record_proof("gate_b_presence", "fail:no total")
        .unwrap();
    again.waive_render_proof("known", "ISS-7").unwrap();
    let now = time("2026-01-01T00:00:00Z");
    builds
        .try_update(&name, |build| build.restart(now, false))
        .unwrap();
}

#[test]
fn pausing_puts_what_is_in_progress_back() {
    let mut build = example_build(5);
    build.pause(false).unwrap();
    assert_eq!(build.pending_workstreams, ["WS2", "WS3", "WS4", "WS5"]);
    assert_eq!(rules_broken(&build), []);
}

#[test]
fn resuming_begins_with_the_first_phase_that_has_work() {
    let mut build = example_build(4);
    build.pending_workstreams.reverse();
    let mut planned = build.clone();
    assert_eq!(planned.resume(None, Some(&spec()), false).unwrap(), "WS2");
    assert_eq!(build.resume(None, None, false).unwrap(), "WS5");
    let mut named = example_build(4);
    assert_eq!(named.resume(Some("WS4"), None, false).unwrap(), "WS4");
    assert_eq!(rules_broken(&named), []);
    let mut idle = example_build(4);
    idle.pending_workstreams.clear();
    assert!(idle.resume(None, None, false).is_err());
}

#[test]
fn completing_needs_that_nothing_is_left_and_no_proof_stands_against_it() {
    let mut build = example_of_complete();
    build.status = Some(BuildStatus::Paused);
    let whole = build.clone();
    build.gates_pending.push("lint".into());
    assert!(matches!(
        refused(&build, &Operation::Complete),
        ErrorKind::Refused { .. }
    ));
    let mut build = whole.clone();
    build.gate_a_fidelity = Some("fail:1".into());
    assert!(matches!(
        refused(&build, &Operation::Complete),
        ErrorKind::Refused { .. }
    ));
    let mut build = whole.clone();
    build.record_proof("gate_b_presence", "fail:empty").unwrap();
    assert!(build.complete(false).is_err());
    build.waive_render_proof("none to show", "ISS-7").unwrap();
    build.complete(false).unwrap();
    assert_eq!(build.gate_b_presence.as_deref(), Some("waived:ISS-7"));
    assert_eq!(rules_broken(&build), []);
    let mut down = whole;
    down.record_proof("gate_b_presence", "blocked:stack_down")
        .unwrap();
    assert!(down.waive_render_proof("never", "ISS-7").is_err());
    assert!(down.waive_render_proof("never", "").is_err());
}

#[test]
fn proofs_are_recorded_by_verifying() {
    let verify = |activity: &str, status: &str| Operation::Verify {
        activity: activity.into(),
        status: status.into(),
    };
    let mut build = example_build(5);
    for (gate, value) in [
        ("gate_a_fidelity", "pass"),
        ("gate_b_classification", "derived_value"),
        ("gate_b_presence", "fail:empty"),
    ] {
        build
            .apply(&verify(gate, value), &at("2026-01-01T00:00:00Z"))
            .unwrap();
        let shown = build.handoff().verification.unwrap();
        assert!(shown.results.contains(&(gate.to_owned(), value.to_owned())));
    }
    for (gate, value) in [
        ("gate_a_fidelity", "so so"),
        ("gate_c", "pass"),
        ("gate_b_presence", "fail"),
    ] {
        assert!(matches!(
            refused(&build, &verify(gate, value)),
            ErrorKind::Refused { .. }
        ));
    }
    let complete = example_of_complete();
    let failing = verify("gate_a_fidelity", "fail:1");
    assert!(matches!(
        refused(&complete, &failing),
        ErrorKind::Refused { .. }
    ));
}

#[test]
fn the_phase_is_set_by_number() {
    let phase = |name: &str| Operation::Phase { name: name.into() };
    let mut build = example_build(5);
    build
        .apply(&phase("Phase 2"), &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(build.current_phase, Some(2.0));
    assert!(matches!(
        refused(&build, &phase("next")),
        ErrorKind::Refused { .. }
    ));
    assert!(matches!(
        refused(&example_of_complete(), &phase("1")),
        ErrorKind::Refused { .. }
    ));
    assert!(build.set_phase(f64::NAN, true).is_err());
}

#[test]
fn a_workstream_is_left_out_with_its_reason_under_the_name_that_the_file_has() {
    let mut build = example_build(5);
    build.leave_out("WS5", "not in this run").unwrap();
    assert_eq!(
        build.dormant_workstreams.as_deref(),
        Some(&["WS5".to_owned()][..])
    );
    assert_eq!(
        build.artifacts["WS5"],
        json!({"status": "dormant", "reason": "not in this run"})
    );
    assert_eq!(build.dormant_reason("WS5"), Some("not in this run"));
    assert_eq!(rules_broken(&build), []);
    assert!(build.leave_out("WS2", "in progress").is_err());
    let mut older = example_build(5);
    older.skipped_workstreams = Some(vec!["WS9".into()]);
    older.leave_out("WS5", "no").unwrap();
    assert_eq!(older.dormant().collect::<Vec<_>>(), ["WS9", "WS5"]);
    assert_eq!(older.dormant_workstreams, None);
}

#[test]
fn a_review_is_recorded_within_its_rules() {
    let mut build = example_build(1);
    build
        .record_review(AdversarialReview::new(Verdict::ShipWithGates))
        .unwrap();
    let before = build.clone();
    let mut third = AdversarialReview::new(Verdict::Ship);
    third.attempt = Some(3.0);
    assert!(build.record_review(third).is_err());
    assert!(
        build
            .record_review(AdversarialReview::new(Verdict::Overridden))
            .is_err()
    );
    assert_eq!(build, before);
    let mut overridden = AdversarialReview::new(Verdict::Overridden);
    overridden.override_reason = Some("known".into());
    overridden.attempt = Some(2.0);
    build.record_review(overridden).unwrap();
    assert_eq!(rules_broken(&build), []);
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
fn a_build_that_begins_anew_has_all_of_its_plan_pending() {
    let now = time("2026-01-01T00:00:00Z");
    let mut build = example_of_complete();
    build.dormant_workstreams = Some(vec!["WS9".into()]);
    build.artifacts.insert(
        "WS9".into(),
        json!({"status": "dormant", "reason": "later"}),
    );
    let fresh = build.begun_anew(now);
    assert_eq!(
        fresh.pending_workstreams,
        ["WS1", "WS2", "WS3", "WS4", "WS5"]
    );
    assert_eq!(
        fresh.gates_pending,
        ["schema-validation", "type-check", "lint", "test-pass"]
    );
    assert_eq!(fresh.artifacts.len(), 1);
    assert_eq!(fresh.status, Some(BuildStatus::Initialized));
    assert_eq!(rules_broken(&fresh), []);
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
    // What is complete begins anew only when it is forced.
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
            .try_update(&key("a"), |build| build.pause(false))
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
    let unnamed = BuildCheckpoint::default().already_complete_message();
    assert_eq!(unnamed, "The build is already complete");
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
    build.leave_out("WS2", "not in this run").unwrap();
    build.leave_out("WS3", "no time").unwrap();
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

    // What is in progress counts as well as what is pending.
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

#[test]
fn each_status_has_its_next_action() {
    for (status, word) in [
        ("initialized", "phase 1"),
        ("in_progress", "Wait"),
        ("paused", "approves"),
        ("failed", "by hand"),
        ("complete", "MVP-ROADMAP"),
        ("odd", "Find out"),
    ] {
        let action = BuildStatus::from(status).next_action();
        assert!(action.contains(word), "{action}");
    }
}

// The common view

#[test]
fn the_handoff_has_all_that_the_next_agent_needs() {
    let mut build = example_build(6);
    build.adversarial_review = Some(AdversarialReview::new(Verdict::Ship));
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
    assert_eq!(build.counts(), (1, 5));
    assert_eq!(build.percent(), Some(20.0));
    assert_eq!(build.elapsed(now), Some(TimeDelta::hours(1)));
    assert_eq!(build.elapsed(time("2025-01-01T00:00:00Z")), None);
    assert_eq!(
        example_build(5).elapsed(now),
        None,
        "the first revision does not tell"
    );
    assert_eq!(BuildCheckpoint::default().percent(), None);
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
    // A place is no evidence without a member of the format.
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
    // A task that is called by such an id stays a task.
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

// Whatever the text and the checkpoint are like

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
        1 => Just(Operation::Pause),
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
        let _ = build.begun_anew(time("2026-01-01T00:00:00Z"));
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
        // Between a workstream that is done and what follows, nothing is in progress.
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

#[test]
fn operations_understand_other_spellings_of_a_status() {
    let base = |status: &str| {
        json!({"prd": "PRD-001", "status": status, "completed_workstreams": [],
            "in_progress_workstreams": ["WS1"], "pending_workstreams": ["WS2"],
            "gates_pending": ["lint"], "timestamp": "2026-03-02T08:00:00Z"})
    };
    let mut build = build_of(&base("IN_PROGRESS"));
    build.start_workstream("WS2", false).unwrap();
    let mut build = build_of(&base("in-progress"));
    build.complete_workstream("WS1", &[], false).unwrap();
    let mut build = build_of(&base("Paused"));
    build.pass_gate("lint", None, false).unwrap();
    assert_eq!(build.gates_passed, ["lint"]);
}

#[test]
fn a_workstream_in_two_buckets_is_done_in_both() {
    let mut build = build_of(&json!({"prd": "PRD-001", "status": "in_progress",
        "completed_workstreams": ["WS1", "WS2"], "in_progress_workstreams": ["WS2"],
        "pending_workstreams": [], "timestamp": "2026-03-02T08:00:00Z"}));
    build.complete_workstream("WS2", &[], false).unwrap();
    assert!(build.in_progress_workstreams.is_empty());
    assert_eq!(build.completed_workstreams, ["WS1", "WS2"]);
    // What is done does not fail.
    assert!(build.fail(BuildError::new("WS1", "boom"), false).is_err());
}

#[test]
fn a_gate_reported_again_passes_once_and_mends_no_failure() {
    let mut build = build_of(
        &json!({"prd": "PRD-001", "status": "paused", "current_phase": 1,
        "completed_workstreams": ["WS1"], "gates_passed": ["lint (WS1)"], "gates_pending": ["type-check"],
        "timestamp": "2026-03-02T08:00:00Z"}),
    );
    let before = build.clone();
    build.pass_gate("lint", None, false).unwrap();
    assert_eq!(build, before);
    build.status = Some(BuildStatus::Failed);
    build.error = Some(BuildError::new("WS1", "boom"));
    build.pass_gate("type-check (WS1)", None, false).unwrap();
    assert!(build.error.is_some());
    assert_eq!(build.status, Some(BuildStatus::Failed));
    assert_eq!(build.current_phase, Some(1.0));
    assert_eq!(build.gates_passed, ["lint (WS1)", "type-check (WS1)"]);
}

#[test]
fn a_null_artifact_is_none() {
    let found = Formats::default();
    let document = Document::from_text(
        json!({"prd": "PRD-001", "status": "paused", "pending_workstreams": ["WS3"],
            "artifacts": {"WS3": null}, "timestamp": "2026-03-02T08:00:00Z"})
        .to_string(),
    )
    .unwrap();
    let violations = found
        .get("build-pipeline")
        .unwrap()
        .violations(&document, &RuleContext::none());
    assert_eq!(violations.unwrap(), []);
}

/// The shapes that agents give the artifacts of a workstream.
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
    let named: Vec<&str> = build.files_of("C").collect();
    assert_eq!(named, ["c.rs", "*.test.ts", "bin/run"]);
}

#[test]
fn a_status_that_leads_nowhere_can_be_left_by_force() {
    for status in ["executing", "approved"] {
        let mut odd = build_of(&json!({"prd": "PRD-001", "status": status,
            "pending_workstreams": ["WS1"], "timestamp": "2026-03-02T08:00:00Z"}));
        let error = odd.start_workstream("WS1", false).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("nowhere; forced, it is made all the same"),
            "{said}"
        );
        odd.start_workstream("WS1", true).unwrap();
        assert_eq!(odd.status, Some(BuildStatus::InProgress));
    }
}

#[test]
fn a_gate_may_name_its_workstream_after_a_colon() {
    let mut build = build_of(
        &json!({"prd": "PRD-001", "status": "paused", "current_phase": 1,
        "gates_pending": ["type-check:WS1", "type-check:WS2", "test:unit"],
        "timestamp": "2026-03-02T08:00:00Z"}),
    );
    // Which one is meant is not guessed.
    assert!(build.pass_gate("type-check", None, false).is_err());
    build.pass_gate("type-check (WS2)", None, false).unwrap();
    assert_eq!(build.gates_pending, ["type-check:WS1", "test:unit"]);
    build.pass_gate("type-check:WS1", None, false).unwrap();
    build.pass_gate("test:unit", None, false).unwrap();
    assert!(build.gates_pending.is_empty());
    let plan = ExecutionSpec::new([], ["type-check", "test:unit"]);
    let value = serde_json::to_value(&build).unwrap();
    expect_with(
        &value,
        &RuleContext::none().with_inputs(&Inputs::of(plan)),
        &[],
    );
}

/// As the protocol's own example of a failure leaves it.
#[test]
fn a_failed_workstream_that_no_bucket_has_is_still_to_be_done() {
    let failed = example_build(6);
    assert_eq!(failed.bucket("WS3"), None);
    assert_eq!(failed.failed_workstream(), Some("WS3"));
    assert_eq!(failed.handoff().pending, ["WS3", "WS4", "WS5"]);
    let plan = plan_of(&failed);
    assert_eq!(plan.start_at.as_deref(), Some("WS3"));
    assert!(plan.message.contains("Pending:\n  WS3"), "{}", plan.message);
    let mut on = failed.clone();
    assert_eq!(on.resume(None, Some(&spec()), false).unwrap(), "WS3");
    assert_eq!(on.in_progress_workstreams, ["WS3"]);
    // Whatever is begun instead, it is pending then.
    for operation in [start("WS4"), Operation::Pause] {
        let mut on = failed.clone();
        on.apply(&operation, &at("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(on.pending_workstreams[0], "WS3");
        assert_eq!(rules_broken(&on), []);
    }
    let mut last = failed.clone();
    last.pending_workstreams.clear();
    last.gates_pending.clear();
    assert!(last.complete(true).is_err());
    // A word that is no workstream is not taken for one.
    last.error = Some(BuildError::new("review", "m"));
    assert_eq!(last.failed_workstream(), None);
    last.complete(true).unwrap();
}

#[test]
fn what_is_fixed_is_an_error_no_more() {
    let mut fixed = example_build(6);
    fixed
        .apply(&Operation::Unblock, &at("2026-01-01T00:00:00Z"))
        .unwrap();
    assert_eq!(fixed.status, Some(BuildStatus::Paused));
    assert_eq!(fixed.error, None);
    assert_eq!(fixed.pending_workstreams, ["WS3", "WS4", "WS5"]);
    assert_eq!(rules_broken(&fixed), []);
    let before = fixed.clone();
    fixed.unblock();
    assert_eq!(fixed, before);
    // An error that was left behind goes, and nothing else.
    let mut odd = build(&with(&example(5), json!({"error": "boom"})));
    odd.unblock();
    assert_eq!(odd, example_build(5));
}
