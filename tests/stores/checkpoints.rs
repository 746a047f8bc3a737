//! The typed view: what a save changes, drops, stamps, refuses and reports.

use std::fs;

use crate::common::{EXAMPLE, Reporting, clock, key, line, start, task, time};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::{Phase, TaskCheckpoint};
use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, FileStore, MemoryStore, Outcome, Put,
};
use agent_checkpoint::{
    CheckpointStoreExt, Checkpoints, ClaimRequest, Error, ErrorKind, Expect, Operation,
    OperationContext, PutMode, Redaction,
};

/// A memory store with one document.
fn store_with(text: &str) -> MemoryStore {
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    store
}

fn tasks(store: &(impl CheckpointStore + Clone + 'static)) -> Checkpoints<TaskCheckpoint> {
    Checkpoints::new(store.clone()).with_clock(clock("2026-03-02T09:00:00.987654321Z"))
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
            PutMode::Edit,
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
            let done = StepDone::new("Wired toggle to context").with_modified("src/App.tsx");
            task.report_at(done.clone(), now)
        })
        .unwrap();
    assert!(saved.truncation.is_empty() && saved.violations.is_empty());
    let after = fs::read_to_string(&host).unwrap();
    insta::assert_snapshot!(diff(EXAMPLE, &after));
}

/// The removed and added lines, with two lines around them.
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
    let newer = |v: &agent_checkpoint::json::Violation| v.code == Code::NEWER_SCHEMA;
    assert_eq!(loaded.violations.iter().filter(|v| newer(v)).count(), 1);
    let refused = ErrorKind::NewerSchema { found: 2, known: 1 };
    let update = tasks.update(&key("a"), |task| task.blockers.push("b".into()));
    assert_eq!(*update.unwrap_err().kind(), refused);
    for write in [PutMode::Edit, PutMode::Replace] {
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
            // The stamp created the member, so its required members are missing.
            "/metadata/createdBy: createdBy is required (missing)",
            "/metadata/reason: reason is required (missing)",
        ]
    );
}

#[test]
fn replace_writes_only_what_the_type_knows() {
    let store = store_with(r#"{"foreign":1,"phase":"planning"}"#);
    tasks(&store)
        .put(&key("a"), &task(&["x"]), PutMode::Edit, &Expect::Any)
        .unwrap();
    assert!(text(&store).contains("foreign"));
    tasks(&store)
        .put(&key("a"), &task(&["y"]), PutMode::Replace, &Expect::Any)
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
            task.report_at(start("log in"), time("2026-03-02T08:00:00Z"))
                .unwrap();
            task.report_at(
                Operation::Note {
                    text: format!("used token-new {}", "x".repeat(300)),
                },
                time("2026-03-02T08:05:00Z"),
            )
            .unwrap();
        })
        .unwrap();
    assert!(saved.truncation.is_empty());
    let text = text(&store);
    assert!(text.contains("[redacted]") && !text.contains("token-new"));
    // This save does not change earlier content of the file.
    assert!(text.contains("token-old"));
}

#[test]
fn a_change_that_refuses_writes_nothing() {
    let store = store_with("{}");
    let error = tasks(&store)
        .try_update(&key("a"), |task| {
            task.blockers.push("b".into());
            task.report_at(StepDone::current(), time("2026-03-02T08:00:00Z"))
        })
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }));
    assert!(error.to_string().starts_with("a: "), "{error}");
    assert_eq!(text(&store), "{}");
    let missing = tasks(&store).update(&key("b"), |_| {});
    assert_eq!(*missing.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Each slot has its own revision: a change elsewhere in the builder's file is no conflict.
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
        .put(&key("active"), &changed, PutMode::Edit, &expect)
        .unwrap();
    let after = fs::read_to_string(&host).unwrap();
    assert!(after.contains("11:00:00Z"));
    changed.blockers.push("c".into());
    let late = tasks.put(&key("active"), &changed, PutMode::Edit, &expect);
    match late.unwrap_err().kind() {
        ErrorKind::Conflict { found, .. } => assert_eq!(*found, Some(saved.revision)),
        other => panic!("{other:?}"),
    }
    assert!(
        tasks
            .store()
            .delete(&key("active"), &DeleteOptions::new())
            .unwrap()
    );
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
            task.report_at(start("one"), now).unwrap();
        })
        .unwrap();
    let options = agent_checkpoint::resume::ResumeOptions::new(folder.path());
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert_eq!(resume.plan.start_at.as_deref(), Some("one"));
    tasks
        .try_update(&key("a"), |task| task.report_at(StepDone::current(), now))
        .unwrap();
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert_eq!(resume.plan.start_at.as_deref(), Some("two"));
    assert_eq!(
        resume.plan.decision,
        agent_checkpoint::resume::ResumeDecision::Continue
    );
}

