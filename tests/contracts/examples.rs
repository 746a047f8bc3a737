//! The examples do what they say, and the first command of the README does what the README says.
// The helpers belong to tests, though clippy does not know that.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program that `cargo test` built from an example, next to this test's own folder.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.ancestors().nth(2).expect("target/debug");
    let program = folder.join("examples").join(name);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    let newest = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let sources = sources.join(name);
    for source in sources.read_dir().expect("its sources") {
        assert!(
            newest(&program) >= newest(&source.expect("a source").path()),
            "{} is missing or older than its sources: run `cargo build --examples`",
            program.display()
        );
    }
    program
}

fn run(name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program(name));
    command.args(arguments).output().expect("the example runs")
}

/// The output of a run that must succeed.
fn shown(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(!text.contains('\u{1b}'), "no colour outside a terminal");
    text
}

/// How often each step was begun and took effect, and by which agent.
fn counted(text: &str) -> Vec<(&str, &str, &str)> {
    let (_, table) = text.split_once("took effect\n").expect("a table");
    let rows = table.lines().take_while(|line| !line.is_empty());
    rows.map(|row| {
        let cells: Vec<&str> = row.split_whitespace().rev().take(3).collect();
        (cells[2], cells[1], cells[0])
    })
    .collect()
}

/// A line without its numbers and its spaces, which differ from run to run.
fn shape(line: &str) -> String {
    let words = line.split_whitespace();
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let plain = words.map(|word| word.trim_matches(is_number).to_owned());
    plain.collect::<Vec<_>>().join(" ")
}

/// The part of the README that shows this run.
fn assert_as_the_readme_shows_it(text: &str) {
    let readme = include_str!("../../README.md");
    let (_, shown) = readme.split_once("```text\n").expect("the run");
    let (shown, _) = shown.split_once("```").expect("its end");
    let run: Vec<String> = text.lines().map(shape).collect();
    // Only the beginning of the stamp is the same in each run.
    let cut = |line: &str| match line.split_once(" (modified ") {
        Some((start, _)) => start.to_owned(),
        None => line.to_owned(),
    };
    for line in shown.lines().filter(|line| !line.trim().is_empty()) {
        let line = cut(&shape(line));
        let is_there = run.iter().any(|other| cut(other) == line);
        assert!(is_there, "the run does not say {line:?}:\n{text}");
    }
}

#[test]
fn a_killed_agents_task_is_finished_by_another_and_no_finished_step_runs_twice() {
    let text = shown("handoff", &[]);
    for part in [
        "✗ killed",
        "whole, ",
        "no violations",
        "files       stale",
        "src/slug.rs: modified",
        "so          ask",
        "│ # Resuming Task: page-slugs",
        "│ You are continuing work that was partially completed by agent-one.",
        "│ - Hyphens between words, not underscores — Search engines split words at hyphens",
        "│ Partial work: wrote 13 of 26 lines to src/slug.rs",
        "half-done lines from src/slug.rs",
        "Context limit approaching, creating checkpoint",
        "Context limit reached. Resume with new session.",
        "wrote 1 of 2 lines to src/lib.rs",
        "half-done lines from src/lib.rs",
        "✓ all 5 steps took effect exactly once",
        "✓ none of the 2 finished steps ran twice",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    if cfg!(unix) {
        assert!(text.contains("SIGKILL"), "{text}");
        assert_as_the_readme_shows_it(&text);
    }
    let expected = [
        ("1×", "1×", "agent-one"),
        ("1×", "1×", "agent-one"),
        ("2×", "1×", "agent-two"),
        ("1×", "1×", "agent-two"),
        ("2×", "1×", "agent-three"),
    ];
    assert_eq!(counted(&text), expected, "{text}");
}

#[test]
fn an_effect_in_doubt_is_found_done_and_not_repeated() {
    let text = shown("handoff", &["--in-the-window"]);
    assert!(
        text.contains("in doubt; effects.log says that it was done"),
        "{text}"
    );
    let expected = [
        ("1×", "1×", "agent-one"),
        ("1×", "1×", "agent-one"),
        ("1×", "1×", "agent-one"),
        ("1×", "1×", "agent-two"),
        ("1×", "1×", "agent-two"),
    ];
    assert_eq!(counted(&text), expected, "{text}");
}

#[test]
fn an_argument_it_does_not_know_is_an_error() {
    let output = run("handoff", &["--no-such-option"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("usage: handoff"), "{errors}");
}

#[test]
fn every_task_of_workers_that_are_killed_and_stopped_is_finished() {
    let text = shown("orchestrator", &[]);
    let stopped = if cfg!(unix) { 3 } else { 0 };
    let sum = format!("6 killed, {stopped} stopped; no finished step was begun again");
    assert!(text.contains(&sum), "{text}");
}
