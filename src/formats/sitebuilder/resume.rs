//! Whether and where to go on: a resumable task that is in progress or blocked, and one that was
//! completed with criteria open.

use super::{SitebuilderCheckpoint, SubtaskStatus, TaskStatus};
use crate::checkpoint::ResumePlan;

impl SitebuilderCheckpoint {
    /// Where the next agent begins.
    ///
    /// Of a complete task the first criterion that is open; else what the agent noted as next, else
    /// the subtask in progress, else the first that is not complete.
    #[must_use]
    pub fn start_at(&self) -> Option<&str> {
        if self.status == Some(TaskStatus::Complete) {
            return self.open_criteria().first().copied();
        }
        let noted = self.context.next_to_process.as_deref();
        let begun = self
            .subtasks
            .items
            .iter()
            .find(|item| item.status == Some(SubtaskStatus::InProgress));
        let open = begun.or_else(|| self.subtasks.open().next());
        noted
            .filter(|next| !next.is_empty())
            .or_else(|| open?.id.as_deref())
    }
}

pub(super) fn plan(checkpoint: &SitebuilderCheckpoint) -> ResumePlan {
    let mut handoff = super::handoff::handoff(checkpoint);
    // Its own verdict below; the general one refuses a complete task and asks about every blocker.
    handoff.status = crate::checkpoint::Status::InProgress;
    let blockers = std::mem::take(&mut handoff.blockers);
    let mut plan = ResumePlan::of(&handoff);
    plan.start_at = checkpoint.start_at().map(str::to_owned);
    let task = checkpoint.task_id.as_deref().unwrap_or("the task");
    let percent = checkpoint.percent().unwrap_or_default();
    plan.message = format!(
        "Resuming {task} from its checkpoint at {percent}%: {}",
        checkpoint.continuation()
    );
    match &checkpoint.status {
        Some(TaskStatus::Complete) => {
            let open = checkpoint.open_criteria();
            if open.is_empty() {
                plan.refuse(format!("{task} is complete; there is nothing to resume"));
            } else {
                // Completion made it not resumable; the open criteria are a task of their own.
                plan.message = format!(
                    "{task} was completed with acceptance criteria open; resuming with exactly \
                     these: {}",
                    open.join(", ")
                );
            }
            return plan;
        }
        Some(TaskStatus::InProgress) => {}
        Some(TaskStatus::Blocked) if blockers.is_empty() => {
            plan.ask("The task is blocked and no error says by what. What is in the way?");
        }
        Some(TaskStatus::Blocked) => {}
        Some(TaskStatus::Other(status)) => plan.refuse(format!(
            "{task} has the status {status:?}; only in_progress and blocked can be resumed"
        )),
        None => plan.refuse(format!(
            "{task} has no status; only in_progress and blocked can be resumed"
        )),
    }
    for blocker in blockers {
        plan.ask(format!(
            "Is this resolved, so that the errors can be cleared: {blocker}"
        ));
    }
    if checkpoint.resumable != Some(true) {
        let says = match checkpoint.resumable {
            Some(_) => "says that it is not resumable",
            None => "does not say that it is resumable",
        };
        plan.refuse(format!("The checkpoint of {task} {says}"));
    }
    plan
}
