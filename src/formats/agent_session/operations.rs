//! What an agent does to its checkpoint.

use crate::quoted;
use crate::shown::quoted_all;
use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, AgentStatus, layout};
use crate::checkpoint::{
    Checkpoint, ContextLevel, Detail, Error, Operation, OperationContext, Result, StepDone,
    have_names, operations,
};
use crate::formats::steps::{self, says};

/// What the current step reads like while the agent is at a sync point.
const AT_SYNC: &str = "Waiting at sync point ";

/// The stages in their order.
const STAGES: [&str; 3] = ["S2.P1", "S2.P2", "S2.P3"];

/// A stage that an agent enters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageEntry {
    /// The stage, such as `S2.P2`.
    pub stage: String,
    /// Its phase; when `None`, `{name of the stage} - Starting`.
    pub phase: Option<String>,
    /// Its steps; those that were left stay when `None`.
    pub next_steps: Option<Vec<String>>,
    /// How to resume in it; when `None`, from its beginning.
    pub recovery_instructions: Option<String>,
}

impl StageEntry {
    /// The stage, from its beginning.
    pub fn new(stage: impl Into<String>) -> Self {
        StageEntry {
            stage: stage.into(),
            ..StageEntry::default()
        }
    }

    /// Names the phase.
    #[must_use]
    pub fn in_phase(mut self, phase: impl Into<String>) -> Self {
        self.phase = Some(phase.into());
        self
    }

    /// Sets the steps of the stage, in place of those that were left.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.next_steps = Some(steps.into_iter().map(Into::into).collect());
        self
    }

    /// Says how to resume in the stage.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.recovery_instructions = Some(instructions.into());
        self
    }
}

/// The stage after one; after the last, or one that is not known, the text that stands for it.
pub(super) fn next_stage(stage: &str) -> &str {
    let at = STAGES.iter().position(|known| *known == stage);
    at.and_then(|at| STAGES.get(at + 1))
        .unwrap_or(&"the next stage")
}

/// What a stage is called; an unknown one by its own name.
pub(super) fn stage_name(stage: &str) -> &str {
    match stage {
        "S2.P1" => "Research Phase",
        "S2.P2" => "Specification",
        "S2.P3" => "Refinement Phase",
        other => other,
    }
}

