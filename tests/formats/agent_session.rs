//! The `agent-session` protocol: its rules, operations, recovery, file names and messages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Reporting, clock, key, line, time};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::agent_session::{
    AgentCheckpoint, AgentStatus, AgentType, Backup, BackupAge, CoordinationState, TakeOver,
    Worked, backups_in, corrupt_plan, messages, newest_backup, take_over, take_over_id,
};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Archive, FileRole, Formats, Inputs, convert, violations};
use agent_checkpoint::json::{Code, Document, Violation};
use agent_checkpoint::resume::{ResumeDecision, ResumeOptions};
use agent_checkpoint::store::{
    CheckpointStore, FileOptions, FileStore, MemoryStore, Outcome, Put, Query, RecoverOptions,
    Recovery,
};
use agent_checkpoint::strategies::{json_object, json_value, restyled};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ContextUse, Detail, ErrorKind, Expect, Key, Operation,
    OperationContext, Report, RuleContext, Status, Timestamp,
};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The example of the file format.
const FORMAT: &str = include_str!("../fixtures/agent-session/format.json");
/// The example of the first checkpoint of an agent.
const CREATED: &str = include_str!("../fixtures/agent-session/created.json");
/// The example of an update.
const UPDATED: &str = include_str!("../fixtures/agent-session/updated.json");

const NOW: &str = "2026-01-15T15:00:00Z";

fn read(text: &str) -> AgentCheckpoint {
    let document = Document::from_text(text).unwrap();
    document.read::<AgentCheckpoint>().unwrap().value
}

fn judged(document: &Document, context: &RuleContext<'_>) -> Vec<Violation> {
    let formats = Formats::default();
    let format = formats.get("agent-session").unwrap();
    format.violations(document, context).unwrap()
}

/// Pointers and codes, sorted.
fn found(document: &Document, context: &RuleContext<'_>) -> Vec<(String, String)> {
    let mut found: Vec<_> = judged(document, context)
        .into_iter()
        .map(|violation| (violation.pointer, violation.code.to_string()))
        .collect();
    found.sort();
    found
}

/// The violations of the format's example with these members changed; `null` removes one.
fn with(changes: Value) -> Vec<(String, String)> {
    found(&changed(changes), &RuleContext::none())
}

fn changed(changes: Value) -> Document {
    let mut value: Value = serde_json::from_str(FORMAT).unwrap();
    for (name, new) in changes.as_object().unwrap() {
        let members = value.as_object_mut().unwrap();
        match new {
            Value::Null => drop(members.remove(name)),
            new => drop(members.insert(name.clone(), new.clone())),
        }
    }
    Document::from_text(value.to_string()).unwrap()
}

fn one(pointer: &str, code: Code) -> Vec<(String, String)> {
    vec![(pointer.to_owned(), code.to_string())]
}

fn rules_of(agent: &AgentCheckpoint) -> Vec<Violation> {
    let document = Document::new(agent).unwrap();
    let reading = document.read::<AgentCheckpoint>().unwrap();
    assert_eq!(&reading.value, agent);
    violations(&document, &reading, &RuleContext::none())
}

fn example() -> AgentCheckpoint {
    read(UPDATED)
}

fn at(status: AgentStatus) -> AgentCheckpoint {
    let mut agent = example();
    if status == AgentStatus::Blocked {
        agent.blockers.push("No data".into());
    }
    agent.status = Some(status);
    agent
}

// --- Cases and examples

#[test]
fn the_examples_are_valid_and_come_back_as_they_were() {
    for text in [FORMAT, CREATED, UPDATED] {
        let document = Document::from_text(text).unwrap();
        let context = RuleContext::none().with_now(time(NOW));
        assert_eq!(judged(&document, &context), vec![]);
        let store = MemoryStore::new();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let agents = store.checkpoints::<AgentCheckpoint>();
        let saved = agents.update(&key("a"), |_| {}).unwrap();
        assert_eq!(saved.outcome, Outcome::Unchanged);
        let after = store.load(&key("a")).unwrap().unwrap().document;
        assert_eq!(after.text(), text);
        let typed = read(text);
        assert_eq!(rules_of(&typed), vec![]);
        // The type writes every member of the example.
        let written = serde_json::to_value(&typed).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
    }
}

#[test]
fn the_update_example_applied_to_the_first_differs_only_where_it_says() {
    let store = MemoryStore::new();
    let document = Document::from_text(CREATED).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock("2026-01-15T14:30:00Z"));
    agents
        .update(&key("a"), |agent| *agent = read(UPDATED))
        .unwrap();
    let after = store.load(&key("a")).unwrap().unwrap().document;
    assert_eq!(
        serde_json::from_str::<Value>(after.text()).unwrap(),
        serde_json::from_str::<Value>(UPDATED).unwrap()
    );
}

#[cfg(feature = "schema")]
#[test]
fn the_examples_fit_the_schema_and_broken_ones_do_not() {
    use agent_checkpoint::schema::schema;
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema::<AgentCheckpoint>())
        .unwrap();
    for text in [FORMAT, CREATED, UPDATED] {
        assert!(validator.is_valid(&serde_json::from_str(text).unwrap()));
    }
    for changes in [
        json!({"agent_id": null}),
        json!({"status": null}),
        json!({"last_checkpoint": null}),
        json!({"status": "PAUSED"}),
        json!({"agent_type": "tertiary"}),
        json!({"last_checkpoint": "soon"}),
        json!({"coordination_state": {"unread_messages": -1}}),
    ] {
        let broken = changed(changes.clone());
        let broken: Value = serde_json::from_str(broken.text()).unwrap();
        assert!(!validator.is_valid(&broken), "{changes}");
    }
}

// --- Rules

#[test]
fn a_status_in_other_words_is_understood_and_kept() {
    for (text, meaning) in [
        ("WAITING_FOR_SYNC", Some(AgentStatus::Waiting)),
        ("PAUSED", Some(AgentStatus::Waiting)),
        ("in-progress", Some(AgentStatus::InProgress)),
        ("Completed", Some(AgentStatus::Complete)),
        ("blocked", Some(AgentStatus::Blocked)),
        ("on holiday", None),
    ] {
        let status = AgentStatus::from(text);
        assert_eq!(status.as_str(), text);
        assert_eq!(status.meaning(), meaning, "{text}");
        assert_eq!(status.is_waiting(), meaning == Some(AgentStatus::Waiting));
    }
    let agent = at(AgentStatus::from("WAITING_FOR_SYNC"));
    assert_eq!(agent.status(), Status::Paused);
}

