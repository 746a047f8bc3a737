//! The sitebuilder protocol: its examples, rules, operations, names and messages.

use crate::common;

use std::collections::HashSet;
use std::path::Path;

use crate::common::{Reporting, clock, key, line, start, time};
use agent_checkpoint::formats::sitebuilder::{
    Context, HEARTBEAT_INTERVAL, Heartbeat, STATUS_HEADING, SitebuilderCheckpoint, Subtask,
    SubtaskStatus, Subtasks, TaskError, TaskStatus,
};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Archive, FileRole, Formats, convert, violations};
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::{
    CheckpointStore, FileOptions, FileStore, MemoryStore, Outcome, Put, Query,
};
use agent_checkpoint::strategies::{json_object, restyled};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Error, ErrorKind, Operation, OperationContext, Report,
    RuleContext, Status, StepDone, Timestamp,
};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: &str = "2025-12-08T15:00:00Z";

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/sitebuilder/", $name, ".json"))
    };
}

/// A report that blocks the task.
const NO_KEY: &str = r#"{"op":"block","type":"x","text":"no key"}"#;

const WHOLE: &str = fixture!("schema-whole");

fn now() -> OperationContext<'static> {
    OperationContext::at(time(NOW))
}

fn forced() -> OperationContext<'static> {
    now().with_force(true)
}

fn places(found: &[agent_checkpoint::json::Violation]) -> Vec<(String, String)> {
    let place = |v: &agent_checkpoint::json::Violation| (v.pointer.clone(), v.code.to_string());
    let mut places: Vec<_> = found.iter().map(place).collect();
    places.sort();
    places
}

fn examine_with(text: &str, rule_context: &RuleContext<'_>) -> Vec<(String, String)> {
    let document = Document::from_text(text).unwrap();
    let format = *Formats::default().get("sitebuilder").unwrap();
    places(&format.violations(&document, rule_context).unwrap())
}

fn examine(value: &Value) -> Vec<(String, String)> {
    examine_with(&value.to_string(), &RuleContext::none())
}

fn expect(value: &Value, expected: &[(&str, &str)]) {
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned()))
        .collect();
    expected.sort();
    assert_eq!(examine(value), expected, "{value:#}");
}

fn whole() -> Value {
    serde_json::from_str(WHOLE).unwrap()
}

/// The whole example with one value set.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = Document::from_text(WHOLE).unwrap();
    document.set(pointer, &value).unwrap();
    serde_json::from_str(document.text()).unwrap()
}

fn read(value: &Value) -> SitebuilderCheckpoint {
    serde_json::from_value(value.clone()).unwrap()
}

fn example() -> SitebuilderCheckpoint {
    read(&whole())
}

fn begun(plan: &[&str]) -> SitebuilderCheckpoint {
    let start = time("2025-12-08T14:30:25Z");
    SitebuilderCheckpoint::begin("migration", "T060", plan.iter().copied(), start)
}

fn rules(checkpoint: &SitebuilderCheckpoint) -> Vec<(String, String)> {
    examine(&serde_json::to_value(checkpoint).unwrap())
}

fn replaced(base: &Value, partial: &str) -> Value {
    let mut base = base.clone();
    let partial: Value = serde_json::from_str(partial).unwrap();
    for (name, value) in partial.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

fn beat(task: &mut SitebuilderCheckpoint) {
    task.report_at(Operation::Heartbeat, time(NOW)).unwrap();
}

fn fail(task: &mut SitebuilderCheckpoint) {
    let failed = r#"{"op":"subtask fail","id":"post-20","because":"no source"}"#;
    task.report(line(failed)).unwrap();
}

fn is_refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Refused { .. })
}

// Cases and examples

#[test]
fn an_example_saved_unchanged_keeps_its_bytes() {
    for text in [
        WHOLE,
        fixture!("task-start"),
        fixture!("cycle-start"),
        fixture!("blocked.partial"),
        fixture!("heartbeat.partial"),
    ] {
        let store = MemoryStore::new();
        let document = Document::from_text(text).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let view = store.checkpoints::<SitebuilderCheckpoint>();
        let loaded = view.get(&key("a")).unwrap();
        let same = view
            .put(
                &key("a"),
                &loaded.checkpoint,
                agent_checkpoint::PutMode::Edit,
                &agent_checkpoint::Expect::Any,
            )
            .unwrap();
        assert_eq!(same.outcome, Outcome::Unchanged);
        assert_eq!(
            view.update(&key("a"), |_| {}).unwrap().outcome,
            Outcome::Unchanged
        );
        let after = store.load(&key("a")).unwrap().unwrap();
        assert_eq!(after.document.text(), text);
    }
}

