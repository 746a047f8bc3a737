//! `ckpt diff`: what changed between two states of a checkpoint.

use std::path::Path;

use agent_checkpoint::EntryId;
use agent_checkpoint::difference::Difference;
use serde::Serialize;

use super::history::{entries, find};
use crate::address::Target;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::{Outcome, harmless};

#[derive(Serialize)]
struct Report<'d> {
    from: EntryId,
    to: EntryId,
    #[serde(flatten)]
    difference: &'d Difference,
}

pub(super) fn run(
    file: Option<&Path>,
    from: Option<&str>,
    to: &str,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = Target::to_look_at(file, global)?;
    let to = find(&target, to)?;
    let from = match from {
        Some(from) => find(&target, from)?,
        None => before(&target, &to)?,
    };
    let load = |entry: &EntryId| {
        let stored = target.store().load_revision(&target.key, entry);
        stored.map_err(|error| target.error(error))
    };
    let (before, after) = (load(&from)?, load(&to)?);
    let difference = Difference::in_format(&target.format, &before.document, &after.document)
        .map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if !difference.is_empty() {
        outcome.found();
    }
    if global.json {
        outcome.json(&Report {
            from,
            to,
            difference: &difference,
        });
        return Ok(outcome);
    }
    for line in difference.to_string().lines() {
        outcome.line(harmless(line));
    }
    Ok(outcome)
}

/// The state before another.
fn before(target: &Target, entry: &EntryId) -> Result<EntryId, Failure> {
    let entries = entries(target)?;
    let at = entries.iter().position(|known| known.id == *entry);
    let before = at.and_then(|at| entries.get(at + 1));
    before.map(|before| before.id.clone()).ok_or_else(|| {
        Failure::new(format!(
            "{}: no state before {entry} is known; `ckpt history` lists those there are",
            target.path.display()
        ))
    })
}