#[test]
fn a_number_of_messages_is_a_number_of_at_least_none() {
    let unread = |number: Value| with(json!({"coordination_state": {"unread_messages": number}}));
    for good in [json!(0), json!(3), json!(2.0), json!(1.5), json!(1e2)] {
        assert_eq!(unread(good), vec![]);
    }
    let pointer = "/coordination_state/unread_messages";
    assert_eq!(unread(json!(-1)), one(pointer, Code::OUT_OF_RANGE));
    assert_eq!(unread(json!("none")), one(pointer, Code::WRONG_TYPE));
    let mut agent = example();
    agent.report(line(r#"{"op":"detail","unread":3}"#)).unwrap();
    let written = serde_json::to_string(&agent.coordination_state).unwrap();
    assert!(written.contains("\"unread_messages\":3,"), "{written}");
    agent.coordination_state.as_mut().unwrap().unread_messages = Some(1.5);
    assert_eq!(rules_of(&agent), vec![]);
}

#[test]
fn an_empty_object_is_every_struct() {
    assert_eq!(read("{}"), AgentCheckpoint::default());
    let state: CoordinationState = serde_json::from_str("{}").unwrap();
    assert_eq!(state, CoordinationState::default());
}

// --- Stamps and operations

#[test]
fn every_write_stamps_now_and_fifteen_minutes_on() {
    let store = MemoryStore::new();
    let text = CREATED.replace("2026-01-15T14:45:00Z", "N/A (paused)");
    let document = Document::from_text(text.clone()).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock("2026-01-15T15:00:00.987654Z"));
    agents
        .update(&key("a"), |agent| {
            agent.files_modified = vec!["x.md".into()]
        })
        .unwrap();
    let agent = agents.get(&key("a")).unwrap().checkpoint;
    assert_eq!(
        agent.last_checkpoint.unwrap().text(),
        "2026-01-15T15:00:00Z"
    );
    assert_eq!(
        agent.next_checkpoint_expected.unwrap().text(),
        "2026-01-15T15:15:00Z"
    );

    // Each with its own precision.
    let mut mixed = read(CREATED);
    mixed.next_checkpoint_expected = Some(Timestamp::parse("2026-01-15T14:45:00.5Z"));
    mixed.stamp(time("2026-01-15T15:00:00.987654Z"));
    assert_eq!(
        mixed.last_checkpoint.unwrap().text(),
        "2026-01-15T15:00:00Z"
    );
    assert_eq!(
        mixed.next_checkpoint_expected.unwrap().text(),
        "2026-01-15T15:15:00.987Z"
    );

    let mut fine = read(CREATED);
    fine.last_checkpoint = Some(Timestamp::parse("2026-01-15T14:30:00.123Z"));
    fine.next_checkpoint_expected = None;
    fine.stamp(time("2026-01-15T15:00:00.987654Z"));
    assert_eq!(
        fine.last_checkpoint.unwrap().text(),
        "2026-01-15T15:00:00.987Z"
    );
    assert_eq!(
        fine.next_checkpoint_expected.unwrap().text(),
        "2026-01-15T15:15:00.987Z"
    );
}

#[test]
fn the_first_checkpoint_is_that_of_the_protocol() {
    let plan = [
        "Read S2.P1 guide",
        "Phase 0: Discovery Context Review",
        "Phase 1: Targeted Research",
    ];
    let now = time("2026-01-15T14:30:00Z");
    let mut agent = AgentCheckpoint::begin(
        "Secondary-A",
        "abc-123",
        "feature_02_team_penalty",
        plan,
        now,
    );
    assert_eq!(rules_of(&agent), vec![]);
    let example = read(CREATED);
    agent.current_step.clone_from(&example.current_step);
    agent.completed_steps.clone_from(&example.completed_steps);
    let state = agent.coordination_state.as_ref().unwrap();
    assert_eq!(state.unread_messages, Some(0.0));
    assert_eq!(agent, example);
    let primary = AgentCheckpoint::begin("Agent-Primary", "s", "f", plan, now);
    assert_eq!(primary.agent_type, Some(AgentType::Primary));
}

#[test]
fn between_two_steps_the_current_one_is_null_in_its_place() {
    let store = MemoryStore::new();
    let document = Document::from_text(UPDATED).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let agents = store.checkpoints::<AgentCheckpoint>();
    agents
        .try_update(&key("a"), |agent| agent.report(StepDone::current()))
        .unwrap();
    let text = store.load(&key("a")).unwrap().unwrap().document.into_text();
    assert!(
        text.contains("\"current_step\": null,\n  \"completed_steps\""),
        "{text}"
    );
}

#[test]
fn a_text_that_says_nothing_is_refused() {
    let before = example();
    let mut agent = before.clone();
    for text in ["", " "].map(str::to_owned) {
        for operation in [
            Operation::StepStart { text: text.clone() },
            StepDone::new(&text).into(),
            Operation::Note { text: text.clone() },
            Operation::Decide {
                text: text.clone(),
                rationale: None,
            },
            Operation::Block {
                text: text.clone(),
                kind: None,
            },
            Operation::Phase { name: text.clone() },
            Operation::Stage { name: text.clone() },
            Operation::Sync { name: text.clone() },
        ] {
            for report in [Report::from(operation.clone()), Report::forced(operation)] {
                let error = agent.report(report).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
            }
        }
    }
    assert_eq!(agent, before);
}

fn all_operations() -> Vec<Operation> {
    let text = || "Complete Acceptance Criteria".to_owned();
    vec![
        Operation::RateLimit {
            note: Some(text()),
            until: None,
        },
        Operation::Context {
            used: ContextUse::new(0.8).unwrap(),
        },
        Operation::Detail(Detail::default()),
        Operation::StepStart { text: text() },
        Operation::StepAdd {
            text: text(),
            before: None,
        },
        Operation::StepDrop {
            text: text(),
            because: text(),
        },
        Operation::StepEdit {
            text: text(),
            to: text(),
        },
        Operation::StepMove {
            text: text(),
            before: text(),
        },
        StepDone::new(text())
            .with_created("a.md")
            .with_modified("b.md")
            .into(),
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
        Operation::Heartbeat,
        Operation::Fail { text: text() },
        Operation::Pause { until: None },
        Operation::Complete,
        Operation::Restart { because: text() },
        Operation::TaskStart { id: text() },
        Operation::GatePass {
            name: text(),
            phase: None,
        },
        Operation::Phase { name: text() },
        Operation::Stage {
            name: "S2.P2".into(),
        },
        Operation::Stage { name: text() },
        Operation::Sync { name: text() },
        Operation::Verify {
            activity: text(),
            status: text(),
        },
    ]
}

// --- Recovery

#[test]
fn another_agent_takes_over_at_the_same_place() {
    let old = example();
    let new = old
        .taken_over(
            take_over_id("Secondary-A"),
            "def-456",
            "At the criteria",
            time(NOW),
        )
        .unwrap();
    assert_eq!(new.agent_id.as_deref(), Some("Secondary-A-New"));
    assert_eq!(new.session_id.as_deref(), Some("def-456"));
    assert_eq!(new.previous_agent.as_deref(), Some("Secondary-A"));
    assert_eq!(new.recovery_notes.as_deref(), Some("At the criteria"));
    assert_eq!((&new.feature, &new.stage), (&old.feature, &old.stage));
    assert_eq!(new.current_step, old.current_step);
    assert_eq!(new.last_checkpoint.as_ref().unwrap().text(), NOW);
    assert_eq!(rules_of(&new), vec![]);
    // It keeps its type, unless the primary takes over, and it states itself when it looked for messages.
    assert_eq!(new.agent_type, Some(AgentType::Secondary));
    assert_eq!(new.coordination_state, None);
    let primary = old
        .taken_over("Agent-Primary", "p", "n", time(NOW))
        .unwrap();
    assert_eq!(primary.agent_type, Some(AgentType::Primary));
    let blocked = at(AgentStatus::Blocked)
        .taken_over("B", "s", "n", time(NOW))
        .unwrap();
    assert_eq!(blocked.status, Some(AgentStatus::Blocked));
    assert!(
        at(AgentStatus::Complete)
            .taken_over("B", "s", "n", time(NOW))
            .is_err()
    );
    // An old session is refused, and so is an id without a file.
    for (id, session) in [("B", "abc-123"), ("B", ""), ("Agent-", "s"), ("", "s")] {
        assert!(old.taken_over(id, session, "n", time(NOW)).is_err());
    }
}

#[test]
fn both_ways_of_taking_over_leave_one_current_file_for_each_agent() {
    let (folder, store) = stored(&[("secondary_a.json", UPDATED)]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let now = time(NOW);
    let old = agents.get(&key("Secondary-A")).unwrap().checkpoint;

    // A separate file beside the old one.
    let new = old
        .taken_over(take_over_id("Secondary-A"), "s", "n", now)
        .unwrap();
    agents.create(&key("Secondary-A-New"), &new).unwrap();
    assert!(folder.path().join("secondary_a_new.json").exists());
    assert_eq!(listed(&store), ["Secondary-A", "Secondary-A-New"]);

    // The old file is archived, and its id is used again.
    let archived = store
        .archive(
            &key("Secondary-A"),
            Archive::Crashed,
            now,
            &agent_checkpoint::store::DeleteOptions::new(),
        )
        .unwrap();
    assert_eq!(name(&archived), "secondary_a_crashed_1768489200.json");
    let new = old.taken_over("Secondary-A", "s", "n", now).unwrap();
    agents.create(&key("Secondary-A"), &new).unwrap();
    assert_eq!(listed(&store), ["Secondary-A", "Secondary-A-New"]);
    assert_eq!(fs::read_to_string(archived).unwrap(), UPDATED);
    // A second crash within the same second is kept as well.
    let archived = store
        .archive(
            &key("Secondary-A"),
            Archive::Crashed,
            now,
            &agent_checkpoint::store::DeleteOptions::new(),
        )
        .unwrap();
    assert_eq!(name(&archived), "secondary_a_crashed_1768489200-1.json");
    assert_eq!(listed(&store), ["Secondary-A-New"]);
}

#[test]
fn taking_over_is_one_call_and_leaves_no_instant_without_a_checkpoint() {
    let now = time(NOW);
    let agent = key("Secondary-A");
    // Undeclared members and the style of the file stay.
    let text = UPDATED.replacen("{\n", "{\n  \"of_mine\": [1,2],\n", 1);
    let (folder, store) = stored(&[("secondary_a.json", &text)]);
    let by = TakeOver::new("Secondary-A", "fresh", "Crashed at noon");
    let taken = take_over(&store, &agent, &by, now).unwrap();
    assert_eq!(taken.saved.outcome, Outcome::Replaced);
    let archive = taken.archive.unwrap();
    assert_eq!(name(&archive), "secondary_a_crashed_1768489200.json");
    assert_eq!(fs::read_to_string(&archive).unwrap(), text);
    let present = fs::read_to_string(folder.path().join("secondary_a.json")).unwrap();
    assert!(present.contains("\"of_mine\": [1,2]"), "{present}");
    let agents = store.checkpoints::<AgentCheckpoint>();
    let loaded = agents.get(&agent).unwrap();
    assert_eq!(
        (&loaded.checkpoint, &loaded.violations),
        (&taken.checkpoint, &vec![])
    );
    assert_eq!(
        loaded.checkpoint,
        read(&text)
            .taken_over("Secondary-A", "fresh", "Crashed at noon", now)
            .unwrap()
    );
    assert_eq!(listed(&store), ["Secondary-A"]);
    // Refused: nothing is changed, and no copy is left.
    let before = names(folder.path());
    for by in [
        by.clone(),
        by.clone().beside(),
        TakeOver::new("Secondary-B", "fresh", "n"),
    ] {
        let error = take_over(&store, &agent, &by, now).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    }
    let absent = take_over(&store, &key("Secondary-X"), &by, now).unwrap_err();
    assert!(matches!(absent.kind(), ErrorKind::NotFound), "{absent}");
    assert_eq!(names(folder.path()), before);
    assert_eq!(
        fs::read_to_string(folder.path().join("secondary_a.json")).unwrap(),
        present
    );
    // A second crash within the same second is kept as well.
    let again = TakeOver::new("secondary_a", "fresher", "Crashed again");
    let taken = take_over(&store, &agent, &again, now).unwrap();
    assert_eq!(
        name(&taken.archive.unwrap()),
        "secondary_a_crashed_1768489200-1.json"
    );
    assert_eq!(listed(&store), ["secondary_a"]);
}

#[test]
fn an_agent_with_an_id_of_its_own_takes_over_in_one_call() {
    let now = time(NOW);
    let agent = key("Secondary-A");
    let new = take_over_id("Secondary-A");
    let (folder, store) = stored(&[("secondary_a.json", UPDATED)]);
    // Beside the old file, which stays.
    let by = TakeOver::new(&new, "fresh", "Crashed").beside();
    let taken = take_over(&store, &agent, &by, now).unwrap();
    assert_eq!(
        (taken.saved.outcome, taken.archive),
        (Outcome::Created, None)
    );
    assert_eq!(listed(&store), ["Secondary-A", "Secondary-A-New"]);
    // The old one is archived after all; what the new one did meanwhile stays.
    let agents = store.checkpoints::<AgentCheckpoint>();
    agents
        .update(&taken.key, |agent| {
            agent.files_modified.push("new.md".into())
        })
        .unwrap();
    let by = TakeOver::new(&new, "fresh", "Crashed");
    let taken = take_over(&store, &agent, &by, now).unwrap();
    assert_eq!(taken.saved.outcome, Outcome::Unchanged);
    assert!(
        taken
            .checkpoint
            .files_modified
            .contains(&"new.md".to_owned())
    );
    assert_eq!(fs::read_to_string(taken.archive.unwrap()).unwrap(), UPDATED);
    assert_eq!(listed(&store), ["Secondary-A-New"]);
    // An agent with a valid claim has not crashed: nothing is changed, and nothing is left behind.
    let (held, claimed) = stored(&[("secondary_a.json", UPDATED)]);
    let hour = std::time::Duration::from_secs(3600);
    let request = agent_checkpoint::ClaimRequest::new("Secondary-A", hour);
    let fence = claimed.claim(&agent, &request).unwrap().fence;
    for new in [new.as_str(), "Secondary-A"] {
        let by = TakeOver::new(new, "fresh", "Crashed");
        let error = take_over(&claimed, &agent, &by, now).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Claimed { .. }), "{error}");
        let files = names(held.path());
        let files: Vec<_> = files
            .iter()
            .filter(|name| name.contains("secondary"))
            .collect();
        assert_eq!(files, ["secondary_a.json"]);
    }
    // The holder of the claim may take over.
    let by = TakeOver::new(&new, "fresh", "Crashed").fenced(fence);
    assert!(take_over(&claimed, &agent, &by, now).is_ok());
    assert_eq!(listed(&claimed), ["Secondary-A-New"]);
    // Another checkpoint of the new agent is not touched.
    fs::write(folder.path().join("secondary_a.json"), UPDATED).unwrap();
    let by = TakeOver::new(&new, "another", "Crashed");
    let error = take_over(&store, &agent, &by, now).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    assert_eq!(
        error.path().unwrap(),
        store.path(&new.parse().unwrap()).unwrap()
    );
    assert_eq!(listed(&store), ["Secondary-A", "Secondary-A-New"]);
}

