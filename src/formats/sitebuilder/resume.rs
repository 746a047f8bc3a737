//! Decides whether and where to continue: a resumable task that is in progress or blocked, or a task completed with
//! open criteria.

use super::{SitebuilderCheckpoint, SubtaskStatus, TaskStatus};
use crate::checkpoint::{NewWorker, ResumeDecision, ResumePlan, ResumeReason};
use crate::quoted;

impl SitebuilderCheckpoint {
    /// Where the next agent begins.
    ///
    /// In a complete task this is the first open criterion; otherwise the item that the agent noted as next, else the
    /// subtask in progress, else the first that is not complete.
    #[must_use]
    pub fn start_at(&self) -> Option<&str> {
        if self.state() == Some(TaskStatus::Complete) {
            return self.open_criteria().first().copied();
        }
        let noted = self.context.next_to_process.as_deref();
        // An old note may name a subtask that is complete by now.
        let is_complete = |next: &str| {
            let mut items = self.subtasks.items.iter();
            items.any(|item| item.id.as_deref() == Some(next) && item.is(&SubtaskStatus::Complete))
        };
        let begun = self
            .subtasks
            .items
            .iter()
            .find(|item| item.is(&SubtaskStatus::InProgress));
        let open = begun.or_else(|| self.subtasks.open().next());
        noted
            .filter(|next| !next.is_empty() && !is_complete(next))
            .or_else(|| open?.id.as_deref())
    }
}

pub(super) fn plan(checkpoint: &SitebuilderCheckpoint) -> ResumePlan {
    let mut handoff = super::handoff::handoff(checkpoint);
    // The status is judged below; the general plan would refuse a complete task and ask about every blocker.
    handoff.status = crate::checkpoint::Status::InProgress;
    let blockers = std::mem::take(&mut handoff.blockers);
    let mut plan = ResumePlan::of(&handoff);
    plan.start_at = checkpoint.start_at().map(str::to_owned);
    let task = checkpoint.task_id.as_deref().unwrap_or("the task");
    plan.message = format!(
        "Resuming {task} from its checkpoint{}: {}",
        checkpoint
            .percent()
            .map_or_else(String::new, |percent| format!(" at {percent}%")),
        checkpoint.continuation()
    );
    match checkpoint.state() {
        Some(TaskStatus::Complete) => {
            let open = checkpoint.open_criteria();
            if open.is_empty() {
                plan.refuse(format!("{task} is complete; there is nothing to resume"));
                plan.because(ResumeReason::Complete);
            } else {
                // A complete task is not resumable, but its open criteria are a task of their own.
                plan.message = format!(
                    "{task} was completed with acceptance criteria open; resuming with exactly \
                     these: {}",
                    open.join(", ")
                );
                plan.new_worker = Some(dispatch(checkpoint));
                plan.because(ResumeReason::OpenCriteria {
                    criteria: open.into_iter().map(str::to_owned).collect(),
                });
            }
            return plan;
        }
        Some(TaskStatus::InProgress) => {}
        Some(TaskStatus::Blocked) if blockers.is_empty() => {
            plan.because(ResumeReason::Blocked);
            plan.ask("The task is blocked and no error says by what. What is in the way?");
        }
        Some(TaskStatus::Blocked) => {}
        _ => {
            let has = match &checkpoint.status {
                Some(status) => format!("the status {}", quoted(status.as_str())),
                None => "no status".to_owned(),
            };
            plan.refuse(format!(
                "{task} has {has}; only in_progress and blocked can be resumed"
            ));
            plan.because(ResumeReason::UnknownStatus);
        }
    }
    for blocker in blockers {
        plan.because(ResumeReason::Blocked);
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
        plan.because(ResumeReason::NotResumable);
    }
    if plan.decision < ResumeDecision::Restart {
        plan.new_worker = Some(dispatch(checkpoint));
    }
    plan
}

/// The worker that a supervisor dispatches: an agent of the same type, with exactly what is left.
fn dispatch(checkpoint: &SitebuilderCheckpoint) -> NewWorker {
    let command = checkpoint.dispatch_command();
    let criteria = checkpoint.open_criteria();
    let open = checkpoint.subtasks.open();
    let name = |item| checkpoint.subtasks.name(item);
    let subtasks: Vec<String> = open.map(name).collect();
    let agent = checkpoint.agent.as_deref().unwrap_or("an agent");
    let worker = NewWorker::new(agent);
    #[cfg(feature = "template")]
    let worker = {
        let block = crate::template::message(
            super::messages::TEMPLATES,
            "sitebuilder/take-over",
            &checkpoint.values(),
        );
        worker.with_block(block.trim_end())
    };
    worker
        .with_input("command", command)
        .with_input("task_id", checkpoint.task_id.clone())
        .with_input("criteria", criteria)
        .with_input("subtasks", subtasks)
}
