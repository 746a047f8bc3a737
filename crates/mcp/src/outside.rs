//! The tools for actions outside of the checkpoint: effects that must not happen twice, and actions that a person must
//! approve first.
//!
//! The agent performs an effect itself. The server holds the guard of each begun effect. When the server ends, or the
//! task is handed over, an effect without an end is in doubt.

use agent_checkpoint::ledger::{
    Approval, ApprovalRecord, ApprovalStatus, Effect, EffectDecision, EffectRecord, Receipt,
    Settlement,
};
use agent_checkpoint::{Fence, quoted};
use agent_checkpoint_cli::served::{Call, Task};
use serde_json::Value;

use crate::answer::{Answer, ApprovalState, EffectState, stamp};
use crate::calls::Calls;
use crate::failed::Failed;
use crate::guards::OpenEffect;
use crate::inputs::{self, Doing};

const PERFORM: &str = "Do it now, once. Then call `effect` again: \"do\": \"done\" with the receipt, or \"not_done\" only if it \
                       surely did not take place.";
const DO_NOT_REPEAT: &str = "Do not do it again: the receipt says what it gave back.";
const AT_IT: &str = "Do not do it. If you began it yourself, say how it ended with \"do\": \"done\" or \"not_done\". Else another \
                     process is at it: look again later.";
const MAY_RUN: &str = "It may still run on another machine: have that ended before you find out.";
const FIND_OUT: &str = "Nothing says whether it took place. Do not do it again: find out, or ask the user, and call `effect` with \
                        \"do\": \"done\" and what is known of the receipt, or with \"not_done\".";

impl Calls {
    pub(crate) fn effect(&self, input: &inputs::Effect) -> Result<Answer, Failed> {
        let state = match input.doing {
            Doing::Begin => self.begin_effect(input)?,
            Doing::Done => {
                self.end_effect(input, Some(&input.receipt))?;
                let next = "It is on record. Report the step that it belongs to.";
                EffectState::new(input, "done", next)
            }
            Doing::NotDone => {
                self.end_effect(input, None)?;
                EffectState::new(input, "not_done", "It may be begun again.")
            }
        };
        Answer::new(&state, &state.text())
    }

    fn begin_effect(&self, input: &inputs::Effect) -> Result<EffectState, Failed> {
        let task = self.owned(&input.key, input.fence)?;
        task.require()?;
        let at = |error| Failed::from(task.error(error));
        let mut effect = Effect::with_id(&*input.id).map_err(at)?;
        if let Some(how) = &input.how_to_check {
            inputs::short("how_to_check", how)?;
            effect = effect.with_check(how);
        }
        if let Some(action) = &input.action {
            effect = effect.with_approval(Approval::new(&*input.id, action).map_err(at)?);
        }
        let claim = self.keep(&task, Fence::new(input.fence))?;
        let mut state = match task.ledger().begin(&effect).map_err(at)? {
            EffectDecision::Do(guard) => {
                let (round, fence) = (guard.round().to_owned(), input.fence);
                self.guards.all().insert(round, OpenEffect { fence, guard });
                EffectState::new(input, "do", PERFORM)
            }
            EffectDecision::AlreadyDone(receipt) => EffectState {
                receipt: Some(text_of(&receipt)),
                ..EffectState::new(input, "already_done", DO_NOT_REPEAT)
            },
            EffectDecision::InProgress(record) => {
                EffectState::new(input, "in_progress", AT_IT).of(&record)
            }
            EffectDecision::InDoubt(record) => {
                let next = match record.may_still_run() {
                    true => format!("{MAY_RUN} {FIND_OUT}"),
                    false => FIND_OUT.to_owned(),
                };
                EffectState::new(input, "in_doubt", next).of(&record)
            }
        };
        state.claimed_until = claim.map(|claim| stamp(claim.expires));
        Ok(state)
    }

    /// Records how an effect ended; with a receipt it took place.
    fn end_effect(&self, input: &inputs::Effect, receipt: Option<&Value>) -> Result<(), Failed> {
        let call = Call {
            key: input.key.clone(),
            ..Call::default()
        };
        let task = self.served.read(&call)?;
        let at = |error| Failed::from(task.error(error));
        let effects = task.ledger().effects().map_err(at)?;
        let record = effects.iter().find(|effect| effect.id == input.id);
        let mut guards = self.guards.all();
        let begun = record.and_then(|record| guards.get_mut(&record.round));
        // The agent that began it reports its end, even if another has the task: that it took place is a fact.
        let owned = match &begun {
            Some(begun) if begun.fence == input.fence => None,
            _ => Some(self.owned(&input.key, input.fence)?),
        };
        let Some(record) = record else {
            let id = quoted(&input.id);
            return Err(Failed::refused(format!(
                "the task has begun no effect {id}; begin it before you do it, with \"do\": \"begin\""
            )));
        };
        if let Some(OpenEffect { guard, .. }) = begun {
            match receipt {
                Some(receipt) => guard.done(receipt).map(|_| ()),
                None => guard.not_done(),
            }
            .map_err(at)?;
            guards.remove(&record.round);
            return Ok(());
        }
        // Another process began it, and did not record its end.
        let settlement = match receipt {
            Some(receipt) => Settlement::done(receipt).map_err(at)?,
            None => Settlement::NotDone,
        };
        let ledger = owned.as_ref().unwrap_or(&task).ledger();
        ledger.settle(record, settlement).map_err(at)
    }

