//! `ckpt` with this orchestrator's own format: each verb works as with the library's formats.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

const ERRAND: &str = r#"{"made": ["baker"], "left": ["bank", "library"], "at": "bank", "in_the_way": [],
 "changed": "2026-03-02T08:00:00Z", "mood": "good"}
"#;

/// Runs a command in this folder; returns its exit code and output.
fn errands(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_errands"));
    let run = command
        .current_dir(folder)
        .args(words)
        .args(["--now", "2026-03-02T08:05:00Z"])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        run.status.code().unwrap(),
        text(run.stdout),
        text(run.stderr),
    )
}

#[test]
fn every_verb_knows_an_errand() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = folder.join("shopping.json");
    fs::write(&path, ERRAND).unwrap();
    let run = |code: i32, words: &[&str]| {
        let (found, out, notes) = errands(folder, words);
        assert_eq!(found, code, "{words:?}: {out}{notes}");
        format!("{out}{notes}")
    };

    let detected = run(0, &["detect", "shopping.json"]);
    assert!(detected.contains("errand (has made, left)"), "{detected}");
    assert!(run(0, &["validate", "shopping.json"]).contains("valid (errand)"));
    let shown = run(0, &["show", "shopping.json"]);
    assert!(
        shown.contains("mood") && shown.contains("library") && shown.contains("5 min"),
        "{shown}"
    );
    run(0, &["stale", "shopping.json"]);
    let prompt = run(1, &["resume", "shopping.json"]);
    assert!(prompt.contains("library"), "{prompt}");
    assert!(prompt.contains("ckpt step done"), "{prompt}");
    let table = run(0, &["status", "."]);
    assert!(
        table.contains("shopping") && table.contains("33"),
        "{table}"
    );
    assert!(run(0, &["guide", "errand"]).contains("each stop"));
    if cfg!(feature = "schema") {
        assert!(run(0, &["schema", "errand"]).contains("errand.1.read"));
    }

    let begin = [
        "start", "--store", "new.json", "--format", "errand", "--plan", "baker", "bank",
    ];
    let begun = run(0, &[&begin[..], &["--seconds-per-stop", "90"]].concat());
    assert_eq!(begun, "started new.json: 2 steps, first: baker\n");
    let text = fs::read_to_string(folder.join("new.json")).unwrap();
    assert!(text.contains("\"seconds_per_stop\": 90"), "{text}");
    assert!(run(1, &begin).contains("was not changed"));
    let other = [
        "start",
        "--store",
        "t.json",
        "--format",
        "task",
        "--seconds-per-stop",
        "90",
    ];
    assert!(run(2, &other).contains("omit --seconds-per-stop"));
    run(2, &[&begin[..], &["--seconds-per-stop", "0"]].concat());
    assert!(run(0, &["start", "--help"]).contains("How long a stop takes (errand)"));
    fs::remove_file(folder.join("new.json")).unwrap();

    run(0, &["set", "shopping.json", r#"/mood="fine""#]);
    let converted = run(
        1,
        &[
            "convert",
            "shopping.json",
            "--to",
            "task",
            "--out",
            "task.json",
        ],
    );
    assert!(converted.contains("mood"), "{converted}");
    let back = run(1, &["convert", "task.json", "--to", "errand"]);
    assert!(back.contains("\"left\""), "{back}");
    fs::remove_file(folder.join("task.json")).unwrap();
    assert!(run(0, &["history", "shopping.json"]).contains("current"));
    let changed = run(1, &["diff", "shopping.json"]);
    assert!(changed.contains("mood"), "{changed}");

    run(0, &["step", "start", "bank", "--store", "shopping.json"]);
    let done = run(0, &["step", "done", "--store", "shopping.json"]);
    assert!(done.contains("next: library"), "{done}");
    let refused = run(2, &["decide", "sell", "--store", "shopping.json"]);
    assert!(refused.contains("step start, step done"), "{refused}");
    run(0, &["block", "closed", "--store", "shopping.json"]);
    run(0, &["unblock", "--store", "shopping.json"]);
    run(0, &["step", "start", "library", "--store", "shopping.json"]);
    run(0, &["step", "done", "--store", "shopping.json"]);
    run(4, &["resume", "shopping.json"]);
    run(0, &["archive", "shopping.json"]);
}