#[test]
fn a_restart_archives_the_old_file_and_begins_from_scratch() {
    let (_folder, store) = stored(&[("secondary_a.json", UPDATED)]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let old = agents.get(&key("Secondary-A")).unwrap().checkpoint;
    let archived = store
        .archive(
            &key("Secondary-A"),
            Archive::Aborted,
            time(NOW),
            &agent_checkpoint::store::DeleteOptions::new(),
        )
        .unwrap();
    assert_eq!(name(&archived), "secondary_a_aborted_1768489200.json");
    let mut fresh = old.clone();
    let because = "little was done".to_owned();
    let here = context().by(None, Some("s"));
    fresh
        .report_in(Operation::Restart { because }, here)
        .unwrap();
    agents.create(&key("Secondary-A"), &fresh).unwrap();
    let fresh = agents.get(&key("Secondary-A")).unwrap();
    assert_eq!(fresh.violations, vec![]);
    let fresh = fresh.checkpoint;
    assert_eq!(fresh.stage.as_deref(), Some("S2.P1"));
    assert_eq!(fresh.feature, old.feature);
    assert!(fresh.completed_steps.is_empty() && fresh.files_modified.is_empty());
    assert!(fresh.recovery_notes.unwrap().contains("little was done"));
}

#[test]
fn whoever_begins_anew_leaves_an_archive_also_through_the_recorder() {
    use agent_checkpoint::recorder::{Opened, Owner, Recorder};
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path()).with_layout(AgentCheckpoint::layout());
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let key = Key::new("Secondary-A").unwrap();
    let first = |step: &str, session: &str| {
        AgentCheckpoint::begin("Secondary-A", session, "f", [step], time(NOW))
    };
    let archives = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().path());
        let texts = names
            .filter(|path| path.to_string_lossy().contains("_aborted_"))
            .map(|path| std::fs::read_to_string(path).unwrap());
        texts.collect::<Vec<_>>()
    };
    agents.create(&key, &first("the first plan", "s1")).unwrap();
    let owner = Owner::new("Secondary-A").in_session("s2");
    let Opened::Found(found) =
        Recorder::begin(&agents, &key, owner, &first("unused", "s2")).unwrap()
    else {
        panic!("a checkpoint is there");
    };
    let recorder = found.start_over(&first("the second plan", "s2")).unwrap();
    assert_eq!(archives().len(), 1);
    assert!(archives()[0].contains("the first plan"));
    recorder.leave().unwrap();
    let Opened::Found(found) = Recorder::begin(
        &agents,
        &key,
        Owner::new("Secondary-A").in_session("s3"),
        &first("unused", "s3"),
    )
    .unwrap() else {
        panic!("a checkpoint is there");
    };
    let recorder = found.carry_on().unwrap();
    // The same session cannot restart: nothing is archived then.
    let because = "again".to_owned();
    assert!(recorder.report(Operation::Restart { because }).is_err());
    assert_eq!(archives().len(), 1);
    assert!(
        agents
            .get(&key)
            .unwrap()
            .checkpoint
            .next_steps
            .contains(&"the second plan".to_owned())
    );
}

