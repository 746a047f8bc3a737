//! The verbs that only read: detect, validate, show, revision, stale.

use serde_json::json;

use crate::project::{EXAMPLE, Project, TASK};

#[test]
fn detect_says_which_and_why() {
    let project = Project::with("t.json", TASK);
    project.write("docs/builder-state.json", EXAMPLE);
    let run = project.expect(0, &["detect", "t.json", "docs/builder-state.json"]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(
        lines[0].starts_with("t.json: task (has completedSteps, "),
        "{run:?}"
    );
    assert!(lines[1].starts_with(
        "docs/builder-state.json: builder-state (named builder-state.json; has activePrd"
    ));
    let run = project.expect(0, &["detect", "--json", "t.json"]);
    assert_eq!(run.json()[0]["format"], "task");
    // A file that cannot be detected does not stop the others.
    let run = project.expect(2, &["detect", "gone.json", "t.json"]);
    assert_eq!((run.out.lines().count(), run.err.lines().count()), (1, 1));
}

#[test]
fn validate_tells_all_files_and_exits_by_the_gravest() {
    let project = Project::with("good.json", TASK);
    project.write("bad.json", TASK.replace("implementation", "implementing"));
    project.write("cut.json", &TASK[..TASK.len() / 2]);
    let run = project.expect(0, &["validate", "good.json"]);
    assert_eq!(run.out, "good.json: valid (task)\n");
    let run = project.expect(1, &["validate", "good.json", "bad.json"]);
    assert_eq!(run.err, "");
    assert_eq!(
        run.out,
        "good.json: valid (task)\nbad.json: 1 violation (task)\n  /phase: \"implementing\" is none of planning, \
         implementation, verification, documentation (unknown-value)\n"
    );
    let run = project.expect(3, &["validate", "cut.json", "bad.json"]);
    assert!(
        run.out.starts_with("cut.json: corrupt: truncated"),
        "{run:?}"
    );
    assert!(
        run.error()
            .starts_with("cut.json: corrupt: truncated at line ")
    );
    let run = project.expect(
        2,
        &["validate", "--json", "gone.json", "cut.json", "good.json"],
    );
    let files: Vec<_> = run
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["file"].clone())
        .collect();
    assert_eq!(files, ["cut.json", "good.json"]);
    assert_eq!(run.err.lines().count(), 2);
}

#[test]
fn the_json_of_validate_has_its_documented_shape() {
    let project = Project::with(
        "bad.json",
        TASK.replace("2026-03-02T08:05:00Z\" },", "soon\" },"),
    );
    project.write("cut.json", "{\n  \"a\": ");
    let run = project.expect(
        3,
        &[
            "validate", "--json", "--format", "task", "bad.json", "cut.json",
        ],
    );
    assert_eq!(
        run.json(),
        json!([
            {
                "file": "bad.json", "format": "task", "outcome": "violations", "error": null,
                "violations": [{
                    "pointer": "/currentStep/startedAt", "code": "bad-timestamp",
                    "message": "\"soon\" is not an RFC 3339 time with a zone",
                }],
            },
            {
                "file": "cut.json", "format": "task", "outcome": "corrupt", "violations": [],
                "error": {
                    "code": "truncated", "line": 2, "column": 8, "offset": 9,
                    "message": "the text ends where a value should be",
                },
            },
        ])
    );
}

#[test]
fn a_corrupt_file_has_the_format_that_its_path_tells() {
    let project = Project::with("docs/builder-state.json", "{");
    let format = |arguments: &[&str]| {
        let run = project.expect(
            3,
            &[
                &["validate", "--json", "docs/builder-state.json"][..],
                arguments,
            ]
            .concat(),
        );
        run.json()[0]["format"].clone()
    };
    assert_eq!(format(&[]), json!("builder-state"));
    assert_eq!(
        format(&["--format", "story-pipeline"]),
        json!("story-pipeline")
    );
}

#[test]
fn the_future_is_judged_only_with_a_clock() {
    let project = Project::with("t.json", TASK.replace("2026", "2999"));
    project.expect(0, &["validate", "t.json"]);
    let run = project.expect(1, &["validate", "t.json", "--now", "2026-03-02T08:05:00Z"]);
    assert!(run.out.contains("future-timestamp"), "{run:?}");
    project.write("t.json", TASK);
    project.expect(0, &["validate", "t.json", "--now", "2026-03-02T08:04:55Z"]);
    project.expect(1, &["validate", "t.json", "--now", "2026-03-02T08:04:54Z"]);
}

#[test]
fn show_is_for_a_person() {
    let project = Project::with("docs/builder-state.json", EXAMPLE);
    let run = project.expect(
        0,
        &[
            "show",
            "docs/builder-state.json",
            "--now",
            "2026-02-28T13:30:00Z",
        ],
    );
    assert_eq!(
        run.out,
        "\
Task        US-003
About       Story US-003 of prd-dark-mode, described in docs/prds/prd-dark-mode.md (branch main)
File        docs/builder-state.json, slot active (builder-state)
Agent       react-dev
Status      in_progress
Phase       implementation
Progress    2 of 6 steps
Updated     3 h 20 min ago (2026-02-28T10:10:00Z)
Reason      periodic: saved as the work went on
Steps
  ✓ Created DarkModeToggle component
  ✓ Added ThemeContext for state management
  ▸ Wire toggle to ThemeContext (in progress: Added useTheme import, started onClick handler)
  · Add CSS custom properties for dark theme
  · Write unit tests for toggle
  · Write E2E test for theme switch
Decisions
  - Use CSS custom properties for theming — Avoids runtime style calculation, better performance
  - Store theme preference in localStorage — Persists across sessions without auth requirement
Files
  - src/components/DarkModeToggle.tsx
  - src/contexts/ThemeContext.tsx
  - src/App.tsx
Verification
  - US-003.verificationContract
Violations  0
"
    );
}

