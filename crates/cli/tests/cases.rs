//! Runs the binary on the project's cases. `expected.json` has the expected results.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;
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