    /// Drops the guards of a task that is handed over. Returns a warning for each effect that this leaves in doubt.
    pub(crate) fn leave_effects(&self, task: &Task) -> Vec<String> {
        let effects = task.ledger().effects().unwrap_or_default();
        let mut guards = self.guards.all();
        let left = effects
            .iter()
            .filter(|effect| guards.remove(&effect.round).is_some());
        left.map(|effect| {
            let id = quoted(&effect.id);
            format!("warning: the effect {id} has no end: the next agent has to find out whether it took place")
        })
        .collect()
    }

    pub(crate) fn approval(&self, input: &inputs::Approval) -> Result<Answer, Failed> {
        let (task, claim) = match (&input.action, input.fence) {
            (Some(_), None) => {
                return Err(Failed::input(
                    "to ask for an approval takes the fence that `begin` gave you; nothing was written",
                ));
            }
            (Some(_), Some(fence)) => {
                let task = self.owned(&input.key, fence)?;
                task.require()?;
                let claim = self.keep(&task, Fence::new(fence))?;
                (task, claim)
            }
            (None, _) => {
                let key = input.key.clone();
                let call = Call {
                    key,
                    ..Call::default()
                };
                (self.served.read(&call)?, None)
            }
        };
        let at = |error| Failed::from(task.error(error));
        let ledger = task.ledger();
        let record = match &input.action {
            Some(action) => {
                let mut approval = Approval::new(&*input.id, action).map_err(at)?;
                if let Some(why) = &input.why {
                    approval = approval.with_reason(why).map_err(at)?;
                }
                ledger.ask(&approval).map_err(at)?
            }
            None => {
                let mut approvals = ledger.state().map_err(at)?.approvals.into_iter();
                let found = approvals.find(|record| record.id == input.id);
                found.ok_or_else(|| {
                    let id = quoted(&input.id);
                    Failed::refused(format!(
                        "no approval of {id} was asked for; ask with the exact action and your fence"
                    ))
                })?
            }
        };
        let mut state = ApprovalState::new(&input.key, &record, next(record.status));
        state.decide_with = record
            .is_pending(task.now())
            .then(|| task.deciding(&record));
        state.claimed_until = claim.map(|claim| stamp(claim.expires));
        Answer::new(&state, &state.text())
    }
}

impl EffectState {
    fn of(self, record: &EffectRecord) -> EffectState {
        EffectState {
            by: Some(record.by.clone()),
            since: Some(stamp(record.since)),
            how_to_check: record.how_to_check.clone(),
            ..self
        }
    }
}

impl ApprovalState {
    fn new(key: &str, record: &ApprovalRecord, next: &'static str) -> ApprovalState {
        ApprovalState {
            key: key.to_owned(),
            id: record.id.clone(),
            status: record.status.as_str(),
            action: record.action.clone(),
            expires: stamp(record.expires),
            decided_by: record.decided_by.clone(),
            because: record.because.clone(),
            decide_with: None,
            next,
            claimed_until: None,
        }
    }
}

/// The next step of an agent, by the status of an approval.
fn next(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => {
            "Do not do it. A person decides: give the user the line in decide_with. Look again with this tool, without \
             action; until then do other work, or stop."
        }
        ApprovalStatus::Approved => {
            "It may be done once: call `effect` with \"do\": \"begin\", the same id, and exactly the same action."
        }
        ApprovalStatus::Denied => "Do not do it. Ask again only if something has changed.",
        ApprovalStatus::Expired => {
            "Do not do it: its time has passed. If it is still needed, ask again with the action."
        }
        _ => {
            "It was used up, and no person is asked again: `effect` with \"do\": \"begin\" and the same id and action says what \
             came of it."
        }
    }
}

/// A receipt as text: a text as it is, any other value as its JSON.
fn text_of(receipt: &Receipt) -> String {
    let mut text = receipt
        .read::<String>()
        .unwrap_or_else(|_| receipt.json.clone());
    if let Some(omitted) = &receipt.omitted {
        let bytes = omitted.bytes;
        text.push_str(&format!("… [{bytes} more bytes were not kept]"));
    }
    text
}
