//! Rules of a struct that its JSON Schema cannot learn from serde.

use schemars::transform::Transform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Rules of a struct that its JSON Schema cannot learn from serde: which members are required, that `null`
/// counts as absent, and the source of the rules.
///
/// Needs the feature `schema`. Every struct of a format is `#[serde(default)]`, so that a missing member never
/// costs its object, and therefore serde calls no member required. State the required ones here, and the schema
/// accepts exactly what [`inspect`](super::Checkpoint::inspect) reports nothing about:
///
/// ```
/// use agent_checkpoint::schema::{Shape, schema};
///
/// #[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// #[schemars(transform = Shape::new("the errand protocol, chapter 2").required(Self::REQUIRED))]
/// #[serde(default)]
/// struct Errand {
///     /// Stops that are left, in order.
///     left: Vec<String>,
///     /// Stops that were made, oldest first.
///     made: Vec<String>,
/// }
///
/// impl Errand {
///     const REQUIRED: &[&str] = &["left"];
/// }
///
/// let schema = schema::<Errand>();
/// assert_eq!(schema["required"], serde_json::json!(["left"]));
/// let left = &schema["properties"]["left"]["description"];
/// assert_eq!(left, "Stops that are left, in order. Source: the errand protocol, chapter 2.");
/// ```
#[derive(Clone, Debug)]
pub struct Shape {
    source: &'static str,
    required: &'static [&'static str],
    null_is_absent: bool,
    judged: Option<&'static [&'static str]>,
    of_any_type: bool,
}

impl Shape {
    /// A shape whose members come from this source. The source is appended to each member's description, unless
    /// that names a source of its own.
    #[must_use]
    pub const fn new(source: &'static str) -> Shape {
        Shape {
            source,
            required: &[],
            null_is_absent: false,
            judged: None,
            of_any_type: false,
        }
    }

    /// Members that must be there and not `null`.
    #[must_use]
    pub fn required(mut self, members: &'static [&'static str]) -> Shape {
        self.required = members;
        self
    }

    /// `null` counts as absent for any member that is not required. Use it only for a type whose members all
    /// accept `null`, as options do, and lists with their own deserializer.
    #[must_use]
    pub fn null_is_absent(mut self) -> Shape {
        self.null_is_absent = true;
        self
    }

    /// Accepts a value that is not an object too, without judging it.
    #[must_use]
    pub fn of_any_type(mut self) -> Shape {
        self.of_any_type = true;
        self
    }

    /// Judges only these members; other members may be of any type.
    #[must_use]
    pub fn judging(mut self, members: &'static [&'static str]) -> Shape {
        self.judged = Some(members);
        self
    }
}

impl Transform for Shape {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(schema) = schema.as_object_mut() else {
            return;
        };
        let always_written = schema.get("required").cloned().unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (name, property) in properties {
                let always = always_written.as_array();
                let always = always.is_some_and(|names| names.iter().any(|it| it == name));
                self.member(name, property, always);
            }
        }
        require(schema, self.required);
        if self.of_any_type {
            schema.remove("type");
        }
    }
}

impl Shape {
    /// Serde always writes such a member, so the type alone decides whether it may be `null`.
    fn member(&self, name: &str, property: &mut Value, always_written: bool) {
        if property == &Value::Bool(true) {
            *property = json!({});
        }
        if self.judged.is_some_and(|judged| !judged.contains(&name)) {
            let description = property.get("description").cloned();
            *property = match always_written {
                true => json!({ "not": { "type": "null" } }),
                false => json!({}),
            };
            if let Some(description) = description {
                property["description"] = description;
            }
        } else if self.required.contains(&name) {
            without_null(property);
        } else if self.null_is_absent && !always_written {
            or_null(property);
        }
        if let Some(Value::String(text)) = property.get_mut("description")
            && !text.contains("Source: ")
        {
            let end = if text.ends_with('.') { "" } else { "." };
            *text = format!("{text}{end} Source: {}.", self.source);
        }
    }
}

