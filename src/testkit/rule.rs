//! One rule of the contract, and what becomes of it.

use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;

use crate::checkpoint::Error;
use crate::json::Corrupt;

use super::scene::Scene;

/// One rule that a store keeps.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, which is that of its test.
    pub name: &'static str,
    /// The sentence of the contract that it proves.
    pub about: &'static str,
    /// Without what it is skipped. A rule that needs nothing cannot be waived.
    pub needs: &'static [Need],
    pub(super) run: fn(&Scene<'_>) -> Ruling,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish()
    }
}

impl Rule {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        needs: &'static [Need],
        run: fn(&Scene<'_>) -> Ruling,
    ) -> Rule {
        Rule {
            name,
            about,
            needs,
            run,
        }
    }

    /// Whether a store can do without it, by not offering what it needs.
    #[must_use]
    pub fn can_be_waived(&self) -> bool {
        !self.needs.is_empty()
    }
}

/// What a rule needs of a store or its harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Need {
    /// More than one key.
    TwoKeys,
    /// Keys of any text: the store has no fixed ones.
    AnyKey,
    /// Documents that do not stand inside a larger file.
    Standalone,
    /// [`Capabilities::claims`](crate::store::Capabilities::claims).
    Claims,
    /// [`Capabilities::history`](crate::store::Capabilities::history).
    History,
    /// [`Place::keeps`](super::Place::keeps).
    HistoryBound,
    /// [`Capabilities::recovery`](crate::store::Capabilities::recovery).
    Recovery,
    /// [`Capabilities::heartbeat`](crate::store::Capabilities::heartbeat).
    Heartbeat,
    /// [`Capabilities::excludes_processes`](crate::store::Capabilities::excludes_processes) and
    /// [`Place::address`](super::Place::address).
    Processes,
    /// [`Place::damage`](super::Place::damage).
    Damage,
    /// [`Place::clock`](super::Place::clock).
    MovableClock,
    /// [`Place::max_bytes`](super::Place::max_bytes).
    SizeLimit,
    /// [`Place::fail`](super::Place::fail).
    Faults,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::TwoKeys => "more than one key",
            Need::AnyKey => "keys of any text",
            Need::Standalone => "documents of their own",
            Need::Claims => "`claims`",
            Need::History => "`history`",
            Need::HistoryBound => "`Place::keeps`",
            Need::Recovery => "`recovery`",
            Need::Heartbeat => "`heartbeat`",
            Need::Processes => "`excludes_processes`",
            Need::Damage => "`Place::damage`",
            Need::MovableClock => "`Place::clock`",
            Need::SizeLimit => "`Place::max_bytes`",
            Need::Faults => "`Place::fail`",
        })
    }
}

/// What a rule finds out.
pub(super) type Ruling = Result<(), Stop>;

/// Why a rule did not hold to its end.
#[derive(Debug)]
pub(super) enum Stop {
    Skipped(String),
    Failed(String),
}

impl Stop {
    pub(super) fn failed(why: impl Into<String>) -> Stop {
        Stop::Failed(why.into())
    }

    pub(super) fn missing(need: Need) -> Stop {
        Stop::Skipped(format!("needs {need}"))
    }
}

/// An operation that must succeed did not.
impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(format!(
            "an operation failed that must not: {}",
            told(&error)
        ))
    }
}

impl From<Corrupt> for Stop {
    fn from(corrupt: Corrupt) -> Stop {
        Stop::Failed(format!("a text is no document: {corrupt}"))
    }
}

/// An error with its causes.
pub(super) fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// Ends a rule as failed unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::testkit::rule::Stop::failed(format!($($why)+)));
        }
    };
}

pub(super) use ensure;
