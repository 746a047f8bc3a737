//! The inputs of `tests/cases`; `expected.json` has the expected results.

use std::fs;
use std::path::Path;

use agent_checkpoint::RuleContext;
use agent_checkpoint::formats::Formats;
use agent_checkpoint::json::Document;
use serde_json::Value;

#[test]
fn every_case_gives_exactly_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&expected).unwrap();
    assert_eq!(cases.len(), 90);
    let formats = Formats::default();
    for case in &cases {
        let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
        let (file, name) = (text(case, "file"), text(case, "format"));
        let path = folder.join(&file);
        let document = match Document::parse(&fs::read(&path).unwrap()) {
            Ok(document) => document,
            Err(corrupt) => {
                assert_eq!(case["outcome"], "corrupt", "{file}: {corrupt}");
                assert_eq!(case["error"], corrupt.code.as_str(), "{file}");
                continue;
            }
        };
        let detected = formats.detect(&path, Some(&document)).unwrap();
        assert_eq!(detected.format.name(), name, "{file}");
        let format = formats.get(&name).unwrap();
        let violations = format.violations(&document, &RuleContext::none()).unwrap();
        let mut found: Vec<_> = violations
            .iter()
            .map(|violation| (violation.pointer.clone(), violation.code.to_string()))
            .collect();
        found.sort();
        let mut expected: Vec<_> = case["violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|violation| (text(violation, "pointer"), text(violation, "code")))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{file}");
        let outcome = if expected.is_empty() {
            "valid"
        } else {
            "violations"
        };
        assert_eq!(case["outcome"], outcome, "{file}");
    }
}
