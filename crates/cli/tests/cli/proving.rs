//! `ckpt prove` and `ckpt check`.

#![cfg(unix)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::project::{Project, TASK};

/// The command line that proves an item with a shell script.
fn prove<'a>(item: &'a str, more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let of = ["--store", "t.json", "--", "sh", "-c", script];
    [&["prove", item], more, &of].concat()
}

fn project() -> Project {
    let project = Project::with("t.json", TASK);
    project.write("src/a.rs", "a");
    project.write("src/b.rs", "b");
    project
}

/// The lines of `check`.
#[track_caller]
fn check(project: &Project, code: i32) -> Vec<String> {
    let run = project.expect(code, &["check", "t.json"]);
    run.out.lines().map(str::to_owned).collect()
}

#[test]
fn a_step_is_claimed_proven_failed_and_outdated() {
    let project = project();
    assert_eq!(check(&project, 0), ["Made a: reported"]);
    let run = project.expect(0, &prove("Made a", &[], "echo tests; echo with care >&2"));
    assert_eq!(run.out, "tests\n");
    assert!(
        run.err
            .starts_with("with care\nnote: Made a: proven by sh -c"),
        "{run:?}"
    );
    // The checkpoint is unchanged: its format has no member for this.
    assert_eq!(project.read("t.json"), TASK);
    assert_eq!(
        check(&project, 0),
        ["Made a: proven by sh -c \"echo tests; echo with care >&2\""]
    );
    project.write("src/b.rs", "not covered");
    check(&project, 0);
    project.write("src/a.rs", "changed");
    let lines = check(&project, 1);
    assert!(
        lines[0].starts_with("Made a: outdated: src/a.rs changed since; sh -c"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("to run again: sh -c 'echo tests; echo with care >&2' (Made a)"),
        "{lines:?}"
    );
    let run = project.expect(1, &["resume", "t.json"]);
    assert!(
        run.err.contains("Made a: outdated: src/a.rs changed since"),
        "{run:?}"
    );
    assert!(
        run.out.contains("- Made a (its proof is outdated)"),
        "{run:?}"
    );

    let run = project.expect(1, &prove("Made a", &["--inputs", "src"], "echo no; exit 3"));
    assert!(
        run.out == "no\n" && run.err.contains("warning: Made a: failed: exit code 3;"),
        "{run:?}"
    );
    let lines = check(&project, 1);
    assert_eq!(
        lines,
        [
            "Made a: failed: exit code 3; sh -c \"echo no; exit 3\"",
            "    no"
        ]
    );
    let shown = project.expect(0, &["show", "t.json"]).out;
    assert!(
        shown.contains("Proofs\n  - Made a: failed: exit code 3;"),
        "{shown}"
    );
    let json = project.expect(0, &["show", "t.json", "--json"]).json();
    assert_eq!(json["proofs"][0]["status"], "failed");
    assert_eq!(json["proofs"][0]["proof"]["end"]["exit"], 3);
    let json = project.expect(1, &["check", "t.json", "--json"]).json();
    assert_eq!(
        json["items"][0]["proof"]["files"],
        serde_json::json!(["src/a.rs", "src/b.rs"])
    );
    assert_eq!(json["rerun"], serde_json::json!([]));
}

#[test]
fn what_needs_it_is_run_again_once_for_all_that_it_shows() {
    let project = project();
    let counts = "echo x >> runs";
    for item in ["Made a", "Make b"] {
        project.expect(0, &prove(item, &["--inputs", "src"], counts));
    }
    project.expect(0, &prove("Make c", &["--inputs", "src/a.rs"], counts));
    project.write("src/new.rs", "x");
    let json = project.expect(1, &["check", "t.json", "--json"]).json();
    assert_eq!(
        json["rerun"][0]["of"],
        serde_json::json!(["Made a", "Make b"])
    );
    assert_eq!(json["items"][0]["changed"][0]["path"], "src/new.rs");
    let json = project
        .expect(0, &["check", "t.json", "--rerun", "--json"])
        .json();
    assert_eq!(json["rerun"], serde_json::json!([]));
    assert_eq!(project.read("runs").lines().count(), 4);
    project.expect(0, &["check", "t.json", "--rerun"]);
    assert_eq!(project.read("runs").lines().count(), 4);
}

#[test]
fn a_criterion_gets_the_result_of_its_proof() {
    let project = project();
    project.expect(0, &["verify", "unit tests", "pending", "--store", "t.json"]);
    let run = project.expect(1, &prove("unit tests", &[], "exit 1"));
    assert!(
        run.out.contains("verified: unit tests is failed"),
        "{run:?}"
    );
    let json = project.expect(0, &["show", "t.json", "--json"]).json();
    assert_eq!(json["handoff"]["verification"]["results"][0][1], "failed");
    let run = project.expect(
        0,
        &[&["--json"], &prove("unit tests", &[], "echo ok")[..]].concat(),
    );
    let json = run.json();
    assert!(
        json["status"] == "proven" && json["is_finished"] == true,
        "{json}"
    );
    assert!(run.err.contains("ok\n"), "{run:?}");
}

#[test]
fn the_whole_project_is_covered_without_what_ckpt_itself_writes() {
    let project = project();
    project.write(".gitignore", "made/\n");
    project.write("made/x.rs", "x");
    project.expect(0, &["verify", "unit tests", "pending", "--store", "t.json"]);
    let proof = prove("unit tests", &["--inputs", "."], "echo y >> made/x.rs");
    // The report changes the checkpoint.
    project.expect(0, &proof);
    project.expect(0, &["note", "half", "--store", "t.json"]);
    let json = project.expect(0, &["check", "t.json", "--json"]).json();
    let files = serde_json::json!([".gitignore", "src/a.rs", "src/b.rs"]);
    assert_eq!(json["items"][1]["proof"]["files"], files);
    project.write("new.rs", "x");
    project.expect(1, &["check", "t.json"]);
}

#[test]
fn what_is_refused_runs_nothing() {
    let project = project();
    let run = "echo x >> runs";
    for (code, item, inputs, why) in [
        (
            4,
            "Made d",
            &[][..],
            "has the steps \"Made a\", \"Make b\", \"Make c\" and no criteria or gates",
        ),
        (
            2,
            "Made a",
            &["--inputs", "src/none.rs"],
            "the input \"src/none.rs\" is not there",
        ),
        (
            2,
            "Made a",
            &["--inputs", "src", "../x"],
            "the input \"../x\" is not there",
        ),
        (
            2,
            "Made a",
            &["--inputs", "/etc/passwd"],
            "outside of the project",
        ),
        (
            2,
            "Made a",
            &["--inputs", "t.json"],
            "a file of the checkpoint itself",
        ),
    ] {
        let run = project.expect(code, &prove(item, inputs, run));
        assert!(run.error().contains(why), "{run:?}");
    }
    let of = ["--store", "t.json", "--", "./no-such-program"];
    let missing = project.expect(2, &[&["prove", "Made a"], &of[..]].concat());
    assert!(
        missing.error().contains("cannot run \"./no-such-program\""),
        "{missing:?}"
    );
    let fence = project
        .expect(0, &["claim", "t.json", "--agent", "one"])
        .out;
    let with_fence = [
        &["--fence", fence.trim_end()],
        &prove("Made a", &[], "true")[..],
    ]
    .concat();
    project.expect(4, &prove("Made a", &[], "true"));
    project.expect(0, &with_fence);
    assert!(!project.names().contains(&"runs".to_owned()));
}

#[test]
fn what_a_command_writes_works_on_no_terminal_and_keeps_its_secrets() {
    let project = project();
    let hostile = "printf '\\033[2J\\033]0;x\\007 password=hunter2hunter2\\377\\n'; yes | head -c 100000 >&2; \
                   printf 'token=\\\"sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\"\\n'; exit 1";
    let mut command = project.command();
    let output = command
        .args(prove("Made a", &[], hostile))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.contains(&0xff), "it is passed on as it comes");
    let short = prove(
        "Make b",
        &[],
        "printf '\\033[2J password=hunter2hunter2\\377\\n'; exit 1",
    );
    let output = project.command().args(short).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    for words in [
        &["check", "t.json"][..],
        &["check", "t.json", "--json"],
        &["show", "t.json", "--json"],
    ] {
        let run = project.ckpt(words);
        assert!(
            !run.out.contains('\u{1b}') && !run.out.contains("hunter2"),
            "{run:?}"
        );
        assert!(!run.out.contains("sk-ant"), "{run:?}");
    }
    let lines = check(&project, 1);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("\\u{1b}[2J password=[redacted: password]")),
        "{lines:?}"
    );
}

