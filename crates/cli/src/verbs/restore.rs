//! `ckpt restore`: bring an earlier state back.

use std::path::Path;

use agent_checkpoint::store::Outcome as Wrote;
use agent_checkpoint::{CheckpointStoreExt, Expect, Revision};
use serde::Serialize;

use super::history::find;
use crate::address::Target;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;

#[derive(Serialize)]
struct Report {
    entry: String,
    outcome: Wrote,
    revision: Revision,
    previous: Option<Revision>,
}

pub(super) fn run(
    file: Option<&Path>,
    entry: &str,
    expect: Option<&str>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let expect: Option<Revision> = expect.map(str::parse).transpose()?;
    let target = Target::to_change(file, global)?;
    if target.slot.is_some() {
        // A missing host file is restored as a whole, not slot by slot.
        target.require_file()?;
    }
    let entry = find(&target, entry)?;
    let expect = expect.map_or(Expect::Any, Expect::Revision);
    let store = target.store();
    let saved = store.restore(&target.key, &entry, expect, global.fence);
    let saved = saved.map_err(|error| {
        let has_lost_its_place = error.code() == "no-such-slot";
        let mut failure = target.error(error);
        if has_lost_its_place {
            let or = ", or first put the task of this slot back into the file";
            failure.message.push_str(or);
        }
        failure
    })?;
    let mut outcome = Outcome::new();
    let nothing_was_there = saved.previous.is_none();
    if global.json {
        outcome.json(&Report {
            entry: entry.to_string(),
            outcome: saved.outcome,
            revision: saved.revision,
            previous: saved.previous,
        });
    } else if saved.outcome == Wrote::Unchanged {
        outcome.line(format!(
            "the checkpoint is the state {entry} already; nothing was written"
        ));
    } else {
        let before = match saved.previous {
            Some(_) => "the state before is in the history",
            None => "no checkpoint was there",
        };
        outcome.line(format!("restored {entry}; {before}"));
    }
    if nothing_was_there {
        match target.ledger(global).has_ended() {
            Ok(false) => {}
            Ok(true) => outcome.warn(
                "the task was archived as complete, and its ledger ended with it: what was done outside counts no more, so \
                 `ckpt once` would do it again",
            ),
            Err(error) => outcome.fail(&target.error(error)),
        }
    }
    Ok(outcome)
}
