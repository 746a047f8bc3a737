//! `ckpt convert`: the same hand-off in another format.

use crate::project::{EXAMPLE, Project, TASK};

#[test]
fn a_task_in_its_own_format_loses_nothing() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(0, &["convert", "--to", "task", "t.json"]);
    assert_eq!(run.err, "");
    let made = run.json();
    assert_eq!(made["schemaVersion"], 1);
    assert_eq!(
        made["pendingSteps"],
        serde_json::json!(["Make b", "Make c"])
    );
    // A conversion is no progress.
    assert_eq!(made["metadata"]["lastUpdatedAt"], "2026-03-02T08:05:00Z");
    assert_eq!(project.read("t.json"), TASK);
    assert_eq!(project.names(), ["t.json"]);
}

#[test]
fn what_is_not_held_is_listed() {
    let project = Project::with("builder-state.json", EXAMPLE);
    let run = project.expect(1, &["convert", "builder-state.json", "--to", "task"]);
    assert_eq!(run.json()["phase"], "implementation");
    assert!(run.err.contains("not converted: task: US-003\n"), "{run:?}");
    let run = project.expect(
        1,
        &["convert", "builder-state.json", "--to", "task", "--json"],
    );
    let report = run.json();
    assert_eq!(report["format"], "builder-state");
    assert_eq!(report["to"], "task");
    assert_eq!(report["out"], serde_json::Value::Null);
    assert_eq!(report["checkpoint"]["phase"], "implementation");
    assert_eq!(report["not_held"][0], "task: US-003");
    assert_eq!(report["violations"], serde_json::json!([]));
    assert_eq!(report["result_violations"], serde_json::json!([]));
}

#[test]
fn the_result_goes_into_a_file_that_is_not_there() {
    let project = Project::with("t.json", TASK);
    let arguments = [
        "convert",
        "t.json",
        "--to",
        "builder-state",
        "--out",
        "host.json",
    ];
    let run = project.expect(0, &arguments);
    assert_eq!(
        run.out,
        "made host.json (builder-state) from t.json (task), which is unchanged\n"
    );
    assert_eq!(project.names(), ["host.json", "t.json"]);
    project.expect(0, &["validate", "host.json", "--format", "builder-state"]);
    let written = project.read("host.json");
    let run = project.expect(2, &arguments);
    assert!(
        run.error()
            .starts_with("host.json: exists, so it was not changed"),
        "{run:?}"
    );
    assert_eq!(project.read("host.json"), written);
    let back = project.expect(
        0,
        &[
            "convert",
            "host.json",
            "--format",
            "builder-state",
            "--to",
            "task",
        ],
    );
    assert_eq!(back.json()["currentStep"]["description"], "Make b");
    assert!(
        back.out.contains("\n  \"x-mine\": {") && back.out.contains("1.50"),
        "{back:?}"
    );
}

#[test]
fn nothing_is_made_in_the_folder_of_a_newer_program() {
    let project = Project::with("t.json", TASK);
    project.write("new/.agent-checkpoint/layout", "99\n");
    let to = ["convert", "t.json", "--to", "task", "--out", "new/u.json"];
    let refused = project.expect(4, &to);
    assert!(refused.error().contains("99"), "{refused:?}");
    assert!(!project.path("new/u.json").exists());
}

#[test]
fn what_cannot_be_read_is_told() {
    let project = Project::with("t.json", TASK.replace("\"Make c\"", "17"));
    let run = project.expect(1, &["convert", "t.json", "--to", "task"]);
    assert!(run.err.contains("violation: /pendingSteps/1"), "{run:?}");
    let run = project.expect(2, &["convert", "t.json", "--to", "paper"]);
    assert!(
        run.error().contains("\"paper\" is not a known format"),
        "{run:?}"
    );
    let run = project.expect(2, &["convert", "none.json", "--to", "task"]);
    assert!(run.error().starts_with("none.json: "), "{run:?}");
}

#[test]
fn steps_that_were_cut_come_back_or_are_listed() {
    let project = Project::new();
    let at = ["--store", "c", "--key", "T"];
    project.expect(0, &[&["start", "--plan", "last"], &at[..]].concat());
    for number in 1..=13 {
        let step = format!("step {number}.");
        project.expect(0, &[&["step", "done", &step], &at[..]].concat());
    }
    for to in ["task", "builder-state"] {
        let run = project.expect(1, &["convert", "c/T.json", "--to", to]);
        for step in ["step 1.", "step 2.", "step 3."] {
            let line = format!("not converted: finished: {step}\n");
            assert!(run.err.contains(&line), "{to}: {run:?}");
        }
        assert!(!run.err.contains("step 4."), "{to}: {run:?}");
    }
    for to in ["sitebuilder", "agent-session"] {
        let run = project.ckpt(&["convert", "c/T.json", "--to", to]);
        assert!(run.out.contains("step 1."), "{to}: {run:?}");
        assert!(!run.err.contains("finished: "), "{to}: {run:?}");
    }
}
