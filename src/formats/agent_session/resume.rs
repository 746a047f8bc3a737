//! Decides whether and how an agent's work is resumed.

use super::{
    AgentCheckpoint, AgentStatus, NewestBackup, RESTART_BELOW, messages, rules, take_over_id,
};
use crate::checkpoint::{
    Checkpoint, Handoff, Key, NewWorker, Result, ResumeDecision, ResumePlan, ResumeReason,
    RuleContext, Status,
};
use crate::quoted;
use chrono::TimeDelta;

/// How long the task was worked on. Little work is restarted from scratch, since nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worked(pub TimeDelta);

pub(super) fn plan(agent: &AgentCheckpoint, context: &RuleContext<'_>) -> ResumePlan {
    let mut plan = ResumePlan::of(&agent.handoff());
    plan.message = found(agent);
    ask(agent, &mut plan);
    let worked = context.input().map(|Worked(time)| *time);
    if let Some(worked) = worked.filter(|worked| *worked < RESTART_BELOW) {
        plan.restart(format!(
            "Only {} minutes of work: restart {} from scratch",
            worked.num_minutes(),
            agent.feature.as_deref().unwrap_or("the feature"),
        ));
        plan.because(ResumeReason::HardlyBegun);
    }
    if let Some(why) = agent.why_not_resumable() {
        // After little work a restart is right even if the checkpoint could not be resumed.
        let complete = agent.status() == Status::Complete;
        if complete || plan.decision < ResumeDecision::Restart {
            plan.refuse(why);
            if !complete {
                plan.because(ResumeReason::NotResumable);
            }
        }
    }
    if plan.decision < ResumeDecision::Restart {
        // The same agent in a fresh session comes first; a new agent is for when it does not return.
        plan.resume_agent.clone_from(&agent.agent_id);
        plan.new_worker = agent.agent_id.as_deref().map(|id| {
            let name = take_over_id(id);
            #[cfg(feature = "template")]
            let block = messages::take_over(agent, &name, None);
            let worker = NewWorker::new(name);
            #[cfg(feature = "template")]
            let worker = worker.with_block(block);
            worker
        });
    }
    plan
}

fn found(agent: &AgentCheckpoint) -> String {
    let id = agent.agent_id.as_deref().unwrap_or("an agent");
    match messages::place(agent) {
        Some(place) => format!("Checkpoint found: {id} resumes from {place}"),
        None => format!("Checkpoint found: {id} resumes"),
    }
}

fn ask(agent: &AgentCheckpoint, plan: &mut ResumePlan) {
    let Some(status) = &agent.status else {
        plan.ask("The checkpoint has no status. What was the agent doing?");
        plan.because(ResumeReason::UnknownStatus);
        return;
    };
    match status.meaning() {
        Some(AgentStatus::Waiting) => {
            plan.because(ResumeReason::Waiting);
            let step = agent.current_step.as_deref();
            plan.ask(match agent.sync_point() {
                Some(point) => format!("Are the others at sync point {point} as well?"),
                None => format!(
                    "The agent was waiting ({}). May it go on?",
                    step.unwrap_or(status.as_str())
                ),
            });
        }
        Some(AgentStatus::Blocked) if !rules::has_blocker(agent) => {
            plan.because(ResumeReason::Blocked);
            plan.ask(
                "The agent was blocked and left no blocker. What was in the way, and is it gone?",
            );
        }
        None => {
            plan.ask(format!(
                "The status {} is not one of the protocol's. What was the agent doing?",
                quoted(status.as_str())
            ));
            plan.because(ResumeReason::UnknownStatus);
        }
        _ => {}
    }
}

/// The plan for a corrupt checkpoint: restore the newest backup, or restart from scratch when there is none. The plan
/// names the backup and how its age was determined.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the agent.
pub fn corrupt_plan(agent: &Key, newest_backup: Option<&NewestBackup>) -> Result<ResumePlan> {
    let file = super::layout::file_name(agent)?;
    let mut plan = ResumePlan::of(&Handoff::default());
    plan.because(ResumeReason::Corrupt);
    match newest_backup {
        Some(backup) => {
            plan.message = format!("Checkpoint {file} is corrupted: restore {backup}");
            plan.warn(format!(
                "{file} is corrupted; backups/{} is an earlier state of it. Compare it with the files \
                 before proceeding.",
                backup.name
            ));
        }
        None => plan.restart(format!(
            "Checkpoint {file} is corrupted and has no backup that can be restored: restart from \
             scratch"
        )),
    }
    Ok(plan)
}