/// Adds names to the required members of a schema.
fn require(schema: &mut Map<String, Value>, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in names {
            if !required.iter().any(|known| known == name) {
                required.push((*name).into());
            }
        }
    }
}

/// Makes a schema accept `null` as well.
pub(crate) fn or_null(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if members.contains_key("$ref") {
        let mut outer = Map::new();
        if let Some(description) = members.remove("description") {
            outer.insert("description".into(), description);
        }
        outer.insert("anyOf".into(), json!([schema.take(), {"type": "null"}]));
        *schema = Value::Object(outer);
        return;
    }
    // A `const` cannot have a second value, so it becomes an `enum`.
    if let Some(only) = members.remove("const") {
        members.insert("enum".into(), json!([only]));
    }
    match members.get_mut("type") {
        Some(Value::Array(types)) if !types.iter().any(|kind| kind == "null") => {
            types.push("null".into());
        }
        Some(Value::String(kind)) if kind != "null" => {
            let kind = std::mem::take(kind);
            members.insert("type".into(), json!([kind, "null"]));
        }
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.iter().any(Value::is_null)
    {
        values.push(Value::Null);
    }
    // If there is a `type`, the branches concern values of that type and need no `null`.
    let is_typed = members.contains_key("type");
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = members.get_mut(union)
            && !is_typed
            && !branches.iter().any(is_null)
        {
            branches.push(json!({"type": "null"}));
        }
    }
}

/// Makes a schema refuse `null`.
fn without_null(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = &types[..] {
            let kind = kind.clone();
            members.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = members.get_mut(union) {
            branches.retain(|branch| !is_null(branch));
            if let [Value::Object(branch)] = &branches[..] {
                let branch = branch.clone();
                members.remove(union);
                members.extend(branch);
            }
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

/// The schema of a map in which a `null` value counts as absent.
pub(crate) fn entries<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut value = generator.subschema_for::<T>().to_value();
    or_null(&mut value);
    schemars::json_schema!({ "type": "object", "additionalProperties": value })
}

/// The condition that a document has a member other than `null`.
pub(crate) fn present(name: &str) -> Value {
    json!({ "required": [name], "properties": { name: { "not": { "type": "null" } } } })
}

/// The condition that a document has at least one of these members.
pub(crate) fn any_present(names: &[&str]) -> Value {
    json!({ "anyOf": names.iter().map(|name| present(name)).collect::<Vec<_>>() })
}

/// The condition that a document has all of these members.
pub(crate) fn all_present(names: &[&str]) -> Value {
    json!({ "allOf": names.iter().map(|name| present(name)).collect::<Vec<_>>() })
}

/// The condition that a member has this value.
pub(crate) fn is(name: &str, value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({ "required": [name], "properties": { name: { "const": value } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_comes_and_goes() {
        for (without, with) in [
            (
                json!({"type": "string"}),
                json!({"type": ["string", "null"]}),
            ),
            (
                json!({"type": "string", "enum": ["a"]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"$ref": "#/$defs/A", "description": "It."}),
                json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "description": "It."}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}),
            ),
            (
                json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
                json!({"oneOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}),
            ),
            (json!({}), json!({})),
        ] {
            let mut schema = without.clone();
            for _ in 0..2 {
                or_null(&mut schema);
                assert_eq!(schema, with);
            }
            without_null(&mut schema);
            assert_eq!(schema, without);
        }
        let mut constant = json!({"const": "a", "type": "string"});
        or_null(&mut constant);
        let with = json!({"enum": ["a", null], "type": ["string", "null"]});
        assert_eq!(constant, with);
    }

    #[test]
    fn what_is_not_judged_and_not_described_has_no_description() {
        let mut schema = schemars::json_schema!({"properties": {"a": {"type": "string"}}});
        Shape::new("it").judging(&[]).transform(&mut schema);
        assert_eq!(schema.to_value(), json!({"properties": {"a": {}}}));
    }
}
