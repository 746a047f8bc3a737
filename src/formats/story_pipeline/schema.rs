//! The conditions that the JSON Schemas of the pipeline's files add to the types of their members.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::spelling::{self, CAMEL_ONLY, Name, SNAKE_MARKS};
use super::{Verdict, layout};
use crate::checkpoint::{all_present, any_present, entries, is, or_null, present};

/// The ids that [`is_story_id`](super::is_story_id) accepts.
pub(super) const STORY_ID: &str = "^[A-Z]+-[0-9]+$";

/// One of the four stages, which may be written as `2.0`.
pub(super) fn stage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": 3 })
}

fn either(name: Name) -> Value {
    any_present(&[name.camel, name.snake])
}

/// The members that each revision and each stage requires.
pub(super) fn conditions(schema: &mut Schema) {
    let is_later = json!({"allOf": [any_present(SNAKE_MARKS), {"not": any_present(CAMEL_ONLY)}]});
    let later = json!({"allOf": [
        present(spelling::LAST_ACTION.snake),
        any_present(&["started_at", "completed_at"]),
    ]});
    let original = [
        "storyId",
        "agentId",
        "timestamp",
        spelling::LAST_ACTION.camel,
    ];
    let refusal = |verdict: Verdict, text: &str| json!({"if": is("verdict", verdict.as_str()), "then": present(text)});
    schema.insert(
        "allOf".to_owned(),
        json!([
            {"if": is_later, "then": later, "else": all_present(&original)},
            {"if": is("stage", 0), "then": either(spelling::PLAN_SCORE)},
            {"if": is("stage", 2), "then": either(spelling::REMAINING)},
            {
                "if": is("stage", 1),
                "then": {"allOf": [present("readiness"), verdict_of(1), refusal(Verdict::NoGo, "reason")]},
            },
            {
                "if": is("stage", 3),
                "then": {"allOf": [
                    either(spelling::QUALITY_SCORE), verdict_of(3), refusal(Verdict::Fail, "issues"),
                ]},
            },
        ]),
    );
}

/// Requires at least one of the variables of a pipeline's state.
pub(super) fn any_variable(schema: &mut Schema) {
    let variables: Vec<&str> = layout::variables().collect();
    schema.insert(
        "allOf".to_owned(),
        json!([{"if": {"type": "object"}, "then": any_present(&variables)}]),
    );
}

fn verdict_of(stage: u8) -> Value {
    let verdicts: Vec<_> = Verdict::of_stage(stage)
        .iter()
        .map(Verdict::as_str)
        .collect();
    json!({"required": ["verdict"], "properties": {"verdict": {"enum": verdicts}}})
}

/// A map by story id. A member that is `null` counts as absent, whatever its name.
pub(super) fn by_story<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let map = entries::<T>(generator);
    named_by_stories(map.get("additionalProperties").cloned())
}

/// A map from story ids to numbers in this range, bounds included.
pub(super) fn by_story_within<const LEAST: u32, const MOST: u32>(
    _: &mut SchemaGenerator,
) -> Schema {
    named_by_stories(Some(
        json!({"type": ["number", "null"], "minimum": LEAST, "maximum": MOST}),
    ))
}

fn named_by_stories(value: Option<Value>) -> Schema {
    json_schema!({
        "type": "object",
        "patternProperties": {STORY_ID: value},
        "additionalProperties": {"type": "null"},
    })
}

/// A list of story ids.
pub(super) fn story_ids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "pattern": STORY_ID}})
}

/// The stories that must be done before each story.
pub(super) fn depends_on(generator: &mut SchemaGenerator) -> Schema {
    let mut ids = story_ids(generator).to_value();
    or_null(&mut ids);
    named_by_stories(Some(ids))
}
