//! `ckpt diff`: what changed between two states of a checkpoint.

use std::path::Path;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::difference::Difference;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{EntryId, HistoryEntry};
use agent_checkpoint::{Error, ErrorKind, RuleContext, visible};
use serde::Serialize;

use super::history::{entries, find, of_which_task};
use crate::address::Target;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::{read, stdin};

#[derive(Serialize)]
struct Report<'d> {
    from: String,
    to: String,
    #[serde(flatten)]
    difference: &'d Difference,
}

pub(super) fn run(
    file: Option<&Path>,
    from: Option<&str>,
    to: Option<&str>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = Target::to_look_at(file, global)?;
    let to = match to {
        Some(to) => State::named(&target, to)?,
        None => State::Kept(present(&target)?),
    };
    let from = match (from, &to) {
        (Some(from), _) => State::named(&target, from)?,
        (None, State::Kept(to)) => State::Kept(before(&target, to)?),
        (None, State::Input) => State::Kept(present(&target)?),
    };
    let load = |state: &State| match state {
        State::Kept(entry) => {
            let stored = target.store().load_revision(&target.key, entry);
            stored
                .map(|stored| stored.document)
                .map_err(|error| target.error(error))
        }
        State::Input => read::input(global),
    };
    let (before, after) = (load(&from)?, load(&to)?);
    let task_of = |wanted: &EntryId| {
        let entries = entries(&target).ok()?;
        let entry = entries.iter().find(|entry| entry.id == *wanted)?;
        Some(entry.tasks_since)
    };
    let mut outcome = Outcome::new();
    if let (State::Kept(from), State::Kept(to)) = (&from, &to)
        && task_of(from) != task_of(to)
    {
        outcome.note(format!(
            "{from} and {to} are states of two tasks, one after the other"
        ));
    }
    let difference = between(&target, &before, &after).map_err(|error| target.error(error))?;
    if !difference.is_empty() {
        outcome.found();
    }
    if global.json {
        outcome.json_as_it_is(&Report {
            from: from.name(),
            to: to.name(),
            difference: &difference,
        });
        return Ok(outcome);
    }
    // Not redacted: two different secrets would look the same.
    outcome.out.push_str(&visible(&difference.to_string()));
    Ok(outcome)
}

/// A state to compare.
enum State {
    Kept(EntryId),
    /// The text on standard input, for example from git.
    Input,
}

impl State {
    fn named(target: &Target, word: &str) -> Result<State, Failure> {
        match stdin::is_named(Path::new(word)) {
            true => Ok(State::Input),
            false => find(target, word).map(State::Kept),
        }
    }

    fn name(&self) -> String {
        match self {
            State::Kept(entry) => entry.to_string(),
            State::Input => stdin::NAME.to_owned(),
        }
    }
}

/// What changed between two documents of a target.
pub(super) fn between(
    target: &Target,
    before: &Document,
    after: &Document,
) -> Result<Difference, Error> {
    let open = |document| target.format.inspect(document, &RuleContext::none());
    let (old, new) = (open(before)?.handoff, open(after)?.handoff);
    Ok(Difference::of_handoffs((before, &old), (after, &new)))
}

/// The present state.
fn present(target: &Target) -> Result<EntryId, Failure> {
    let current = entries(target)?.into_iter().find(HistoryEntry::is_current);
    current.map(|entry| entry.id).ok_or_else(|| {
        let mut failure = target.error(Error::new(ErrorKind::NotFound));
        failure
            .message
            .push_str("; to compare two of them, name both with --from and --to");
        failure
    })
}

/// The state before another, of the same task.
fn before(target: &Target, entry: &EntryId) -> Result<EntryId, Failure> {
    let entries = entries(target)?;
    let at = entries.iter().position(|known| known.id == *entry);
    let before = at.and_then(|at| Some((entries.get(at)?, entries.get(at + 1)?)));
    if let Some((entry, before)) = before
        && entry.tasks_since != before.tasks_since
    {
        return Err(Failure::new(format!(
            "{}: {} is the first state of its task, and {} is {}; name it with --from to compare the two",
            target.place(),
            entry.id,
            before.id,
            of_which_task(before.tasks_since)
        )));
    }
    let before = before.map(|(_, before)| before);
    before.map(|before| before.id.clone()).ok_or_else(|| {
        Failure::new(format!(
            "{}: no state before {entry} is known; `ckpt history` lists the states",
            target.place()
        ))
    })
}
