//! `ckpt show`: a checkpoint for a person.

use std::path::Path;

use agent_checkpoint::checkpoint::Knowledge;
use agent_checkpoint::{Checkpoint, Error, ErrorKind};

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
    let knowledge = Knowledge::none()
        .with_now(super::now(global))
        .with_key(&target.key);
    let examined = (target.format.open)(&stored.document, &knowledge).map_err(at)?;
    // What is no checkpoint of a task has no steps to cut.
    let earlier = dispatch!(target.format.name, C => earlier::<C>(target, global)?, else 0);
    Ok(View::new(target, stored, examined, earlier))
}

/// How many finished steps saves cut from the checkpoint.
fn earlier<C: Checkpoint>(target: &Target, global: &Global) -> Result<usize, Failure> {
    let earlier = target.checkpoints::<C>(global).earlier(&target.key);
    let earlier = earlier.map_err(|error| target.error(error))?;
    Ok(earlier.len())
}
