//! Schemas as the inputs of models' tools take them.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::raw;
use crate::checkpoint::{OTHER_REVISION, Timestamp, or_null};

/// Keywords that a strict schema has.
const KEPT: [&str; 13] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
];

/// Limits that have words of their own.
const LIMITS: [(&str, &str); 4] = [
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("maxLength", "at most this many characters:"),
    ("minLength", "at least this many characters:"),
];

/// What is left out and not told: remarks, and rules between members, which the reader judges.
const DROPPED: [&str; 11] = [
    "if",
    "then",
    "else",
    "not",
    "$comment",
    "propertyNames",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Makes a schema strict: objects with all members required and none besides. What cannot be said strictly is told
/// in `refused`, with its place.
pub(super) fn strict(schema: &mut Value, at: &str, refused: &mut Vec<String>) {
    let Value::Object(members) = schema else {
        // `true`: anything.
        *schema = anything(None);
        return;
    };
    // A stamp: a tool's is one by the format, and its time has a `T`.
    let is_time = |branch: &Value| {
        branch
            .get("pattern")
            .is_some_and(|it| it == Timestamp::PATTERN)
    };
    let branches = members.get("anyOf").and_then(Value::as_array);
    if branches.is_some_and(|branches| branches.iter().any(is_time)) {
        members.remove("anyOf");
        members.insert("format".to_owned(), "date-time".into());
    }
    refused.extend(inexpressible(members).map(|why| format!("{at}: {why}")));
    members.remove("allOf");
    for keyword in ["$defs", "properties"] {
        if let Some(Value::Object(inner)) = members.get_mut(keyword) {
            inner.retain(|_, schema| schema.get(OTHER_REVISION).is_none());
            for (name, inner) in inner {
                strict(inner, &format!("{at}/{keyword}/{name}"), refused);
            }
        }
    }
    if let Some(items) = members.get_mut("items") {
        strict(items, &format!("{at}/items"), refused);
    }
    if let Some(branches) = members.remove("oneOf") {
        match constants(&branches) {
            Some((kind, values, told)) => {
                kind.map(|kind| members.insert("type".to_owned(), kind));
                members.insert("enum".to_owned(), values);
                if !told.is_empty() {
                    describe(members, &told);
                }
            }
            None => {
                members.insert("anyOf".to_owned(), branches);
            }
        }
    }
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        for (index, branch) in branches.iter_mut().enumerate() {
            strict(branch, &format!("{at}/anyOf/{index}"), refused);
        }
    }
    let is_time = members
        .get("format")
        .is_some_and(|format| format == "date-time");
    in_words(members);
    if is_time {
        members.insert("format".to_owned(), "date-time".into());
    }
    if let Some(value) = value_of_map(members) {
        let mut value = value.clone();
        strict(&mut value, &format!("{at}/additionalProperties"), refused);
        let nullable = takes_null(members);
        *schema = entries(members.get("description").cloned(), value);
        if nullable {
            or_null(schema);
        }
        return;
    }
    members.remove("patternProperties");
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

/// Why a schema cannot be said strictly, where it cannot.
fn inexpressible(members: &Map<String, Value>) -> Option<&'static str> {
    let has = |keyword| members.contains_key(keyword);
    let named = members.get("properties").and_then(Value::as_object);
    let named = named.is_some_and(|named| !named.is_empty());
    let besides = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .filter_map(|keyword| members.get(*keyword))
        .any(|besides| besides.is_object() || besides == true);
    let of_conditions = |all: &Value| {
        let mut all = all.as_array().into_iter().flatten();
        all.all(|it| {
            ["if", "not"]
                .iter()
                .any(|keyword| it.get(keyword).is_some())
        })
    };
    if has("prefixItems") {
        Some("a tuple; make it a struct")
    } else if named && (besides || has("patternProperties")) {
        Some("a flattened map; keep it in a member of its own")
    } else if named && (has("oneOf") || has("anyOf") || has("$ref")) {
        Some(
            "a flattened enum, or one whose tag stands among a struct's members; keep it in a member of its own",
        )
    } else if members.get("allOf").is_some_and(|all| !of_conditions(all)) {
        Some("several schemas at once (`allOf`); make it one struct")
    } else if has("oneOf") && has("anyOf") {
        Some("alternatives of two kinds; make it one enum")
    } else {
        None
    }
}

