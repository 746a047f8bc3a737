//! The operations that an agent or a supervisor reports.

use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, AgentStatus, layout};
use crate::checkpoint::{
    Checkpoint, ContextLevel, Detail, Error, Operation, OperationContext, Result, StepDone,
    operations,
};
use crate::formats::steps::{self, add_each_once, decided};

/// The prefix of the current step while the agent waits at a sync point.
const AT_SYNC: &str = "Waiting at sync point ";

/// The stages in their order.
const STAGES: [&str; 3] = ["S2.P1", "S2.P2", "S2.P3"];

/// The details that the format has members for.
const DETAILS: &[&str] = &[
    "created",
    "modified",
    "committed",
    "instructions",
    "plan",
    "unread",
    "overview",
    "status-file",
];

pub(super) fn apply(
    agent: &mut AgentCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    let mut next = agent.clone();
    // A complete agent may still send a heartbeat and leave a note.
    let goes_with_complete = matches!(
        operation,
        Operation::Heartbeat | Operation::Note { .. } | Operation::Complete
    );
    if context.force && !goes_with_complete && next.meaning() == Some(AgentStatus::Complete) {
        next.go_on();
    }
    // When the same agent reports from another session, it has resumed, whatever it reports first.
    let own_session = context.session.filter(|_| agent.is_reported_by(context));
    let resumes = own_session.is_some_and(|own| agent.session_id.as_deref() != Some(own));
    if resumes && matches!(operation, Operation::Heartbeat | Operation::Note { .. }) {
        next.stop_waiting();
    }
    report(&mut next, operation, context)?;
    if let Some(session) = own_session {
        next.session_id = Some(session.to_owned());
    }
    *agent = next;
    Ok(())
}

operations! {
    fn report(agent: &mut AgentCheckpoint, context) takes OPERATIONS {
        StepStart { text } => agent.start_step(text)?,
        StepDone(done) => agent.finish_step(done)?,
        StepAdd { text, before } => {
            agent.check_at_work()?;
            let current = agent.step_in_progress();
            steps::add(&mut agent.next_steps, current.as_deref(), text, before.as_deref())?;
        },
        // The protocol has no member for the reason.
        StepDrop { text, .. } => {
            agent.check_at_work()?;
            let current = agent.step_in_progress();
            if steps::drop(&mut agent.next_steps, current.as_deref(), text)? {
                agent.current_step = None;
            }
        },
        StepEdit { text, to } => {
            agent.check_at_work()?;
            let current = agent.step_in_progress();
            if steps::reword(&mut agent.next_steps, current.as_deref(), text, to)? {
                agent.current_step = Some(to.clone());
            }
        },
        StepMove { text, before } => {
            agent.check_at_work()?;
            steps::reorder(&mut agent.next_steps, text, before)?;
        },
        // The format has no member for decisions, so a decision is recorded as a finished step.
        Decide { text, rationale } => {
            let decision = decided(text, rationale.as_deref());
            add_each_once(&mut agent.completed_steps, [decision]);
        },
        Note { text } => agent.recovery_instructions = Some(text.clone()),
        Block { text, kind: None } => agent.block(text)?,
        Unblock => {
            agent.enter(AgentStatus::InProgress, false)?;
            agent.blockers.clear();
        },
        Heartbeat => agent.stamp(context.now),
        // The format has no failed status: a failure becomes a blocker.
        Fail { text } => agent.block(text)?,
        RateLimit { note, .. } => {
            if let Some(note) = note {
                agent.recovery_instructions = Some(note.clone());
            }
            agent.stamp(context.now);
        },
        Context { used } => {
            if used.level() >= ContextLevel::Approaching {
                agent.stamp(context.now);
            }
        },
        Pause { .. } => agent.enter(AgentStatus::Waiting, context.force)?,
        Complete => {
            if !context.force {
                context.nothing_hidden("the agent is not complete")?;
            }
            agent.enter(AgentStatus::Complete, context.force)?;
        },
        Restart { because } => {
            agent.check_at_work()?;
            // When another process reports the restart, the agent gives its session in its own first report.
            let own_session = context.session.filter(|_| agent.is_reported_by(context));
            if agent.is_reported_by(context) {
                agent.check_fresh(own_session.unwrap_or_default())?;
            }
            *agent = agent.restarted(because, own_session.map(str::to_owned), context.now);
        },
        Phase { name } => {
            agent.check_at_work()?;
            agent.phase = Some(name.clone());
        },
        Stage { name } => agent.stage(name, context.force)?,
        Sync { name } => agent.sync(name, context.force)?,
        Detail(detail) => agent.add_details(detail, context.now)?,
    }
}

/// The stage that follows; "the next stage" after the last or an unknown one.
pub(super) fn next_stage(stage: &str) -> &str {
    let at = STAGES.iter().position(|known| *known == stage);
    at.and_then(|at| STAGES.get(at + 1))
        .unwrap_or(&"the next stage")
}