#[test]
fn a_corrupt_file_is_restored_from_its_newest_backup_or_restarted() {
    let (folder, store) = stored(&[("secondary_a.json", CREATED)]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let agent = key("Secondary-A");
    agents
        .update(&agent, |agent| agent.stamp(time(NOW)))
        .unwrap();
    fs::write(folder.path().join("secondary_a.json"), "{\"agent_id\": ").unwrap();
    let error = agents.get(&agent).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt(_)), "{error}");
    // A corrupt file is not skipped, although its owner is unknown.
    assert_eq!(listed(&store), ["secondary_a"]);

    let backups = folder.path().join("backups");
    let newest = newest_backup(&agent, backups_in(folder.path(), &agent).unwrap());
    let newest = newest.unwrap().unwrap();
    let plan = corrupt_plan(&agent, Some(&newest)).unwrap();
    assert_eq!(plan.decision, ResumeDecision::Verify);
    let says = format!(
        "restore backups/{} (the newest by its last_checkpoint, ",
        newest.name
    );
    assert!(plan.message.contains(&says), "{}", plan.message);
    store
        .archive(
            &agent,
            Archive::Aborted,
            time(NOW),
            &agent_checkpoint::store::DeleteOptions::new(),
        )
        .unwrap();
    let backup = fs::read_to_string(backups.join(&newest.name)).unwrap();
    let document = Document::from_text(backup).unwrap();
    store
        .put(
            &agent,
            Put::new(document.clone()).with_expect(Expect::Absent),
        )
        .unwrap();
    assert_eq!(agents.get(&agent).unwrap().checkpoint, read(CREATED));

    let plan = corrupt_plan(&agent, None).unwrap();
    assert_eq!(plan.decision, ResumeDecision::Restart);
    assert!(
        plan.message.contains("secondary_a.json"),
        "{}",
        plan.message
    );
}

