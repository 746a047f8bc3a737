//! Reports of an agent: start, step, decide.

use serde_json::{Value, json};

use crate::project::{EXAMPLE, Project, TASK, line_diff};

const NOW: &str = "2026-03-02T09:00:00Z";

fn parsed(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

#[test]
fn a_task_from_start_to_end() {
    let project = Project::new();
    let ckpt = |arguments: &[&str]| {
        let place = [
            "--store",
            "new/folder",
            "--key",
            "US-1",
            "--now",
            NOW,
            "--root",
            ".",
        ];
        project.expect(0, &[&place[..], arguments].concat())
    };
    let run = ckpt(&[
        "start", "--agent", "ui-dev", "--plan", "Wire it", "Test it", "--plan", "Tell it",
    ]);
    assert_eq!(
        run.out,
        "started new/folder/US-1.json for ui-dev: 3 steps, first: Wire it\n"
    );
    let file = "new/folder/US-1.json";
    let made = parsed(&project, file);
    assert_eq!(
        made["pendingSteps"],
        json!(["Wire it", "Test it", "Tell it"])
    );
    assert_eq!(made["metadata"]["createdBy"], "ui-dev");
    assert_eq!(made["metadata"]["lastUpdatedAt"], NOW);
    assert_eq!(made["schemaVersion"], 1);
    assert_eq!(project.expect(0, &["validate", file]).err, "");

    assert_eq!(
        ckpt(&["step", "start", "Wire it"]).out,
        "started: Wire it\n"
    );
    assert_eq!(
        ckpt(&["step", "start", "Wire it"]).out,
        "already in progress: Wire it\n"
    );
    let run = ckpt(&[
        "step",
        "done",
        "Wired it",
        "--created",
        "src/a.rs",
        "src/b.rs",
        "--modified",
        "src/c.rs",
    ]);
    assert_eq!(
        run.out,
        "done: Wired it (left the plan: Wire it); 2 pending, next: Test it\n"
    );
    let step = &parsed(&project, file)["completedSteps"][0];
    assert_eq!(
        *step,
        json!({"step": "Wired it", "filesCreated": ["src/a.rs", "src/b.rs"], "filesModified": ["src/c.rs"], "timestamp": NOW})
    );
    assert_eq!(parsed(&project, file)["currentStep"], json!(null));

    let run = ckpt(&["decide", "Use Rust", "--why", "no garbage"]);
    assert_eq!(run.out, "decided: Use Rust (decision 1)\n");
    assert_eq!(
        ckpt(&["decide", "Use Rust", "--why", "no garbage"]).out,
        "decided already: Use Rust\n"
    );
    let decisions = &parsed(&project, file)["decisions"];
    assert_eq!(
        *decisions,
        json!([{"decision": "Use Rust", "rationale": "no garbage", "timestamp": NOW}])
    );

    let run = ckpt(&["step", "done", "Tested", "--pending", "Test it"]);
    assert_eq!(
        run.out,
        "done: Tested (left the plan: Test it); 1 pending, next: Tell it\n"
    );
    assert_eq!(
        ckpt(&["step", "done", "Tell it"]).out,
        "done: Tell it; 0 pending, nothing is left\n"
    );
    project.expect(4, &["resume", file]);
}

#[test]
fn start_never_touches_what_is_there() {
    let project = Project::with("t.json", TASK);
    project.write_at("src/a.rs", "2026-03-02T08:00:00Z");
    let run = project.expect(1, &["start", "--store", "t.json", "--plan", "other"]);
    assert_eq!(project.read("t.json"), TASK);
    assert!(run.out.contains("▸ Make b (in progress)"), "{run:?}");
    let last = "Resume      ask — Resuming from checkpoint (created by dev)\n";
    assert!(run.out.ends_with(last), "{run:?}");
    assert!(run.err.contains("was not changed"), "{run:?}");
    let run = project.expect(1, &["start", "--store", "t.json", "--json"]);
    assert_eq!(run.json()["outcome"], "already-there");
    assert_eq!(run.json()["checkpoint"]["agent"], "dev");
    assert_eq!(run.json()["plan"]["decision"], "ask");
}

#[test]
fn start_in_a_host_fills_its_slot_and_nothing_else() {
    let host = "{\n\t\"activePrd\": {\n\t\t\"currentStory\": \"US-4\",\n\t\t\"checkpoint\": null,\n\t\t\"n\": 1.0\n\t}\n}\n";
    let project = Project::with("docs/builder-state.json", host);
    let place = ["--store", "docs/builder-state.json", "--now", NOW];
    let run = project.expect(0, &[&place[..], &["start", "--plan", "a"]].concat());
    assert!(
        run.out
            .starts_with("started docs/builder-state.json, slot active for ckpt: 1 step"),
        "{run:?}"
    );
    let (went, came) = line_diff(host, &project.read("docs/builder-state.json"));
    assert_eq!(went, ["\t\t\"checkpoint\": null,"]);
    assert_eq!(came.first().unwrap(), "\t\t\"checkpoint\": {");
    assert_eq!(came.last().unwrap(), "\t\t},");
    let made = parsed(&project, "docs/builder-state.json");
    assert_eq!(
        made["activePrd"]["checkpoint"]["schemaVersion"],
        json!(null)
    );
    project.expect(0, &["validate", "docs/builder-state.json"]);
    project.expect(1, &[&place[..], &["start"]].concat());
}

#[test]
fn start_makes_a_host_file_by_its_name() {
    let project = Project::new();
    project.expect(
        0,
        &["start", "--store", "builder-state.json", "--plan", "a"],
    );
    let made = parsed(&project, "builder-state.json");
    assert_eq!(made["checkpoint"]["pendingSteps"], json!(["a"]));
    let run = project.expect(0, &["detect", "builder-state.json"]);
    assert!(run.out.contains(": builder-state ("), "{run:?}");
}

#[test]
fn a_superseded_step_is_shown_with_its_note() {
    let project = Project::with("builder-state.json", EXAMPLE);
    let run = project.expect(
        0,
        &[
            "step",
            "start",
            "Write unit tests for toggle",
            "--store",
            "builder-state.json",
        ],
    );
    assert!(
        run.err.starts_with(
            "note: \"Wire toggle to ThemeContext\" is back in the plan; its partial work was: Added useTheme \
             import, started onClick handler\n"
        ) && run.err.contains("superseded before it was finished"),
        "{run:?}"
    );
}

#[test]
fn files_that_tools_make_are_named_and_not_recorded() {
    let project = Project::with("t.json", TASK);
    project.write_at("src/a.rs", "2026-03-02T08:00:00Z");
    project.write("src/b.rs", "x");
    let run = project.expect(
        0,
        &[
            "step",
            "done",
            "--store",
            "t.json",
            "--created",
            "src/b.rs",
            "node_modules/x/i.js",
            "--modified",
            "target/debug/x",
        ],
    );
    let notes: Vec<&str> = run.err.lines().collect();
    assert_eq!(notes.len(), 2);
    assert!(
        notes[0].starts_with("note: node_modules/x/i.js is not a source file"),
        "{run:?}"
    );
    assert!(
        notes[1].starts_with("note: target/debug/x is not a source file"),
        "{run:?}"
    );
    let step = &parsed(&project, "t.json")["completedSteps"][1];
    assert_eq!(step["filesCreated"], json!(["src/b.rs"]));
    assert_eq!(step["step"], "Make b");
}

#[test]
fn a_step_that_cannot_be_done_is_refused() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(
        4,
        &[
            "step",
            "done",
            "x",
            "--pending",
            "Make z",
            "--store",
            "t.json",
        ],
    );
    assert!(
        run.error()
            .starts_with("t.json: \"Make z\" is not a pending step"),
        "{run:?}"
    );
    assert_eq!(project.read("t.json"), TASK);
    project.write(
        "t.json",
        TASK.replace(
            "{ \"description\": \"Make b\", \"startedAt\": \"2026-03-02T08:05:00Z\" }",
            "null",
        ),
    );
    let run = project.expect(4, &["step", "done", "--store", "t.json"]);
    assert!(run.error().contains("no step is in progress"), "{run:?}");
}

