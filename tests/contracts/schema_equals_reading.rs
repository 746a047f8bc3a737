//! A schema accepts a document exactly when it loads without a violation of shape: for every format, both contracts,
//! over JSON of any shape.

use agent_checkpoint::formats::Formats;
use std::cell::Cell;

use crate::common::{cases, places};
use agent_checkpoint::RuleContext;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::schema::{Contract, Schemas};
use agent_checkpoint::strategies::{Examine, any_shape};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

/// The value with its numbers as integers or f64: 4.0000000000000001 becomes 4.0. Both sides then see the same numbers,
/// whatever serde_json keeps. `None` if a number is beyond f64.
fn in_f64(value: Value) -> Option<Value> {
    Some(match value {
        Value::Number(number) if number.is_u64() || number.is_i64() => Value::Number(number),
        Value::Number(number) => serde_json::Number::from_f64(number.as_f64()?)?.into(),
        Value::Array(elements) => {
            Value::Array(elements.into_iter().map(in_f64).collect::<Option<_>>()?)
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, value)| Some((name, in_f64(value)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        value => value,
    })
}

fn schemas(format: &str) -> [Value; 2] {
    [Contract::Read, Contract::Write].map(|it| Schemas::default().get(format, it).unwrap())
}

/// Compares schemas with the reader, over this many documents. Returns how many there were and how many load without a
/// violation of shape, or where they differ.
fn compare<C: Arbitrary + Examine + 'static>(
    format: &str,
    schemas: &[Value; 2],
    is_broken: bool,
) -> Result<[u32; 2], String> {
    let validators = schemas.each_ref().map(|schema| {
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(schema)
            .unwrap()
    });
    let formats = Formats::default();
    let known = formats.get(format).unwrap();
    let counts = Cell::new([0; 2]);
    let config = Config {
        cases: if is_broken { 6_000 } else { cases(800) },
        failure_persistence: None,
        // For a broken schema it is enough to know that it differs.
        max_shrink_iters: if is_broken { 0 } else { u32::MAX },
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&any_shape::<C>(), |text| {
        // A validator cannot represent a number beyond f64.
        let Some(value) = serde_json::from_str(&text).ok().and_then(in_f64) else {
            return Ok(());
        };
        let text = value.to_string();
        let document = Document::from_text(text.as_str()).unwrap();
        let violations = known.violations(&document, &RuleContext::none()).unwrap();
        let loads = !violations.iter().any(|it| it.code.is_shape());
        let [all, loaded] = counts.get();
        counts.set([all + 1, loaded + u32::from(loads)]);
        for validator in &validators {
            let errors: Vec<_> = validator
                .iter_errors(&value)
                .map(|it| it.to_string())
                .collect();
            prop_assert!(
                errors.is_empty() == loads,
                "{text}\nas read: {violations:?}\nby the schema: {errors:?}"
            );
        }
        Ok(())
    });
    result.map_err(|failure| failure.to_string())?;
    Ok(counts.get())
}

fn equals<C: Arbitrary + Examine + 'static>(format: &str) {
    match compare::<C>(format, &schemas(format), false) {
        Err(difference) => panic!("{format}: {difference}"),
        // A test that sees only one side proves nothing.
        Ok([all, loaded]) => assert!(
            loaded * 10 > all && loaded * 10 < all * 9,
            "{format}: of {all}, {loaded} load without violation"
        ),
    }
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

/// Removes a keyword everywhere in a schema.
fn without(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(members) => {
            members.remove(keyword);
            members
                .values_mut()
                .for_each(|inner| without(inner, keyword));
        }
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|inner| without(inner, keyword)),
        _ => {}
    }
}

/// The comparison finds a schema that lacks any one keyword.
#[test]
fn a_schema_without_one_of_its_keywords_is_found() {
    fn finds<C: Arbitrary + Examine + 'static>(format: &str, keywords: &[&str]) {
        for keyword in places().map_while(|at| keywords.get(at)) {
            let mut broken = schemas(format);
            broken
                .iter_mut()
                .for_each(|schema| without(schema, keyword));
            assert_ne!(broken, schemas(format), "{format} has no {keyword}");
            let found = compare::<C>(format, &broken, true);
            assert!(found.is_err(), "{format} without {keyword}: {found:?}");
        }
    }
    let of_task = ["type", "required", "enum", "pattern", "maxLength"];
    finds::<TaskCheckpoint>("task", &of_task);
    finds::<SitebuilderCheckpoint>("sitebuilder", &["maximum", "minimum"]);
    finds::<StoryCheckpoint>("story-pipeline", &["allOf", "if", "else"]);
    let of_state = ["patternProperties", "additionalProperties"];
    finds::<PipelineState>("story-pipeline-state", &of_state);
    finds::<BuildCheckpoint>("build-pipeline", &["allOf", "then"]);
}