#[test]
fn the_plan_follows_the_status() {
    let decide = |agent: &AgentCheckpoint| agent.resume_plan(&RuleContext::none());
    let plan = decide(&example());
    assert_eq!(plan.decision, ResumeDecision::Continue);
    assert_eq!(
        plan.start_at.as_deref(),
        Some("Writing Acceptance Criteria in spec.md")
    );
    assert_eq!(
        plan.message,
        "Checkpoint found: Secondary-A resumes from S2.P2 Specification Phase"
    );
    assert_eq!(plan.resume_agent.as_deref(), Some("Secondary-A"));
    let worker = plan.new_worker.unwrap();
    assert_eq!(worker.name, "Secondary-A-New");
    assert!(
        worker
            .block
            .starts_with("I'm taking over feature_02_team_penalty from crashed Secondary-A.")
    );
    assert_eq!(plan.files_to_review, example().files_modified);

    for status in ["WAITING", "WAITING_FOR_SYNC", "PAUSED", "on holiday"] {
        let plan = decide(&at(AgentStatus::from(status)));
        assert_eq!(plan.decision, ResumeDecision::Ask, "{status}");
        assert_eq!(plan.questions.len(), 1);
    }
    let mut waiting = example();
    waiting
        .report(line(r#"{"op":"sync","name":"S2"}"#))
        .unwrap();
    assert_eq!(
        decide(&waiting).questions,
        ["Are the others at sync point S2 as well?"]
    );
    let mut blocked = at(AgentStatus::Blocked);
    assert_eq!(
        decide(&blocked).questions,
        ["Is this still in the way: No data"]
    );
    blocked.blockers.clear();
    assert_eq!(decide(&blocked).questions.len(), 1);

    let mut silent = example();
    silent.status = None;
    assert_eq!(
        decide(&silent).questions,
        ["The checkpoint has no status. What was the agent doing?"]
    );

    for refused in [at(AgentStatus::Complete), {
        let mut agent = example();
        agent.can_resume = Some(false);
        agent
    }] {
        let plan = decide(&refused);
        assert_eq!(plan.decision, ResumeDecision::Refuse);
        assert_eq!((plan.resume_agent, plan.new_worker), (None, None));
    }
}

#[test]
fn little_work_is_restarted_and_more_is_not() {
    let worked = |minutes| {
        let worked = Inputs::of(Worked(TimeDelta::minutes(minutes)));
        example().resume_plan(&RuleContext::none().with_inputs(&worked))
    };
    let plan = worked(29);
    assert_eq!(plan.decision, ResumeDecision::Restart);
    assert!(
        plan.message.contains("feature_02_team_penalty"),
        "{}",
        plan.message
    );
    assert_eq!(worked(30).decision, ResumeDecision::Continue);
    let worked = Inputs::of(Worked(TimeDelta::minutes(5)));
    let context = RuleContext::none().with_inputs(&worked);
    // A small checkpoint that cannot be resumed is begun anew as well.
    let mut agent = example();
    agent.can_resume = Some(false);
    let little = agent.resume_plan(&context);
    assert_eq!(little.decision, ResumeDecision::Restart);
    let worked = Inputs::of(Worked(TimeDelta::minutes(45)));
    let more = RuleContext::none().with_inputs(&worked);
    assert_eq!(agent.resume_plan(&more).decision, ResumeDecision::Refuse);
    let complete = at(AgentStatus::Complete).resume_plan(&context);
    assert_eq!(complete.decision, ResumeDecision::Refuse);
}

#[cfg(feature = "template")]
#[test]
fn the_prompt_carries_the_instructions() {
    let (_folder, store) = stored(&[("secondary_a.json", UPDATED)]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let root = tempfile::tempdir().unwrap();
    let options = ResumeOptions::new(root.path());
    let prompt = agents
        .resume(&key("Secondary-A"), &options)
        .unwrap()
        .prompt()
        .unwrap();
    for text in [
        "spec.md is 80% complete",
        "Write checklist.md questions",
        "feature_02_team_penalty",
    ] {
        assert!(prompt.contains(text), "{prompt}");
    }
}

// --- Messages

#[test]
fn messages_say_what_the_protocol_says() {
    let agent = example();
    let now = time("2026-01-15T15:15:00Z");
    insta::assert_snapshot!("resume", messages::resume(&agent, now));
    insta::assert_snapshot!(
        "take_over",
        messages::take_over(&agent, "Secondary-A-New", None)
    );
    insta::assert_snapshot!("handoff_note", messages::handoff_note(&agent, None));
    let fresh = messages::fresh_handoff(&agent, "Secondary-A");
    insta::assert_snapshot!("fresh_handoff", fresh);
    insta::assert_snapshot!("status_check", messages::status_check(&agent, 7, time(NOW)));
    let now = time("2026-01-15T15:30:00Z");
    insta::assert_snapshot!("escalation", messages::escalation(&agent, now));
    let own = key("Secondary-A");
    insta::assert_snapshot!("update_guide", messages::update_guide(&own).unwrap());
    let guide = messages::transition_guide(&own, "S2.P1", "S2.P2").unwrap();
    insta::assert_snapshot!("transition_guide", guide);
    assert_eq!(
        messages::overview_line("Secondary-A"),
        "Secondary-A: STALE (likely crashed)"
    );
    assert_eq!(
        messages::user_notice("Secondary-A", 60),
        "Secondary-A hasn't updated checkpoint in 60 minutes"
    );
    // Taking over under the old id needs the archive first.
    for id in ["Secondary-A", "secondary_a"] {
        assert!(
            messages::take_over(&agent, id, None).contains("Rename"),
            "{id}"
        );
    }
    // Once it is archived, the message names the archive.
    let archive = "agent_checkpoints/secondary_a_crashed_1768489200.json";
    let text = messages::take_over(&agent, "Secondary-A", Some(archive));
    for part in [
        "Checkpoint File: agent_checkpoints/secondary_a_crashed_1768489200.json\n",
        "Create a NEW checkpoint file: agent_checkpoints/secondary_a.json,",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(messages::handoff_note(&agent, Some(archive)).contains(archive));
}

#[test]
fn a_message_tells_no_time_before_the_present_and_no_empty_phase() {
    let mut agent = example();
    agent.last_checkpoint = Some(Timestamp::parse("2026-01-15T15:10:00Z"));
    let now = time(NOW);
    for text in [
        messages::resume(&agent, now),
        messages::status_check(&agent, 1, now),
        messages::escalation(&agent, now),
    ] {
        assert!(!text.contains("-10 minutes"), "{text}");
        assert!(!text.contains("In -"), "{text}");
        assert!(text.contains("15:10 (ahead of the clock here)"), "{text}");
    }
    agent.phase = Some(String::new());
    assert!(messages::handoff_note(&agent, None).contains("Resume from: S2.P2\n"));
    assert_eq!(agent.handoff().phase.as_deref(), Some("S2.P2"));
    agent.stage = Some(" ".into());
    assert_eq!(agent.handoff().phase, None);
}

#[test]
fn messages_of_an_empty_checkpoint_say_what_is_unknown() {
    let agent = AgentCheckpoint::default();
    let now = time(NOW);
    for text in [
        messages::resume(&agent, now),
        messages::take_over(&agent, "B", None),
        messages::status_check(&agent, 1, now),
        messages::escalation(&agent, now),
    ] {
        assert!(
            text.contains("the agent") || text.contains("unknown"),
            "{text}"
        );
    }
}

// --- Files

fn stored(files: &[(&str, &str)]) -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let store = FileStore::open(folder.path()).with_layout(AgentCheckpoint::layout());
    (folder, store)
}

fn listed(store: &FileStore) -> Vec<String> {
    let page = store.list(&Query::all()).unwrap();
    page.keys().map(ToString::to_string).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(&entry.unwrap().path())).collect();
    names.sort();
    names
}

fn file_of(id: &str) -> agent_checkpoint::Result<String> {
    (AgentCheckpoint::layout().file_name)(&key(id))
}

#[test]
fn a_file_is_named_after_its_agent_and_stays_in_its_folder() {
    for (id, name) in [
        ("Agent-Primary", "primary.json"),
        ("Secondary-A", "secondary_a.json"),
        ("Secondary-A-New", "secondary_a_new.json"),
        ("agent_primary", "primary.json"),
        ("SECONDARY_B", "secondary_b.json"),
        ("Agent-Agent-X", "agent_x.json"),
        ("../Secondary-A", "%2E.%2Fsecondary_a.json"),
        ("a:b\\c", "a%3Ab%5Cc.json"),
        ("Agent-nul", "%6Eul.json"),
        // None of them counts as an archive or a backup.
        ("Secondary-A_crashed_17", "secondary_a_crashed_1%37.json"),
        ("x-aborted-1768489200", "x_aborted_176848920%30.json"),
        ("x-20260115-143000", "x_20260115_14300%30.json"),
    ] {
        assert_eq!(file_of(id).unwrap(), name, "{id}");
    }
    for id in ["Agent-", "Agent- x"] {
        let error = file_of(id).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::InvalidKey { .. }),
            "{id}: {error}"
        );
    }
    assert!(file_of(&"/".repeat(100)).is_err());
}

#[test]
fn a_file_is_what_its_full_name_says() {
    let role = AgentCheckpoint::layout().role;
    for name in [
        "primary.json",
        "secondary_a.json",
        "secondary_a_new.json",
        "secondary_a_crashed.json",
        "crashed_17.json",
        "_crashed_17.json",
        "secondary_a_crashed_soon.json",
    ] {
        assert_eq!(role(name), FileRole::Current(None), "{name}");
    }
    for name in [
        "secondary_a_crashed_1768488300.json",
        "secondary_a_aborted_1768488300.json",
        "secondary_a_aborted_1768488300-2.json",
        "secondary_a_new_crashed_1768488300.json",
        // A backup that was copied beside the checkpoints.
        "secondary_a_20260115_143000.json",
        "secondary_a_20260115_143000-2.json",
    ] {
        assert_eq!(role(name), FileRole::Archive, "{name}");
    }
    for name in [
        "README.md",
        "Secondary-A.json",
        ".hidden.json",
        "secondary_a.json.bak",
    ] {
        assert_eq!(role(name), FileRole::Foreign, "{name}");
    }
}