#[test]
fn a_change_without_a_checkpoint_makes_nothing() {
    let project = Project::new();
    for arguments in [
        vec!["step", "start", "x"],
        vec!["step", "done", "x"],
        vec!["decide", "x"],
    ] {
        for place in [
            vec!["--store", "s", "--key", "k"],
            vec!["--store", "s/k.json"],
        ] {
            let run = project.expect(2, &[arguments.clone(), place].concat());
            assert!(
                run.error()
                    .starts_with("s/k.json: there is no checkpoint here; start one"),
                "{run:?}"
            );
        }
    }
    project.expect(2, &["set", "s/k.json", "/a=1"]);
    assert!(project.names().is_empty());
}

#[test]
fn what_is_cut_is_named_and_kept() {
    let project = Project::with("t.json", TASK);
    let why = "y".repeat(150);
    let run = project.expect(
        0,
        &[
            "decide", "Use it", "--why", &why, "--store", "t.json", "--json",
        ],
    );
    assert!(
        run.err
            .starts_with("note: cut /decisions/0/rationale (longer than 100 characters)"),
        "{run:?}"
    );
    let report = run.json();
    let mut members: Vec<&String> = report.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(
        members,
        [
            "files",
            "left_plan",
            "lost",
            "outcome",
            "previous",
            "revision",
            "transient",
            "truncation",
            "violations"
        ]
    );
    assert_eq!(report["truncation"]["dropped"][0]["value"], *why);
    let kept = report["truncation"]["kept_in"].as_str().unwrap();
    assert!(
        run.err.contains(kept) && project.read(kept).contains(&why),
        "{run:?}"
    );
    assert_eq!(
        report["revision"],
        *project.expect(0, &["revision", "t.json"]).out.trim_end()
    );
}

