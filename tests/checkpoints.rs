//! The typed view: what a save changes, cuts, stamps, refuses and reports.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use std::fs;

use agent_checkpoint::formats::task::{Phase, StepDone, TaskCheckpoint};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::PutOptions;
use agent_checkpoint::{
    BuilderStateStore, CheckpointStore, CheckpointStoreExt, Checkpoints, Code, ErrorKind, Expect,
    FileStore, MemoryStore, Outcome, Redaction, Write,
};
use common::{EXAMPLE, clock, key, task, time};

/// A memory store with one document.
fn store_with(text: &str) -> MemoryStore {
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store.put(&key("a"), &document, &PutOptions::new()).unwrap();
    store
}

fn tasks(store: &dyn CheckpointStore) -> Checkpoints<'_, TaskCheckpoint> {
    Checkpoints::new(store).with_clock(clock("2026-03-02T09:00:00.987654321Z"))
}

fn text(store: &dyn CheckpointStore) -> String {
    store.load(&key("a")).unwrap().unwrap().document.into_text()
}

#[test]
fn the_protocols_example_saved_unchanged_is_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    fs::write(&host, EXAMPLE).unwrap();
    let modified = fs::metadata(&host).unwrap().modified().unwrap();
    let store = BuilderStateStore::open(&host);
    let tasks = tasks(&store);
    let loaded = tasks.get(&key("active")).unwrap();
    assert!(loaded.violations.is_empty(), "{:?}", loaded.violations);
    let saved = tasks.update(&key("active"), |_| {}).unwrap();
    assert_eq!(saved.outcome, Outcome::Unchanged);
    let saved = tasks
        .put(
            &key("active"),
            &loaded.checkpoint,
            Write::Edit,
            &Expect::Any,
        )
        .unwrap();
    assert_eq!(saved.outcome, Outcome::Unchanged);
    assert_eq!(fs::read_to_string(&host).unwrap(), EXAMPLE);
    assert_eq!(fs::metadata(&host).unwrap().modified().unwrap(), modified);
}

#[test]
fn one_step_done_differs_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&host);
    let now = time("2026-02-28T10:20:00Z");
    let saved = tasks(&store)
        .with_clock(clock("2026-02-28T10:20:00Z"))
        .try_update(&key("active"), |task| {
            let done = StepDone::new("Wired toggle to context").modifying("src/App.tsx");
            task.finish_step(&done, now)
        })
        .unwrap();
    assert!(saved.truncation.is_empty() && saved.violations.is_empty());
    let after = fs::read_to_string(&host).unwrap();
    insta::assert_snapshot!(diff(EXAMPLE, &after));
}

/// The lines that went and came, with two lines around them.
fn diff(before: &str, after: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&a, before).unwrap();
    fs::write(&b, after).unwrap();
    let output = std::process::Command::new("diff")
        .args(["-U1", "--label", "before", "--label", "after"])
        .args([&a, &b])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn foreign_keys_and_spellings_survive_a_save() {
    let before = "{\r\n\t\"estimate\": 1.50,\r\n\t\"phase\": \"planning\",\r\n\t\"x\": {\"y\": [ ]},\r\n\t\"metadata\": {\"lastUpdatedAt\": \"2026-01-01T00:00:00Z\", \"tier\": 1e2}\r\n}";
    let store = store_with(before);
    tasks(&store)
        .update(&key("a"), |task| task.phase = Some(Phase::Verification))
        .unwrap();
    let expected = before
        .replace("planning", "verification")
        .replace("2026-01-01T00:00:00Z", "2026-03-02T09:00:00Z");
    assert_eq!(text(&store), expected);
}

#[test]
fn a_stamp_has_the_precision_that_the_file_uses() {
    for (old, new) in [
        ("2026-01-01T00:00:00Z", "2026-03-02T09:00:00Z"),
        ("2026-01-01T00:00:00.1+01:00", "2026-03-02T09:00:00.987Z"),
        ("soon", "2026-03-02T09:00:00Z"),
    ] {
        let store = store_with(&format!("{{\"metadata\":{{\"lastUpdatedAt\":\"{old}\"}}}}"));
        tasks(&store)
            .update(&key("a"), |task| task.blockers.push("b".into()))
            .unwrap();
        assert!(text(&store).contains(new), "{}", text(&store));
    }
}

