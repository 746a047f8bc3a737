//! `ckpt show`: a checkpoint as text for a person.

use std::path::Path;

use agent_checkpoint::ledger::{LedgerState, Proofs};
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::{Error, ErrorKind, RuleContext};

use super::{effects, prove};
use crate::address::Target;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::report::checkpoint::View;
use crate::report::ledger::{tell_doubts, tell_pending};

pub(super) fn run(file: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_read(file, global)?;
    let ledger = target.ledger(global).state();
    let view = view(&target, &ledger, global)?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&view.shown());
    } else {
        view.print(&mut outcome, global);
    }
    outcome.exit = Exit::findings_if(view.has_violations());
    match ledger {
        Ok(ledger) => {
            tell_doubts(&ledger.effects, &target, &mut outcome);
            tell_pending(&ledger.approvals, &target, global, &mut outcome);
            if let Some((decision, message)) = effects::standing(&ledger, &target, global) {
                outcome.note(format!("{}: {message}", decision.as_str()));
                outcome.exit = outcome
                    .exit
                    .and(Exit::findings_if(decision == ResumeDecision::Refuse));
            }
        }
        Err(error) => {
            outcome.warn(target.error(error).message);
            outcome.found();
        }
    }
    Ok(outcome)
}

/// The view of a checkpoint and its ledger.
pub(super) fn view<'t>(
    target: &'t Target,
    ledger: &Result<LedgerState, Error>,
    global: &Global,
) -> Result<View<'t>, Failure> {
    let at = |error: Error| target.error(error);
    let stored = target.store().load(&target.key).map_err(at)?;
    let stored = stored.ok_or_else(|| at(Error::new(ErrorKind::NotFound)))?;
    let context = RuleContext::none()
        .with_now(global.now())
        .with_key(&target.key);
    let format = target.format;
    let mut inspected = format.inspect(&stored.document, &context).map_err(at)?;
    let checkpoints = target.any_checkpoints(global);
    inspected.handoff = checkpoints
        .complete_handoff(&target.key, inspected.handoff)
        .map_err(at)?;
    let handoff = &mut inspected.handoff;
    handoff.updated_at = handoff.updated_at.take().or(inspected.updated_at.clone());
    let foreign = format.foreign_members(&stored.document).map_err(at)?;
    // If they cannot be read, the rest is still shown; `run` reports the error.
    let (ledger, proofs) = match ledger {
        Ok(state) if !state.proofs.is_empty() => {
            let proofs = prove::proofs(target, global).unwrap_or_default();
            (state.clone(), proofs)
        }
        Ok(state) => (state.clone(), Proofs::default()),
        Err(_) => (LedgerState::default(), Proofs::default()),
    };
    Ok(View::new(
        target, stored, inspected, foreign, ledger, proofs,
    ))
}