#[test]
fn a_backup_is_its_agents_by_its_full_name() {
    let backups = AgentCheckpoint::layout().backups.unwrap();
    let name = (backups.stem)("secondary_a", time("2026-01-15T14:30:05Z"));
    assert_eq!(name, "secondary_a_20260115_143005");
    assert_eq!((backups.folder, backups.keep), ("backups", 10));
    let is_backup = |name: &str| (backups.is_backup)(name, "secondary_a");
    assert!(is_backup("secondary_a_20260115_143005.json"));
    assert!(is_backup("secondary_a_20260115_143005-3.json"));
    for name in [
        "secondary_a_new_20260115_143005.json",
        "secondary_b_20260115_143005.json",
        "secondary_a_20261315_143005.json",
        "secondary_a_20260115_1430.json",
        "secondary_a_20260115_143005-x.json",
        "secondary_a_20260115_143005.txt",
        "secondary_a.json",
        "_20260115_143005.json",
    ] {
        assert!(!is_backup(name), "{name}");
    }
    let names = [
        "secondary_a_20260115_143005.json",
        "secondary_a_20260115_143005-10.json",
        "secondary_a_20260115_143005-9.json",
        "secondary_a_20260115_120000.json",
        "secondary_a_new_20270115_143005.json",
    ];
    // If nothing else shows the order, the name does; a counter counts as a number.
    let document = || Some(Document::from_text("{}").unwrap());
    let of = |agent: &str| {
        let files = names.map(|name| Backup::new(name, document()));
        newest_backup(&key(agent), files).unwrap()
    };
    let newest = of("Secondary-A").unwrap();
    assert_eq!(newest.name, "secondary_a_20260115_143005-10.json");
    assert_eq!(newest.age, BackupAge::Name);
    assert_eq!(of("Secondary-B"), None);
}

#[test]
fn a_backup_is_restored_in_one_step() {
    let (folder, store) = stored(&[("secondary_a.json", CREATED)]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    let agent = key("Secondary-A");
    agents
        .update(&agent, |agent| agent.stamp(time(NOW)))
        .unwrap();
    fs::write(folder.path().join("secondary_a.json"), "{\"agent_id\": ").unwrap();
    let newest = newest_backup(&agent, backups_in(folder.path(), &agent).unwrap());
    let newest = newest.unwrap().unwrap();
    let options = RecoverOptions::new(Recovery::Newest);
    let recovered = store.recover(&agent, &options).unwrap();
    assert!(recovered.damage.is_some() && recovered.passed_over.is_empty());
    assert!(folder.path().join("backups").join(newest.name).exists());
    assert_eq!(agents.get(&agent).unwrap().checkpoint, read(CREATED));
    assert_eq!(listed(&store), ["Secondary-A"]);
}

#[test]
fn the_newest_backup_is_told_by_its_content_and_not_by_its_name() {
    let at = |stamp: &str| {
        let text = json!({"agent_id": "Secondary-A", "last_checkpoint": stamp}).to_string();
        Some(Document::from_text(text).unwrap())
    };
    // The protocol's script, two hours east of Greenwich, then this library.
    let local = Backup::new(
        "secondary_a_20260115_163000.json",
        at("2026-01-15T14:30:00Z"),
    );
    let utc = Backup::new(
        "secondary_a_20260115_144500.json",
        at("2026-01-15T15:45:00+01:00"),
    );
    let agent = key("Secondary-A");
    let newest = |files: Vec<Backup>| newest_backup(&agent, files).unwrap().unwrap();
    let by_content = newest(vec![local.clone(), utc.clone()]);
    assert_eq!(by_content.name, utc.name);
    assert_eq!(
        by_content.to_string(),
        "backups/secondary_a_20260115_144500.json (the newest by its last_checkpoint, \
         2026-01-15T14:45:00Z)"
    );
    // A backup without a stamp is as old as its file.
    let said_nothing = at("soon");
    let file = Backup::new("secondary_a_20260101_000000.json", said_nothing)
        .with_modified(time("2026-01-15T14:50:00Z"));
    let by_file = newest(vec![local.clone(), file.clone(), utc.clone()]);
    assert_eq!(by_file.name, file.name);
    assert_eq!(by_file.age, BackupAge::File(time("2026-01-15T14:50:00Z")));
    assert!(
        by_file
            .to_string()
            .contains("because its content has no time")
    );
    // Of two with the same stamp, the file that was written later is newer.
    let again = Backup::new("secondary_a_20260115_120000.json", utc.document.clone())
        .with_modified(time("2026-01-15T14:46:00Z"));
    let same = newest(vec![again.clone(), utc.clone()]);
    assert_eq!(same.name, again.name);
    // Useless backups are skipped and reported.
    let broken = Backup::new("secondary_a_20270115_163000.json", None);
    let other = Document::from_text(UPDATED.replace("Secondary-A", "Secondary-B")).unwrap();
    let other = Backup::new("secondary_a_20270115_163001.json", Some(other));
    let passed = newest(vec![other, local.clone(), broken.clone()]);
    assert_eq!(passed.name, local.name);
    assert_eq!(
        passed.passed_over,
        [
            (broken.name.clone(), "it is not a JSON object".to_owned()),
            (
                "secondary_a_20270115_163001.json".to_owned(),
                "it is a checkpoint of Secondary-B".to_owned()
            ),
        ]
    );
    assert!(passed.to_string().contains("was skipped"), "{passed}");
    assert_eq!(newest_backup(&agent, [broken]).unwrap(), None);

    // The same from a folder; a missing folder has none.
    let (folder, _) = stored(&[]);
    assert!(backups_in(folder.path(), &agent).unwrap().is_empty());
    fs::create_dir(folder.path().join("backups")).unwrap();
    for backup in [&local, &utc] {
        let text = backup.document.as_ref().unwrap().text();
        fs::write(folder.path().join("backups").join(&backup.name), text).unwrap();
    }
    for other in [
        "secondary_a_20270115_163000.json",
        "primary_20260115_163000.json",
    ] {
        fs::write(folder.path().join("backups").join(other), "{").unwrap();
    }
    let found = backups_in(folder.path(), &agent).unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|backup| backup.modified.is_some()));
    let newest = newest(found);
    assert_eq!((newest.name, newest.passed_over.len()), (utc.name, 1));
}

#[test]
fn every_save_keeps_a_backup_and_ten_stay_of_each_agent() {
    let other = UPDATED.replace("Secondary-A", "Secondary-A-New");
    let (folder, store) = stored(&[
        ("secondary_a.json", UPDATED),
        ("secondary_a_new.json", &other),
    ]);
    let agents = store.checkpoints::<AgentCheckpoint>();
    agents
        .update(&key("Secondary-A-New"), |agent| agent.next_steps.clear())
        .unwrap();
    for number in 0..13 {
        agents
            .update(&key("Secondary-A"), |agent| {
                agent.files_modified.push(format!("{number}.md"));
            })
            .unwrap();
    }
    let names = names(&folder.path().join("backups"));
    let is_backup = AgentCheckpoint::layout().backups.unwrap().is_backup;
    let of = |stem: &str| names.iter().filter(|name| is_backup(name, stem)).count();
    assert_eq!(of("secondary_a"), 10, "{names:?}");
    assert_eq!(of("secondary_a_new"), 1, "{names:?}");
    assert_eq!(names.len(), 11);
    // The newest ones stay: each save but the last is in one of them.
    let kept = names.iter().filter(|name| is_backup(name, "secondary_a"));
    let mut lengths: Vec<usize> = kept
        .map(|name| fs::read_to_string(folder.path().join("backups").join(name)).unwrap())
        .map(|text| read(&text).files_modified.len())
        .collect();
    lengths.sort_unstable();
    assert_eq!(lengths, (5..15).collect::<Vec<_>>());
    assert_eq!(listed(&store), ["Secondary-A", "Secondary-A-New"]);
}

