//! A schema accepts a document exactly when it loads without a violation of shape: for every format, both contracts,
//! over JSON of any shape.
#![cfg(feature = "schema")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use agent_checkpoint::Formats;
use agent_checkpoint::TaskCheckpoint;
use agent_checkpoint::checkpoint::Knowledge;
use agent_checkpoint::formats::{
    AgentCheckpoint, BuildCheckpoint, BuilderState, PipelineState, SitebuilderCheckpoint,
    StoryCheckpoint,
};
use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::schema::{Contract, Schemas};
use agent_checkpoint::strategies::{Examine, any_shape};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

/// The codes that a schema answers for.
const OF_SHAPE: [Code; 7] = [
    Code::WRONG_TYPE,
    Code::MISSING,
    Code::UNKNOWN_VALUE,
    Code::OUT_OF_RANGE,
    Code::TOO_LONG,
    Code::BAD_ID,
    Code::BAD_TIMESTAMP,
];

/// Whether all that a type writes is in a value already; scalars are what was read.
fn has_all(value: &Value, written: &Value) -> bool {
    match (value, written) {
        (Value::Object(members), Value::Object(written)) => written
            .iter()
            .all(|(name, written)| members.get(name).is_some_and(|own| has_all(own, written))),
        (Value::Array(elements), Value::Array(written)) => {
            // What nobody judges and is no object is in no typed list.
            let typed = elements
                .iter()
                .filter(|own| elements.len() == written.len() || own.is_object());
            typed
                .zip(written)
                .all(|(own, written)| has_all(own, written))
        }
        (value, written) => value.is_null() == written.is_null(),
    }
}

fn equals<C: Arbitrary + Examine + 'static>(format: &str) {
    let validators = [Contract::Read, Contract::Write].map(|contract| {
        let schema = Schemas::default().get(format, contract).unwrap();
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap()
    });
    let formats = Formats::default();
    let examine = formats.get(format).unwrap().examine;
    let counts = std::cell::Cell::new((0, 0, 0));
    let config = Config {
        cases: 1_500,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&any_shape::<C>(), |text| {
        // A reader that keeps numbers as f64 takes no 1e400: then there is nothing that a schema could see.
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            return Ok(());
        };
        let document = Document::from_text(text.as_str()).unwrap();
        let violations = examine(&document, &Knowledge::none()).unwrap();
        let loads = !violations.iter().any(|it| OF_SHAPE.contains(&it.code));
        let written = serde_json::to_value(document.read::<C>().unwrap().value).unwrap();
        let is_whole = loads && has_all(&value, &written);
        let (all, loaded, whole) = counts.get();
        counts.set((
            all + 1,
            loaded + i32::from(loads),
            whole + i32::from(is_whole),
        ));
        for (validator, expected) in validators.iter().zip([loads, is_whole]) {
            let errors: Vec<_> = validator
                .iter_errors(&value)
                .map(|it| it.to_string())
                .collect();
            prop_assert!(
                errors.is_empty() == expected,
                "{text}\nas read: {violations:?}\nas written: {written}\nby the schema: {errors:?}"
            );
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{format}: {failure}"));
    // A test that sees one side only shows nothing.
    let (all, loaded, whole) = counts.get();
    assert!(
        loaded * 10 > all && loaded * 10 < all * 9 && whole * 20 > all,
        "{format}: of {all}, {loaded} load without violation and {whole} are as written"
    );
}

#[test]
fn task() {
    equals::<TaskCheckpoint>("task");
}

#[test]
fn builder_state() {
    equals::<BuilderState>("builder-state");
}

#[test]
fn agent_session() {
    equals::<AgentCheckpoint>("agent-session");
}

#[test]
fn sitebuilder() {
    equals::<SitebuilderCheckpoint>("sitebuilder");
}

#[test]
fn story_pipeline() {
    equals::<StoryCheckpoint>("story-pipeline");
}

#[test]
fn story_pipeline_state() {
    equals::<PipelineState>("story-pipeline-state");
}

#[test]
fn build_pipeline() {
    equals::<BuildCheckpoint>("build-pipeline");
}
