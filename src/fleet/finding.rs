//! What does not go together.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

/// Something that does not go together. Places read as those of rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// An agent that has one checkpoint has two: a finished agent looks crashed, or two sessions run.
    SameAgent {
        /// The agent.
        agent: String,
        /// Where.
        places: Vec<String>,
    },
    /// One id is in two checkpoints.
    SameKey {
        /// The id.
        key: String,
        /// Where.
        places: Vec<String>,
    },
    /// Agents that are not finished made or changed the same files.
    SharedPaths {
        /// The agents.
        agents: Vec<String>,
        /// Where their checkpoints are.
        places: Vec<String>,
        /// The files.
        paths: Vec<String>,
    },
    /// A task is finished, and a claim on it still stands.
    FinishedButClaimed {
        /// Where.
        place: String,
        /// Who holds it.
        owner: String,
        /// Until when.
        until: DateTime<Utc>,
    },
    /// A claim ran out, and the task is not finished: nobody has it.
    ClaimRanOut {
        /// Where.
        place: String,
        /// Who held it.
        owner: String,
        /// When it ran out.
        at: DateTime<Utc>,
    },
    /// The record of claims could not be read, so nobody can say who may write.
    ClaimsUnreadable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// A story's checkpoint is in another stage than its pipeline's state says.
    StageMismatch {
        /// Where.
        place: String,
        /// The stage of the checkpoint.
        stage: String,
        /// What the pipeline's state says.
        state: String,
    },
    /// The id inside is not that of the file or key it is kept under.
    KeyMismatch {
        /// Where.
        place: String,
        /// The id inside.
        id: String,
        /// What is expected under that id, or what is wrong.
        expected: String,
    },
}

impl fmt::Display for Finding {
    /// The finding in a sentence, with what it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
        match self {
            Finding::SameAgent { agent, places } => write!(
                f,
                "the agent {agent} is in several checkpoints: {}; archive those it left",
                some(places)
            ),
            Finding::SameKey { key, places } => write!(
                f,
                "{key} is in several checkpoints: {}; only one of them is kept up to date",
                some(places)
            ),
            Finding::SharedPaths {
                agents,
                places,
                paths,
            } => write!(
                f,
                "{} changed the same files: {} (in {})",
                some(agents),
                some(paths),
                some(places)
            ),
            Finding::FinishedButClaimed {
                place,
                owner,
                until,
            } => write!(
                f,
                "{place} is finished, and {owner} still holds it until {}",
                time(until)
            ),
            Finding::ClaimRanOut { place, owner, at } => write!(
                f,
                "{place} is not finished, and the claim of {owner} ran out at {}",
                time(at)
            ),
            Finding::ClaimsUnreadable { place, reason } => {
                write!(f, "{place}: who holds it cannot be told: {reason}")
            }
            Finding::StageMismatch {
                place,
                stage,
                state,
            } => write!(
                f,
                "{place} is in {stage}, and the pipeline's state says {state}"
            ),
            Finding::KeyMismatch {
                place,
                id,
                expected,
            } => write!(f, "{place} has the id {id} inside: {expected}"),
        }
    }
}

/// The most that a sentence lists.
const MOST_LISTED: usize = 5;

fn some(all: &[String]) -> String {
    match all.len().saturating_sub(MOST_LISTED) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..MOST_LISTED].join(", ")),
    }
}