#[test]
fn ids_are_read_from_content_and_archives_are_not_listed() {
    let (_folder, store) = stored(&[
        ("primary.json", FORMAT),
        ("secondary_a.json", CREATED),
        ("secondary_a_crashed_1768488300.json", CREATED),
        ("secondary_a_aborted_1768488300.json", CREATED),
        ("secondary_a_20260115_143000.json", CREATED),
        ("README.md", "x"),
        ("Notes.json", "{}"),
    ]);
    let page = store.list(&Query::all()).unwrap();
    assert_eq!(listed(&store), ["Agent-Primary", "Secondary-A"]);
    assert_eq!(page.foreign, ["Notes.json"]);
    let agents = store.checkpoints::<AgentCheckpoint>();
    for key in page.keys() {
        assert_eq!(agents.get(key).unwrap().violations, vec![]);
    }
}

#[test]
fn an_agent_whose_id_reads_like_an_archive_is_listed_and_loaded() {
    let odd = "secondary_a_crashed_17";
    let text = CREATED.replace("Secondary-A", odd);
    let (folder, store) = stored(&[
        ("secondary_a_crashed_17.json", &text),
        ("secondary_a_crashed_18.json", CREATED),
    ]);
    let agents = store
        .checkpoints::<AgentCheckpoint>()
        .with_clock(clock(NOW));
    assert_eq!(listed(&store), [odd]);
    assert_eq!(agents.get(&key(odd)).unwrap().violations, vec![]);
    agents
        .update(&key(odd), |agent| agent.stamp(time(NOW)))
        .unwrap();
    assert!(!folder.path().join("secondary_a_crashed_1%37.json").exists());
    // A file that the library begins for such an agent does not have the name of an archive.
    for id in ["Secondary-B-crashed-17", "secondary_c_20260115_143000"] {
        let new = AgentCheckpoint::begin(id, "s", "f", ["Read"], time(NOW));
        agents.create(&key(id), &new).unwrap();
        assert_eq!(agents.get(&key(id)).unwrap().violations, vec![]);
        let path = store.path(&key(id)).unwrap();
        let role = (AgentCheckpoint::layout().role)(&name(&path));
        assert_eq!(role, FileRole::Current(None));
        agents
            .update(&key(id), |agent| agent.files_modified.push("a.md".into()))
            .unwrap();
        let kept = backups_in(folder.path(), &key(id)).unwrap();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(
            newest_backup(&key(id), kept).unwrap().unwrap().passed_over,
            []
        );
    }
    let mut all = listed(&store);
    all.sort();
    assert_eq!(
        all,
        ["Secondary-B-crashed-17", odd, "secondary_c_20260115_143000"]
    );
}

#[test]
fn one_agent_in_two_files_is_told() {
    let (_folder, store) = stored(&[
        ("secondary_a.json", CREATED),
        ("secondary_a_new.json", UPDATED),
    ]);
    assert_eq!(listed(&store), ["Secondary-A", "secondary_a_new"]);
    let agents = store.checkpoints::<AgentCheckpoint>();
    assert_eq!(agents.get(&key("Secondary-A")).unwrap().violations, vec![]);
    let second = agents.get(&key("secondary_a_new")).unwrap();
    assert_eq!(second.violations.len(), 1);
    assert_eq!(second.violations[0].code, Code::KEY_MISMATCH);
    assert!(second.violations[0].message.contains("secondary_a.json"));
}

#[test]
fn a_single_file_is_opened_whatever_its_name() {
    let (folder, _) = stored(&[
        ("secondary_a.json", UPDATED),
        ("secondary_a_crashed_17.json", UPDATED),
    ]);
    for name in ["secondary_a.json", "secondary_a_crashed_17.json"] {
        let store = FileStore::single(folder.path().join(name), FileOptions::default()).unwrap();
        let key = store.key().unwrap().clone();
        let loaded = store.checkpoints::<AgentCheckpoint>().get(&key).unwrap();
        assert_eq!(loaded.violations, vec![], "{name}");
    }
}

#[test]
fn files_are_detected_by_folder_and_content() {
    let formats = Formats::default();
    let detect = |path: &str, text: Option<&str>| {
        let document = text.map(|text| Document::from_text(text).unwrap());
        let detected = formats.detect(&PathBuf::from(path), document.as_ref());
        detected.map(|detected| detected.format.name())
    };
    for (path, text) in [
        ("somewhere.json", Some(FORMAT)),
        ("agent_checkpoints/secondary_a.json", Some(UPDATED)),
        (
            "agent_checkpoints/secondary_a.json",
            Some(r#"{"agent_id": "Secondary-A"}"#),
        ),
        // In upper or lower case.
        (
            "agent_checkpoints/secondary-a-1769654893.json",
            Some(r#"{"agent_id": "Secondary-A"}"#),
        ),
        ("x/agent_checkpoints/secondary_a.json", None),
        (
            "agent_checkpoints/backups/secondary_a_20260115_143005.json",
            None,
        ),
        ("agent_checkpoints/secondary_a_crashed_17.json", None),
    ] {
        assert_eq!(detect(path, text).unwrap(), "agent-session", "{path}");
    }
    for path in [
        "secondary_a.json",
        "agent_checkpoints/notes.txt",
        "backups/secondary_a_20260115_143005.json",
    ] {
        assert!(detect(path, None).is_err(), "{path}");
    }
    assert!(detect("x.json", Some(r#"{"can_resume": true}"#)).is_err());
    // A path is no evidence without a member of the format.
    assert!(detect("agent_checkpoints/secondary_a.json", Some("{}")).is_err());
}

#[test]
fn the_hand_off_names_the_place_and_who_was_there_before() {
    let mut agent = example();
    agent.previous_agent = Some("Secondary-B".into());
    agent.recovery_notes = Some("Taken over at the criteria".into());
    let mut handoff = agent.handoff();
    assert_eq!(
        handoff.phase.as_deref(),
        Some("S2.P2: Specification - In Progress")
    );
    assert_eq!(handoff.previous_agents, ["Secondary-B"]);
    assert_eq!(handoff.instructions[1], "Taken over at the criteria");
    let from = |handoff: &agent_checkpoint::Handoff| {
        convert::<AgentCheckpoint>(handoff, time(NOW))
            .unwrap()
            .checkpoint
    };
    let back = from(&handoff);
    assert_eq!(back.previous_agent, agent.previous_agent);
    assert_eq!(back.recovery_notes, agent.recovery_notes);
    assert_eq!((&back.stage, &back.phase), (&None, &handoff.phase));
    assert_eq!(back.handoff().phase, handoff.phase);
    assert_eq!(back.can_resume, Some(true));
    // A step that was begun and is still in the plan is not planned twice.
    handoff.in_progress = ["First", "Write checklist.md questions", "Third"]
        .map(agent_checkpoint::OpenItem::new)
        .to_vec();
    assert_eq!(
        from(&handoff).next_steps,
        [
            "Third",
            "Complete Acceptance Criteria",
            "Write checklist.md questions",
            "Transition to S2.P3"
        ]
    );
    handoff.status = Status::Complete;
    assert_eq!(from(&handoff).can_resume, Some(false));
}

// --- Properties

fn context() -> OperationContext<'static> {
    OperationContext::at(time(NOW))
}

/// The members of a valid checkpoint, some of them with arbitrary values.
fn messy_agent() -> impl Strategy<Value = Value> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), json_value()), 0..6);
    (any::<AgentCheckpoint>(), changes).prop_map(|(agent, changes)| {
        let mut value = serde_json::to_value(&agent).unwrap();
        let members = value.as_object_mut().unwrap();
        let names: Vec<String> = members.keys().cloned().collect();
        for (index, new) in changes {
            members.insert(index.get(&names).clone(), new);
        }
        value
    })
}