/// The name of a stage; an unknown stage is its own name.
pub(super) fn stage_name(stage: &str) -> &str {
    match stage {
        "S2.P1" => "Research Phase",
        "S2.P2" => "Specification",
        "S2.P3" => "Refinement Phase",
        other => other,
    }
}

/// The statuses that may follow. A blocked agent must be unblocked first, and nothing follows complete.
fn followers(status: &AgentStatus) -> &'static [AgentStatus] {
    use AgentStatus::{Blocked, Complete, InProgress, Waiting};
    match status {
        InProgress => &[Waiting, Blocked, Complete],
        Waiting => &[InProgress, Blocked, Complete],
        Blocked => &[InProgress],
        _ => &[],
    }
}

impl AgentCheckpoint {
    fn meaning(&self) -> Option<AgentStatus> {
        self.status.as_ref().and_then(AgentStatus::meaning)
    }

    /// Makes a transition of the protocol, or any transition when forced. A status that means the same in other words
    /// is kept. From an unknown status every transition is allowed.
    fn enter(&mut self, to: AgentStatus, force: bool) -> Result<()> {
        let from = self.meaning();
        if let Some(from) = from.as_ref().filter(|_| !force) {
            let stays = *from == to && *from != AgentStatus::Complete;
            let allowed = followers(from);
            if !stays && !allowed.contains(&to) {
                return Err(Error::transition(from.as_str(), to.as_str(), allowed));
            }
        }
        if matches!(to, AgentStatus::InProgress | AgentStatus::Complete) {
            // An agent that works or is done does not wait.
            self.pass_sync();
        }
        if from.as_ref() != Some(&to) {
            self.status = Some(to);
        }
        Ok(())
    }

    /// Sets the agent to work, whatever its status was.
    pub(super) fn go_on(&mut self) {
        self.pass_sync();
        if self.meaning() != Some(AgentStatus::InProgress) {
            self.status = Some(AgentStatus::InProgress);
        }
    }

    /// Refuses when the agent is complete.
    fn check_at_work(&self) -> Result<()> {
        match self.meaning() {
            Some(AgentStatus::Complete) => Err(Error::transition(
                AgentStatus::Complete.as_str(),
                AgentStatus::InProgress.as_str(),
                followers(&AgentStatus::Complete),
            )),
            _ => Ok(()),
        }
    }

    /// Whether the agent itself reports, and not a supervisor.
    fn is_reported_by(&self, context: &OperationContext<'_>) -> bool {
        let id = self.agent_id.as_deref();
        let is_own = |by: &str| id.is_some_and(|id| layout::same_agent(by, id));
        context.agent.is_none_or(is_own)
    }

    /// Begins a step, which stays in the plan until it is finished. A waiting agent works again and has passed its sync
    /// point; a blocked one stays blocked.
    fn start_step(&mut self, text: &str) -> Result<()> {
        self.check_at_work()?;
        self.stop_waiting();
        self.set_current(text.to_owned());
        Ok(())
    }

    fn set_current(&mut self, text: String) {
        if self.current_step.as_ref() != Some(&text) {
            self.return_to_plan();
        }
        self.current_step = Some(text);
    }

    /// Puts the current step back at the head of the plan, unless the plan has it.
    fn return_to_plan(&mut self) {
        if let Some(aside) = self.current_step.take()
            && !self.next_steps.contains(&aside)
        {
            self.next_steps.insert(0, aside);
        }
    }

    /// Finishes a step. To wait at a sync point is not a step: finishing it passes the sync point, while other work
    /// finished there does not end the wait. A finished step that is reported again only gains files.
    fn finish_step(&mut self, done: &StepDone) -> Result<()> {
        self.check_at_work()?;
        let at_sync = self.current_step.as_deref();
        let at_sync = at_sync.filter(|_| self.sync_point().is_some() && !done.finishes_current());
        if at_sync.is_some() && done.pending().or(done.text()).or(at_sync) == at_sync {
            if let Some(text) = done.text().filter(|text| Some(*text) != at_sync) {
                self.completed_steps.push(text.to_owned());
                self.current_step = None;
            }
            self.stop_waiting();
        } else {
            let current = self.step_in_progress();
            let current = current.as_deref();
            let is_finished = |text: &str| self.completed_steps.iter().any(|done| done == text);
            let plan = &self.next_steps;
            if let Some(finished) = steps::finished(done, current, plan, "next", is_finished)? {
                if finished.leave(&mut self.next_steps, current) {
                    self.current_step = None;
                }
                self.completed_steps.push(finished.text);
            }
        }
        add_each_once(&mut self.files_modified, done.files());
        Ok(())
    }