/// Ten finished steps; the first has undeclared members.
fn long(first: &str) -> MemoryStore {
    let step = |n: usize| format!("{{\"step\":\"{n}\",\"timestamp\":\"2026-01-01T00:00:00Z\"}}");
    let rest: Vec<_> = (1..10).map(step).collect();
    store_with(&format!(
        "{{\"completedSteps\":[{first},{}],\"pendingSteps\":[],\"metadata\":{{}}}}",
        rest.join(",")
    ))
}

fn finish_one_more(
    store: &MemoryStore,
) -> agent_checkpoint::Result<agent_checkpoint::store::Saved> {
    let now = time("2026-03-02T08:00:00Z");
    tasks(store).try_update(&key("a"), |task| task.report_at(StepDone::new("10"), now))
}

#[test]
fn what_is_cut_is_kept_with_what_the_type_does_not_know() {
    let store = long(r#"{"step":"0","commit":"abc0","timestamp":"2026-01-01T00:00:00Z"}"#);
    let saved = finish_one_more(&store).unwrap();
    assert_eq!(saved.truncation.dropped[0].value["commit"], "abc0");
    assert_eq!(
        store.beside().dropped(&key("a")).unwrap(),
        saved.truncation.dropped
    );
}

#[test]
fn an_unreadable_value_does_not_keep_its_step_from_being_cut() {
    let store = long(r#"{"step":"0","filesModified":"a.rs","timestamp":"2026-01-01T00:00:00Z"}"#);
    let saved = finish_one_more(&store).unwrap();
    assert_eq!(saved.truncation.dropped[0].value["filesModified"], "a.rs");
    assert!(saved.lost.is_empty(), "{:?}", saved.lost);
}

#[test]
fn a_stamp_that_is_no_text_does_not_keep_an_agent_from_saving() {
    let store = store_with(r#"{"metadata":{"lastUpdatedAt":1709113200}}"#);
    let saved = tasks(&store)
        .update(&key("a"), |task| task.blockers.push("b".into()))
        .unwrap();
    assert_eq!(saved.lost, ["/metadata/lastUpdatedAt"]);
    assert_eq!(saved.truncation.dropped[0].value, 1_709_113_200);
    assert!(text(&store).contains("2026-03-02T09:00:00Z"));
    // A value that the caller overwrites is a different case.
    let store = store_with(r#"{"metadata":{"reason":5}}"#);
    let error = tasks(&store)
        .try_update(&key("a"), |task| {
            task.report(line(r#"{"op":"fail","text":"no disk"}"#))
        })
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldLose { .. }));
}

#[test]
fn replacing_does_not_wipe_what_could_not_be_read() {
    let store = store_with(r#"{"blockers":"none"}"#);
    let put = |tasks: Checkpoints<TaskCheckpoint>| {
        tasks.put(&key("a"), &task(&["x"]), PutMode::Replace, &Expect::Any)
    };
    let error = put(tasks(&store)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldLose { .. }));
    let saved = put(tasks(&store).allowing_loss()).unwrap();
    assert_eq!(saved.lost, ["/blockers"]);
    assert_eq!(saved.truncation.dropped[0].value, "none");
}

#[test]
fn a_version_that_cannot_be_read_is_not_written_over() {
    for version in ["\"2.0\"", "2.5", "[]", "18446744073709551616"] {
        let store = store_with(&format!("{{\"schemaVersion\":{version}}}"));
        let update = tasks(&store).update(&key("a"), |task| task.blockers.push("b".into()));
        assert!(
            matches!(update.unwrap_err().kind(), ErrorKind::Refused { .. }),
            "{version}"
        );
    }
}

#[test]
fn a_whole_checkpoint_that_is_there_already_is_no_write() {
    let before = r#"{"phase":"planning","completedSteps":[],"pendingSteps":["a"]}"#;
    let store = store_with(before);
    let tasks = tasks(&store);
    let loaded = tasks.get(&key("a")).unwrap().checkpoint;
    let saved = tasks
        .put(&key("a"), &loaded, PutMode::Edit, &Expect::Any)
        .unwrap();
    assert_eq!(saved.outcome, Outcome::Unchanged);
    assert_eq!(text(&store), before);
}

#[test]
fn a_cut_moves_positions_and_makes_no_new_violations() {
    let store = long(r#"{"step":"0"}"#);
    let before = tasks(&store).get(&key("a")).unwrap().violations;
    assert!(
        before
            .iter()
            .any(|v| v.pointer == "/completedSteps/0/timestamp")
    );
    let steps = r#"{"step":"0"},{"step":"1"}"#;
    let store = store_with(&text(&long(r#"{"step":"x"}"#)).replacen(r#"{"step":"x"}"#, steps, 1));
    let saved = finish_one_more(&store).unwrap();
    assert!(
        saved
            .violations
            .iter()
            .all(|v| !v.pointer.starts_with("/completedSteps")),
        "{:?}",
        saved.violations
    );
}

#[test]
fn secrets_are_not_kept_with_what_was_cut() {
    let store = store_with("{}");
    let redaction = Redaction::new(|_, text| {
        text.contains("token-")
            .then(|| text.replace("token-new", "[redacted]"))
    });
    let saved = tasks(&store)
        .with_redaction(redaction)
        .try_update(&key("a"), |task| {
            task.report_at(start("log in"), time("2026-03-02T08:00:00Z"))
                .unwrap();
            task.report_at(
                Operation::Note {
                    text: format!("token-new {}", "x".repeat(300)),
                },
                time("2026-03-02T08:05:00Z"),
            )
        })
        .unwrap();
    assert_eq!(saved.truncation.dropped.len(), 1);
    let kept = serde_json::to_string(&store.beside().dropped(&key("a")).unwrap()).unwrap();
    assert!(
        kept.contains("[redacted]") && !kept.contains("token-new"),
        "{kept}"
    );
    // A redaction that makes a value unreadable is refused; the value is not dropped.
    let breaking = Redaction::new(|pointer, _| {
        pointer
            .ends_with("/description")
            .then(|| "\u{0}".to_owned())
    });
    assert!(
        tasks(&store)
            .with_redaction(breaking)
            .update(&key("a"), |task| {
                task.report_at(start("another"), time("2026-03-02T08:00:00Z"))
                    .unwrap();
            })
            .is_ok()
    );
}

#[test]
fn a_caller_that_keeps_everything_is_cut_once_not_at_every_save() {
    let store = MemoryStore::new();
    let tasks = tasks(&store);
    let now = time("2026-03-02T08:00:00Z");
    let mut whole = task(&[]);
    tasks.create(&key("a"), &whole).unwrap();
    for n in 0..15 {
        let done = StepDone::new(format!("did {n}"));
        whole.report_at(done.clone(), now).unwrap();
        tasks
            .put(&key("a"), &whole, PutMode::Edit, &Expect::Any)
            .unwrap();
    }
    assert_eq!(tasks.earlier(&key("a")).unwrap().len(), 5);
    assert_eq!(
        tasks
            .get(&key("a"))
            .unwrap()
            .checkpoint
            .completed_steps
            .len(),
        10
    );
}

/// The broken rule: with quadratic time a file of 120 KB took seconds.
#[test]
fn broken_files_of_any_size_are_judged_in_linear_time() {
    let many = |count: usize| {
        format!(
            "{{\"decisions\":[{}{{}}],\"blockers\":5}}",
            "{},".repeat(count)
        )
    };
    let store = store_with(&many(100_000));
    let begin = std::time::Instant::now();
    let loaded = tasks(&store).get(&key("a")).unwrap();
    assert!(loaded.violations.len() < 400, "{}", loaded.violations.len());
    assert!(loaded.violations.iter().any(|v| v.code == Code::TOO_MANY));
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());

    let deep = format!(
        "{{\"{}\":{{{}\"b\":1}}}}",
        "k".repeat(2000),
        "\"b\":1,".repeat(5000)
    );
    assert!(Document::from_text(deep).unwrap().findings().len() < 70);
}

#[test]
fn a_number_is_a_number_however_it_is_spelled() {
    for (version, newer) in [("1.0", false), ("1e0", false), ("2.0", true), ("2e0", true)] {
        let store = store_with(&format!("{{\"schemaVersion\":{version}}}"));
        let update = tasks(&store).update(&key("a"), |task| task.blockers.push("b".into()));
        let refused = update.is_err_and(|e| matches!(e.kind(), ErrorKind::NewerSchema { .. }));
        assert_eq!(refused, newer, "{version}");
        assert!(text(&store).contains(&format!("\"schemaVersion\":{version}")));
    }
}

#[test]
fn unreadable_elements_keep_their_places_when_their_neighbours_go() {
    let update = |before: &str| {
        let store = store_with(&format!("{{\"pendingSteps\":{before}}}"));
        tasks(&store)
            .update(&key("a"), |task| {
                task.pending_steps.retain(|step| step != "two")
            })
            .unwrap();
        let document = store.load(&key("a")).unwrap().unwrap().document;
        document.get("/pendingSteps").unwrap().raw().to_owned()
    };
    assert_eq!(
        update(r#"["two",5,null,"three","four"]"#),
        r#"[5,null,"three","four"]"#
    );
    assert_eq!(
        update(r#"["zero",7,"two",5,null,"three"]"#),
        r#"["zero",7,5,null,"three"]"#
    );
}

#[test]
fn only_a_reports_refusal_gives_way_to_that_of_a_claim() {
    let store = store_with(r#"{"pendingSteps": ["one"]}"#);
    let tasks = tasks(&store);
    let request = ClaimRequest::new("other", std::time::Duration::from_secs(3600));
    store.claim(&key("a"), &request).unwrap();
    let own = |_: &mut TaskCheckpoint| Err(Error::refused("the caller's own rule"));
    let error = tasks.try_update(&key("a"), own).unwrap_err();
    assert!(
        error.to_string().contains("the caller's own rule"),
        "{error}"
    );
    let context = OperationContext::at(time("2026-03-02T09:00:00Z"));
    let complete = [Operation::Complete.into()];
    let error = tasks
        .report(&key("a"), &complete, &context, |_| {})
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Claimed { .. }), "{error}");
}
