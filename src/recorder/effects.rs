//! Effects outside of the checkpoint, each begun and ended by the owner of the task, and the approvals that they need.

use super::Recorder;
use super::hold::Holder;
use crate::checkpoint::{Checkpoint, Error, ErrorKind, Result};
use crate::checkpoints::Checkpoints;
use crate::ledger::{
    Approval, ApprovalRecord, Effect, EffectDecision, EffectRecord, Ledger, LedgerState, Settlement,
};

impl<C: Checkpoint> Recorder<C> {
    /// Begins an effect outside of the checkpoint, unless it was begun before. When this returns
    /// [`Do`](EffectDecision::Do), the begin is on disk. See the module [`ledger`](crate::ledger).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TakenOver`], [`ErrorKind::Claimed`] and [`ErrorKind::Fenced`] once another owner has the task;
    /// those of [`Ledger::begin`]. After any error the effect must not be performed.
    pub fn effect(&self, effect: &Effect) -> Result<EffectDecision> {
        self.in_ledger(|ledger| ledger.begin(effect))
    }

    /// The same, with a check of an effect in doubt: `check` returns its finding, `None` if it cannot find out. It is
    /// not called for an effect that another process performs or [may perform](EffectRecord::may_still_run).
    ///
    /// # Errors
    ///
    /// Those of [`effect`](Recorder::effect).
    pub fn effect_or_check(
        &self,
        effect: &Effect,
        check: impl FnOnce(&EffectRecord) -> Option<Settlement>,
    ) -> Result<EffectDecision> {
        let decision = self.effect(effect)?;
        let EffectDecision::InDoubt(doubt) = &decision else {
            return Ok(decision);
        };
        // A finding about an effect that may still run is outdated a moment later.
        let settlement = if doubt.may_still_run() {
            None
        } else {
            check(doubt)
        };
        match settlement.map(|settlement| self.settle(doubt, settlement)) {
            None => Ok(decision),
            Some(Ok(())) => self.effect(effect),
            // Another process settled it, and may have begun it again.
            Some(Err(error)) if matches!(error.kind(), ErrorKind::Refused { .. }) => {
                self.effect(effect)
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Settles an effect in doubt with a finding about it.
    ///
    /// # Errors
    ///
    /// Those of [`Ledger::settle`], and of [`effect`](Recorder::effect).
    pub fn settle(&self, effect: &EffectRecord, settlement: Settlement) -> Result<()> {
        self.in_ledger(|ledger| ledger.settle(effect, settlement.clone()))
    }

    /// Asks for an approval of exactly this action. A person decides with [`Ledger::decide`]; the recorder, which
    /// belongs to the agent, has no such call.
    ///
    /// # Errors
    ///
    /// Those of [`Ledger::ask`], and of [`effect`](Recorder::effect).
    pub fn ask(&self, approval: &Approval) -> Result<ApprovalRecord> {
        self.in_ledger(|ledger| ledger.ask(approval))
    }

    /// Consumes an approval before the approved action. [`Effect::with_approval`] does both in one step.
    ///
    /// # Errors
    ///
    /// Those of [`Ledger::consume`], and of [`effect`](Recorder::effect). After any error the action must not be done.
    pub fn consume(&self, approval: &Approval) -> Result<ApprovalRecord> {
        self.in_ledger(|ledger| ledger.consume(approval))
    }

    /// The contents of the ledger of the task.
    ///
    /// # Errors
    ///
    /// Those of [`Ledger::state`].
    pub fn ledger_state(&self) -> Result<LedgerState> {
        self.own_ledger(&self.checkpoints()).state()
    }

    /// The ledger of the task, for its owner.
    pub(super) fn own_ledger(&self, checkpoints: &Checkpoints<C>) -> Ledger {
        checkpoints.ledger(&self.key, self.options.owner.to_string())
    }

    /// Changes the ledger as the owner of the task.
    pub(super) fn in_ledger<T>(&self, change: impl Fn(&Ledger) -> Result<T>) -> Result<T> {
        self.as_owner(|checkpoints| change(&self.own_ledger(checkpoints)))
    }

    /// Changes data beside the checkpoint, as the owner of the task.
    pub(super) fn as_owner<T>(&self, change: impl Fn(&Checkpoints<C>) -> Result<T>) -> Result<T> {
        let mut state = self.state();
        if let Some(to) = &state.given_to {
            let by = Some(to.clone());
            return Err(Error::new(ErrorKind::TakenOver { by }).with_key(&self.key));
        }
        let (store, claim_for) = (self.checkpoints.store(), self.options.claim_for);
        state
            .hold
            .keep(store, &self.key, claim_for, self.checkpoints.now())?;
        // The store checks the fence, but not the agent and session that the checkpoint names.
        state.hold.check(&Holder::of(&self.checkpoint()?))?;
        let checkpoints = self.checkpoints.clone();
        match change(&checkpoints.clone().fenced(state.hold.fence())) {
            Err(error) if state.hold.revive(&error, store, &self.key, claim_for)? => {
                change(&checkpoints.fenced(state.hold.fence()))
            }
            changed => changed,
        }
    }
}
