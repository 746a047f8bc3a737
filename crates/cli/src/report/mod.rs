//! Texts that several verbs share.

pub(crate) mod checkpoint;
pub(crate) mod ledger;
pub(crate) mod plan;
pub(crate) mod resume;
pub(crate) mod saved;
mod style;
mod time;

use agent_checkpoint::json::Violation;

use crate::output::harmless;

pub(crate) use style::{Style, lines};
pub(crate) use time::age;

/// `1 violation`, `2 violations`.
pub(crate) fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// A violation as one line.
pub(crate) fn violation(violation: &Violation) -> String {
    harmless(&violation.to_string())
}
