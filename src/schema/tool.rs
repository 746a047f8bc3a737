//! Schemas as the inputs of models' tools take them.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{Contract, raw};
use crate::checkpoint::{OTHER_REVISION, Timestamp, or_null};

/// Keywords that say what a value may be beyond its type; told in words instead.
const LIMITS: [(&str, &str); 4] = [
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("maxLength", "at most this many characters:"),
    ("minLength", "at least this many characters:"),
];

/// Keywords that a strict schema may not have.
const DROPPED: [&str; 8] = [
    "allOf",
    "if",
    "then",
    "else",
    "not",
    "pattern",
    "$comment",
    "propertyNames",
];

/// Makes a schema strict: objects with all members required and none besides.
pub(super) fn strict(schema: &mut Value) {
    let Value::Object(members) = schema else {
        // `true`: anything.
        *schema = anything(None);
        return;
    };
    for keyword in ["$defs", "properties"] {
        if let Some(Value::Object(inner)) = members.get_mut(keyword) {
            inner.retain(|_, schema| schema.get(OTHER_REVISION).is_none());
            inner.values_mut().for_each(strict);
        }
    }
    if let Some(items) = members.get_mut("items") {
        strict(items);
    }
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        branches.iter_mut().for_each(strict);
    }
    if members
        .get("pattern")
        .is_some_and(|pattern| pattern == Timestamp::PATTERN)
    {
        members.insert("format".to_owned(), "date-time".into());
    }
    in_words(members);
    for keyword in DROPPED {
        members.remove(keyword);
    }
    if let Some(value) = value_of_map(members) {
        let nullable = takes_null(members);
        *schema = entries(members.get("description").cloned(), value);
        if nullable {
            or_null(schema);
        }
        return;
    }
    if members.contains_key("properties") || is(members, "object") {
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        let names = properties.as_object().into_iter().flat_map(Map::keys);
        let names: Vec<Value> = names.cloned().map(Value::from).collect();
        members.insert("required".to_owned(), names.into());
        members.insert("additionalProperties".to_owned(), false.into());
        members
            .entry("type")
            .or_insert_with(|| Value::from("object"));
    } else if !["type", "$ref", "anyOf", "enum", "const"]
        .iter()
        .any(|keyword| members.contains_key(*keyword))
    {
        *schema = anything(members.get("description").cloned());
    }
}

fn is(members: &Map<String, Value>, kind: &str) -> bool {
    match members.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        _ => false,
    }
}

fn takes_null(members: &Map<String, Value>) -> bool {
    is(members, "null")
}

/// The schema of the values, where this is that of a map.
fn value_of_map(members: &Map<String, Value>) -> Option<Value> {
    let named = members.get("patternProperties").and_then(Value::as_object);
    let by_pattern = named.and_then(|named| named.values().next());
    let value = by_pattern.or_else(|| {
        let value = members.get("additionalProperties")?;
        (value.is_object() || value == true).then_some(value)
    })?;
    let mut value = value.clone();
    strict(&mut value);
    Some(value)
}

fn entries(description: Option<Value>, value: Value) -> Value {
    let mut schema = json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "value": value},
            "required": ["name", "value"],
            "additionalProperties": false,
        },
    });
    if let Some(description) = description {
        schema["description"] = description;
    }
    schema
}

/// What a model may give where the format takes any JSON.
fn anything(description: Option<Value>) -> Value {
    let mut schema = json!({"anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "null"},
    ]});
    if let Some(description) = description {
        schema["description"] = description;
    }
    schema
}

/// Tells the limits in the description.
fn in_words(members: &mut Map<String, Value>) {
    let told: Vec<String> = LIMITS
        .iter()
        .filter_map(|(keyword, words)| Some(format!("{words} {}", members.remove(*keyword)?)))
        .collect();
    if told.is_empty() {
        return;
    }
    let description = members.get("description").and_then(Value::as_str);
    let said = description.map(|text| format!("{text} "));
    let text = format!("{}Limits: {}.", said.unwrap_or_default(), told.join(", "));
    members.insert("description".to_owned(), text.into());
}

/// The value that a tool's input stands for: where the type has a map, the list of names and values becomes one again.
///
/// Give the result to [`Document::new`](crate::json::Document::new) or `serde_json::from_value`. What is in no
/// form that [`Contract::Tool`] describes is left as it is, for the reader to report.
#[must_use]
pub fn value_of_tool_input<T: JsonSchema>(input: Value) -> Value {
    let schema = raw::<T>(Contract::Tool);
    let mut value = input;
    restore(&mut value, &schema, &schema);
    value
}

fn restore(value: &mut Value, schema: &Value, root: &Value) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        if let Some(target) = root.pointer(name.trim_start_matches('#')) {
            restore(value, target, root);
        }
        return;
    }
    for branch in schema
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        restore(value, branch, root);
    }
    let Some(members) = schema.as_object() else {
        return;
    };
    let is_map =
        members.contains_key("patternProperties") || members.contains_key("additionalProperties");
    match value {
        Value::Array(entries) if is_map => {
            if let Some(mut map) = map_of(entries) {
                for inner in map.values_mut() {
                    restore_inner(inner, members, root);
                }
                *value = Value::Object(map);
            }
        }
        Value::Array(elements) => {
            if let Some(items) = members.get("items") {
                for element in elements {
                    restore(element, items, root);
                }
            }
        }
        Value::Object(inner) => {
            let properties = members.get("properties").and_then(Value::as_object);
            for (name, member) in inner {
                if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                    restore(member, schema, root);
                }
            }
        }
        _ => {}
    }
}

fn restore_inner(value: &mut Value, map: &Map<String, Value>, root: &Value) {
    let named = map.get("patternProperties").and_then(Value::as_object);
    let schema = named.and_then(|named| named.values().next());
    if let Some(schema) = schema.or_else(|| map.get("additionalProperties")) {
        restore(value, schema, root);
    }
}

/// A list of names and values as a map; `None` when it is none, or has a name twice.
fn map_of(entries: &[Value]) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    for entry in entries {
        let entry = entry.as_object().filter(|entry| entry.len() == 2)?;
        let (name, value) = (entry.get("name")?.as_str()?, entry.get("value")?);
        if map.insert(name.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    Some(map)
}
