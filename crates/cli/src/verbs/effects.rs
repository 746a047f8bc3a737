//! `ckpt effects`: the effects of a task outside of its checkpoint, and those in doubt.

use std::path::Path;

use agent_checkpoint::ledger::{EffectRecord, LedgerState, Settlement};
use agent_checkpoint::resume::{ResumeDecision, ResumePlan, ResumeReason};
use agent_checkpoint::{Error, is_blank, quoted};

use super::resume;
use crate::address::Target;
use crate::args::Settle;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::report::ledger;

impl Settle {
    /// Whether an effect is to be settled.
    pub(super) fn is_asked(&self) -> bool {
        self.done.is_some() || self.not_done.is_some()
    }
}

pub(super) fn run(
    file: Option<&Path>,
    settle: &Settle,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = match settle.is_asked() {
        true => Target::to_change(file, global)?,
        false => Target::to_look_at(file, global)?,
    };
    let of_task = target.ledger(global);
    let at = |error| target.error(error);
    let mut outcome = Outcome::new();
    let settled = match (&settle.done, &settle.not_done) {
        (Some(id), _) => {
            let receipt = settle.receipt.as_ref().filter(|text| !is_blank(text));
            Some((id, Settlement::done(&receipt).map_err(at)?))
        }
        (None, Some(id)) => Some((id, Settlement::NotDone)),
        (None, None) => None,
    };
    let mut effects = of_task.effects().map_err(at)?;
    if let Some((id, settlement)) = settled {
        effects.retain(|effect| effect.id == *id);
        let is_it = |effect: &EffectRecord| {
            let round = settle.round.as_ref();
            round.is_none_or(|round| *round == effect.round)
        };
        if effects.first().is_some_and(|effect| !is_it(effect)) {
            return Err(at(Error::refused(format!(
                "{} was begun again since; see `ckpt effects {}`",
                quoted(id),
                target.words()
            ))));
        }
        let [effect] = effects.as_slice() else {
            return Err(at(Error::refused(format!(
                "the task has begun no effect {}; `ckpt effects {}` lists its effects",
                quoted(id),
                target.words()
            ))));
        };
        of_task.settle(effect, settlement).map_err(at)?;
        outcome.is_done = true;
        effects = of_task.effects().map_err(at)?;
        effects.retain(|effect| effect.id == *id);
    }
    if global.json {
        outcome.json(&effects.iter().map(ledger::effect_json).collect::<Vec<_>>());
    } else if effects.is_empty() {
        outcome.note("the task has begun no effects");
    }
    if !global.json {
        effects
            .iter()
            .for_each(|effect| outcome.line(ledger::effect(effect)));
    }
    ledger::tell_doubts(&effects, &target, &mut outcome);
    Ok(outcome)
}

/// The verdict that follows from the ledger alone: the task waits, or is poisoned.
pub(super) fn standing(
    state: &LedgerState,
    target: &Target,
    global: &Global,
) -> Option<(ResumeDecision, String)> {
    // Most tasks have neither, so their files need not be read.
    if state.not_before.is_none() && state.attempts.is_empty() {
        return None;
    }
    let mut unsaid = Outcome::new();
    let judged = resume::judge(target, resume::options(global), false, global, &mut unsaid);
    said_by_ledger(&judged.ok()?.0.plan)
}

/// The verdict of a plan that follows from the ledger alone. If a waiting task is claimed by another agent, the claim
/// is reported instead.
pub(super) fn said_by_ledger(plan: &ResumePlan) -> Option<(ResumeDecision, String)> {
    let has = |is: fn(&ResumeReason) -> bool| plan.reasons.iter().any(is);
    let is_held = has(|reason| matches!(reason, ResumeReason::Held { .. }));
    // The message about a newer schema overrides all others.
    let is_newer = has(|reason| matches!(reason, ResumeReason::NewerSchema { .. }));
    let message = |own: String| match is_newer {
        true => own,
        false => plan.message.clone(),
    };
    let poisoned = plan.reasons.iter().find_map(|reason| match reason {
        ResumeReason::Poisoned { attempts, errors } => Some(format!(
            "Poisoned: {attempts} attempts in a row ended without progress ({})",
            errors.join("; ")
        )),
        _ => None,
    });
    if let Some(own) = poisoned {
        return Some((ResumeDecision::Refuse, message(own)));
    }
    let not_before = plan.reasons.iter().find_map(|reason| match reason {
        ResumeReason::NotBefore { until } => Some(format!("Not before {until}")),
        _ => None,
    });
    let own = not_before.filter(|_| !is_held)?;
    Some((ResumeDecision::Wait, message(own)))
}
