//! Until when a task waits. The time is a line of its ledger, written before the report that states it is saved.

use super::{Batch, Checkpoints};
use crate::checkpoint::{
    Checkpoint, ErrorKind, Handoff, Key, OperationContext, Result, UnreadableItem, unreadable_items,
};

impl<C: Checkpoint> Checkpoints<C> {
    /// Records until when the task waits by these reports, before they are saved. So a checkpoint that says it
    /// waits always has its time, even if the process is killed in between. If the reports are refused, nothing
    /// is recorded, and saving them returns the reason.
    pub(crate) fn record_wait(
        &self,
        key: &Key,
        batch: &Batch<'_>,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        let Some(report) = batch.wait().filter(|report| report.until().is_some()) else {
            return Ok(());
        };
        let stored = match self.stored(key) {
            Err(error) if *error.kind() == ErrorKind::NotFound => return Ok(()),
            stored => stored?,
        };
        if stored.context.refuse_former_task().is_err() {
            return Ok(());
        }
        let current = self.current(key, &stored.document)?;
        let unreadable = unreadable_items(&current.document, &current.reading);
        let mut left = current.reading.value.clone();
        let known = context.with_rules(context.rules.with_unreadable(&unreadable));
        if batch.apply(&mut left, &known).is_err() {
            return Ok(());
        }
        let ledger = self.ledger(key, reporter(context));
        ledger.wait(report, &counted(&left, unreadable))
    }

    /// Completes the record after the reports are saved. A wait without a time ends an earlier one. The time is
    /// recorded again if the save changed the hand-off that it refers to, for example by redacting secrets.
    pub(crate) fn complete_wait(
        &self,
        key: &Key,
        batch: &Batch<'_>,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        let Some(report) = batch.wait() else {
            return Ok(());
        };
        let ledger = self.ledger(key, reporter(context));
        let state = match ledger.state() {
            Err(error) if report.until().is_none() => {
                tracing::warn!(%key, %error, "it is unknown whether the task waits for a time");
                return Ok(());
            }
            state => state?,
        };
        let left = self.stored_handoff(key)?;
        match state.waits_so(report.until(), &left) {
            true => Ok(()),
            false => ledger.wait(report, &left),
        }
    }

    /// The hand-off of the checkpoint as it is stored now.
    pub(crate) fn stored_handoff(&self, key: &Key) -> Result<Handoff> {
        let stored = self.stored(key)?;
        let current = self.current(key, &stored.document)?;
        let unreadable = unreadable_items(&current.document, &current.reading);
        Ok(counted(&current.reading.value, unreadable))
    }
}

/// The hand-off including unreadable items, as a plan uses it.
fn counted<C: Checkpoint>(checkpoint: &C, unreadable: Vec<UnreadableItem>) -> Handoff {
    let mut handoff = checkpoint.handoff();
    handoff.count_in(unreadable, C::STATUS_IS_DERIVED);
    handoff.name_the_unnamed();
    handoff
}

/// The reporting agent as text.
fn reporter(context: &OperationContext<'_>) -> String {
    match (context.agent, context.session) {
        (Some(agent), Some(session)) => format!("{agent}, session {session}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "an unnamed agent".to_owned(),
    }
}
