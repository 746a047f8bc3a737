//! `ckpt batch`: several reports as one change.

use serde_json::{Value, json};

use crate::project::{EXAMPLE, Project, TASK, line_diff};

const NOW: &str = "2026-03-02T09:00:00Z";
const HERE: [&str; 5] = ["batch", "--store", "t.json", "--now", NOW];

#[test]
fn all_lines_are_one_change() {
    let project = Project::with("t.json", TASK);
    let input = r#"
{"op": "note", "text": "half"}
{"op": "step done", "text": "Made b", "created": ["src/b.rs", "target/x"]}

{"op": "step start", "text": "Make c"}
{"op": "decide", "text": "Use C", "why": "speed"}
{"op": "block", "text": "CI is down"}
"#;
    let run = project.ckpt_given(&HERE, input);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        run.out,
        "noted: half\ndone: Made b (left the plan: Make b); 1 pending, next: Make c\nstarted: Make c\ndecided: Use C (decision 1)\nblocked: CI is down\n"
    );
    assert!(
        run.err.starts_with("note: target/x is not a source file"),
        "{run:?}"
    );
    let made: Value = serde_json::from_str(&project.read("t.json")).unwrap();
    assert_eq!(
        made["completedSteps"][1]["filesCreated"],
        json!(["src/b.rs"])
    );
    assert_eq!(made["currentStep"]["description"], "Make c");
    assert_eq!(made["blockers"], json!(["CI is down"]));
    let again = project.ckpt_given(&HERE, "{\"op\": \"block\", \"text\": \"CI is down\"}");
    assert_eq!(
        (again.code, again.out.as_str()),
        (0, "nothing changed: blocked: CI is down\n")
    );
}

#[test]
fn one_wrong_line_and_nothing_is_written() {
    let project = Project::with("t.json", TASK);
    let good = r#"{"op": "block", "text": "x"}"#;
    for (line, code, says) in [
        ("{", 2, "is not a JSON object"),
        (r#"{"text": "x"}"#, 2, "has no \"op\""),
        (
            r#"{"op": "fly"}"#,
            2,
            "\"fly\" is not an operation; the operations are `step start`, `step done`, ",
        ),
        (r#"{"op": "block"}"#, 2, "\"block\" lacks its member `text`"),
        (
            r#"{"op": "unblock", "text": "x"}"#,
            2,
            "\"unblock\" has no member `text`; it takes nothing else",
        ),
        (
            r#"{"op": "block", "text": ""}"#,
            2,
            "\"block\": \"text\" is empty",
        ),
        (
            r#"{"op": "block", "text": 5}"#,
            2,
            "\"block\": \"text\" is a text, not 5",
        ),
        (r#"{"op": "detail"}"#, 2, "no detail is given"),
        (
            r#"{"op": "block", "text": "y", "txt": 1}"#,
            2,
            "\"block\" has no member `txt`; it takes `text` or `type`",
        ),
        (
            r#"{"op": "pause"}"#,
            2,
            "no operation `pause`; it has step start",
        ),
        (
            r#"{"op": "step done", "text": "x", "pending": "Make z"}"#,
            4,
            "\"Make z\" is not a pending step",
        ),
    ] {
        let run = project.ckpt_given(&HERE, format!("{good}\n\n{line}\n{good}\n"));
        assert_eq!(run.code, code, "{run:?}");
        let error = run.error();
        assert!(error.starts_with("t.json: line 3: "), "{run:?}");
        assert!(error.contains(says), "{run:?}");
        assert!(error.ends_with("; nothing was written"), "{run:?}");
        assert_eq!(run.out, "");
        assert_eq!(project.read("t.json"), TASK, "{line}");
    }
}

#[test]
fn an_error_of_a_line_names_the_members_that_a_line_has() {
    let task = TASK.replace(r#""currentStep": {"#, r#""x": {"#);
    let project = Project::with("t.json", task);
    let unclear = r#"{"op": "step done", "text": "Make b or Make c"}"#;
    let run = project.ckpt_given(&HERE, unclear);
    let says =
        r#"with "pending", or set "current": true if it is the current one; nothing was written"#;
    assert!(run.error().ends_with(says), "{run:?}");
    let current = r#"{"op": "step done", "text": "x", "current": true}"#;
    let run = project.ckpt_given(&HERE, current);
    assert!(run.error().contains(r#"without "current";"#), "{run:?}");

    let store = ["--store", "s", "--key", "S-1", "--format", "story-pipeline"];
    project.expect(
        0,
        &[&["start", "--agent", "a", "--plan", "T"], &store[..]].concat(),
    );
    let run = project.ckpt_given(
        &[&["batch"], &store[..]].concat(),
        r#"{"op": "stage", "name": 3}"#,
    );
    assert!(run.error().contains(r#"("force": true)"#), "{run:?}");
}

#[test]
fn no_line_no_text_and_too_much_are_errors() {
    let project = Project::with("t.json", TASK);
    for (input, says) in [
        (&b""[..], "standard input has no line"),
        (b" \n\n", "standard input has no line"),
        (b"\xff\xfe", "t.json: line 1: is not UTF-8 text"),
        (
            b"\n{\"op\": \"unblock\"}\n\xc3",
            "t.json: line 3: is not UTF-8 text",
        ),
    ] {
        let run = project.ckpt_given(&HERE, input);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.error().contains(says), "{run:?}");
    }
    let much = [&HERE[..], &["--max-bytes", "1000"]].concat();
    let run = project.ckpt_given(&much, "\n".repeat(1001));
    assert!(run.error().contains("more than 1000 bytes"), "{run:?}");
    assert_eq!(project.read("t.json"), TASK);
}

#[test]
fn a_batch_in_a_host_changes_its_slot_alone() {
    let project = Project::with("builder-state.json", EXAMPLE);
    let run = project.ckpt_given(
        &["batch", "--store", "builder-state.json", "--now", NOW, "--json"],
        "{\"op\": \"note\", \"text\": \"wired\"}\n{\"op\": \"phase\", \"name\": \"verification\"}\n",
    );
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.json()["outcome"], "replaced");
    let (went, came) = line_diff(EXAMPLE, &project.read("builder-state.json"));
    assert_eq!(went.len(), came.len());
    assert!(
        came.iter().any(|line| line.contains("\"wired\"")),
        "{came:?}"
    );
    project.expect(0, &["validate", "builder-state.json"]);
}