#[test]
fn a_new_file_stands_in_declared_order_with_its_version() {
    let store = MemoryStore::new();
    tasks(&store).create(&key("a"), &task(&["one"])).unwrap();
    insta::assert_snapshot!(text(&store));
    let again = tasks(&store).create(&key("a"), &task(&["one"]));
    assert!(matches!(
        again.unwrap_err().kind(),
        ErrorKind::Conflict { .. }
    ));
}

#[test]
fn inside_a_host_file_a_checkpoint_has_no_version_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, "{\n  \"activeWork\": {\n    \"id\": \"w\"\n  }\n}\n").unwrap();
    let store = BuilderStateStore::open(&host);
    tasks(&store)
        .create(&key("active"), &task(&["one"]))
        .unwrap();
    insta::assert_snapshot!(fs::read_to_string(&host).unwrap());
}

#[test]
fn a_newer_version_is_read_and_reported_and_never_written() {
    let before = r#"{"schemaVersion":2,"phase":"planning"}"#;
    let store = store_with(before);
    let tasks = tasks(&store);
    let loaded = tasks.get(&key("a")).unwrap();
    assert_eq!(loaded.checkpoint.phase, Some(Phase::Planning));
    let newer = |v: &agent_checkpoint::Violation| v.code == Code::NEWER_SCHEMA;
    assert_eq!(loaded.violations.iter().filter(|v| newer(v)).count(), 1);
    let refused = ErrorKind::NewerSchema { found: 2, known: 1 };
    let update = tasks.update(&key("a"), |task| task.blockers.push("b".into()));
    assert_eq!(*update.unwrap_err().kind(), refused);
    for write in [Write::Edit, Write::Replace] {
        let put = tasks.put(&key("a"), &task(&[]), write, &Expect::Any);
        assert_eq!(*put.unwrap_err().kind(), refused);
    }
    assert_eq!(text(&store), before);
}

