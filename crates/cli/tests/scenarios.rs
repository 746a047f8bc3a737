//! Runs every case of `tests/scenarios` with the real command. `tests/scenarios/README.md` describes the form of a
//! case.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One command of a case and what is expected of it.
#[derive(Debug, Default, PartialEq)]
struct Step {
    command: String,
    exit: Option<i32>,
    expectations: Vec<Expectation>,
}

#[derive(Debug, PartialEq)]
struct Expectation {
    stream: Stream,
    present: bool,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stream {
    Out,
    Err,
}

/// The result of a command.
struct Given {
    exit: Option<i32>,
    out: String,
    err: String,
}

fn parse(case: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in (1..).zip(case.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
            continue;
        }
        let step = steps
            .last_mut()
            .ok_or_else(|| format!("line {number}: an expectation before the first command"))?;
        if let Some(rest) = line.strip_prefix("> ") {
            step.command.push('\n');
            step.command.push_str(rest);
            continue;
        }
        if let Some(exit) = line.strip_prefix("exit ") {
            let exit = exit.parse().map_err(|_| format!("line {number}: {line}"))?;
            step.exit = Some(exit);
            continue;
        }
        let expectation = |stream, present| {
            let word = match (stream, present) {
                (Stream::Out, true) => "out has ",
                (Stream::Out, false) => "out lacks ",
                (Stream::Err, true) => "err has ",
                (Stream::Err, false) => "err lacks ",
            };
            line.strip_prefix(word).map(|text| Expectation {
                stream,
                present,
                text: text.to_owned(),
            })
        };
        let ways = [
            expectation(Stream::Out, true),
            expectation(Stream::Out, false),
            expectation(Stream::Err, true),
            expectation(Stream::Err, false),
        ];
        match ways.into_iter().flatten().next() {
            Some(expectation) => step.expectations.push(expectation),
            None => return Err(format!("line {number} is no line of a case: {line}")),
        }
    }
    match steps.iter().find(|step| step.exit.is_none()) {
        Some(step) => Err(format!("no exit code is expected of: {}", step.command)),
        None if steps.is_empty() => Err("no command".to_owned()),
        None => Ok(steps),
    }
}

/// The differences between the result of a command and the expected one.
fn judge(step: &Step, given: &Given) -> Vec<String> {
    let mut wrong = Vec::new();
    if step.exit != given.exit {
        wrong.push(format!("exit {:?}, expected {:?}", given.exit, step.exit));
    }
    for Expectation {
        stream,
        present,
        text,
    } in &step.expectations
    {
        let whole = match stream {
            Stream::Out => &given.out,
            Stream::Err => &given.err,
        };
        if whole.contains(text.as_str()) != *present {
            let has = if *present { "lacks" } else { "has" };
            wrong.push(format!("{stream:?} {has} {text:?}"));
        }
    }
    wrong
}

fn run(command: &str, folder: &Path) -> Given {
    let binary = Path::new(env!("CARGO_BIN_EXE_ckpt"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", command])
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{path}", binary.parent().unwrap().display()),
        )
        .env("TZ", "UTC")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "n")
        .env("GIT_AUTHOR_EMAIL", "n@example.org")
        .env("GIT_COMMITTER_NAME", "n")
        .env("GIT_COMMITTER_EMAIL", "n@example.org")
        .output()
        .unwrap();
    Given {
        exit: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The failures of a case as a text; empty if there are none.
fn failures(case: &Path) -> String {
    let text = std::fs::read_to_string(case.join("case.txt")).unwrap();
    let name = case.file_name().unwrap().to_string_lossy();
    let steps = match parse(&text) {
        Ok(steps) => steps,
        Err(error) => return format!("{name}: {error}\n"),
    };
    let folder = tempfile::tempdir().unwrap();
    if case.join("input").is_dir() {
        copy(&case.join("input"), folder.path());
    }
    let mut report = String::new();
    for step in &steps {
        let given = run(&step.command, folder.path());
        let wrong = judge(step, &given);
        if !wrong.is_empty() {
            let Given { out, err, .. } = given;
            let command = &step.command;
            let wrong = wrong.join("\n  ");
            let _ = writeln!(
                report,
                "{name}: $ {command}\n  {wrong}\n--- stdout\n{out}--- stderr\n{err}---"
            );
        }
    }
    report
}

#[test]
fn every_scenario_gives_what_is_expected() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let wanted = std::env::var("SCENARIO").ok();
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .filter(|path| match &wanted {
            Some(wanted) => path.to_string_lossy().contains(wanted.as_str()),
            None => true,
        })
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no case");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let report = std::sync::Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let failures = failures(case);
                    report.lock().unwrap().push_str(&failures);
                }
            });
        }
    });
    let report = report.into_inner().unwrap();
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn a_case_that_is_not_met_is_told() {
    let steps =
        parse("# why\n$ echo one\n> echo two\nexit 0\nout has two\nout lacks three\nerr lacks x\n")
            .unwrap();
    let given = |exit, out: &str, err: &str| Given {
        exit: Some(exit),
        out: out.to_owned(),
        err: err.to_owned(),
    };
    assert_eq!(steps[0].command, "echo one\necho two");
    assert_eq!(judge(&steps[0], &given(0, "one\ntwo\n", "")).len(), 0);
    assert_eq!(judge(&steps[0], &given(1, "three", "x")).len(), 4);
}

#[test]
fn a_case_that_expects_nothing_is_refused() {
    for case in [
        "",
        "# only a remark",
        "exit 0",
        "$ true",
        "$ true\nexit x",
        "$ true\nexit 0\nhas x",
    ] {
        assert!(parse(case).is_err(), "{case}");
    }
}