#[test]
fn a_finished_subtask_changes_these_lines_and_no_others() {
    let store = MemoryStore::new();
    let document = Document::from_text(WHOLE).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    store
        .checkpoints::<SitebuilderCheckpoint>()
        .with_clock(clock(NOW))
        .try_update(&key("a"), |checkpoint| {
            for report in [
                r#"{"op":"subtask done","id":"post-20","files":["docs/post-20.md"]}"#,
                r#"{"op":"detail","processed":"Post20English.pdf","next":"Post21English.pdf"}"#,
            ] {
                checkpoint.report(line(report))?;
            }
            Ok(())
        })
        .unwrap();
    let after = store.load(&key("a")).unwrap().unwrap().document;
    let before: Vec<_> = WHOLE.lines().collect();
    let added: Vec<_> = after
        .text()
        .lines()
        .filter(|line| !before.contains(line))
        .map(str::trim)
        .collect();
    assert_eq!(
        added,
        [
            "\"progress_percent\": 68,",
            "\"updated_at\": \"2025-12-08T15:00:00Z\",",
            "\"completed\": 20,",
            "{\"id\": \"post-20\", \"status\": \"complete\", \"output\": \"docs/post-20.md\"},",
            "\"docs/content-extraction/pdfs-markdown/nature-trail/post-02.md\",",
            "\"docs/post-20.md\"",
            "\"last_processed\": \"Post20English.pdf\",",
            "\"next_to_process\": \"Post21English.pdf\",",
            "\"resume_instructions\": \"post-20 is done since this was written: Continue from post-20.md, source: NatureTrail/NTEnglish/Text/Post20English.pdf\"",
        ]
    );
    assert_eq!(
        examine_with(after.text(), &RuleContext::none()),
        Vec::<(String, String)>::new()
    );
}

// Rules

#[test]
fn numbers_may_be_whole_or_fractional() {
    for (pointer, value) in [
        ("/progress_percent", json!(65.5)),
        ("/progress_percent", json!(65.0)),
        ("/subtasks/total", json!(29.0)),
        ("/review_scores/agent_4", json!(88.5)),
        ("/subtasks/failed", json!(0.5)),
    ] {
        expect(&with(pointer, value), &[]);
    }
    let kept = serde_json::to_value(example()).unwrap();
    assert_eq!(kept["progress_percent"].to_string(), "65");
    assert_eq!(kept["subtasks"]["total"].to_string(), "29");
}

#[test]
fn an_id_that_is_a_number_is_read_by_its_digits() {
    let items = json!([{"id": 1, "status": "complete"}, {"id": -2, "status": "pending"}]);
    let mut task = whole();
    task["subtasks"] = json!({"total": 2, "completed": 1, "failed": 0, "items": items});
    task["progress_percent"] = json!(50);
    let wrong = [
        ("/subtasks/items/0/id", "wrong-type"),
        ("/subtasks/items/1/id", "wrong-type"),
    ];
    expect(&task, &wrong);
    let handoff = read(&task).handoff();
    assert_eq!(handoff.done[0].text, "1");
    assert_eq!(handoff.pending, ["-2"]);
    // With all digits of the text.
    for number in ["1.50", "99999999999999999999"] {
        let text = task.to_string().replace(":-2,", &format!(":{number},"));
        let document = Document::from_text(text).unwrap();
        let reading = document.read::<SitebuilderCheckpoint>().unwrap();
        assert!(!reading.is_partial());
        assert_eq!(reading.value.handoff().pending, [number]);
    }
}

#[test]
fn an_id_stands_in_the_list_once() {
    let items = json!([
        {"id": "a", "status": "complete"}, {"id": "a", "status": "pending"},
        {"status": "pending"}, {"status": "pending"}
    ]);
    let mut task = whole();
    task["subtasks"] = json!({"total": 4, "completed": 1, "failed": 0, "items": items});
    task["progress_percent"] = json!(25);
    expect(&task, &[("/subtasks/items/1/id", "not-disjoint")]);
    // The open one is reported, and so is its claim to be done.
    let task = read(&task);
    assert_eq!(
        task.handoff().pending,
        ["a", "(no id, item 3)", "(no id, item 4)"]
    );
    let names: Vec<_> = task
        .subtasks
        .open()
        .map(|item| item.id.as_deref())
        .collect();
    assert_eq!(names, [None, None]);
}

#[test]
fn the_key_is_agent_and_task() {
    for (name, expected) in [
        ("migration-T060", None),
        ("migration-T061", Some("/task_id")),
        ("technical-T060", Some("/agent")),
    ] {
        let key = key(name);
        let found = examine_with(WHOLE, &RuleContext::none().with_key(&key));
        let expected: Vec<_> = expected
            .map(|pointer| (pointer.to_owned(), "key-mismatch".to_owned()))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(example().key(), Some(key("migration-T060")));
}

#[test]
fn states_that_nobody_declared_are_reported_and_kept() {
    expect(
        &with("/status", json!("paused")),
        &[("/status", "unknown-value")],
    );
    let item = with("/subtasks/items/0/status", json!("done"));
    expect(&item, &[("/subtasks/items/0/status", "unknown-value")]);
    assert_eq!(
        read(&with("/status", json!("paused"))).status(),
        Status::Other("paused".into())
    );
}

#[test]
fn a_state_in_another_spelling_is_reported_and_understood() {
    for (text, meaning, status) in [
        ("in-progress", TaskStatus::InProgress, Status::InProgress),
        ("IN_PROGRESS", TaskStatus::InProgress, Status::InProgress),
        ("In Progress", TaskStatus::InProgress, Status::InProgress),
        ("Blocked", TaskStatus::Blocked, Status::Blocked),
        ("COMPLETE", TaskStatus::Complete, Status::Complete),
        ("completed", TaskStatus::Complete, Status::Complete),
    ] {
        let spelled = with("/status", json!(text));
        expect(&spelled, &[("/status", "unknown-value")]);
        assert_eq!(TaskStatus::from(text).meaning(), Some(meaning), "{text}");
        assert_eq!(read(&spelled).status(), status, "{text}");
    }
    assert_eq!(TaskStatus::from("paused").meaning(), None);
    assert_eq!(TaskStatus::from("").meaning(), None);

    let spelled = |text: &str| {
        let mut task = begun(&["a", "b"]);
        task.status = Some(TaskStatus::from(text));
        task
    };
    let task = spelled("in-progress");
    assert_eq!(plan(&task).decision, ResumeDecision::Continue);
    let mut complete = spelled("COMPLETE");
    let block = line(r#"{"op":"block","text":"y"}"#);
    let error = complete.report(block).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Transition { .. }));
    assert_eq!(plan(&complete).decision, ResumeDecision::Refuse);
    complete
        .acceptance_criteria_met
        .insert("built".into(), Some(false));
    assert_eq!(plan(&complete).start_at.as_deref(), Some("built"));
    complete.take_up(&now()).unwrap();
    assert_eq!(complete.status, Some(TaskStatus::InProgress));

    // The same holds for subtasks.
    assert_eq!(
        SubtaskStatus::from("FAILED").meaning(),
        Some(SubtaskStatus::Failed)
    );
    assert_eq!(
        SubtaskStatus::from("done").meaning(),
        Some(SubtaskStatus::Complete)
    );
    assert_eq!(SubtaskStatus::from("skipped").meaning(), None);
    let mut task = begun(&["a", "b", "c"]);
    task.subtasks.items[0].status = Some(SubtaskStatus::from("Completed"));
    assert_eq!(task.start_at(), Some("b"));
}