#[test]
fn show_has_a_json_for_programs_and_counts_violations() {
    let project = Project::with("t.json", TASK.replace("\"periodic\"", "\"whim\""));
    let run = project.expect(1, &["show", "t.json", "--json"]);
    let shown = run.json();
    for (member, value) in [
        ("file", json!("t.json")),
        ("format", json!("task")),
        ("slot", json!(null)),
        ("key", json!("t")),
        ("status", json!("in_progress")),
        ("phase", json!("implementation")),
        ("agent", json!("dev")),
        ("updated_at", json!("2026-03-02T08:05:00Z")),
    ] {
        assert_eq!(shown[member], value, "{member}");
    }
    let revision = project.expect(0, &["revision", "t.json"]).out;
    assert_eq!(shown["revision"], *revision.trim_end());
    assert_eq!(shown["handoff"]["pending"], json!(["Make b", "Make c"]));
    assert_eq!(shown["violations"][0]["pointer"], "/metadata/reason");
    let run = project.expect(1, &["show", "t.json"]);
    assert!(run.out.contains("Violations  1\n"), "{run:?}");
}

#[test]
fn texts_from_a_file_do_not_command_the_terminal() {
    let project = Project::with("t.json", TASK.replace("Make c", "\\u001b[2Jgone\\r\\nx"));
    let run = project.expect(0, &["show", "t.json"]);
    assert!(
        !run.out.contains('\u{1b}') && run.out.contains("\\u{1b}[2Jgone x"),
        "{run:?}"
    );
}

#[test]
fn a_revision_changes_with_every_byte_and_in_a_host_with_its_slot_only() {
    let project = Project::with("t.json", TASK);
    let before = project.expect(0, &["revision", "t.json"]).out;
    assert!(
        before.starts_with("sha256:") && before.len() == 72,
        "{before}"
    );
    project.write("t.json", format!("{TASK} "));
    assert_ne!(project.expect(0, &["revision", "t.json"]).out, before);

    project.write("builder-state.json", EXAMPLE);
    let before = project.expect(0, &["revision", "builder-state.json"]).out;
    project.write(
        "builder-state.json",
        EXAMPLE.replace("builder-abc123", "builder-xyz"),
    );
    assert_eq!(
        project.expect(0, &["revision", "builder-state.json"]).out,
        before
    );
    project.write("builder-state.json", EXAMPLE.replace("onClick", "onKey"));
    assert_ne!(
        project.expect(0, &["revision", "builder-state.json"]).out,
        before
    );

    // Without a checkpoint, or in a file of no known format, it is the revision of the whole file.
    project.write(
        "builder-state.json",
        "{\"activePrd\": {\"checkpoint\": null}}",
    );
    let before = project.expect(0, &["revision", "builder-state.json"]).out;
    project.write("any.json", "{\"activePrd\": {\"checkpoint\": null}}");
    assert_eq!(
        project
            .expect(0, &["revision", "--format", "x", "any.json"])
            .out,
        before
    );
    project.write("any.json", "{\"a\": 1}");
    let run = project.expect(0, &["revision", "any.json", "--json"]);
    assert_eq!(run.json()["slot"], json!(null));
}

#[test]
fn stale_judges_each_file_and_gives_one_result() {
    let project = Project::with("t.json", TASK);
    project.write_at("src/a.rs", "2026-03-02T08:00:00Z");
    let run = project.expect(0, &["stale", "t.json"]);
    assert_eq!(run.out, "file      state\nsrc/a.rs  unchanged\nfresh\n");

    project.write_at("src/a.rs", "2026-03-02T09:00:00Z");
    let run = project.expect(1, &["stale", "t.json"]);
    let expected = "file      state\nsrc/a.rs  modified  2026-03-02T09:00:00Z\nstale\n";
    assert_eq!(run.out, expected);
    let run = project.expect(1, &["stale", "t.json", "--json"]);
    let report = run.json();
    assert_eq!(report["verdict"], "stale");
    assert_eq!(
        report["files"],
        json!([{"path": "src/a.rs", "state": "modified", "modified": "2026-03-02T09:00:00Z"}])
    );

    project.write_at("src/a.rs", "2026-03-02T08:05:00.5Z");
    let run = project.expect(1, &["stale", "t.json"]);
    assert!(run.out.ends_with("\nindeterminate\n"), "{run:?}");

    // Files are relative to the root, wherever the checkpoint is.
    project.expect(2, &["stale", "t.json", "--root", "elsewhere"]);
    std::fs::create_dir(project.path("elsewhere")).unwrap();
    let run = project.expect(1, &["stale", "t.json", "--root", "elsewhere"]);
    assert!(run.out.contains("missing"), "{run:?}");
    project.write_at("elsewhere/src/a.rs", "2026-03-02T08:00:00Z");
    project.expect(0, &["stale", "t.json", "--root", "elsewhere"]);
}

#[test]
fn looking_leaves_nothing_behind() {
    let project = Project::with("t.json", TASK);
    for verb in ["detect", "validate", "show", "revision", "stale", "resume"] {
        project.ckpt(&[verb, "t.json"]);
    }
    assert_eq!(project.names(), ["t.json"]);
    assert_eq!(project.read("t.json"), TASK);
}