#[test]
fn a_checkpoint_over_its_target_size_is_a_note() {
    let project = Project::with("t.json", TASK);
    let long = "z".repeat(2100);
    let run = project.expect(0, &["decide", &long, "--store", "t.json"]);
    assert!(run.err.contains("note: the checkpoint has"), "{run:?}");
    assert!(project.read("t.json").contains(&long));
    // Dropping the finished step would not have made enough room, so it is still there.
    assert!(project.read("t.json").contains("Made a"));
    assert!(!run.err.contains("cut /"), "{run:?}");
    let command = "ckpt set t.json '/decisions/0/decision=\"…\"'\n";
    assert!(run.err.ends_with(command), "{run:?}");
    project.expect(0, &["set", "t.json", "/decisions/0/decision=\"…\""]);
    project.expect(0, &["decide", "short", "--store", "t.json"]);

    let project = Project::with("builder-state.json", EXAMPLE);
    let run = project.expect(0, &["decide", &long, "--store", "builder-state.json"]);
    let pointer = "/activePrd/checkpoint/decisions/";
    let command = format!("ckpt set builder-state.json '{pointer}");
    assert!(run.err.contains(&command), "{run:?}");
}

#[test]
fn cut_steps_still_count_as_done() {
    let project = Project::new();
    let place = ["--store", "t.json"];
    project.expect(0, &[&["start", "--plan", "last"][..], &place].concat());
    for n in 0..12 {
        project.expect(
            0,
            &[&["step", "done", &format!("s{n}")][..], &place].concat(),
        );
    }
    let run = project.expect(0, &["show", "t.json"]);
    assert!(run.out.contains("Progress    12 of 13 steps"), "{run:?}");
    assert!(
        run.out
            .contains("2 earlier steps no longer in the checkpoint"),
        "{run:?}"
    );
    assert!(
        run.out.contains("✓ s2\n") && !run.out.contains("✓ s1\n"),
        "{run:?}"
    );
}

/// A host file of about a thousand lines with mixed layouts.
fn large_host() -> String {
    let mut host = String::from("{\n  \"sessionId\": \"b-1\",\n  \"adhocQueue\": [\n");
    for n in 0..90 {
        host.push_str(&format!(
            "    {{\n      \"id\": \"ad-{n}\", \"description\":\"caf\\u00e9 {n}\",\n      \"weight\": {n}.50,\n\n      \"tags\": [ \"a\",\"b\" ],\n      \"checkpoint\": {{\n        \"phase\": \"implementation\",\n        \"completedSteps\": [\n          {{ \"step\": \"old {n}\", \"timestamp\": \"2026-03-01T08:00:00.123Z\", \"by\": \"me\" }}\n        ],\n        \"pendingSteps\": [\n          \"first {n}\",\n          \"second {n}\"\n        ],\n        \"metadata\": {{\"createdBy\": \"dev\", \"reason\": \"manual\", \"lastUpdatedAt\": \"2026-03-01T08:00:00Z\"}}\n      }}\n    }}{}\n",
            if n < 89 { "," } else { "" }
        ));
    }
    host.push_str("  ],\n  \"uncommittedWork\": null\n}\n");
    host
}

