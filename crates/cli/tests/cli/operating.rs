//! What an agent reports beside steps and decisions.

use serde_json::{Value, json};

use crate::project::{EXAMPLE, Project, TASK};

const NOW: &str = "2026-03-02T09:00:00Z";

fn parsed(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

#[test]
fn each_report_is_one_change() {
    let project = Project::with("t.json", TASK);
    for (arguments, line, pointer, value) in [
        (
            vec!["note", "half of b"],
            "noted: half of b",
            "/currentStep/partialWork",
            json!("half of b"),
        ),
        (
            vec!["block", "CI is down"],
            "blocked: CI is down",
            "/blockers",
            json!(["CI is down"]),
        ),
        (
            vec!["block", "CI is down"],
            "nothing changed: blocked: CI is down",
            "/blockers",
            json!(["CI is down"]),
        ),
        (
            vec!["unblock"],
            "unblocked; the task is in_progress",
            "/blockers",
            json!([]),
        ),
        (
            vec!["phase", "verification"],
            "phase: verification",
            "/phase",
            json!("verification"),
        ),
        (
            vec!["verify", "unit tests", "passed"],
            "verified: unit tests is passed",
            "/verification/results",
            json!([{"activity": "unit tests", "status": "passed", "runAt": NOW}]),
        ),
        (
            vec!["fail", "out of memory"],
            "failed: out of memory",
            "/metadata/reason",
            json!("failure"),
        ),
    ] {
        let place = ["--store", "t.json", "--now", NOW];
        let run = project.expect(0, &[arguments.as_slice(), &place].concat());
        assert_eq!(run.out, format!("{line}\n"));
        assert_eq!(run.err, "");
        let made = parsed(&project, "t.json");
        assert_eq!(made.pointer(pointer), Some(&value), "{arguments:?}");
        assert_eq!(made["metadata"]["lastUpdatedAt"], NOW);
    }
    assert!(
        project
            .read("t.json")
            .contains("\"x-mine\": {\"weight\": 1.50},")
    );
    project.expect(0, &["validate", "t.json"]);
}

#[test]
fn what_the_format_lacks_is_told_with_what_it_has() {
    let project = Project::with("t.json", TASK);
    project.write("docs/builder-state.json", EXAMPLE);
    for arguments in [
        vec!["pause"],
        vec!["complete"],
        vec!["heartbeat"],
        vec!["stage", "2"],
        vec!["sync", "SYNC-1"],
        vec!["restart", "--because", "wrong turn"],
        vec!["subtask", "start", "S1"],
        vec!["subtask", "done", "S1", "--file", "a", "b"],
        vec!["workstream", "fail", "WS1", "--because", "x"],
        vec!["task", "done", "T1"],
        vec!["gate", "pass", "G1"],
        vec!["pause", "--force"],
    ] {
        for (file, text) in [("t.json", TASK), ("docs/builder-state.json", EXAMPLE)] {
            let run = project.expect(2, &[arguments.as_slice(), &["--store", file]].concat());
            let error = run.error();
            assert!(error.starts_with(file), "{run:?}");
            assert!(
                error.contains("it has step start, step done, decide, note, block"),
                "{run:?}"
            );
            assert_eq!(run.out, "");
            assert_eq!(project.read(file), text, "{arguments:?}");
        }
    }
}

#[test]
fn what_does_not_go_with_the_state_is_refused() {
    let text = TASK.replace(
        "{ \"description\": \"Make b\", \"startedAt\": \"2026-03-02T08:05:00Z\" }",
        "null",
    );
    let project = Project::with("t.json", &text);
    let run = project.expect(4, &["note", "half", "--store", "t.json"]);
    assert!(
        run.error().starts_with("t.json: no step is in progress"),
        "{run:?}"
    );
    assert_eq!(project.read("t.json"), text);
}

#[test]
fn a_report_that_breaks_a_rule_is_saved_and_told() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(1, &["phase", "lunch", "--store", "t.json"]);
    assert_eq!(run.out, "phase: lunch\n");
    assert!(run.err.starts_with("new violation: /phase: "), "{run:?}");
    assert_eq!(parsed(&project, "t.json")["phase"], "lunch");
}

#[test]
fn reports_need_words_and_a_place() {
    let project = Project::with("t.json", TASK);
    for arguments in [
        vec!["note", ""],
        vec!["block", " "],
        vec!["fail", ""],
        vec!["phase", ""],
        vec!["stage", ""],
        vec!["sync", ""],
        vec!["restart", "--because", ""],
        vec!["restart"],
        vec!["verify", "tests"],
        vec!["verify", "tests", ""],
        vec!["subtask", "start"],
        vec!["subtask", "start", ""],
        vec!["gate", "pass", ""],
        vec!["gate"],
    ] {
        let run = project.expect(2, &[arguments.as_slice(), &["--store", "t.json"]].concat());
        assert_eq!(run.out, "", "{arguments:?}");
    }
    let run = project.expect(2, &["note", "half"]);
    assert!(run.error().contains("--store PATH"), "{run:?}");
    assert_eq!(project.read("t.json"), TASK);
}

#[test]
fn a_report_without_a_checkpoint_makes_nothing() {
    let project = Project::new();
    for format in [
        "task",
        "agent-session",
        "sitebuilder",
        "story-pipeline",
        "build-pipeline",
    ] {
        let place = ["--store", "s", "--key", "PRD-001", "--format", format];
        let run = project.expect(2, &[&["block", "x"], &place[..]].concat());
        assert!(
            run.error().contains("there is no checkpoint here"),
            "{run:?}"
        );
    }
    assert!(project.names().is_empty());
}