#[test]
fn a_proof_that_is_killed_is_none() {
    let project = project();
    let mut child = project
        .command()
        .args(prove("Made a", &[], "touch begun; sleep 20"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !project.names().contains(&"begun".to_owned()) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(check(&project, 0), ["Made a: reported"]);
    // For the proving command itself, a signal is a failure.
    let run = project.expect(1, &prove("Made a", &[], "kill -9 $$"));
    assert!(run.err.contains("Made a: failed: signal 9"), "{run:?}");
}

#[test]
fn a_converted_checkpoint_has_the_proofs_of_its_task() {
    let project = project();
    project.expect(0, &prove("Made a", &["--inputs", "src"], "true"));
    for (code, to, out) in [
        (1, "agent-session", "s.json"),
        (0, "builder-state", "b.json"),
    ] {
        project.expect(code, &["convert", "t.json", "--to", to, "--out", out]);
        let run = project.expect(0, &["check", out]);
        assert!(run.out.contains("Made a: proven by sh -c true"), "{run:?}");
    }
    project.expect(0, &["archive", "t.json", "--as", "aborted"]);
    project.write("t.json", TASK);
    assert_eq!(check(&project, 0), ["Made a: proven by sh -c true"]);
    project.expect(0, &["archive", "t.json", "--as", "complete"]);
    project.write("t.json", TASK);
    assert_eq!(check(&project, 0), ["Made a: reported"]);
}