    /// The current step, unless the agent waits at a sync point.
    fn step_in_progress(&self) -> Option<String> {
        let current = self.current_step.clone();
        current.filter(|_| self.sync_point().is_none())
    }

    /// Records details of the work besides its steps.
    fn add_details(&mut self, detail: &Detail, now: DateTime<Utc>) -> Result<()> {
        detail.check(DETAILS)?;
        if detail.committed {
            self.files_modified.clear();
        }
        let files = detail.files_created.iter().chain(&detail.files_modified);
        add_each_once(&mut self.files_modified, files);
        if let Some(text) = &detail.instructions {
            self.recovery_instructions = Some(text.clone());
        }
        if let Some(plan) = &detail.plan {
            self.next_steps.clone_from(plan);
        }
        self.takes_part(detail, now);
        Ok(())
    }

    /// Stamps the parts of the group's coordination that the agent took part in.
    pub(super) fn takes_part(&mut self, detail: &Detail, now: DateTime<Utc>) {
        let stamp = self.new_stamp(now);
        let parts = detail.unread.is_some() || detail.overview || detail.status_file;
        let Some(state) = parts.then(|| self.coordination_state.get_or_insert_default()) else {
            return;
        };
        if let Some(unread) = detail.unread {
            state.last_inbox_check = Some(stamp.clone());
            state.unread_messages = Some(unread.into());
        }
        if detail.overview {
            state.last_epic_readme_update = Some(stamp.clone());
        }
        if detail.status_file {
            state.last_status_update = Some(stamp);
        }
    }

    /// Adds a blocker once, and sets the agent to blocked.
    fn block(&mut self, blocker: &str) -> Result<()> {
        self.enter(AgentStatus::Blocked, false)?;
        add_each_once(&mut self.blockers, [blocker]);
        Ok(())
    }

    /// Sets the agent to wait at a sync point. A step that was current goes back to the plan.
    ///
    /// Arriving twice at the same point changes nothing.
    fn sync(&mut self, name: &str, force: bool) -> Result<()> {
        let before = self.sync_point() == Some(name);
        self.enter(AgentStatus::Waiting, force)?;
        if before {
            return Ok(());
        }
        self.pass_sync();
        self.set_current(format!("{AT_SYNC}{name}"));
        Ok(())
    }

    /// The name of the sync point that the agent waits at.
    #[must_use]
    pub fn sync_point(&self) -> Option<&str> {
        self.current_step.as_deref()?.strip_prefix(AT_SYNC)
    }

    fn stop_waiting(&mut self) {
        self.pass_sync();
        if self.meaning() == Some(AgentStatus::Waiting) {
            self.status = Some(AgentStatus::InProgress);
        }
    }

    fn pass_sync(&mut self) {
        if let Some(name) = self.sync_point() {
            let passed = format!("Sync point {name} passed");
            self.completed_steps.push(passed);
            self.current_step = None;
        }
    }

    /// Enters the next stage: the stage before is added to the finished steps as complete, and the instructions say to
    /// resume from the beginning of the new one. When forced, an agent may also go back to an earlier stage; the stage
    /// that it leaves is complete only if the new one follows it.
    ///
    /// A current step goes back to the plan, since no report finished it. The step that names this transition is
    /// removed from the plan.
    fn stage(&mut self, stage: &str, force: bool) -> Result<()> {
        let follows = check_stage(self.stage.as_deref(), stage);
        let completes = follows.is_ok() && self.stage.as_deref() != Some(stage);
        if !force {
            self.check_at_work()?;
            if self.meaning() == Some(AgentStatus::Blocked) {
                let from = AgentStatus::Blocked;
                return Err(Error::transition(from.as_str(), stage, followers(&from)));
            }
            follows?;
        }
        self.go_on();
        self.return_to_plan();
        let transition = format!("Transition to {stage}");
        if let Some(at) = self.next_steps.iter().position(|next| *next == transition) {
            self.next_steps.remove(at);
        }
        let before = self.stage.replace(stage.to_owned());
        if let Some(before) = before.filter(|_| completes) {
            add_each_once(&mut self.completed_steps, [format!("{before} complete")]);
        }
        self.phase = Some(format!("{} - Starting", stage_name(stage)));
        self.recovery_instructions = Some(format!("Resume from beginning of {stage}"));
        Ok(())
    }
}

/// From one of the three stages only the next may follow. The protocol has no rule for other stages.
fn check_stage(from: Option<&str>, to: &str) -> Result<()> {
    let place = |stage: &str| STAGES.iter().position(|known| *known == stage);
    let (Some(from), Some(place_to)) = (from, place(to)) else {
        return Ok(());
    };
    match place(from) {
        Some(place_from) if place_to != place_from + 1 => {
            let next = STAGES.get(place_from + 1);
            Err(Error::transition(from, to, next))
        }
        _ => Ok(()),
    }
}
