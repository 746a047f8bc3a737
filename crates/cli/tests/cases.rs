//! The binary over the project's cases: what each must give is in `expected.json`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The formats that this release judges in full; of the others it judges corruption.
const SPOKEN: [&str; 4] = ["task", "builder-state", "sitebuilder", "build-pipeline"];

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
    let mut judged = 0;
    let mut left = BTreeMap::new();
    for case in expected.as_array().unwrap() {
        let file = case["file"].as_str().unwrap();
        let format = case["format"].as_str().unwrap();
        let outcome = case["outcome"].as_str().unwrap();
        if !SPOKEN.contains(&format) && outcome != "corrupt" {
            *left.entry(format.to_owned()).or_insert(0) += 1;
            continue;
        }
        // Named, and for the formats that are spoken also detected.
        let mut ways = vec![vec!["--format", format, file]];
        if SPOKEN.contains(&format) {
            ways.push(vec![file]);
        }
        for way in ways {
            let (code, report, errors) = validate(&way);
            let verdict = &report[0];
            assert_eq!(verdict["file"], *file);
            // What is corrupt has no content that tells its format, and these paths do not tell it.
            if outcome == "corrupt" && way.len() == 1 {
                assert_eq!(verdict["format"], Value::Null, "{file}");
            } else {
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
        judged += 1;
    }
    let all: usize = left.values().sum();
    println!("{judged} cases judged; {all} wait for their formats: {left:?}");
    assert_eq!(judged + all, expected.as_array().unwrap().len());
    assert!(judged >= 23, "only {judged} cases were judged");
}

#[test]
fn corruption_is_told_before_the_format() {
    let file = "build-pipeline/cut-off.json";
    let (code, report, _) = validate(&[file]);
    assert_eq!(code, Some(3));
    assert_eq!(report[0]["format"], Value::Null);
    assert_eq!(report[0]["error"]["code"], "truncated");
    let (code, report, errors) = validate(&["expected.json"]);
    assert_eq!(code, Some(3));
    assert_eq!(report[0]["error"]["code"], "not-an-object");
    assert_eq!(errors.lines().count(), 1);
}