// Operations

#[test]
fn a_task_begins_with_an_id_counts_and_no_progress() {
    let task = begun(&["a", "b"]).with_total(29).with_criteria(["done"]);
    assert_eq!(
        task.checkpoint_id.as_deref(),
        Some("migration-T060-20251208-143025")
    );
    assert_eq!(task.status(), Status::InProgress);
    assert_eq!(task.percent(), Some(0));
    assert_eq!(task.subtasks.total, Some(29.0));
    assert_eq!(task.resumable, Some(true));
    assert_eq!(rules(&task), []);
}

#[test]
fn what_nobody_counted_stays_unknown() {
    let mut task = example();
    (task.subtasks, task.progress_percent) = (Subtasks::default(), None);
    assert_eq!(task.percent(), None);
    assert_eq!(
        task.progress_message(),
        "@orchestrator: Task T060 progress: unknown"
    );
    assert!(task.status_row(time(NOW)).contains("| T060 | unknown |"));
    assert!(
        !plan(&task).message.contains('%'),
        "{}",
        plan(&task).message
    );
}

#[test]
fn a_text_that_says_nothing_is_refused() {
    let mut task = begun(&["a"]);
    let before = task.clone();
    let (id, files, because) = (" ".to_owned(), Vec::new(), None);
    for operation in [
        Operation::Block {
            text: id.clone(),
            kind: None,
        },
        start(""),
        Operation::SubtaskAdd { id: id.clone() },
        Operation::SubtaskDone {
            id: id.clone(),
            files,
        },
        Operation::SubtaskFail { id, because },
    ] {
        let error = task.report(Report::forced(operation)).unwrap_err();
        assert!(is_refused(&error));
    }
    assert_eq!(task, before);
}

#[test]
fn a_heartbeat_is_a_sign_of_life_and_no_progress() {
    let mut task = example();
    let due = task.next_beat_due().unwrap();
    assert_eq!(due, time("2025-12-08T14:57:10Z"));
    beat(&mut task);
    let interval = task.heartbeat.as_ref().unwrap().interval_seconds;
    assert_eq!(interval, Some(HEARTBEAT_INTERVAL));
    assert_eq!(task.next_beat_due(), Some(time("2025-12-08T15:05:00Z")));
    // Its own interval is kept.
    task.heartbeat.as_mut().unwrap().interval_seconds = Some(60.0);
    beat(&mut task);
    assert_eq!(task.next_beat_due(), Some(time("2025-12-08T15:01:00Z")));

    let store = MemoryStore::new();
    let document = Document::from_text(WHOLE).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let view = store
        .checkpoints::<SitebuilderCheckpoint>()
        .with_clock(clock(NOW));
    view.update(&key("a"), beat).unwrap();
    let beaten = view.get(&key("a")).unwrap().checkpoint;
    assert_eq!(beaten.updated_at, example().updated_at);
    view.update(&key("a"), |task| {
        task.resume_instructions = Some("Go on".into());
    })
    .unwrap();
    let changed = view.get(&key("a")).unwrap().checkpoint;
    assert_eq!(changed.updated_at, Some(Timestamp::parse(NOW)));
}

#[test]
fn time_is_tracked() {
    let mut task = example();
    task.subtasks.total = Some(30.0);
    task.subtasks.completed = Some(20.0);
    task.started_at = Some(Timestamp::parse("2025-12-08T14:00:00Z"));
    task.updated_at = Some(Timestamp::parse("2025-12-08T14:40:00Z"));
    let minutes = |minutes: i64| Some(TimeDelta::minutes(minutes));
    assert_eq!(task.elapsed(time(NOW)), minutes(60));
    assert_eq!(task.time_worked(), minutes(40));
    assert_eq!(task.time_per_subtask(), minutes(2));
    assert_eq!(task.estimate_of_rest(), minutes(20));
    task.status = Some(TaskStatus::Complete);
    task.completed_at = Some(Timestamp::parse("2025-12-08T14:50:00Z"));
    assert_eq!(task.elapsed(time(NOW)), minutes(50));
    task.started_at = Some(Timestamp::parse("2025-12-08T16:00:00Z"));
    assert_eq!(task.elapsed(time(NOW)), None);
    task.started_at = Some(Timestamp::parse("noon"));
    assert_eq!(task.estimate_of_rest(), None);
    assert_eq!(begun(&["a"]).time_per_subtask(), None);
}

