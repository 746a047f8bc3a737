//! The JSON Schemas of the formats.
#![cfg(feature = "schema")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use agent_checkpoint::TaskCheckpoint;
use agent_checkpoint::formats::{
    AgentCheckpoint, BuildCheckpoint, BuilderState, PipelineState, SitebuilderCheckpoint,
    StoryCheckpoint,
};
use agent_checkpoint::schema::{Contract, schema};
use common::EXAMPLE;
use proptest::prelude::*;

fn validator(schema: &serde_json::Value) -> jsonschema::Validator {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap()
}

#[test]
fn the_schemas_are_the_published_ones() {
    for (name, schema) in [
        ("task", schema::<TaskCheckpoint>(Contract::Read)),
        ("builder-state", schema::<BuilderState>(Contract::Read)),
        (
            "sitebuilder",
            schema::<SitebuilderCheckpoint>(Contract::Read),
        ),
        ("build-pipeline", schema::<BuildCheckpoint>(Contract::Read)),
        ("story-pipeline", schema::<StoryCheckpoint>(Contract::Read)),
        (
            "story-pipeline-state",
            schema::<PipelineState>(Contract::Read),
        ),
        ("agent-session", schema::<AgentCheckpoint>(Contract::Read)),
    ] {
        let path = format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let text = format!("{schema:#}\n");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "{path} is not what the types say; UPDATE_SCHEMAS=1 writes it anew"
        );
    }
}

#[test]
fn the_protocols_example_is_valid_and_a_broken_one_is_not() {
    let validator = validator(&schema::<BuilderState>(Contract::Read));
    let mut example: serde_json::Value = serde_json::from_str(EXAMPLE).unwrap();
    assert!(validator.is_valid(&example));
    let checkpoint = &mut example["activePrd"]["checkpoint"];
    for (pointer, value) in [
        ("/metadata/reason", "lunch"),
        ("/metadata/lastUpdatedAt", "soon"),
        ("/phase", "thinking"),
    ] {
        let place = checkpoint.pointer_mut(pointer).unwrap();
        let was = std::mem::replace(place, value.into());
        let broken = checkpoint.clone();
        *checkpoint.pointer_mut(pointer).unwrap() = was;
        let whole = serde_json::json!({"checkpoint": broken});
        assert!(!validator.is_valid(&whole), "{pointer}");
    }
    for (pointer, member) in [
        ("/completedSteps/0", "timestamp"),
        ("/decisions/0", "decision"),
        ("/metadata", "reason"),
        ("", "phase"),
    ] {
        let mut broken = checkpoint.clone();
        let place = broken.pointer_mut(pointer).unwrap();
        place.as_object_mut().unwrap().remove(member).unwrap();
        let whole = serde_json::json!({"checkpoint": broken});
        assert!(!validator.is_valid(&whole), "{pointer} without {member}");
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_valid(task in any::<TaskCheckpoint>()) {
        let validator = validator(&schema::<TaskCheckpoint>(Contract::Write));
        let written = serde_json::to_value(&task).unwrap();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }
}

/// The published schemas take every valid case of their format.
#[test]
fn every_valid_case_is_valid_by_the_published_schema() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for folder in std::fs::read_dir(root.join("tests/cases")).unwrap() {
        let folder = folder.unwrap().path();
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let schema = root.join(format!("schemas/{name}.schema.json"));
        if !folder.is_dir() || !schema.exists() {
            continue;
        }
        let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
        let validator = validator(&schema);
        for case in std::fs::read_dir(&folder).unwrap() {
            let case = case.unwrap().path();
            let file = case
                .file_name()
                .and_then(|file| file.to_str())
                .unwrap()
                .to_owned();
            // A space for the `T` of a time is tolerated, not valid.
            if file.starts_with("valid") && !file.contains("stamp-with-space") {
                let value = serde_json::from_str(&std::fs::read_to_string(&case).unwrap()).unwrap();
                let errors: Vec<_> = validator
                    .iter_errors(&value)
                    .map(|e| e.to_string())
                    .collect();
                assert!(errors.is_empty(), "{name}/{file}: {errors:?}");
                count += 1;
            }
        }
    }
    assert!(count >= 15, "only {count} cases");
}
