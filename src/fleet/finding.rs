//! Contradictions between the checkpoints of a fleet, or between a checkpoint and its surroundings.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::checkpoint::stamp;
use crate::staleness::Reason;
use crate::store::EntryId;

/// A contradiction that a scan found. Places are written as in rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// An agent that should have one checkpoint has several: a finished agent looks crashed, or two sessions run.
    SameAgent {
        /// The agent.
        agent: String,
        /// Where.
        places: Vec<String>,
    },
    /// Several checkpoints have one id.
    SameKey {
        /// The id.
        key: String,
        /// Where.
        places: Vec<String>,
    },
    /// An older state of a checkpoint came back without the store, as after `git checkout` or `git stash`.
    RolledBack {
        /// Where.
        place: String,
        /// The newest entry of its history after the state that came back.
        later: Option<EntryId>,
        /// When it was last saved.
        saved: DateTime<Utc>,
        /// Whether the history has the state of that save.
        last_is_kept: bool,
    },
    /// A slot of a host file is now for another task, but still holds the checkpoint of the former one.
    OfAnotherTask {
        /// Where.
        place: String,
        /// The task of the checkpoint.
        task: String,
        /// The task that the slot is for.
        place_is_for: String,
    },
    /// Another agent took the work over into its own checkpoint, so this one is no longer updated.
    TakenOver {
        /// Where.
        place: String,
        /// The agent that had the work.
        agent: String,
        /// The agent that has it.
        by: String,
        /// Where the other agent's checkpoint is.
        now_in: String,
    },
    /// A task states that it is finished, but work is left.
    FinishedWithWorkLeft {
        /// Where.
        place: String,
        /// How much is done, in whole percent, if known.
        percent: Option<u8>,
        /// How many steps are left.
        steps: usize,
        /// The first of these steps.
        left: Vec<String>,
    },
    /// A claim expired before its holder saved a checkpoint: the task was not begun.
    NeverBegun {
        /// Where the checkpoint would be.
        place: String,
        /// The task.
        task: String,
        /// The holder of the claim.
        owner: String,
        /// When the claim expired.
        at: DateTime<Utc>,
    },
    /// Agents that are not finished created or changed the same files.
    SharedPaths {
        /// The agents.
        agents: Vec<String>,
        /// Where their checkpoints are.
        places: Vec<String>,
        /// The files.
        paths: Vec<String>,
    },
    /// Items could not be read; they count as open work.
    UnreadableItems {
        /// Where.
        place: String,
        /// The items, each with the reason.
        items: Vec<String>,
    },
    /// Steps are listed both as done and as planned.
    DoneAndPlanned {
        /// Where.
        place: String,
        /// The steps.
        steps: Vec<String>,
    },
    /// A task is finished, but a claim on it is still in force.
    FinishedButClaimed {
        /// Where.
        place: String,
        /// The holder of the claim.
        owner: String,
        /// When the claim expires.
        until: DateTime<Utc>,
    },
    /// A claim expired and the task is not finished: no agent has it.
    ClaimRanOut {
        /// Where.
        place: String,
        /// The holder of the claim.
        owner: String,
        /// When the claim expired.
        at: DateTime<Utc>,
    },
    /// The record of claims could not be read, so it is not known which agent may write.
    ClaimsUnreadable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// The ledger could not be read, so it is not known whether the task waits.
    LedgerUnreadable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// A story's checkpoint and its pipeline's state name different stages.
    StageMismatch {
        /// Where.
        place: String,
        /// The stage of the checkpoint.
        stage: String,
        /// The stage or status in the pipeline's state.
        state: String,
    },
    /// The name of a file is not UTF-8, so its place is not written exactly.
    NameNotUtf8 {
        /// Where, with `\u{fffd}` for bytes that are not UTF-8.
        place: String,
    },
    /// The id inside differs from the name of the file or the key.
    KeyMismatch {
        /// Where.
        place: String,
        /// The id inside.
        id: String,
        /// What is expected for that id, or what is wrong.
        expected: String,
    },
}