#[test]
fn percent_is_rounded_down_so_that_all_is_all() {
    for (completed, total, percent) in [(19, 29, 65), (10, 29, 34), (29, 29, 100), (999, 1000, 99)]
    {
        let mut task = begun(&[]);
        task.subtasks.total = Some(f64::from(total));
        task.subtasks.completed = Some(f64::from(completed));
        assert_eq!(task.percent(), Some(percent));
    }
}

#[test]
fn stamps_have_the_precision_of_the_file() {
    let mut task = example();
    task.updated_at = Some(Timestamp::parse("2025-12-08T14:30:25.123Z"));
    task.stamp(time(NOW));
    assert_eq!(
        task.updated_at.as_ref().unwrap().text(),
        "2025-12-08T15:00:00.000Z"
    );
    let fine =
        |stamp: &Option<Timestamp>| stamp.as_ref().unwrap().text() == "2025-12-08T15:00:00.000Z";
    beat(&mut task);
    assert!(fine(&task.heartbeat.as_ref().unwrap().last_beat));
    // With the precision of the beat before, if there was one.
    task.heartbeat.as_mut().unwrap().last_beat = Some(Timestamp::parse("2025-12-08T14:30:25Z"));
    beat(&mut task);
    assert_eq!(
        task.heartbeat.as_ref().unwrap().last_beat,
        Some(Timestamp::parse(NOW))
    );
    task.report_at(line(NO_KEY), time(NOW)).unwrap();
    assert!(fine(&task.errors[0].timestamp));
    task.report_at(Report::forced(Operation::Complete), time(NOW))
        .unwrap();
    assert!(fine(&task.completed_at));
}

// Resume

fn plan(task: &SitebuilderCheckpoint) -> agent_checkpoint::resume::ResumePlan {
    task.resume_plan(&RuleContext::none())
}

