//! What an agent or a supervisor reports, in the words all formats share.

use super::{Reason, TaskCheckpoint};
use crate::checkpoint::{
    Checkpoint, Error, OpenEnum, Operation, OperationContext, Result, SourceFiles, have_names,
    operations,
};
use crate::quoted;

pub(super) fn apply(
    task: &mut TaskCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    // No report is refused after it changed more than this, and a copy of the whole grows with the task.
    let before = task.metadata.clone();
    let agent = context.agent.filter(|agent| !agent.trim().is_empty());
    if let Some(agent) = agent.filter(|_| operation.is_work()) {
        task.take_over(agent);
    }
    let reassigned = task.metadata.reason == Some(Reason::Reassignment) && operation.is_work();
    let whole = reassigned.then(|| task.clone());
    if let Err(refused) = report(task, operation, context) {
        task.metadata = before;
        return Err(refused);
    }
    // The agent that reports work after a reassignment is the agent of this checkpoint.
    if let Some(mut whole) = whole
        && task.metadata.reason == Some(Reason::Reassignment)
    {
        whole.metadata = before;
        if whole != *task {
            task.metadata.reason = Some(Reason::Periodic);
        }
    }
    Ok(())
}

/// The agent that goes on with the task has it from then on.
pub(super) fn take_up(task: &mut TaskCheckpoint, context: &OperationContext<'_>) {
    if let Some(agent) = context.agent.filter(|agent| !agent.trim().is_empty()) {
        task.take_over(agent);
    }
}

operations! {
    fn report(task: &mut TaskCheckpoint, context) takes OPERATIONS {
        StepStart { text } => { task.start_step(text, context.now)?; },
        StepDone(done) => {
            have_names(done.files())?;
            let usual = SourceFiles::default();
            let sources = context.sources.unwrap_or(&usual);
            let mut done = done.clone();
            done.leave_out(|files| sources.sort(files.iter().map(String::as_str)));
            task.finish_step(&done, context.now)?;
        },
        StepAdd { text, before } => task.add_step(text, before.as_deref())?,
        StepDrop { text, because } => task.drop_step(text, because, context.now)?,
        StepEdit { text, to } => task.reword_step(text, to)?,
        StepMove { text, before } => task.move_step(text, before)?,
        Decide { text, rationale } => task.decide(text, rationale.clone(), context.now)?,
        Note { text } => task.note_progress(text, context.now)?,
        Block { text, kind: None } => task.block(text)?,
        Unblock => task.unblock(),
        Heartbeat => task.stamp(context.now),
        Complete => {
            context.nothing_hidden("the task is not complete")?;
            task.check_complete()?;
        },
        Fail { text } => task.fail(text)?,
        RateLimit { note } => task.rate_limited(note.as_deref(), context.now)?,
        Context { used } => { task.use_context(*used, context.now); },
        Reassign { to } => task.reassign_to(to)?,
        Phase { name } => task.phase = Some(listed(name, "phase", context.force)?),
        Verify { activity, status } => {
            task.verify(activity, listed(status, "result", context.force)?, context.now)?;
        },
        Detail(detail) => {
            detail.check(&["contract"])?;
            let verification = task.verification.get_or_insert_default();
            verification.contract_ref.clone_from(&detail.contract);
        },
    }
}

/// A text of a list; one that is not in it only where that is forced.
fn listed<E: OpenEnum + for<'t> From<&'t str>>(text: &str, what: &str, force: bool) -> Result<E> {
    let value = E::from(text);
    if value.is_known() || (force && !text.trim().is_empty()) {
        return Ok(value);
    }
    Err(Error::refused(format!(
        "{text} is no {what} of this format; it has {}",
        E::KNOWN.join(", "),
        text = quoted(text)
    )))
}