#[test]
fn a_step_in_a_large_host_changes_the_lines_of_that_step() {
    let host = large_host();
    assert!(host.lines().count() > 1000);
    let project = Project::with("docs/builder-state.json", &host);
    let place = [
        "--store",
        "docs/builder-state.json",
        "--slot",
        "adhoc:ad-45",
        "--now",
        NOW,
    ];
    let done = [
        "step",
        "done",
        "First thing",
        "--pending",
        "first 45",
        "--modified",
        "src/x.rs",
    ];
    project.expect(0, &[&place[..], &done].concat());
    let (went, came) = line_diff(&host, &project.read("docs/builder-state.json"));
    assert_eq!(
        went,
        [
            "          { \"step\": \"old 45\", \"timestamp\": \"2026-03-01T08:00:00.123Z\", \"by\": \"me\" }",
            "          \"first 45\",",
            "        \"metadata\": {\"createdBy\": \"dev\", \"reason\": \"manual\", \"lastUpdatedAt\": \"2026-03-01T08:00:00Z\"}",
        ]
    );
    let new = came.join("\n");
    assert!(came.len() <= 10, "{new}");
    assert!(new.contains("\"by\": \"me\" },\n"), "{new}");
    assert!(
        new.contains("First thing") && new.contains("src/x.rs") && new.contains(NOW),
        "{new}"
    );
    assert!(
        new.contains("\"reason\": \"periodic\", \"lastUpdatedAt\": \"2026-03-02T09:00:00Z\"}"),
        "{new}"
    );
}

#[test]
fn what_could_not_be_read_is_overwritten_only_when_that_is_allowed() {
    let broken = r#"{"pendingSteps": [], "completedSteps": [], "blockers": "none"}"#;
    let project = Project::with("t.json", broken);
    let block = ["block", "no key", "--store", "t.json"];
    let run = project.expect(4, &block);
    assert!(run.error().contains("/blockers"), "{run:?}");
    assert_eq!(project.read("t.json"), broken);
    let run = project.ckpt(&[&block[..], &["--allow-loss", "--json"]].concat());
    assert_eq!(run.json()["lost"], serde_json::json!(["/blockers"]));
    assert!(
        run.err.contains("could not be read, and was overwritten"),
        "{run:?}"
    );
    assert!(project.read("t.json").contains(r#""blockers": ["no key"]"#));
}

#[test]
fn a_step_that_the_plan_does_not_have_is_told_with_the_nearest() {
    let project = Project::new();
    let place = ["--store", "t.json"];
    let say = |words: &[&str]| project.expect(0, &[words, &place].concat());
    let run = say(&[
        "start",
        "--plan",
        "Wire it",
        "Write tests",
        "Twice",
        "Twice",
    ]);
    assert_eq!(
        run.err,
        "note: no agent was named; name yourself in each report, with --agent or CKPT_AGENT\n\
         note: \"Twice\" is in the plan more than once; each has to be finished\n"
    );
    project.expect(4, &["step", "done", "Write Tests.", "--store", "t.json"]);
    for (words, note) in [
        (
            &["step", "done", "Ate lunch"][..],
            "\"Ate lunch\" is not in the plan, and no step left the plan; name the planned step that is finished \
             with --pending",
        ),
        (
            &["step", "start", "wire  It"],
            "\"wire  It\" is not in the plan; the closest planned step is \"Wire it\"",
        ),
        (
            &["step", "start", "Ate lunch"],
            "\"Ate lunch\" is finished already, and begins again",
        ),
    ] {
        let run = say(words);
        assert!(
            run.err.lines().any(|line| line == format!("note: {note}")),
            "{words:?}: {run:?}"
        );
    }
    // A step of the plan, even in other words, needs no note, nor does a task without a plan.
    for words in [
        ["step", "start", "Wire it"],
        ["step", "done", "Wired it to the context"],
        ["step", "done", "Write tests"],
        ["step", "done", "Twice"],
        ["step", "start", "Twice"],
        ["step", "done", "Twice"],
        ["step", "done", "Ate lunch"],
        ["step", "done", "wire  It"],
        // From here on the plan is empty.
        ["step", "start", "Deploy"],
        ["step", "done", "Deployed"],
        ["step", "done", "Cleaned up"],
    ] {
        let run = say(&words);
        let notes = run
            .err
            .lines()
            .filter(|line| !line.contains("is back in the plan"));
        assert_eq!(notes.count(), 0, "{words:?}: {run:?}");
    }
    let run = say(&["step", "done", "Wired it to the context"]);
    assert!(
        run.out.starts_with("done already: Wired it to the context"),
        "{run:?}"
    );
}
