//! The commands on the pages do what the pages say, in their order and from an empty project. So does a user's
//! afternoon.
#![cfg(unix)]

use std::process::{Command, Stdio};

use crate::project::{Project, path_with_ckpt};

const README: &str = include_str!("../../../../README.md");
const REFERENCE: &str = include_str!("../../../../docs/cli.md");
const AFTERNOON: &str = include_str!("../fixtures/afternoon.txt");

/// The first block of a page that begins with these words, without its last line end.
fn block<'p>(page: &'p str, begins: &str) -> &'p str {
    let start = page.find(begins).unwrap_or_else(|| panic!("{begins:?}"));
    let start = start + begins.find('\n').unwrap() + 1;
    page[start..].split_once("\n```").unwrap().0
}

/// Runs lines in one shell. Returns the exit code of each, and all of standard error.
fn run(project: &Project, lines: &[&str]) -> (Vec<String>, String) {
    let told = |line: &&str| format!("{line}\necho \"$?\" >>\"$CODES\"\n");
    let script: String = lines.iter().map(told).collect();
    let codes = project.path("codes");
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("PATH", path_with_ckpt())
        .env("CODES", &codes)
        .env("TMPDIR", project.path("."))
        .current_dir(project.path("."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let codes = std::fs::read_to_string(codes).unwrap();
    let codes = codes.lines().map(str::to_owned).collect();
    (codes, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_tour_of_the_readme_can_be_tried_as_it_stands() {
    let tour = block(README, "```sh\ncd ");
    let lines: Vec<&str> = tour.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() > 15, "{lines:?}");
    let project = Project::new();
    let (codes, errors) = run(&project, &lines);
    for (line, code) in lines.iter().zip(&codes) {
        let (_, comment) = line.rsplit_once("exit ").unwrap_or_default();
        let expected = comment.get(..1).unwrap_or("0");
        assert_eq!(code, expected, "{line}\n{errors}");
    }
    assert_eq!(codes.len(), lines.len());
}

#[test]
fn the_first_commands_of_the_reference_print_what_it_shows() {
    let shown = block(REFERENCE, "```console\n$ ckpt start");
    let project = Project::new();
    let mut lines = shown.lines().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{line}"));
        let script = format!("{command} >out");
        run(&project, &[&script]);
        let out = project.read("out");
        let mut printed = out.lines();
        while let Some(expected) = lines.next_if(|line| !line.starts_with("$ ")) {
            if expected == "…" {
                break;
            }
            assert_eq!(printed.next(), Some(expected), "{command}");
        }
    }
}

#[test]
fn an_afternoon_with_the_command_has_the_exit_codes_that_a_user_expects() {
    let lines = AFTERNOON.lines().filter(|line| !line.starts_with('#'));
    // A line without a code is only for the shell.
    let expected: Vec<(&str, &str)> = lines
        .map(|line| {
            line.split_once(' ')
                .filter(|(code, _)| code.parse::<u8>().is_ok())
                .unwrap_or(("0", line))
        })
        .collect();
    assert!(expected.len() > 80, "{}", expected.len());
    let lines: Vec<&str> = expected.iter().map(|(_, line)| *line).collect();
    let project = Project::new();
    let (codes, errors) = run(&project, &lines);
    let wrong: Vec<_> = expected
        .iter()
        .zip(&codes)
        .filter(|((expected, _), code)| expected != code)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{errors}");
    assert_eq!(codes.len(), lines.len());
    assert!(!errors.contains("panicked"), "{errors}");
}