#[test]
fn a_resumable_task_in_progress_goes_on_where_it_was() {
    let task = example();
    let going_on = plan(&task);
    assert_eq!(going_on.decision, ResumeDecision::Continue);
    assert_eq!(going_on.start_at.as_deref(), Some("Post20English.pdf"));
    assert!(
        going_on
            .message
            .contains("Continue from post-20.md, source:"),
        "{}",
        going_on.message
    );
    let handoff = task.handoff();
    assert_eq!(handoff.pending, ["post-20", "post-21"]);
    assert_eq!(handoff.in_progress[0].text, "post-20");
    let done: Vec<_> = handoff.done.iter().map(|item| &*item.text).collect();
    assert_eq!(done, ["post-01", "post-02"]);
    assert_eq!(
        handoff.done[0].files_created,
        ["docs/content-extraction/pdfs-markdown/nature-trail/post-01.md"]
    );
    assert_eq!(handoff.files.len(), 3);
    let told = handoff.instructions.join("\n");
    for part in [
        "Hindi and Polish variants",
        "Continue from post-20.md",
        "Last processed: Post19English.pdf",
        "19 of 29 subtasks",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn the_plan_dispatches_an_agent_of_the_type_with_what_is_left() {
    let worker = plan(&example()).new_worker.unwrap();
    assert_eq!(worker.name, "migration");
    assert_eq!(
        worker.inputs["command"],
        "/dispatch-sitebuilder migration --resume"
    );
    assert_eq!(worker.inputs["task_id"], "T060");
    assert_eq!(worker.inputs["subtasks"], json!(["post-20", "post-21"]));
    assert_eq!(worker.inputs["criteria"], json!(["29_files_created"]));
    assert_eq!(
        worker.block,
        "/dispatch-sitebuilder migration --resume\n\
         Acceptance criteria that are not met: 29_files_created\n\
         Subtasks that are not complete: post-20, post-21"
    );
    let mut partial = example();
    partial.report(Report::forced(Operation::Complete)).unwrap();
    let inputs = plan(&partial).new_worker.unwrap().inputs;
    assert_eq!(inputs["criteria"], json!(["29_files_created"]));
    let mut refused = example();
    refused.resumable = Some(false);
    assert_eq!(plan(&refused).new_worker, None);
}

#[test]
fn the_hand_off_tells_failures_errors_and_scores() {
    let mut task = example();
    fail(&mut task);
    task.review_scores.insert("agent_4".into(), Some(88.0));
    let told = task.handoff().instructions;
    for line in [
        "These subtasks failed before: post-20",
        "An error that does not block: subtask_failed: post-20: no source",
        "Review score of agent_4: 88",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
    }
    // A blocked task has a blocker, even if its only error denies it.
    task.status = Some(TaskStatus::Blocked);
    assert_eq!(
        task.handoff().blockers,
        ["subtask_failed: post-20: no source"]
    );
    // An output counts as a changed file if it is listed as one.
    task.subtasks.items[0].output = Some("MANIFEST.json".into());
    let done = &task.handoff().done[0];
    assert_eq!(
        done.files_modified,
        ["docs/content-extraction/pdfs-markdown/MANIFEST.json"]
    );
    assert!(done.files_created.is_empty());
}

#[test]
fn without_a_note_it_starts_with_the_subtask_in_progress_then_with_the_first_open() {
    let mut task = example();
    for nothing in [None, Some(String::new())] {
        task.context.next_to_process = nothing;
        assert_eq!(task.start_at(), Some("post-20"));
    }
    task.subtasks.items[2].status = Some(SubtaskStatus::Complete);
    assert_eq!(task.start_at(), Some("post-21"));
    task.subtasks.items[3].status = Some(SubtaskStatus::Failed);
    assert_eq!(task.start_at(), Some("post-21"));
    task.resume_instructions = None;
    assert_eq!(task.continuation(), "Continue from post-21");
    task.subtasks.items.clear();
    assert_eq!(task.start_at(), None);
    assert!(task.continuation().contains("acceptance criteria"));
}

#[test]
fn only_what_says_that_it_is_resumable_is_resumed() {
    for resumable in [Some(false), None] {
        let mut task = example();
        task.resumable = resumable;
        assert_eq!(plan(&task).decision, ResumeDecision::Refuse);
        assert!(is_refused(&task.take_up(&now()).unwrap_err()));
        task.take_up(&forced()).unwrap();
    }
    for status in [Some(TaskStatus::from("paused")), None] {
        let mut task = example();
        task.status = status;
        assert_eq!(plan(&task).decision, ResumeDecision::Refuse);
    }
}

#[cfg(feature = "template")]
#[test]
fn the_prompt_tells_the_next_agent_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::new();
    let document = Document::from_text(WHOLE).unwrap();
    store
        .put(&key("migration-T060"), Put::new(document.clone()))
        .unwrap();
    let resume = store
        .checkpoints::<SitebuilderCheckpoint>()
        .resume(
            &key("migration-T060"),
            &agent_checkpoint::resume::ResumeOptions::new(root.path()),
        )
        .unwrap();
    assert_eq!(resume.task, "T060");
    // The files are not here, and a subtask was in progress.
    assert_eq!(resume.plan.decision, ResumeDecision::Ask);
    let prompt = resume.prompt().unwrap();
    for part in [
        "Convert Nature Trail",
        "post-01",
        "post-20",
        "Continue from post-20.md",
        "frontmatter_valid",
    ] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
}

#[test]
fn a_blocked_task_asks_whether_its_errors_are_resolved() {
    let task = read(&replaced(&whole(), fixture!("blocked.partial")));
    let asking = plan(&task);
    assert_eq!(asking.decision, ResumeDecision::Ask);
    assert_eq!(
        asking.questions,
        [
            "Is this resolved, so that the errors can be cleared: dependency_missing: Cannot find \
             source PDF: Post20English.pdf"
        ]
    );
    let mut silent = task;
    silent.errors.clear();
    assert_eq!(plan(&silent).questions.len(), 1);
}

#[test]
fn a_complete_task_is_resumed_only_for_its_open_criteria() {
    let mut task = example();
    task.status = Some(TaskStatus::Complete);
    task.resumable = Some(false);
    let partial = plan(&task);
    assert_eq!(partial.decision, ResumeDecision::Continue);
    assert_eq!(partial.start_at.as_deref(), Some("29_files_created"));
    assert!(partial.message.ends_with(": 29_files_created"));
    assert_eq!(task.handoff().pending, ["29_files_created"]);
    assert!(task.handoff().in_progress.is_empty());
    task.acceptance_criteria_met
        .insert("29_files_created".into(), Some(true));
    assert_eq!(plan(&task).decision, ResumeDecision::Refuse);
}

// Messages

#[test]
fn messages_are_the_protocols() {
    let task = example();
    assert_eq!(
        task.progress_message(),
        "@orchestrator: Task T060 progress: 65%"
    );
    assert_eq!(
        task.dispatch_command(),
        "/dispatch-sitebuilder migration --resume"
    );
    assert!(STATUS_HEADING.contains("| Agent | Task | Progress | Last Update | Status |"));
    let row = |at: &str| task.status_row(time(at));
    assert_eq!(
        row("2025-12-08T14:54:10Z"),
        "| migration | T060 | 65% | 2 min ago | in_progress |"
    );
    for (at, age) in [
        ("2025-12-08T14:52:20Z", "just now"),
        ("2025-12-08T17:52:10Z", "3 h ago"),
        ("2025-12-11T14:52:10Z", "3 d ago"),
        ("2025-12-08T13:00:00Z", "2025-12-08T14:52:10Z"),
    ] {
        assert!(row(at).contains(&format!("| {age} |")), "{}", row(at));
    }
    assert!(
        SitebuilderCheckpoint::planned_row("a\u{202e}b|c", "T001")
            .starts_with("| a\\\\u{202e}b\\|c | T001 |")
    );
    assert_eq!(
        SitebuilderCheckpoint::planned_row("content", "T001"),
        "| content | T001 | 0% | — | not started |"
    );
    assert_eq!(
        SitebuilderCheckpoint::planned_row("a|b", "x\ny"),
        "| a\\|b | x y | 0% | — | not started |"
    );
}

// Names

#[test]
fn files_are_named_after_agent_and_task_and_known_by_their_full_name() {
    let layout = SitebuilderCheckpoint::layout();
    let name = |text: &str| (layout.file_name)(&key(text)).unwrap();
    assert_eq!(name("migration-T060"), "migration-T060.json");
    assert_eq!(name("a/b-T1"), "a%2Fb-T1.json");
    // A task whose id looks like an archive is none.
    assert_eq!(name("a-T1-complete"), "a-T1-complet%65.json");
    assert_eq!(name("a-T1-complete-2"), "a-T1-complete-%32.json");
    for (file, role) in [
        ("migration-T060.json", FileRole::Current(None)),
        ("migration-T060-completed.json", FileRole::Current(None)),
        (
            "migration-T060-complete-draft.json",
            FileRole::Current(None),
        ),
        ("a-T1-complet%65.json", FileRole::Current(None)),
        ("migration-T060-complete.json", FileRole::Archive),
        ("migration-T060-complete-2.json", FileRole::Archive),
        ("migration-T060%crashed-1700000000.json", FileRole::Archive),
        ("-complete.json", FileRole::Current(None)),
        ("STATUS.md", FileRole::Foreign),
        (".json", FileRole::Foreign),
        (".hidden.json", FileRole::Foreign),
    ] {
        assert_eq!((layout.role)(file), role, "{file}");
    }
    let document = Document::from_text(WHOLE).unwrap();
    assert_eq!(
        layout.key_in.unwrap()(&document),
        Some(key("migration-T060"))
    );
    let none = Document::from_text("{\"agent\": \"a\"}").unwrap();
    assert_eq!(layout.key_in.unwrap()(&none), None);
}

#[test]
fn a_completed_checkpoint_is_put_aside_under_the_protocols_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path()).with_layout(SitebuilderCheckpoint::layout());
    let view = store.checkpoints::<SitebuilderCheckpoint>();
    let key = key("migration-T060");
    for expected in ["migration-T060-complete.json", "migration-T060-complete-"] {
        view.create(&key, &begun(&["a"])).unwrap();
        assert!(store.list(&Query::default()).unwrap().keys().eq([&key]));
        let aside = store
            .archive(
                &key,
                Archive::Complete,
                time(NOW),
                &agent_checkpoint::store::DeleteOptions::new(),
            )
            .unwrap();
        let name = aside.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(expected), "{name}");
        assert_eq!(
            (SitebuilderCheckpoint::layout().role)(&name),
            FileRole::Archive
        );
        assert!(store.list(&Query::default()).unwrap().entries.is_empty());
    }
}