#[test]
fn what_could_not_be_read_is_not_wiped() {
    let before = r#"{"decisions":["Store price in cents",{"decision":"b"}],"blockers":"none","completedSteps":null}"#;
    let store = store_with(before);
    let tasks = tasks(&store);
    let loaded = tasks.get(&key("a")).unwrap();
    assert_eq!(loaded.checkpoint.decisions.len(), 1);
    // The elements around an unreadable one can be changed, and it stays.
    tasks
        .update(&key("a"), |task| {
            task.decisions[0].decision = Some("c".into())
        })
        .unwrap();
    assert!(text(&store).contains(r#"["Store price in cents",{"decision":"c"}]"#));
    let before = text(&store);
    let error = tasks
        .update(&key("a"), |task| task.blockers.push("b".into()))
        .unwrap_err();
    match error.kind() {
        ErrorKind::WouldLose { pointers } => assert_eq!(pointers, &["/blockers"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(text(&store), before);
    tasks
        .allowing_loss()
        .update(&key("a"), |task| task.blockers.push("b".into()))
        .unwrap();
    assert!(text(&store).contains(r#""blockers":["b"]"#));
}

#[test]
fn new_violations_of_rules_are_written_and_listed_old_ones_are_not() {
    let store = store_with(r#"{"phase":"thinking","completedSteps":[],"pendingSteps":[]}"#);
    let saved = tasks(&store)
        .update(&key("a"), |task| {
            task.decisions = vec![agent_checkpoint::formats::task::Decision::new("d")];
        })
        .unwrap();
    let listed: Vec<_> = saved.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "/decisions/0/timestamp: timestamp is required (missing)",
            // The stamp made the member, and so its required ones.
            "/metadata/createdBy: createdBy is required (missing)",
            "/metadata/reason: reason is required (missing)",
        ]
    );
}

#[test]
fn replace_writes_only_what_the_type_knows() {
    let store = store_with(r#"{"foreign":1,"phase":"planning"}"#);
    tasks(&store)
        .put(&key("a"), &task(&["x"]), Write::Edit, &Expect::Any)
        .unwrap();
    assert!(text(&store).contains("foreign"));
    tasks(&store)
        .put(&key("a"), &task(&["y"]), Write::Replace, &Expect::Any)
        .unwrap();
    assert!(!text(&store).contains("foreign"));
    let loaded = tasks(&store).get(&key("a")).unwrap();
    assert_eq!(loaded.checkpoint.pending_steps, ["y"]);
    assert!(loaded.violations.is_empty());
}

#[test]
fn secrets_are_redacted_before_anything_is_kept() {
    let store = store_with(r#"{"blockers":["token-old"],"metadata":{}}"#);
    let tasks = tasks(&store).with_redaction(Redaction::new(|_, text| {
        text.contains("token-").then(|| "[redacted]".to_owned())
    }));
    let saved = tasks
        .update(&key("a"), |task| {
            task.start_step("log in", time("2026-03-02T08:00:00Z"));
            task.note_progress(format!("used token-new {}", "x".repeat(300)))
                .unwrap();
        })
        .unwrap();
    assert!(saved.truncation.is_empty());
    let text = text(&store);
    assert!(text.contains("[redacted]") && !text.contains("token-new"));
    // What was in the file before is not this save's to change.
    assert!(text.contains("token-old"));
}

#[test]
fn a_change_that_refuses_writes_nothing() {
    let store = store_with("{}");
    let error = tasks(&store)
        .try_update(&key("a"), |task| {
            task.blockers.push("b".into());
            task.finish_step(&StepDone::current(), time("2026-03-02T08:00:00Z"))
        })
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }));
    assert!(error.to_string().starts_with("a: "), "{error}");
    assert_eq!(text(&store), "{}");
    let missing = tasks(&store).update(&key("b"), |_| {});
    assert_eq!(*missing.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Each slot has its own revision: what the builder changes elsewhere in its file is no conflict.
#[test]
fn a_change_elsewhere_in_the_host_file_is_no_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&host);
    let tasks = tasks(&store);
    let loaded = tasks.get(&key("active")).unwrap();
    assert_eq!(loaded.context.task.as_deref(), Some("US-003"));
    fs::write(&host, EXAMPLE.replace("10:15:00Z", "11:00:00Z")).unwrap();
    let mut changed = loaded.checkpoint.clone();
    changed.blockers.push("b".into());
    let expect = Expect::Revision(loaded.revision.clone());
    let saved = tasks
        .put(&key("active"), &changed, Write::Edit, &expect)
        .unwrap();
    let after = fs::read_to_string(&host).unwrap();
    assert!(after.contains("11:00:00Z"));
    changed.blockers.push("c".into());
    let late = tasks.put(&key("active"), &changed, Write::Edit, &expect);
    match late.unwrap_err().kind() {
        ErrorKind::Conflict { found, .. } => assert_eq!(*found, Some(saved.revision)),
        other => panic!("{other:?}"),
    }
    assert!(tasks.store().delete(&key("active"), &Expect::Any).unwrap());
    let deleted: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&host).unwrap()).unwrap();
    assert!(deleted["activePrd"]["checkpoint"].is_null());
    assert_eq!(deleted["activePrd"]["id"], "prd-dark-mode");
}

#[test]
fn every_writing_path_leaves_what_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let now = chrono::Utc::now();
    tasks.create(&key("a"), &task(&["one", "two"])).unwrap();
    tasks
        .update(&key("a"), |task| {
            task.start_step("one", now);
        })
        .unwrap();
    let options = agent_checkpoint::ResumeOptions::new(folder.path());
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert_eq!(resume.plan.start_at.as_deref(), Some("one"));
    tasks
        .try_update(&key("a"), |task| {
            task.finish_step(&StepDone::current(), now)
        })
        .unwrap();
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert_eq!(resume.plan.start_at.as_deref(), Some("two"));
    assert_eq!(
        resume.plan.decision,
        agent_checkpoint::ResumeDecision::Continue
    );
}
