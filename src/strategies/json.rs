//! JSON as agents write it.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

use crate::checkpoint::Timestamp;

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
        1 => any::<Timestamp>().prop_map(|stamp| Value::from(stamp.text())),
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