/// The type and the values of alternatives that are all constants, and what is told of each in words.
fn constants(branches: &Value) -> Option<(Option<Value>, Value, String)> {
    let (mut kinds, mut values, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for branch in branches.as_array()? {
        let of_branch = match (branch.get("const"), branch.get("enum"), branch.get("type")) {
            (Some(only), ..) => vec![only.clone()],
            (None, Some(Value::Array(all)), _) => all.clone(),
            (None, None, Some(kind)) if kind == "null" => vec![Value::Null],
            _ => return None,
        };
        match branch.get("type") {
            Some(Value::Array(all)) => kinds.extend(all.iter().cloned()),
            kind => kinds.extend(kind.cloned()),
        }
        if let Some(text) = branch.get("description").and_then(Value::as_str) {
            let names: Vec<_> = of_branch.iter().map(Value::to_string).collect();
            told.push(format!("{}: {text}", names.join(", ")));
        }
        values.extend(of_branch);
    }
    let mut once: Vec<Value> = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    let kind = match &once[..] {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(once.into()),
    };
    Some((kind, values.into(), told.join(" ")))
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

/// The schema of the values, where this is that of a map. What has members of its own is none.
fn value_of_map(members: &Map<String, Value>) -> Option<&Value> {
    let own = members.get("properties").and_then(Value::as_object);
    if own.is_some_and(|own| !own.is_empty()) {
        return None;
    }
    let named = members.get("patternProperties").and_then(Value::as_object);
    let by_pattern = named.and_then(|named| named.values().next());
    by_pattern.or_else(|| {
        let value = members.get("additionalProperties")?;
        (value.is_object() || value == true).then_some(value)
    })
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

/// Tells the limits in the description, and takes every keyword out that a strict schema does not have.
fn in_words(members: &mut Map<String, Value>) {
    let mut told: Vec<String> = LIMITS
        .iter()
        .filter_map(|(keyword, words)| Some(format!("{words} {}", members.remove(*keyword)?)))
        .collect();
    let is_ours = |keyword: &str| {
        let of_map = ["patternProperties", "unevaluatedProperties", "prefixItems"];
        KEPT.contains(&keyword) || of_map.contains(&keyword)
    };
    let mut others: Vec<_> = members.keys().filter(|it| !is_ours(it)).cloned().collect();
    others.sort();
    for keyword in others {
        let Some(limit) = members.remove(&keyword) else {
            continue;
        };
        let is_told = limit != false && limit != "date-time" && !keyword.starts_with("x-");
        if is_told && !DROPPED.contains(&&*keyword) {
            told.push(format!("{keyword} {limit}"));
        }
    }
    members.remove("unevaluatedProperties");
    members.remove("prefixItems");
    if !told.is_empty() {
        describe(members, &format!("Limits: {}.", told.join(", ")));
    }
}

/// Adds a sentence to a description.
fn describe(members: &mut Map<String, Value>, more: &str) {
    let description = members.get("description").and_then(Value::as_str);
    let said = description.map(|text| format!("{text} "));
    let text = format!("{}{more}", said.unwrap_or_default());
    members.insert("description".to_owned(), text.into());
}

/// The value that a tool's input stands for: where the type has a map, the list of names and values becomes one again.
///
/// Give the result to [`Document::new`](crate::json::Document::new) or `serde_json::from_value`. What is in no
/// form that [`Contract::Tool`](super::Contract::Tool) describes is left as it is, for the reader to report.
#[must_use]
pub fn value_of_tool_input<T: JsonSchema>(input: Value) -> Value {
    let schema = raw::<T>();
    let mut value = input;
    restore(&mut value, &schema, &schema);
    value
}

fn restore(value: &mut Value, schema: &Value, root: &Value) {
    let schema = target(schema, root);
    let Some(members) = schema.as_object() else {
        return;
    };
    let alternatives = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|it| members.get(*it)?.as_array());
    let mut branches: Vec<&Value> = alternatives.flatten().map(|it| target(it, root)).collect();
    branches.retain(|branch| fits(value, branch, root));
    // A list stays one where it may; a value is restored once.
    branches.sort_by_key(|branch| {
        branch
            .as_object()
            .is_some_and(|it| value_of_map(it).is_some())
    });
    if let Some(branch) = branches.first() {
        restore(value, branch, root);
        return;
    }
    match value {
        Value::Array(entries) => {
            if let Some(inner_schema) = value_of_map(members) {
                if let Some(mut map) = map_of(entries) {
                    map.values_mut()
                        .for_each(|inner| restore(inner, inner_schema, root));
                    *value = Value::Object(map);
                }
            } else if let Some(items) = members.get("items") {
                entries
                    .iter_mut()
                    .for_each(|element| restore(element, items, root));
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

/// The schema that a reference leads to. What a reference leads to is a reference in no schema of schemars.
fn target<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let pointer = reference
        .and_then(|it| it.strip_prefix('#'))
        .and_then(decoded);
    pointer
        .and_then(|pointer| root.pointer(&pointer))
        .unwrap_or(schema)
}

/// A text with its `%XX` as what they stand for.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Whether a tool's input is one for this alternative, as far as its kind, its constants and its names tell.
fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    let schema = target(schema, root);
    let Some(members) = schema.as_object() else {
        return true;
    };
    let differs = members.get("const").is_some_and(|only| only != value)
        || matches!(members.get("enum"), Some(Value::Array(all)) if !all.contains(value));
    if differs {
        return false;
    }
    let mut alternatives = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|it| members.get(*it)?.as_array());
    if alternatives.any(|branches| !branches.iter().any(|branch| fits(value, branch, root))) {
        return false;
    }
    match value {
        Value::Array(entries) => match value_of_map(members) {
            Some(inner) => {
                map_of(entries).is_some_and(|map| map.values().all(|it| fits(it, inner, root)))
            }
            None if members.contains_key("type") && !is(members, "array") => false,
            None => members
                .get("items")
                .is_none_or(|items| entries.iter().all(|it| fits(it, items, root))),
        },
        Value::Object(own) => {
            let names = members.get("required").and_then(Value::as_array);
            let has_all = names.is_none_or(|names| {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .all(|name| own.contains_key(name))
            });
            let properties = members.get("properties").and_then(Value::as_object);
            let known = |name: &str| properties.and_then(|properties| properties.get(name));
            let is_object = is(members, "object") || !members.contains_key("type");
            is_object
                && has_all
                && (properties.is_none() || own.keys().all(|name| known(name).is_some()))
                && own.iter().all(|(name, it)| {
                    known(name)
                        .is_none_or(|schema| schema.get("const").is_none_or(|only| only == it))
                })
        }
        scalar => {
            let kinds: &[&str] = match scalar {
                Value::Null => &["null"],
                Value::Bool(_) => &["boolean"],
                Value::String(_) => &["string"],
                _ => &["number", "integer"],
            };
            !members.contains_key("type") || kinds.iter().any(|kind| is(members, kind))
        }
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