#[test]
fn a_task_whose_id_reads_like_an_archive_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let of = |task: &str| WHOLE.replace("\"T060\"", &format!("{task:?}"));
    for (name, text) in [
        ("migration-T1-complete.json", of("T1-complete")),
        ("migration-T2-complete.json", of("T2")),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let store = FileStore::open(folder.path()).with_layout(SitebuilderCheckpoint::layout());
    let listed = || store.list(&Query::default()).unwrap();
    let own = key("migration-T1-complete");
    assert!(listed().keys().eq([&own]));
    assert!(listed().foreign.is_empty());
    let view = store.checkpoints::<SitebuilderCheckpoint>();
    assert_eq!(view.get(&own).unwrap().violations, vec![]);
    view.try_update(&own, |task| task.report(line(NO_KEY)))
        .unwrap();
    let aside = store
        .archive(
            &own,
            Archive::Complete,
            time(NOW),
            &agent_checkpoint::store::DeleteOptions::new(),
        )
        .unwrap();
    assert!(aside.ends_with("migration-T1-complete-complete.json"));
    assert!(listed().entries.is_empty());
}

#[test]
fn a_single_file_is_not_judged_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["migration-T060-complete.json", "copy.json"] {
        let path = folder.path().join(name);
        std::fs::write(&path, WHOLE).unwrap();
        let store = FileStore::single(path, FileOptions::default()).unwrap();
        let key = store.key().unwrap().clone();
        let loaded = store
            .checkpoints::<SitebuilderCheckpoint>()
            .get(&key)
            .unwrap();
        assert_eq!(loaded.violations, vec![], "{name}");
    }
}

