//! `ckpt schema`, and `validate` with context from options.

use serde_json::Value;

use crate::project::{Project, TASK};

const FORMATS: [&str; 6] = [
    "agent-session",
    "build-pipeline",
    "builder-state",
    "sitebuilder",
    "story-pipeline",
    "task",
];

#[test]
fn a_schema_is_printed_or_written() {
    let project = Project::new();
    let task = project.expect(0, &["schema", "task"]).json();
    assert_eq!(task["title"], "TaskCheckpoint");
    let read = project.expect(0, &["schema", "sitebuilder"]).json();
    let write = project
        .expect(0, &["schema", "sitebuilder", "--contract", "write"])
        .json();
    assert_ne!(read, write);
    let all = project.expect(0, &["schema"]).json();
    for format in FORMATS {
        assert!(all[format].is_object(), "{format}");
    }
    assert_eq!(all["task"], task);
    assert_eq!(all["sitebuilder"], read);
    let run = project.expect(
        0,
        &["schema", "--out", "new/schemas", "--contract", "write"],
    );
    assert_eq!(run.out.lines().count(), all.as_object().unwrap().len());
    let text = project.read("new/schemas/sitebuilder.write.schema.json");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), write);
    let published = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schemas/sitebuilder.write.schema.json"
    );
    assert_eq!(text, std::fs::read_to_string(published).unwrap());
    let run = project.expect(0, &["schema", "task", "--out", "one", "--json"]);
    let files = ["read", "write"].map(|it| format!("one/task.{it}.schema.json"));
    assert_eq!(run.json(), serde_json::json!(files));
    let run = project.expect(2, &["schema", "paper"]);
    assert!(
        run.error().contains("\"paper\" is not a known format"),
        "{run:?}"
    );
    project.expect(2, &["schema", "task", "--contract", "think"]);
}

#[test]
fn a_plan_that_is_none_is_told() {
    let project = Project::with("t.json", TASK);
    for (text, says) in [
        ("", "not a plan of a build"),
        ("[]", "not a plan of a build"),
        ("{}", "no workstreams"),
        ("{\"phases\": 1}", "not a plan of a build"),
        (
            r#"{"phases": [{"workstreams": [{"id": "A"}]}, {"workstreams": [{"id": "A"}]}]}"#,
            "has the workstream \"A\" twice",
        ),
        (r#"{"phases": [{"workstreams": [{"id": " "}]}]}"#, "no name"),
        (
            r#"{"phases": [{"workstreams": [{"id": "A"}]}], "gates": [""]}"#,
            "no name",
        ),
    ] {
        project.write("spec.json", text);
        let run = project.expect(2, &["validate", "t.json", "--spec", "spec.json"]);
        assert!(run.error().starts_with("spec.json: "), "{run:?}");
        assert!(run.error().contains(says), "{run:?}");
    }
    let run = project.expect(2, &["validate", "t.json", "--spec", "none.json"]);
    assert!(run.error().contains("no such file"), "{run:?}");
    project.write(
        "spec.json",
        r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "Core"}]}]}"#,
    );
    let run = project.expect(0, &["validate", "t.json", "--spec", "spec.json"]);
    assert_eq!(
        run.err,
        "note: t.json: --spec judges build-pipeline only, and this is task\n"
    );
    let run = project.expect(0, &["validate", "t.json", "--story-state", "STAGE_1"]);
    assert!(run.err.contains("judges story-pipeline only"), "{run:?}");
    let run = project.expect(2, &["validate", "t.json", "--story-state", "LUNCH"]);
    assert!(run.error().contains("QUEUED, STAGE_0"), "{run:?}");
}