#[cfg(feature = "schema")]
proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn whatever_is_written_fits_the_schema(agent in any::<AgentCheckpoint>()) {
        use agent_checkpoint::schema::schema;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema::<AgentCheckpoint>())
            .unwrap();
        let written = serde_json::to_value(&agent).unwrap();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_valid_checkpoint_comes_back_from_its_text_equal_and_valid(agent in any::<AgentCheckpoint>()) {
        let document = Document::new(&agent).unwrap();
        let reading = document.read::<AgentCheckpoint>().unwrap();
        prop_assert_eq!(violations(&document, &reading, &RuleContext::none()), vec![]);
        prop_assert_eq!(reading.value, agent);
    }

    #[test]
    fn any_object_loads_or_is_reported_and_an_unchanged_save_writes_nothing(
        text in prop_oneof![json_object(), messy_agent()].prop_flat_map(restyled)
    ) {
        let document = Document::from_text(text.clone()).unwrap();
        let context = RuleContext::none().with_now(time(NOW));
        let _ = judged(&document, &context);
        let store = MemoryStore::new();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let agents = store.checkpoints::<AgentCheckpoint>();
        let saved = agents.update(&key("a"), |_| {}).unwrap();
        prop_assert_eq!(saved.outcome, Outcome::Unchanged);
        let agent = agents.get(&key("a")).unwrap().checkpoint;
        let _ = (agent.resume_plan(&context), messages::escalation(&agent, time(NOW)));
        let _ = agents.try_update(&key("a"), |agent| agent.report(line(r#"{"op":"block","text":"x"}"#)));
    }

    #[test]
    fn any_operation_keeps_the_rules_or_changes_nothing(
        agent in any::<AgentCheckpoint>(),
        operation in proptest::sample::select(all_operations()),
        force in any::<bool>(),
    ) {
        let mut after = agent.clone();
        match after.apply(&operation, &context().with_force(force)) {
            Ok(()) => prop_assert_eq!(rules_of(&after), vec![]),
            Err(_) => prop_assert_eq!(after, agent),
        }
    }

    #[test]
    fn nothing_that_was_planned_is_lost_silently(
        agent in any::<AgentCheckpoint>(),
        operation in proptest::sample::select(all_operations()),
    ) {
        prop_assume!(!matches!(operation, Operation::Restart { .. }));
        let mut after = agent.clone();
        prop_assume!(after.apply(&operation, &context()).is_ok());
        let all = |agent: &AgentCheckpoint| {
            let mut all = agent.completed_steps.clone();
            all.extend(agent.next_steps.iter().cloned());
            all.extend(agent.current_step.clone());
            all
        };
        let kept = all(&after);
        let gone: Vec<String> = all(&agent).into_iter().filter(|step| !kept.contains(step)).collect();
        if matches!(operation, Operation::StepDone(_)) {
            // The current step is finished in other words.
            let current: Vec<String> = agent.current_step.into_iter().collect();
            prop_assert!(gone.is_empty() || gone == current, "{gone:?}");
        } else {
            prop_assert!(gone.is_empty(), "{gone:?}");
        }
    }

    #[test]
    fn a_current_file_leads_back_to_its_agent(agent in any::<AgentCheckpoint>()) {
        let layout = AgentCheckpoint::layout();
        let document = Document::new(&agent).unwrap();
        let key = (layout.key_in.unwrap())(&document).unwrap();
        prop_assert_eq!(Some(key.as_str()), agent.agent_id.as_deref());
        let name = (layout.file_name)(&key).unwrap();
        prop_assert_eq!((layout.role)(&name), FileRole::Current(None));
        let context = RuleContext::none().with_key(&key);
        prop_assert_eq!(found(&document, &context), vec![]);
        let archive = (layout.archive_stem)(name.trim_end_matches(".json"), Archive::Crashed, time(NOW));
        prop_assert_eq!((layout.role)(&format!("{archive}.json")), FileRole::Archive);
    }

    #[test]
    fn no_id_leaves_the_folder(text in "\\PC{1,60}") {
        let Ok(key) = Key::new(text) else { return Ok(()) };
        let Ok(name) = (AgentCheckpoint::layout().file_name)(&key) else { return Ok(()) };
        prop_assert!(!name.contains(['/', '\\', ':', '\0']) && !name.starts_with('.'));
        prop_assert_eq!((AgentCheckpoint::layout().role)(&name), FileRole::Current(None));
    }

    #[test]
    fn the_same_hand_off_comes_back(agent in any::<AgentCheckpoint>()) {
        let converted = convert::<AgentCheckpoint>(&agent.handoff(), time(NOW)).unwrap();
        prop_assert_eq!(rules_of(&converted.checkpoint), vec![]);
        let notes_alone = agent.recovery_instructions.is_none() && agent.recovery_notes.is_some();
        prop_assert!(notes_alone || converted.not_held.is_empty(), "{:?}", converted.not_held);
    }

    #[test]
    fn a_hand_off_of_another_format_is_taken(task in any::<TaskCheckpoint>()) {
        let handoff = task.handoff();
        let converted = convert::<AgentCheckpoint>(&handoff, time(NOW)).unwrap();
        prop_assert_eq!(rules_of(&converted.checkpoint), vec![]);
        for text in &handoff.pending {
            prop_assert!(converted.checkpoint.next_steps.contains(text));
        }
        let back = convert::<TaskCheckpoint>(&converted.checkpoint.handoff(), time(NOW)).unwrap();
        prop_assert_eq!(back.checkpoint.completed_steps.len(), task.completed_steps.len());
    }
}

#[test]
fn only_an_agent_that_was_at_work_is_called_crashed() {
    for (status, from) in [
        (AgentStatus::InProgress, "from crashed Secondary-A."),
        (AgentStatus::Waiting, "from Secondary-A, which waits."),
        (
            AgentStatus::from("PAUSED"),
            "from Secondary-A, which waits.",
        ),
        (
            AgentStatus::from("WAITING_FOR_SYNC"),
            "from Secondary-A, which waits.",
        ),
    ] {
        let mut agent = AgentCheckpoint::default();
        agent.agent_id = Some("Secondary-A".to_owned());
        agent.status = Some(status);
        let text = messages::take_over(&agent, "Secondary-A-New", None);
        assert!(text.contains(from), "{text}");
    }
}