impl fmt::Display for Finding {
    /// The finding in a sentence, with what it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::SameAgent { agent, places } => write!(
                f,
                "the agent {agent} is in several checkpoints: {}; archive those that it no longer works on",
                some(places)
            ),
            Finding::SameKey { key, places } => write!(
                f,
                "{key} is in several checkpoints, the one that changed last first: {}; only one of them is kept up \
                 to date",
                some(places)
            ),
            Finding::RolledBack {
                place,
                later,
                saved,
                last_is_kept,
            } => {
                let reason = Reason::RolledBack {
                    later: later.clone(),
                    saved: *saved,
                    last_is_kept: *last_is_kept,
                };
                write!(f, "{place}: {reason}")?;
                match later {
                    Some(later) => write!(f, "; bring it back with ckpt restore --entry {later}"),
                    None => Ok(()),
                }
            }
            Finding::OfAnotherTask {
                place,
                task,
                place_is_for,
            } => write!(
                f,
                "{place}: the checkpoint belongs to {task}, but its place is now for {place_is_for}; archive it with \
                 ckpt archive"
            ),
            Finding::TakenOver {
                place,
                agent,
                by,
                now_in,
            } => write!(
                f,
                "{place}: {by} took over the work of {agent} in {now_in}; archive the old checkpoint of {agent}"
            ),
            Finding::FinishedWithWorkLeft {
                place,
                percent,
                steps,
                left,
            } => match (steps, percent) {
                (0, Some(percent)) => write!(f, "{place} is finished, but at {percent}%"),
                _ => {
                    let word = if *steps == 1 { "step" } else { "steps" };
                    let more = match steps.saturating_sub(left.len()) {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    let left = left.join(", ");
                    write!(
                        f,
                        "{place} is finished, but has {steps} {word} left: {left}{more}"
                    )
                }
            },
            Finding::NeverBegun {
                place,
                task,
                owner,
                at,
            } => write!(
                f,
                "{task}: claimed by {owner}, no checkpoint, ran out at {} ({place})",
                stamp(*at)
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
            Finding::UnreadableItems { place, items } => write!(f, "{place}: {}", first(items)),
            Finding::DoneAndPlanned { place, steps } => {
                write!(
                    f,
                    "{place} lists as done and also as planned: {}",
                    first(steps)
                )
            }
            Finding::FinishedButClaimed {
                place,
                owner,
                until,
            } => write!(
                f,
                "{place} is finished, but {owner} still has it claimed until {}",
                stamp(*until)
            ),
            Finding::ClaimRanOut { place, owner, at } => write!(
                f,
                "{place} is not finished, and the claim of {owner} expired at {}",
                stamp(*at)
            ),
            Finding::ClaimsUnreadable { place, reason } => {
                write!(f, "{place}: its claim cannot be read: {reason}")
            }
            Finding::LedgerUnreadable { place, reason } => {
                write!(f, "{place}: it is unknown whether the task waits: {reason}")
            }
            Finding::StageMismatch {
                place,
                stage,
                state,
            } => write!(
                f,
                "{place} is in {stage}, but the pipeline's state says {state}"
            ),
            Finding::NameNotUtf8 { place } => write!(
                f,
                "{place}: the name of the file is not UTF-8, so it cannot be printed exactly; rename the file"
            ),
            Finding::KeyMismatch {
                place,
                id,
                expected,
            } => write!(f, "{place} contains the id {id}: {expected}"),
        }
    }
}

/// The most items that a sentence lists.
pub(super) const MOST_LISTED: usize = 5;

fn some(all: &[String]) -> String {
    match all.len().saturating_sub(MOST_LISTED) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..MOST_LISTED].join(", ")),
    }
}

/// The first items of a list that may itself have been cut.
fn first(all: &[String]) -> String {
    let more = if all.len() > MOST_LISTED {
        " and more"
    } else {
        ""
    };
    format!("{}{more}", all[..all.len().min(MOST_LISTED)].join(", "))
}