#[test]
fn a_file_is_recognised_by_folder_name_and_content() {
    let formats = Formats::default();
    let document = Document::from_text(WHOLE).unwrap();
    let detect = |path: &str, document: Option<&Document>| {
        formats
            .detect(Path::new(path), document)
            .map(|detected| detected.format.name())
            .ok()
    };
    for (path, document, expected) in [
        ("any.json", Some(&document), Some("sitebuilder")),
        (
            "docs/agentic-orchestration/progress/checkpoints/x.json",
            None,
            Some("sitebuilder"),
        ),
        ("progress/STATUS.md", None, None),
        ("other/x.json", None, None),
    ] {
        assert_eq!(detect(path, document), expected, "{path}");
    }
    // Its own name is evidence for a file with few members.
    let little = Document::from_text(r#"{"agent": "a", "task_id": "T1"}"#).unwrap();
    assert_eq!(detect("a-T1.json", Some(&little)), Some("sitebuilder"));
    assert_eq!(
        detect("a-T1-complete.json", Some(&little)),
        Some("sitebuilder")
    );
    assert_eq!(detect("a-T2.json", Some(&little)), None);
    // A path is no evidence without a member of the format.
    let none = Document::from_text(r#"{"todo": []}"#).unwrap();
    assert_eq!(detect("progress/checkpoints/x.json", Some(&none)), None);
    // One member alone proves nothing.
    let other = Document::from_text(r#"{"resumable": true}"#).unwrap();
    assert_eq!(detect("x.json", Some(&other)), None);
    let least = r#"{"checkpoint_id": "a-T1-20251208-143025", "task_id": "T1"}"#;
    let least = Document::from_text(least).unwrap();
    assert_eq!(detect("x.json", Some(&least)), Some("sitebuilder"));
}

// Other formats

#[test]
fn a_task_becomes_a_sitebuilders_with_what_is_not_held_listed() {
    let mut handoff = common::task(&["one", "two"]).handoff();
    handoff.task = Some("T1".into());
    handoff.blockers.push("no key".into());
    handoff.status = Status::Blocked;
    handoff.previous_agents.push("first".into());
    // The usual phase is no loss: a converted task is in it again when it is converted back.
    handoff.phase = Some("verification".into());
    let converted = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap();
    let made = &converted.checkpoint;
    assert_eq!(rules(made), []);
    assert_eq!(made.handoff().pending, ["one", "two"]);
    assert_eq!(made.handoff().blockers, ["no key"]);
    assert_eq!(
        converted.not_held,
        ["phase: verification", "previous agent: first"]
    );
    // And back again.
    let back = convert::<TaskCheckpoint>(&example().handoff(), time(NOW)).unwrap();
    assert_eq!(back.checkpoint.pending_steps, ["post-20", "post-21"]);
}

#[test]
fn what_a_hand_off_tells_in_words_becomes_notes() {
    let mut task = example();
    fail(&mut task);
    task.review_scores.insert("agent_4".into(), Some(88.5));
    let handoff = task.handoff();
    let converted = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap();
    assert_eq!(converted.not_held, [""; 0]);
    let made = converted.checkpoint;
    assert_eq!(rules(&made), []);
    let (first, rest) = handoff.instructions.split_first().unwrap();
    assert_eq!(made.context.notes.as_ref(), Some(first));
    assert_eq!(made.resume_instructions, Some(rest.join("\n")));
    for line in [
        "Last processed: Post19English.pdf",
        "19 of 29 subtasks are complete and 1 failed; not all of them are listed here",
        "These subtasks failed before: post-20",
        "An error that does not block: subtask_failed: post-20: no source",
        "Review score of agent_4: 88.5",
    ] {
        assert!(rest.iter().any(|told| told == line), "{line}: {rest:?}");
    }
    // No such line is read back, whoever wrote it: only listed items count.
    assert_eq!(made.handoff().pending, handoff.pending);
    assert_eq!(made.subtasks.total, Some(4.0));
    assert_eq!(made.subtasks.failed, None);
    assert_eq!(made.context.last_processed, None);
    assert_eq!(made.errors, []);
    assert!(made.review_scores.is_empty());
}

#[test]
fn a_complete_hand_off_with_an_open_criterion_is_still_in_progress() {
    let mut handoff = begun(&[]).with_criteria(["a"]).handoff();
    handoff.status = Status::Complete;
    let made = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap();
    assert_eq!(made.checkpoint.status(), Status::InProgress);
    handoff.verification = None;
    let made = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap();
    assert_eq!(made.checkpoint.status(), Status::Complete);
    assert_eq!(rules(&made.checkpoint), []);
    // If no step is listed, their number is unknown.
    assert_eq!(made.checkpoint.subtasks.total, None);
    handoff.status = Status::Failed;
    let made = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap();
    assert_eq!(made.checkpoint.status(), Status::Blocked);
    assert_eq!(rules(&made.checkpoint), []);
}

// Everything

#[test]
fn an_empty_object_is_every_struct() {
    fn check<T: serde::de::DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
        assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    }
    check::<SitebuilderCheckpoint>();
    check::<Subtasks>();
    check::<Subtask>();
    check::<TaskError>();
    check::<Context>();
    check::<Heartbeat>();
}

fn operation() -> impl Strategy<Value = Operation> {
    let id = prop_oneof![3 => "part-[0-8]", 1 => "[a-z]{1,4}"];
    (
        id,
        proptest::option::of("[a-z]{1,8}"),
        any::<bool>(),
        0..13_u8,
    )
        .prop_map(move |(id, text, flag, which)| {
            let word = || text.clone().unwrap_or_else(|| "word".to_owned());
            match which {
                0 => Operation::StepStart { text: id },
                1 => {
                    let done = text.clone().map_or_else(StepDone::current, StepDone::new);
                    let done = done.with_created(word()).with_modified(word());
                    let named = flag.then(|| done.clone().with_pending(id));
                    named.unwrap_or(done).into()
                }
                2 => Operation::Note { text: id },
                3 => Operation::Block {
                    text: word(),
                    kind: None,
                },
                4 => Operation::Unblock,
                5 => Operation::Heartbeat,
                6 => Operation::Fail { text: word() },
                7 => Operation::Complete,
                8 => Operation::SubtaskStart { id },
                9 => Operation::SubtaskDone {
                    id,
                    files: text.into_iter().collect(),
                },
                10 => Operation::SubtaskFail { id, because: text },
                11 => Operation::Verify {
                    activity: word(),
                    status: if flag { "passed" } else { "failed" }.into(),
                },
                _ => Operation::Decide {
                    text: id,
                    rationale: None,
                },
            }
        })
}

#[cfg(feature = "schema")]
#[test]
fn the_valid_examples_fit_the_schema_and_broken_ones_do_not() {
    use agent_checkpoint::schema::schema;
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema::<SitebuilderCheckpoint>())
        .unwrap();
    let cycle = serde_json::from_str(fixture!("cycle-start")).unwrap();
    let blocked = replaced(&whole(), fixture!("blocked.partial"));
    let beating = replaced(&whole(), fixture!("heartbeat.partial"));
    for valid in [whole(), cycle, blocked, beating] {
        let errors: Vec<_> = validator
            .iter_errors(&valid)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    for broken in [
        serde_json::from_str(fixture!("task-start")).unwrap(),
        with("/status", json!("paused")),
        with("/progress_percent", json!(140)),
        with("/updated_at", json!("soon")),
        with("/subtasks/items/0/status", json!("done")),
    ] {
        assert!(!validator.is_valid(&broken), "{broken:#}");
    }
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_valid_checkpoint_comes_back_from_its_text_equal_and_valid(
        checkpoint in any::<SitebuilderCheckpoint>(),
    ) {
        let document = Document::new(&checkpoint).unwrap();
        let reading = document.read::<SitebuilderCheckpoint>().unwrap();
        prop_assert_eq!(violations(&document, &reading, &RuleContext::none()), vec![]);
        prop_assert_eq!(reading.value, checkpoint);
    }

    #[cfg(feature = "schema")]
    #[test]
    fn whatever_is_written_fits_the_schema(checkpoint in any::<SitebuilderCheckpoint>()) {
        use agent_checkpoint::schema::schema;
        let validator =
            jsonschema::validator_for(&schema::<SitebuilderCheckpoint>()).unwrap();
        let written = serde_json::to_value(&checkpoint).unwrap();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        prop_assert!(errors.is_empty(), "{:?}", errors);
    }

    #[test]
    fn any_object_loads_or_is_reported(
        mut value in json_object(),
        part in json_object(),
        at in 0..8_usize,
    ) {
        let names = ["subtasks", "errors", "context", "heartbeat", "review_scores",
            "acceptance_criteria_met", "status", "updated_at"];
        value[names[at]] = part;
        let document = Document::from_text(value.to_string()).unwrap();
        let reading = document.read::<SitebuilderCheckpoint>().unwrap();
        violations(&document, &reading, &RuleContext::none().with_now(time(NOW)));
        let mut checkpoint = reading.value;
        let _ = checkpoint.handoff();
        let _ = plan(&checkpoint);
        let _ = (checkpoint.estimate_of_rest(), checkpoint.next_beat_due());
        let _ = checkpoint.status_row(time(NOW));
        let _ = checkpoint.report(Report::forced(Operation::Complete));
        let _ = checkpoint.report(line(r#"{"op":"subtask done","id":"a","force":true}"#));
    }

    #[test]
    fn any_text_saved_unchanged_stays(text in json_object().prop_flat_map(restyled)) {
        let store = MemoryStore::new();
        let document = Document::from_text(text.clone()).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let view = store.checkpoints::<SitebuilderCheckpoint>();
        prop_assert_eq!(view.update(&key("a"), |_| {}).unwrap().outcome, Outcome::Unchanged);
    }

    #[test]
    fn any_operations_keep_the_rules_or_change_nothing(
        mut checkpoint in any::<SitebuilderCheckpoint>(),
        operations in proptest::collection::vec(operation(), 1..12),
    ) {
        for operation in operations {
            let before = checkpoint.clone();
            if checkpoint.apply(&operation, &now()).is_err() {
                prop_assert_eq!(&checkpoint, &before);
            }
            prop_assert_eq!(rules(&checkpoint), vec![], "{:?}", operation);
        }
    }

    #[test]
    fn a_name_is_current_or_archive_as_it_was_made(agent in "[a-z]{1,5}", task in "\\PC{1,20}") {
        let Ok(key) = agent_checkpoint::Key::new(format!("{agent}-{task}")) else { return Ok(()) };
        let layout = SitebuilderCheckpoint::layout();
        let Ok(name) = (layout.file_name)(&key) else { return Ok(()) };
        prop_assert_eq!((layout.role)(&name), FileRole::Current(None));
        let stem = name.strip_suffix(".json").unwrap();
        for counter in ["", "-2"] {
            for archive in [Archive::Complete, Archive::Crashed, Archive::Aborted] {
                let aside = (layout.archive_stem)(stem, archive, time(NOW));
                let aside = format!("{aside}{counter}.json");
                prop_assert_eq!((layout.role)(&aside), FileRole::Archive, "{}", aside);
            }
        }
    }

    #[test]
    fn a_converted_task_is_valid_and_holds_what_it_had(task in any::<TaskCheckpoint>()) {
        let mut handoff = task.handoff();
        handoff.task = Some("T1".to_owned());
        let made = convert::<SitebuilderCheckpoint>(&handoff, time(NOW)).unwrap().checkpoint;
        // Texts become ids. A text that occurs twice, for example as done and planned, is kept twice, and that is a
        // violation.
        let ids = made.subtasks.items.iter().map(|item| &item.id);
        let is_twice = ids.clone().collect::<HashSet<_>>().len() < ids.len();
        let broken = rules(&made);
        let expected = if is_twice { "not-disjoint" } else { "" };
        prop_assert!(broken.iter().all(|(_, code)| *code == expected), "{broken:?}");
        let texts = |handoff: &agent_checkpoint::Handoff| -> Vec<String> {
            handoff.done.iter().map(|item| item.text.clone()).collect()
        };
        prop_assert_eq!(texts(&made.handoff()), texts(&handoff));
        if made.status() != Status::Complete {
            for step in &handoff.pending {
                prop_assert!(made.handoff().pending.contains(step));
            }
        }
    }
}
