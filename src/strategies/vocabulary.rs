//! `Arbitrary` for the words that checkpoints are made of, so that it can be derived for types of your own.

use chrono::{DateTime, Utc};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::arbitrary::arbitrary;
use crate::checkpoint::{Expect, Key, OpenEnum, Precision, Revision, Status, Timestamp};
use crate::formats::Number;
use crate::formats::agent_session::{AgentStatus, AgentType};
use crate::formats::build_pipeline::{self, BuildStatus, PresenceClass};
use crate::formats::sitebuilder::{SubtaskStatus, TaskStatus};
use crate::formats::story_pipeline::{self, StorageMode, StoryState};
use crate::formats::task::{Phase, Reason, ResultStatus};

arbitrary! {
    /// A stamp between 2020 and 2030, in UTC; with the digits of its [`Precision`].
    Timestamp => {
        let seconds = 1_577_836_800_i64..1_893_456_000;
        (seconds, 0..1_000_000_000_u32, any::<Precision>()).prop_map(|(seconds, nanos, precision)| {
            let time = DateTime::<Utc>::from_timestamp(seconds, nanos).unwrap_or_default();
            Timestamp::at(time, precision)
        })
    };

    /// Whole seconds 2 times of 3, else thousandths or billionths as often.
    Precision => prop_oneof![
        4 => Just(Precision::SECONDS),
        1 => Just(Precision::MILLISECONDS),
        1 => Just(Precision::NANOSECONDS),
    ];

    /// Ids such as `US-003` (half), slots such as `adhoc:adhoc-002` (1 of 4), texts that must not become
    /// a path, such as `../x` (1 of 8), and any text that a key can be (1 of 8).
    Key => prop_oneof![
        4 => "[A-Z]{2,5}-[0-9]{1,4}",
        2 => "adhoc:[a-z]{2,6}-[0-9]{3}",
        1 => "(\\.\\./|/|\\./){1,3}[a-z.]{1,8}",
        1 => "\\PC{1,50}",
    ]
    .prop_filter_map("the text has white space at an end", |text| Key::new(text).ok());

    /// That of 0 to 31 bytes of any value.
    Revision => vec(any::<u8>(), 0..32).prop_map(|bytes| Revision::of(&bytes));

    /// Any, absent, and a revision, each as often.
    Expect => prop_oneof![
        Just(Expect::Any),
        Just(Expect::Absent),
        any::<Revision>().prop_map(Expect::Revision),
    ];

    /// The six states that all formats share, each as often; no other.
    Status => select(vec![
        Status::NotStarted,
        Status::InProgress,
        Status::Paused,
        Status::Blocked,
        Status::Failed,
        Status::Complete,
    ]);

    /// Whole from 0 to 100 three times of 4, else with one digit after the point.
    Number => prop_oneof![
        3 => (0..=100_u32).prop_map(Number::from),
        1 => (0..=1000_u32).prop_map(|tenths| Number::from(f64::from(tenths) / 10.0)),
    ];
}

/// `Arbitrary` for enums that keep a text they do not know: the texts that the format lists.
macro_rules! open_enums {
    ($( $name:ty ),+ $(,)?) => {
        arbitrary! {
            $(
                /// Each text that the format lists as often, and no other; for others there is
                /// [`any_spelling`](crate::strategies::any_spelling).
                $name => select(<$name as OpenEnum>::KNOWN).prop_map(<$name>::from);
            )+
        }
    };
}

open_enums! {
    Phase, Reason, ResultStatus,
    AgentStatus, AgentType,
    TaskStatus, SubtaskStatus,
    story_pipeline::Verdict, StoryState, StorageMode,
    build_pipeline::Verdict, BuildStatus, PresenceClass,
}

/// A value of an enum that keeps what it does not know: 3 times of 4 one of the listed texts, else one of
/// them as people write it (in the other case, with blanks, with `-` for `_`, in a sentence), or
/// seldom (1 of 20) any text.
///
/// It shrinks to the listed texts.
pub fn any_spelling<E>() -> impl Strategy<Value = E>
where
    E: OpenEnum + Clone + std::fmt::Debug + for<'t> From<&'t str> + 'static,
{
    let known = || select(E::KNOWN);
    prop_oneof![
        15 => known().prop_map(|text| E::from(text)),
        4 => (known(), 0..6_u8).prop_map(|(text, how)| E::from(&respelled(text, how))),
        1 => any::<String>().prop_map(|text| E::from(&text)),
    ]
}

/// A listed text in another spelling.
pub(super) fn respelled(text: &str, how: u8) -> String {
    let other_case: String = if text.chars().any(char::is_lowercase) {
        text.to_uppercase()
    } else {
        text.to_lowercase()
    };
    match how {
        0 => other_case,
        1 => format!("{text} "),
        2 => format!(" {text}"),
        3 if text.contains('_') => text.replace('_', "-"),
        4 => format!("{text} - see the report"),
        _ => text.chars().take(text.chars().count() / 2).collect(),
    }
}
