//! JSON as agents write it.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

/// Names that real checkpoint files use, so that generated objects often meet the types.
const NAMES: &[&str] = &[
    "phase",
    "completedSteps",
    "pendingSteps",
    "currentStep",
    "decisions",
    "blockers",
    "verification",
    "metadata",
    "step",
    "timestamp",
    "description",
    "partialWork",
    "rationale",
    "results",
    "status",
    "activePrd",
    "adhocQueue",
    "checkpoint",
    "schemaVersion",
    "lastUpdatedAt",
    "notes",
    "current_tier",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(NAMES).prop_map(str::to_owned),
        1 => "[a-z_]{1,8}",
        1 => "\\PC{0,6}",
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => (-1e9..1e9).prop_map(Value::from),
        1 => Just(Value::from("N/A")),
        1 => super::timestamp().prop_map(|stamp| Value::from(stamp.text())),
        2 => "[a-z ]{0,12}".prop_map(Value::from),
        2 => any::<String>().prop_map(Value::from),
    ]
}

/// Any JSON value up to 4 levels deep, of up to 48 values; names of objects are mostly those that
/// checkpoint files use.
pub fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..6).prop_map(Value::from),
            2 => btree_map(name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Any JSON object, with values as [`json_value`] gives them.
pub fn json_object() -> impl Strategy<Value = Value> {
    btree_map(name(), json_value(), 0..10)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// The text of a value in one of the styles that people and programs write, each as often: two
/// spaces, four spaces, tabs, one line, CRLF, with a byte order mark, with and without a last line
/// end.
pub fn restyled(value: Value) -> impl Strategy<Value = String> {
    (0..5_u8, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        move |(indent, crlf, mark, last_line_end)| {
            let mut text = match indent {
                0 | 1 => format!("{value:#}"),
                2 => reindented(&format!("{value:#}"), "    "),
                3 => reindented(&format!("{value:#}"), "\t"),
                _ => value.to_string(),
            };
            if last_line_end {
                text.push('\n');
            }
            if crlf {
                text = text.replace('\n', "\r\n");
            }
            if mark {
                text.insert(0, '\u{feff}');
            }
            text
        },
    )
}

/// Line ends stand only between values: in a JSON string they are escaped.
fn reindented(pretty: &str, unit: &str) -> String {
    let lines = pretty.lines().map(|line| {
        let content = line.trim_start_matches(' ');
        let depth = (line.len() - content.len()) / 2;
        format!("{}{content}", unit.repeat(depth))
    });
    lines.collect::<Vec<_>>().join("\n")
}
