//! Runs the binary on the project's cases. `expected.json` has the expected results.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use agent_checkpoint::formats::Formats;
use serde_json::Value;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}

fn validate(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ckpt"))
        .current_dir(cases())
        .args(["validate", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), report, errors)
}

fn places(violations: &Value) -> Vec<(String, String)> {
    let text = |violation: &Value, member: &str| violation[member].as_str().unwrap().to_owned();
    let list = violations.as_array().unwrap().iter();
    let mut places: Vec<_> = list
        .map(|violation| (text(violation, "pointer"), text(violation, "code")))
        .collect();
    places.sort();
    places
}

#[test]
fn every_case_gives_what_is_expected() {
    let expected = std::fs::read(cases().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let expected = expected.as_array().unwrap();
    assert_eq!(expected.len(), 90);
    let formats = Formats::default();
    let mut judged = BTreeSet::new();
    for case in expected {
        let file = case["file"].as_str().unwrap();
        let format = case["format"].as_str().unwrap();
        let outcome = case["outcome"].as_str().unwrap();
        assert!(formats.get(format).is_ok(), "{format} is not spoken");
        judged.insert(format);
        // With the format named, and detected.
        for way in [vec!["--format", format, file], vec![file]] {
            let (code, report, errors) = validate(&way);
            if file.ends_with("top-level-list.json") && way.len() == 1 {
                // A complete text of no known format is no checkpoint.
                assert_eq!(
                    (code, &report["error"]["code"]),
                    (Some(2), &Value::from("no-checkpoint"))
                );
                assert_eq!(errors.lines().count(), 1);
                continue;
            }
            let verdict = &report[0];
            assert_eq!(verdict["file"], *file);
            // For a corrupt file the readable part may show the format; these paths do not.
            if outcome != "corrupt" || way.len() == 2 || verdict["format"] != Value::Null {
                assert_eq!(verdict["format"], *format, "{file}");
            }
            assert_eq!(verdict["outcome"], *outcome, "{file}: {verdict}");
            assert_eq!(
                places(&verdict["violations"]),
                places(&case["violations"]),
                "{file}"
            );
            let (exit, lines) = match outcome {
                "valid" => (0, 0),
                "violations" => (1, 0),
                _ => (3, 1),
            };
            assert_eq!(code, Some(exit), "{file}");
            assert_eq!(errors.lines().count(), lines, "{file}: {errors}");
            match case["error"].as_str() {
                Some(error) => assert_eq!(verdict["error"]["code"], *error, "{file}"),
                None => assert_eq!(verdict["error"], Value::Null, "{file}"),
            }
        }
    }
    let spoken: BTreeSet<&str> = formats.iter().map(|format| format.name()).collect();
    assert_eq!(judged, spoken, "a format without a case");
}

#[test]
fn corruption_is_told_before_the_format() {
    let file = "build-pipeline/cut-off.json";
    let (code, report, _) = validate(&[file]);
    assert_eq!(code, Some(3));
    assert_eq!(report[0]["error"]["code"], "truncated");
    let (code, report, errors) = validate(&["--format", "task", "expected.json"]);
    assert_eq!(
        (code, &report[0]["error"]["code"]),
        (Some(3), &Value::from("not-an-object"))
    );
    assert_eq!(errors.lines().count(), 1);
}

/// What a verb over a folder prints as JSON, with its exit code. It never panics, and the folder stays as it was.
fn over(folder: &Path, words: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_ckpt"))
        .current_dir(folder)
        .args(words)
        .args(["--json", "--now", "2030-01-01T00:00:00Z"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{folder:?}: {errors}");
    let code = output.status.code().unwrap();
    assert!((0..=5).contains(&code), "{folder:?}: {code}");
    let printed = serde_json::from_slice(&output.stdout);
    (
        code,
        printed.unwrap_or_else(|_| panic!("{folder:?}: {errors}")),
    )
}

#[test]
fn the_fleet_and_the_doctor_name_each_case_that_is_not_well() {
    let expected = std::fs::read(cases().join("expected.json")).unwrap();
    let expected: Vec<Value> = serde_json::from_slice(&expected).unwrap();
    let formats: BTreeSet<&str> = expected
        .iter()
        .map(|case| case["format"].as_str().unwrap())
        .collect();
    for format in formats {
        let of_format = expected.iter().filter(|case| case["format"] == format);
        let of_format: Vec<&Value> = of_format.collect();
        let files = |outcome: &str| -> BTreeSet<&str> {
            let of_outcome = of_format.iter().filter(|case| case["outcome"] == outcome);
            of_outcome
                .map(|case| case["file"].as_str().unwrap())
                .collect()
        };
        let way = [format, "--format", format];
        let (code, report) = over(&cases(), &[&["doctor"], &way[..]].concat());
        let found = |kind: &str| -> BTreeSet<&str> {
            let findings = report["findings"].as_array().unwrap().iter();
            let of_kind = findings.filter(|finding| finding["kind"] == kind);
            of_kind
                .map(|finding| finding["place"].as_str().unwrap())
                .collect()
        };
        assert_eq!(found("corrupt"), files("corrupt"), "{format}");
        assert_eq!(found("violation"), files("violations"), "{format}");
        let exit = if files("corrupt").is_empty() { 1 } else { 3 };
        assert_eq!(code, exit, "{format}");

        let (_, table) = over(&cases(), &[&["status"], &way[..]].concat());
        let rows = table["rows"].as_array().unwrap();
        let listed: BTreeSet<&str> = rows
            .iter()
            .map(|row| row["file"].as_str().unwrap())
            .collect();
        let of = |outcome| files(outcome).is_subset(&listed);
        assert!(of("corrupt") && of("violations"), "{format}: {listed:?}");
        let corrupt = rows.iter().filter(|row| row["kind"] == "corrupt");
        let corrupt: BTreeSet<&str> = corrupt.map(|row| row["file"].as_str().unwrap()).collect();
        assert_eq!(corrupt, files("corrupt"), "{format}");
    }
}

#[test]
fn the_fleet_and_the_doctor_go_over_every_input() {
    let scenarios = cases().join("../scenarios");
    let mut inputs = vec![cases()];
    for scenario in std::fs::read_dir(&scenarios).unwrap() {
        let input = scenario.unwrap().path().join("input");
        inputs.extend(Some(input).filter(|input| input.is_dir()));
    }
    assert!(inputs.len() > 30, "{}", inputs.len());
    for folder in inputs {
        let (_, table) = over(&folder, &["status", "."]);
        let (_, report) = over(&folder, &["doctor", "."]);
        let rows = table["rows"].as_array().unwrap();
        let place = |row: &Value| row["file"].as_str().unwrap_or_default().to_owned();
        let corrupt = rows.iter().filter(|row| row["kind"] == "corrupt");
        let corrupt: BTreeSet<String> = corrupt.map(place).collect();
        let findings = report["findings"].as_array().unwrap().iter();
        let damaged = findings.filter(|finding| finding["kind"] == "corrupt");
        let damaged: BTreeSet<String> = damaged
            .map(|finding| finding["place"].as_str().unwrap().to_owned())
            .collect();
        // Both judge by the same rules.
        assert_eq!(damaged, corrupt, "{folder:?}");
    }
}
