//! The command line itself.

use std::io::Read;
use std::process::Stdio;

use crate::project::{Project, TASK};

#[test]
fn usage_errors_are_one_line_and_exit_2() {
    let project = Project::new();
    for (arguments, says) in [
        (vec!["fly"], "unrecognized subcommand"),
        (vec!["show", "a", "b"], "unexpected argument"),
        (vec!["show", "a", "--now", "yesterday"], "RFC 3339"),
        (vec!["show", "a", "--slot", "left"], "a slot is"),
        (vec![], "--help"),
        (vec!["show"], "--store"),
        (vec!["validate"], "--store"),
        (vec!["show", "a.json", "--store", "b.json"], "omit one"),
        (vec!["step", "start", "x"], "--store checkpoints --key"),
        (vec!["start", "--store", "folder"], "--key"),
        (vec!["show", "a.json", "--key", "k"], "--store"),
        (vec!["set", "a.json"], "POINTER=JSON"),
        (vec!["set", "a.json", "/phase"], "POINTER=JSON"),
        (
            vec!["step"],
            "`ckpt step` is followed by one of: start, done, add, drop, edit, move;",
        ),
        (
            vec!["gate"],
            "`ckpt gate` is followed by one of: pass, fail;",
        ),
        (vec!["prune", "a", "--keep", "-5"], "it is a whole number"),
        (
            vec!["status", ".", "--watch", "--every", "0s"],
            "longer than no time",
        ),
        (
            vec!["show", "a", "--max-bytes", "-5"],
            "it is a whole number",
        ),
        (
            vec!["context", "--used", "-0.5"],
            "a fraction, such as 0.78",
        ),
        (vec!["step", "done", "-5"], "end the command with '-- -5'"),
        (
            vec!["show", "--store", "f", "--key", ""],
            "name the task with --key",
        ),
        (vec!["start", "--store", "f.json", "--agent", ""], "--agent"),
        (
            vec!["set", "a.json", "/a=1", "--expect", "42"],
            "is not a revision",
        ),
    ] {
        let run = project.expect(2, &arguments);
        assert!(run.error().contains(says), "{arguments:?}: {run:?}");
        assert_eq!(run.out, "", "{arguments:?}");
    }
    assert!(project.names().is_empty());
}

#[test]
fn the_help_names_every_verb_option_and_exit_code() {
    let project = Project::new();
    let help = project.expect(0, &["--help"]).out;
    for word in [
        "detect",
        "validate",
        "show",
        "set",
        "revision",
        "stale",
        "resume",
        "history",
        "diff",
        "restore",
        "recover",
        "archive",
        "copy",
        "forget",
        "prune",
        "claim",
        "release",
        "--fence",
        "start",
        "step",
        "decide",
        "note",
        "block",
        "unblock",
        "heartbeat",
        "fail",
        "pause",
        "complete",
        "phase",
        "stage",
        "sync",
        "restart",
        "verify",
        "subtask",
        "workstream",
        "task",
        "gate",
        "batch",
        "convert",
        "schema",
        "--json",
        "--format",
        "--store",
        "--key",
        "--slot",
        "--root",
        "--now",
        "--agent",
        "--session",
        "--max-bytes",
        "5  conflict",
    ] {
        assert!(help.contains(word), "{word}");
    }
    let help = project.expect(0, &["resume", "--help"]).out;
    for word in ["--template", "--budget-tokens", "--description", "--header"] {
        assert!(help.contains(word), "{word}");
    }
    let help = project.expect(0, &["step", "done", "--help"]).out;
    for word in ["--pending", "--created", "--modified"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(project.expect(0, &["--version"]).out.starts_with("ckpt "));
}

#[test]
fn options_stand_before_or_after_the_verb() {
    let project = Project::with("t.json", TASK);
    let before = project.expect(
        0,
        &["--json", "--now", "2026-03-02T09:00:00Z", "show", "t.json"],
    );
    let after = project.expect(
        0,
        &["show", "t.json", "--json", "--now", "2026-03-02T09:00:00Z"],
    );
    assert_eq!(before.out, after.out);
    assert_eq!(before.json()["agent"], "dev");
}

#[test]
fn nothing_is_coloured_in_a_pipe() {
    let project = Project::with("t.json", TASK);
    for arguments in [["show", "t.json"], ["stale", "t.json"]] {
        assert!(!project.ckpt(&arguments).out.contains('\u{1b}'));
    }
}

#[test]
fn a_reader_that_leaves_early_is_told_nothing_more() {
    let mut task = TASK.replace("Make c", &"long ".repeat(100_000));
    task.truncate(task.len() - 1);
    let project = Project::with("t.json", task);
    let mut child = project
        .command()
        .args(["show", "t.json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_that_says_what_was_done() {
    let project = Project::with("t.json", TASK);
    let at = ["--store", "t.json"];
    for (arguments, is_change) in [
        (vec!["show"], false),
        (vec!["start"], false),
        (vec!["history"], false),
        (vec!["claim"], false),
        (vec!["convert", "--to", "task"], false),
        (vec!["step", "start", "Make c"], true),
        (vec!["set", "/phase=\"planning\""], true),
        (vec!["convert", "--to", "task", "--out", "u.json"], true),
        (vec!["prune", "--keep", "3"], true),
        (vec!["history", "--pin", "current"], true),
        (vec!["claim", "--agent", "dev"], true),
    ] {
        let arguments = match arguments[0] {
            "set" => ["set", "t.json", arguments[1]].to_vec(),
            _ => [&arguments[..], &at].concat(),
        };
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = project.command();
        let output = command.args(&arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let line = errors.lines().find(|line| line.starts_with("ckpt: "));
        let line = line.unwrap_or_else(|| panic!("{arguments:?}: {errors}"));
        assert!(line.starts_with("ckpt: cannot write"), "{line}");
        let says = match is_change {
            true => "the change was made, and only this report",
            false => "nothing was changed",
        };
        assert!(line.contains(says), "{arguments:?}: {line}");
    }
    assert!(
        project
            .read("t.json")
            .contains("\"description\": \"Make c\"")
    );
}

/// An unset shell variable must not become a file.
#[test]
fn a_file_without_a_name_is_refused() {
    let project = Project::with("t.json", TASK);
    for words in [
        &["step", "done", "--modified", ""][..],
        &["step", "done", "--created", "a.rs", " "],
    ] {
        project.expect(2, &[words, &["--store", "t.json"]].concat());
    }
    // An empty text names a step only if the plan has an empty step.
    project.expect(4, &["step", "done", "--pending", "", "--store", "t.json"]);
    let line = r#"{"op": "step done", "modified": [""]}"#;
    let run = project.ckpt_given(&["batch", "--store", "t.json"], line);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(project.read("t.json"), TASK);
}