/// The statuses that can follow: a blocked agent is unblocked first, and a complete one is done.
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

    /// Makes a transition of the protocol, or any where it is forced. A status that says the same in
    /// other words stays; from an unknown status every transition is allowed.
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

    /// Whatever the status was, the agent works from now on.
    pub(super) fn go_on(&mut self) {
        self.pass_sync();
        if self.meaning() != Some(AgentStatus::InProgress) {
            self.status = Some(AgentStatus::InProgress);
        }
    }

    /// Refuses what a complete agent cannot do.
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

    /// Whether the agent itself reports, and no supervisor of it.
    fn is_reported_by(&self, context: &OperationContext<'_>) -> bool {
        let id = self.agent_id.as_deref();
        let is_own = |by: &str| id.is_some_and(|id| layout::same_agent(by, id));
        context.agent.is_none_or(is_own)
    }

    /// Takes a complete agent up again: a transition that the protocol does not have.
    pub fn reopen(&mut self) {
        if self.meaning() == Some(AgentStatus::Complete) {
            self.go_on();
        }
    }

    /// The agent is alive: the stamps move on, nothing else.
    pub fn heartbeat(&mut self, now: DateTime<Utc>) {
        self.stamp(now);
    }

    /// Begins a step and hands back the one that was current and is put aside for it.
    ///
    /// A step that is put aside goes back to the head of the plan, unless it is in the plan. The step
    /// that begins stays in the plan until it is finished. An agent that waits goes on with it, and
    /// has passed the sync point it was at; a blocked one stays blocked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the text says nothing,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn start_step(&mut self, text: impl Into<String>) -> Result<Option<String>> {
        let text = text.into();
        says(&text, "say what is to be done")?;
        self.check_at_work()?;
        self.stop_waiting();
        Ok(self.set_current(text))
    }

    fn set_current(&mut self, text: String) -> Option<String> {
        let same = self.current_step.as_ref() == Some(&text);
        let aside = if same { None } else { self.put_aside() };
        self.current_step = Some(text);
        aside
    }

    /// The step that is current goes back to the head of the plan, unless it is in the plan.
    fn put_aside(&mut self) -> Option<String> {
        let aside = self.current_step.take()?;
        if !self.next_steps.contains(&aside) {
            self.next_steps.insert(0, aside.clone());
        }
        Some(aside)
    }

    /// Records a finished step: it joins the finished ones and leaves the plan; its files join those
    /// that were changed.
    ///
    /// The finished text may differ from the planned one: what leaves the plan is the step that is
    /// named, else the planned one that reads the same, else the current step. Waiting at a sync point
    /// is no such step: finished, it is [left](AgentCheckpoint::leave_sync); other work that was done
    /// there does not end it. One that is reported again, in the same words and without a planned step, only
    /// gains files.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when neither a text nor a current step says
    /// what was done, when the text says nothing, when the step that is named is not in the plan, and when
    /// none is named and the text reads more like another planned step than like the current one;
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete. The
    /// checkpoint is then unchanged.
    pub fn finish_step(&mut self, done: &StepDone) -> Result<()> {
        self.check_at_work()?;
        let current = self.current_step.clone();
        let Some(text) = done.text().or(current.as_deref()).map(str::to_owned) else {
            return Err(Error::refused(
                "no step is in progress; say what was finished",
            ));
        };
        says(&text, "say what was finished")?;
        have_names(done.files())?;
        let at_sync = self.sync_point().is_some();
        let in_progress = self.step_in_progress();
        let finished = done.named(in_progress.as_deref())?;
        let named = finished.as_ref().unwrap_or(&text);
        if at_sync && current.as_ref() == Some(named) {
            if current.as_ref() != Some(&text) {
                self.current_step = None;
                self.completed_steps.push(text);
            }
            self.stop_waiting();
            self.add_files(done.files());
            return Ok(());
        }
        let leaves = match finished {
            Some(named)
                if !self.next_steps.contains(&named) && current.as_ref() != Some(&named) =>
            {
                return Err(Error::refused(format!(
                    "{named} is no next step; next are {}",
                    quoted_all(&self.next_steps),
                    named = quoted(&named)
                )));
            }
            Some(named) => Some(named),
            None if self.next_steps.contains(&text) => Some(text.clone()),
            // Reported again, as after a time-out: what is current now is another step.
            None if current.as_ref() != Some(&text) && self.completed_steps.contains(&text) => {
                self.add_files(done.files());
                return Ok(());
            }
            None if current.as_ref() == Some(&text) => Some(text.clone()),
            None => steps::finished_with(&text, in_progress.as_deref(), &self.next_steps)?,
        };
        if let Some(leaves) = leaves {
            self.drop_next(&leaves);
            if current.as_ref() == Some(&leaves) {
                self.current_step = None;
            }
        }
        self.completed_steps.push(text);
        self.add_files(done.files());
        Ok(())
    }

    /// The current step, unless that is to wait for the others.
    fn step_in_progress(&self) -> Option<String> {
        let current = self.current_step.clone();
        current.filter(|_| self.sync_point().is_none())
    }

    /// Adds a step to the plan, before another or at its end. One that is planned already changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the text says nothing, and when the other step is
    /// not planned; [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn add_step(&mut self, text: &str, before: Option<&str>) -> Result<()> {
        self.check_at_work()?;
        let current = self.step_in_progress();
        steps::add(&mut self.next_steps, current.as_deref(), text, before)
    }

    /// Drops a step from the plan, also the current one. The protocol has no place for the reason.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the step is not planned,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn drop_step(&mut self, text: &str) -> Result<()> {
        self.check_at_work()?;
        let current = self.step_in_progress();
        if steps::drop(&mut self.next_steps, current.as_deref(), text)? {
            self.current_step = None;
        }
        Ok(())
    }

    /// Gives a planned step another text, also the current one; it stays where it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the step is not planned, and when the new text says
    /// nothing or is planned already; [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is
    /// complete.
    pub fn reword_step(&mut self, text: &str, to: &str) -> Result<()> {
        self.check_at_work()?;
        let current = self.step_in_progress();
        if steps::reword(&mut self.next_steps, current.as_deref(), text, to)? {
            self.current_step = Some(to.to_owned());
        }
        Ok(())
    }

    /// Moves a planned step before another.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when one of them is not planned,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn move_step(&mut self, text: &str, before: &str) -> Result<()> {
        self.check_at_work()?;
        steps::reorder(&mut self.next_steps, text, before)
    }

    fn drop_next(&mut self, step: &str) {
        if let Some(at) = self.next_steps.iter().position(|next| next == step) {
            self.next_steps.remove(at);
        }
    }

    /// Adds files that were changed, each once, and none without a name.
    pub fn add_files(&mut self, files: impl IntoIterator<Item = impl AsRef<str>>) {
        for file in files {
            let file = file.as_ref();
            let is_known = self.files_modified.iter().any(|known| known == file);
            if !is_known && !file.trim().is_empty() {
                self.files_modified.push(file.to_owned());
            }
        }
    }

    /// Empties the list of changed files: they are committed.
    pub fn commit_files(&mut self) {
        self.files_modified.clear();
    }

    /// What goes with the work beside its steps.
    fn add_details(&mut self, detail: &Detail, now: DateTime<Utc>) -> Result<()> {
        detail.check(DETAILS)?;
        if detail.committed {
            self.commit_files();
        }
        self.add_files(detail.files_created.iter().chain(&detail.files_modified));
        if let Some(text) = &detail.instructions {
            self.set_recovery_instructions(text);
        }
        if let Some(plan) = &detail.plan {
            self.next_steps.clone_from(plan);
        }
        if let Some(unread) = detail.unread {
            self.check_inbox(unread, now);
        }
        if detail.overview {
            self.update_overview(now);
        }
        if detail.status_file {
            self.update_status_file(now);
        }
        Ok(())
    }

    /// Sets the instructions for resuming from here.
    pub fn set_recovery_instructions(&mut self, text: impl Into<String>) {
        self.recovery_instructions = Some(text.into());
    }

    /// Something is in the way: it is recorded once, and the agent is blocked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the text says nothing,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn block(&mut self, blocker: impl Into<String>) -> Result<()> {
        let blocker = blocker.into();
        says(&blocker, "say what is in the way")?;
        self.enter(AgentStatus::Blocked, false)?;
        if !self.blockers.contains(&blocker) {
            self.blockers.push(blocker);
        }
        Ok(())
    }

    /// Nothing is in the way any more, and nothing is waited for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is complete.
    pub fn unblock(&mut self) -> Result<()> {
        self.enter(AgentStatus::InProgress, false)?;
        self.blockers.clear();
        Ok(())
    }

    /// The agent waits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is blocked or complete.
    pub fn wait(&mut self) -> Result<()> {
        self.enter(AgentStatus::Waiting, false)
    }

    /// The agent is at a sync point and waits there. A step that was current goes back to the plan.
    ///
    /// Arriving twice at the same point changes nothing.
    ///
    /// # Errors
    ///
    /// As [`wait`](AgentCheckpoint::wait); and [`ErrorKind::Refused`](crate::ErrorKind::Refused) when
    /// the point has no name.
    pub fn reach_sync(&mut self, name: &str) -> Result<()> {
        self.sync(name, false)
    }

    fn sync(&mut self, name: &str, force: bool) -> Result<()> {
        says(name, "name the sync point")?;
        let before = self.sync_point() == Some(name);
        self.enter(AgentStatus::Waiting, force)?;
        if before {
            return Ok(());
        }
        self.pass_sync();
        self.set_current(format!("{AT_SYNC}{name}"));
        Ok(())
    }

    /// The sync point that the agent is at.
    #[must_use]
    pub fn sync_point(&self) -> Option<&str> {
        self.current_step.as_deref()?.strip_prefix(AT_SYNC)
    }

    /// The others are there as well: the agent goes on, and the sync point is a finished step.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the agent is at no sync point.
    pub fn leave_sync(&mut self) -> Result<()> {
        if self.sync_point().is_none() {
            return Err(Error::refused(
                "the agent is at no sync point; arrive at one first",
            ));
        }
        self.check_at_work()?;
        self.stop_waiting();
        Ok(())
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

    /// Enters the next stage: the one before joins the finished steps as complete, and the instructions
    /// say to resume from the beginning of the new one.
    ///
    /// A step that was current is put aside as in [`start_step`](AgentCheckpoint::start_step): nobody
    /// said that it is finished. The step that is the transition itself leaves the plan.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the stage has no name,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is blocked or complete,
    /// and from one of the three stages to another than the next. The checkpoint is then unchanged.
    pub fn enter_stage(&mut self, entry: StageEntry) -> Result<()> {
        self.stage(entry, false)
    }

    /// Enters a stage, whatever the stage and the status before: the loop back to an earlier one. The
    /// agent is in progress; the stage it leaves is complete only where the new one follows it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the stage has no name.
    pub fn force_stage(&mut self, entry: StageEntry) -> Result<()> {
        self.stage(entry, true)
    }

    fn stage(&mut self, entry: StageEntry, force: bool) -> Result<()> {
        says(&entry.stage, "name the stage")?;
        let follows = check_stage(self.stage.as_deref(), &entry.stage);
        let completes = follows.is_ok() && self.stage.as_ref() != Some(&entry.stage);
        if !force {
            self.check_at_work()?;
            if self.meaning() == Some(AgentStatus::Blocked) {
                let from = AgentStatus::Blocked;
                return Err(Error::transition(
                    from.as_str(),
                    entry.stage,
                    followers(&from),
                ));
            }
            follows?;
        }
        let name = stage_name(&entry.stage);
        let instructions = entry
            .recovery_instructions
            .unwrap_or_else(|| format!("Resume from beginning of {}", entry.stage));
        let phase = entry.phase.unwrap_or_else(|| format!("{name} - Starting"));
        self.go_on();
        self.put_aside();
        self.drop_next(&format!("Transition to {}", entry.stage));
        if let Some(before) = self.stage.replace(entry.stage).filter(|_| completes) {
            let complete = format!("{before} complete");
            if !self.completed_steps.contains(&complete) {
                self.completed_steps.push(complete);
            }
        }
        self.phase = Some(phase);
        self.recovery_instructions = Some(instructions);
        if let Some(steps) = entry.next_steps {
            self.next_steps = steps;
        }
        Ok(())
    }

    /// The agent's work is done.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the agent is blocked or complete.
    pub fn complete(&mut self) -> Result<()> {
        self.enter(AgentStatus::Complete, false)
    }

    /// The agent's work is done, whatever was in the way.
    pub fn force_complete(&mut self) {
        self.pass_sync();
        self.status = Some(AgentStatus::Complete);
    }

    /// The agent looked for messages and has not read so many.
    pub fn check_inbox(&mut self, unread: u32, now: DateTime<Utc>) {
        let stamp = self.new_stamp(now);
        let state = self.coordination_state.get_or_insert_default();
        state.last_inbox_check = Some(stamp);
        state.unread_messages = Some(unread.into());
    }

    /// The agent updated the group's overview.
    pub fn update_overview(&mut self, now: DateTime<Utc>) {
        let stamp = self.new_stamp(now);
        let state = self.coordination_state.get_or_insert_default();
        state.last_epic_readme_update = Some(stamp);
    }

    /// The agent updated its own status file.
    pub fn update_status_file(&mut self, now: DateTime<Utc>) {
        let stamp = self.new_stamp(now);
        let state = self.coordination_state.get_or_insert_default();
        state.last_status_update = Some(stamp);
    }
}

