//! `Arbitrary` for the shared types of checkpoints, and JSON values like those that agents write.

use chrono::{DateTime, Utc};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::{Expect, Key, Precision, Revision, Status, Timestamp};

/// Declares the strategy that `any` uses for each type, with the text for its documentation.
macro_rules! arbitrary {
    ($( $(#[$doc:meta])* $name:ty => $strategy:expr );+ $(;)?) => {
        $(
            $(#[$doc])*
            impl proptest::arbitrary::Arbitrary for $name {
                type Parameters = ();
                type Strategy = proptest::strategy::BoxedStrategy<Self>;

                fn arbitrary_with((): ()) -> Self::Strategy {
                    proptest::strategy::Strategy::boxed($strategy)
                }
            }
        )+
    };
}

pub(crate) use arbitrary;

arbitrary! {
    /// A stamp between 2020 and 2030, in UTC, with as many digits as its [`Precision`] has.
    Timestamp => {
        let seconds = 1_577_836_800_i64..1_893_456_000;
        (seconds, 0..1_000_000_000_u32, any::<Precision>()).prop_map(|(seconds, nanos, precision)| {
            let time = DateTime::<Utc>::from_timestamp(seconds, nanos).unwrap_or_default();
            Timestamp::at(time, precision)
        })
    };

    /// Whole seconds in 2 of 3 cases, else milliseconds or nanoseconds, equally often.
    Precision => prop_oneof![
        4 => Just(Precision::SECONDS),
        1 => Just(Precision::MILLISECONDS),
        1 => Just(Precision::NANOSECONDS),
    ];

    /// Ids such as `US-003` (half), slots such as `adhoc:adhoc-002` (1 of 4), texts that must not become a
    /// path, such as `../x` (1 of 8), and any text that is a valid key (1 of 8).
    Key => prop_oneof![
        4 => "[A-Z]{2,5}-[0-9]{1,4}",
        2 => "adhoc:[a-z]{2,6}-[0-9]{3}",
        1 => "(\\.\\./|/|\\./){1,3}[a-z.]{1,8}",
        1 => "\\PC{1,50}",
    ]
    .prop_filter_map("the text has white space at an end", |text| Key::new(text).ok());

    /// The revision of 0 to 31 bytes of any value.
    Revision => vec(any::<u8>(), 0..32).prop_map(|bytes| Revision::of(&bytes));

    /// `Any`, `Absent` and a revision, equally often.
    Expect => prop_oneof![
        Just(Expect::Any),
        Just(Expect::Absent),
        any::<Revision>().prop_map(Expect::Revision),
    ];

    /// The six states that all formats share, equally often; never another text.
    Status => select(vec![
        Status::NotStarted,
        Status::InProgress,
        Status::Paused,
        Status::Blocked,
        Status::Failed,
        Status::Complete,
    ]);
}

/// Names from real checkpoint files, so that generated objects often match the types.
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

/// Any JSON value with up to 4 levels and 48 values. Most names in its objects are those of checkpoint files.
pub fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..6).prop_map(Value::from),
            2 => btree_map(name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Any JSON object with values from [`json_value`].
pub fn json_object() -> impl Strategy<Value = Value> {
    btree_map(name(), json_value(), 0..10)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}
