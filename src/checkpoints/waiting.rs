//! Until when a task waits: a line of its ledger, which is there before the report that says so is saved.

use super::{Batch, Checkpoints};
use crate::checkpoint::{
    Checkpoint, Handoff, Key, OperationContext, Result, UnreadableItem, unreadable_items,
};

impl<C: Checkpoint> Checkpoints<C> {
    /// Records until when the task waits by these reports, before they are saved: a process that is killed in between leaves
    /// nothing that counts. Reports that are refused leave nothing, and their save says why.
    pub(crate) fn record_wait(
        &self,
        key: &Key,
        batch: &Batch<'_>,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        let Some(report) = batch.wait() else {
            return Ok(());
        };
        let ledger = self.ledger(key, reporter(context));
        if report.until().is_none() {
            let state = ledger.state();
            if let Err(error) = &state {
                tracing::warn!(%key, %error, "whether the task waits for a time is not known");
            }
            if !state.is_ok_and(|state| state.not_before.is_some()) {
                return Ok(());
            }
        }
        let stored = self.stored(key).ok();
        let stored = stored.filter(|it| it.context.refuse_former_task().is_ok());
        let current = stored
            .as_ref()
            .map(|stored| self.current(key, &stored.document));
        let Some(Ok(current)) = current else {
            return Ok(());
        };
        let unreadable = unreadable_items(&current.document, &current.reading);
        let mut left = current.reading.value.clone();
        let known = context.with_rules(context.rules.with_unreadable(&unreadable));
        if batch.apply(&mut left, &known).is_err() {
            return Ok(());
        }
        ledger.wait(report, &counted(&left, unreadable))
    }

    /// The hand-off of a checkpoint as it is stored now.
    pub(crate) fn stored_handoff(&self, key: &Key) -> Result<Handoff> {
        let stored = self.stored(key)?;
        let current = self.current(key, &stored.document)?;
        let unreadable = unreadable_items(&current.document, &current.reading);
        Ok(counted(&current.reading.value, unreadable))
    }
}

/// The hand-off with what could not be read, as a plan has it.
fn counted<C: Checkpoint>(checkpoint: &C, unreadable: Vec<UnreadableItem>) -> Handoff {
    let mut handoff = checkpoint.handoff();
    handoff.count_in(unreadable, C::STATUS_IS_DERIVED);
    handoff.name_the_unnamed();
    handoff
}

/// Who reports.
fn reporter(context: &OperationContext<'_>) -> String {
    match (context.agent, context.session) {
        (Some(agent), Some(session)) => format!("{agent}, session {session}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "an agent that is not named".to_owned(),
    }
}
