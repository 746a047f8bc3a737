//! `ckpt effects`: the effects of a task outside of its checkpoint, and those in doubt.

use std::path::Path;

use agent_checkpoint::ledger::{
    EffectRecord, EffectStatus, Ledger, LedgerState, Receipt, Settlement,
};
use agent_checkpoint::resume::{ResumeDecision, ResumePlan, ResumeReason};
use agent_checkpoint::{Error, is_blank, quoted};
use serde_json::Value;

use super::claim::owner;
use super::resume;
use crate::address::Target;
use crate::args::Global;
use crate::failure::Failure;
use crate::named::shell_word;
use crate::output::{Outcome, stamp};

/// How an effect in doubt is settled.
#[derive(Debug, clap::Args)]
pub(crate) struct Settle {
    /// Settle this effect: it took place
    #[arg(long, value_name = "ID", conflicts_with = "not_done")]
    done: Option<String>,
    /// The receipt, as far as it is known
    #[arg(long, value_name = "TEXT", requires = "done")]
    receipt: Option<String>,
    /// Settle this effect: it did not take place, and may be begun again
    #[arg(long, value_name = "ID")]
    not_done: Option<String>,
    /// Only if this attempt is the one in doubt, as in the line that the plan prints to settle it
    #[arg(long, value_name = "NAME")]
    round: Option<String>,
}

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
    let ledger = ledger(&target, global);
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
    let mut effects = ledger.effects().map_err(at)?;
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
        ledger.settle(effect, settlement).map_err(at)?;
        outcome.is_done = true;
        effects = ledger.effects().map_err(at)?;
        effects.retain(|effect| effect.id == *id);
    }
    if global.json {
        outcome.json(&effects.iter().map(as_json).collect::<Vec<_>>());
    } else if effects.is_empty() {
        outcome.note("the task has begun no effects");
    }
    if !global.json {
        effects.iter().for_each(|effect| outcome.line(line(effect)));
    }
    tell_doubts(&effects, &target, &mut outcome);
    Ok(outcome)
}

/// An effect with its receipt as a JSON value, so that secrets in its texts are found.
pub(crate) fn as_json(effect: &EffectRecord) -> Value {
    let mut value = serde_json::to_value(effect).unwrap_or_default();
    let whole = value["receipt"]["json"]
        .as_str()
        .and_then(|json| serde_json::from_str(json).ok());
    if let (Some(whole), Some(receipt)) = (whole, value.get_mut("receipt")) {
        *receipt = whole;
    }
    value
}

/// Reports the effects in doubt, which are findings.
pub(super) fn tell_doubts(effects: &[EffectRecord], target: &Target, outcome: &mut Outcome) {
    for effect in in_doubt(effects) {
        outcome.warn(doubt(effect, target));
        outcome.found();
    }
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

/// The ledger of a checkpoint, for the owner that the command line names.
pub(super) fn ledger(target: &Target, global: &Global) -> Ledger {
    let by = owner(global).unwrap_or_else(|| "ckpt".to_owned());
    target.checkpoints::<()>(global).ledger(&target.key, by)
}

/// The effects in doubt.
pub(crate) fn in_doubt(effects: &[EffectRecord]) -> impl Iterator<Item = &EffectRecord> {
    let is_in_doubt = |effect: &&EffectRecord| effect.status == EffectStatus::InDoubt;
    effects.iter().filter(is_in_doubt)
}

/// What to do about an effect in doubt, and the commands that settle it.
pub(crate) fn doubt(effect: &EffectRecord, target: &Target) -> String {
    let (id, round) = (shell_word(&effect.id), &effect.round);
    let words = target.words();
    let how = effect.how_to_check.as_deref();
    let how = how.map(|how| format!(" ({how})"));
    format!(
        "{} was begun by {} at {}, and it is not recorded whether it took place: find out{}, then `ckpt effects {words} \
         --done={id} --round {round}` or `ckpt effects {words} --not-done={id} --round {round}`",
        effect.id,
        effect.by,
        stamp(effect.since),
        how.unwrap_or_default(),
    )
}

/// The exit code of a command that `ckpt once` ran.
fn exit_code(receipt: &Receipt) -> Option<u64> {
    let value: Value = receipt.read().ok()?;
    value.get("stdout")?;
    value.get("code")?.as_u64()
}

/// An effect in a line.
pub(crate) fn line(effect: &EffectRecord) -> String {
    let status = match &effect.status {
        EffectStatus::Done { receipt } => match exit_code(receipt) {
            None | Some(0) => "done".to_owned(),
            Some(code) => format!("done, exit {code}"),
        },
        EffectStatus::NotDone => "not done".to_owned(),
        EffectStatus::InProgress => "in progress".to_owned(),
        _ => "in doubt".to_owned(),
    };
    let since = stamp(effect.since);
    format!("{status:<12} {since}  {}  ({})", effect.id, effect.by)
}
