//! `ckpt show`: a checkpoint for a person.

use std::path::Path;

use agent_checkpoint::{Checkpoint, Error, ErrorKind, Handoff, RuleContext};

use crate::address::Target;
use crate::args::Global;
use crate::dispatch::dispatch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::checkpoint::View;

pub(super) fn run(file: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_read(file, global)?;
    let view = view(&target, global)?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&view.shown());
    } else {
        view.print(&mut outcome, global);
    }
    outcome.exit = Exit::findings_if(view.has_violations());
    Ok(outcome)
}

/// What is to be shown of a checkpoint.
pub(super) fn view<'t>(target: &'t Target, global: &Global) -> Result<View<'t>, Failure> {
    let at = |error: Error| target.error(error);
    let stored = target.store().load(&target.key).map_err(at)?;
    let stored = stored.ok_or_else(|| at(Error::new(ErrorKind::NotFound)))?;
    let context = RuleContext::none()
        .with_now(super::now(global))
        .with_key(&target.key);
    let mut examined = (target.format.open)(&stored.document, &context).map_err(at)?;
    // What is no checkpoint of a task has no steps to move out.
    let handoff = dispatch!(target.format.name, C => handoff::<C>(target, &examined.handoff, global)?, else None);
    examined.handoff = handoff.unwrap_or(examined.handoff);
    Ok(View::new(target, stored, examined))
}

/// The hand-off, completed from the dropped log.
fn handoff<C: Checkpoint>(
    target: &Target,
    handoff: &Handoff,
    global: &Global,
) -> Result<Option<Handoff>, Failure> {
    let checkpoints = target.checkpoints::<C>(global);
    let loaded = checkpoints.get(&target.key);
    let handoff = loaded.and_then(|loaded| {
        checkpoints.complete_handoff(&target.key, &loaded.checkpoint, handoff.clone())
    });
    handoff.map(Some).map_err(|error| target.error(error))
}
