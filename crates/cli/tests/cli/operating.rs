//! Reports other than steps and decisions.

use serde_json::{Value, json};

use crate::project::{EXAMPLE, Project, TASK};

const NOW: &str = "2026-03-02T09:00:00Z";

fn parsed(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

#[test]
fn the_next_step_begins_and_is_printed_alone() {
    let project = Project::new();
    let of = ["--store", "c", "--key", "k"];
    let ckpt = |words: &[&'static str]| [words, &of].concat();
    project.expect(0, &ckpt(&["start", "--agent", "one", "--plan", "a b", "c"]));
    let begin = ckpt(&["step", "start"]);
    // Even the one in progress, as after a kill.
    for _ in 0..2 {
        assert_eq!(project.expect(0, &begin).out, "a b\n");
    }
    project.expect(0, &ckpt(&["step", "done"]));
    assert_eq!(project.expect(0, &begin).out, "c\n");
    project.expect(0, &ckpt(&["step", "done"]));
    let before = project.read("c/k.json");
    let none = project.expect(1, &begin);
    assert!(
        none.out.is_empty() && none.err.contains("no step is left"),
        "{none:?}"
    );
    assert_eq!(project.read("c/k.json"), before);
    project.expect(2, &["step", "start", "--store", "none.json"]);
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
                error.contains("it has step start, step done, step add, step drop, step edit, step move, decide, note"),
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
    let text = text.replace("\"Make b\", \"Make c\"", "");
    let project = Project::with("t.json", &text);
    let run = project.expect(4, &["note", "half", "--store", "t.json"]);
    assert!(
        run.error()
            .starts_with("t.json: there is no step in progress and no planned step"),
        "{run:?}"
    );
    assert_eq!(project.read("t.json"), text);
}

#[test]
fn a_report_that_breaks_a_rule_is_saved_and_told() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(1, &["phase", "lunch", "--force", "--store", "t.json"]);
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
    assert!(run.error().contains("--store checkpoints"), "{run:?}");
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

fn here<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--store", "t.json", "--now", NOW]].concat()
}

#[test]
fn a_context_warns_at_75_percent_and_stops_at_90() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(0, &here(&["context", "--used", "0.5"]));
    assert_eq!(run.out, "nothing changed: context used: 50 %\n");
    assert_eq!(project.read("t.json"), TASK);
    let run = project.expect(1, &here(&["context", "--used", "0.75"]));
    assert_eq!(run.out, "context used: 75 %\n");
    assert_eq!(
        run.err,
        "warning: Context limit approaching, creating checkpoint\n"
    );
    assert_eq!(
        parsed(&project, "t.json")["metadata"]["reason"],
        "context_limit"
    );
    project.write("t.json", TASK);
    let run = project.expect(4, &here(&["context", "--used", "0.93"]));
    let (came_back, reached) = run.err.split_once('\n').unwrap();
    assert!(
        came_back.contains("an older state had replaced the newest one"),
        "{run:?}"
    );
    assert_eq!(
        reached,
        "warning: Context limit reached. Resume with new session.\n"
    );
    let made = parsed(&project, "t.json");
    assert_eq!(made["metadata"]["reason"], "context_limit");
    assert_eq!(made["metadata"]["lastUpdatedAt"], NOW);
    for wrong in ["78", "-1", "much"] {
        let used = format!("--used={wrong}");
        let run = project.expect(2, &here(&["context", &used]));
        assert!(run.error().contains("a fraction, such as 0.78"), "{run:?}");
    }
    let lines = "{\"op\": \"note\", \"text\": \"half\"}\n{\"op\": \"context\", \"used\": 0.9}";
    let run = project.ckpt_given(&here(&["batch"]), lines);
    assert_eq!(run.code, 4, "{run:?}");
    assert_eq!(
        parsed(&project, "t.json")["currentStep"]["partialWork"],
        "half"
    );
}

#[test]
fn a_rate_limit_and_a_reassignment_leave_what_the_next_agent_needs() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(0, &here(&["rate-limit", "half of b"]));
    assert_eq!(run.out, "rate limit: half of b\n");
    let made = parsed(&project, "t.json");
    assert_eq!(made["metadata"]["reason"], "rate_limit");
    assert_eq!(made["currentStep"]["partialWork"], "half of b");
    let run = project.expect(
        0,
        &here(&["reassign", "--to", "other-dev", "--agent", "lead"]),
    );
    assert_eq!(
        run.out,
        "reassigned to other-dev; 2 pending, in progress: Make b\n"
    );
    assert_eq!(run.err, "");
    let made = parsed(&project, "t.json");
    assert_eq!(made["metadata"]["createdBy"], "dev");
    assert_eq!(made["metadata"]["previousAgents"], json!(["dev"]));
    assert_eq!(made["metadata"]["reason"], "reassignment");
    let run = project.ckpt(&["resume", "t.json", "--header", "--now", NOW]);
    assert!(
        run.out
            .starts_with("Resuming from checkpoint (created by dev)"),
        "{run:?}"
    );
    assert!(run.out.contains("partially completed by dev."), "{run:?}");
}

#[test]
fn another_agent_that_reports_work_takes_the_task_over() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(0, &here(&["note", "half", "--agent", "other-dev"]));
    assert_eq!(
        run.err,
        "note: other-dev has the task now; dev had it before\n"
    );
    let made = parsed(&project, "t.json");
    assert_eq!(made["metadata"]["previousAgents"], json!(["dev"]));
    let run = project.expect(0, &here(&["note", "more", "--agent", "other-dev"]));
    assert_eq!(run.err, "");
    for arguments in [["phase", "lunch"], ["verify", "unit"]] {
        let mut arguments = arguments.to_vec();
        if arguments[0] == "verify" {
            arguments.push("green");
        }
        project.expect(4, &here(&arguments));
        arguments.push("--force");
        project.expect(1, &here(&arguments));
    }
}

#[test]
fn a_format_without_an_operation_says_how_it_comes_to_the_same() {
    let project = Project::with("t.json", TASK);
    for (words, says) in [
        (&["pause"][..], "`ckpt block`"),
        (
            &["restart", "--because", "x"],
            "`ckpt archive --as aborted`",
        ),
    ] {
        let run = project.expect(2, &[words, &["--store", "t.json"]].concat());
        assert!(run.error().contains("it has step start, "), "{run:?}");
        assert!(run.error().contains(says), "{words:?}: {run:?}");
    }
    let batch = "{\"op\": \"note\", \"text\": \"half\"}\n{\"op\": \"pause\"}\n";
    let run = project.ckpt_given(&["batch", "--store", "t.json"], batch);
    assert!(
        run.error().starts_with("t.json: line 2: ") && run.error().contains("`ckpt block`"),
        "{run:?}"
    );
    for step in ["Make b", "Make c"] {
        project.expect(0, &["step", "done", step, "--store", "t.json"]);
    }
    let run = project.expect(0, &["show", "t.json"]);
    assert!(run.out.contains("Status      complete"), "{run:?}");
}