/// From one of the three stages only the next follows; of others the protocol says nothing.
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

/// The details that the format has a place for.
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
    // A sign of life and a word for the next agent go with being complete.
    let goes_with_complete = matches!(
        operation,
        Operation::Heartbeat | Operation::Note { .. } | Operation::Complete
    );
    if context.force && !goes_with_complete {
        next.reopen();
    }
    // The same agent in a fresh session has resumed, whatever it reports first.
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
        StepStart { text } => { agent.start_step(text)?; },
        StepDone(done) => agent.finish_step(done)?,
        StepAdd { text, before } => agent.add_step(text, before.as_deref())?,
        StepDrop { text, .. } => agent.drop_step(text)?,
        StepEdit { text, to } => agent.reword_step(text, to)?,
        StepMove { text, before } => agent.move_step(text, before)?,
        // The format has no place for decisions: a decision is a thing that was done.
        Decide { text, rationale } => {
            says(text, "say what was decided")?;
            let because = rationale.iter().map(|why| format!(" (because {why})"));
            let decided = format!("Decided: {text}{}", because.collect::<String>());
            if !agent.completed_steps.contains(&decided) {
                agent.completed_steps.push(decided);
            }
        },
        Note { text } => {
            says(text, "say how far the work is")?;
            agent.set_recovery_instructions(text);
        },
        Block { text, kind: None } => agent.block(text)?,
        Unblock => agent.unblock()?,
        Heartbeat => agent.stamp(context.now),
        // It has no failed agent either: what cannot be got past blocks it.
        Fail { text } => agent.block(text)?,
        RateLimit { note } => {
            if let Some(note) = note.as_ref().filter(|note| !note.trim().is_empty()) {
                agent.set_recovery_instructions(note);
            }
            agent.stamp(context.now);
        },
        Context { used } => {
            if used.level() >= ContextLevel::Approaching {
                agent.stamp(context.now);
            }
        },
        Pause => agent.enter(AgentStatus::Waiting, context.force)?,
        Complete => {
            if !context.force {
                context.nothing_hidden("the agent is not complete")?;
            }
            agent.enter(AgentStatus::Complete, context.force)?;
        },
        Restart { because } => {
            agent.check_at_work()?;
            // Where another reports it, the agent names its session with its own first report.
            let own_session = context.session.filter(|_| agent.is_reported_by(context));
            if agent.is_reported_by(context) {
                agent.check_fresh(own_session.unwrap_or_default())?;
            }
            *agent = agent.restarted(because, own_session.map(str::to_owned), context.now);
        },
        Phase { name } => {
            says(name, "name the phase")?;
            agent.check_at_work()?;
            agent.phase = Some(name.clone());
        },
        Stage { name } => agent.stage(StageEntry::new(name), context.force)?,
        Sync { name } => agent.sync(name, context.force)?,
        Detail(detail) => agent.add_details(detail, context.now)?,
    }
}
