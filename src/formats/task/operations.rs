//! What an agent or a supervisor does to a checkpoint.

use chrono::{DateTime, Utc};

use super::{
    CompletedStep, CurrentStep, Decision, Metadata, Phase, Reason, ResultStatus, TaskCheckpoint,
    VerificationResult,
};
use crate::checkpoint::{
    Checkpoint, ContextLevel, Error, Interruption, OpenEnum, Operation, OperationContext,
    Precision, Result, SourceFiles, Status, StepDone, Timestamp, operations,
};
use crate::formats::steps::{self, said};
use crate::quoted;

pub(super) fn apply(
    task: &mut TaskCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    // No report is refused after it changed more than this, and a copy of the whole grows with the task.
    let before = task.metadata.clone();
    if operation.is_work() {
        task.take_over(context);
    }
    let reassigned = task.metadata.reason == Some(Reason::Reassignment) && operation.is_work();
    let whole = reassigned.then(|| task.clone());
    if let Err(refused) = report(task, operation, context) {
        task.metadata = before;
        return Err(refused);
    }
    let Some(mut whole) = whole else {
        return Ok(());
    };
    // The agent that reports work after a reassignment is the agent of this checkpoint.
    if task.metadata.reason == Some(Reason::Reassignment) {
        whole.metadata = before;
        if whole != *task {
            task.metadata.reason = Some(Reason::Periodic);
        }
    }
    // Where that is the one that was to leave, it is none that came before.
    let metadata = &mut task.metadata;
    if metadata.reason != Some(Reason::Reassignment) {
        let goes_on = |last: &mut String| Some(&*last) == metadata.created_by.as_ref();
        metadata.previous_agents.pop_if(goes_on);
    }
    Ok(())
}

operations! {
    fn report(task: &mut TaskCheckpoint, context) takes OPERATIONS {
        StepStart { text } => task.start_step(text, context.now)?,
        StepDone(done) => task.finish_step(done, context)?,
        StepAdd { text, before } => {
            let current = task.current();
            steps::add(&mut task.pending_steps, current.as_deref(), text, before.as_deref())?;
            task.goes_on();
        },
        StepDrop { text, because } => task.drop_step(text, because, context.now)?,
        StepEdit { text, to } => task.reword_step(text, to)?,
        StepMove { text, before } => {
            steps::reorder(&mut task.pending_steps, text, before)?;
            task.goes_on();
        },
        Decide { text, rationale } => task.decide(text, rationale.as_deref(), context.now)?,
        Note { text } => {
            task.worked_on(context.now)?.partial_work = Some(text.clone());
            task.goes_on();
        },
        Block { text, kind: None } => task.is_blocked_by(text),
        Unblock => task.unblock(),
        Heartbeat => task.stamp(context.now),
        Complete => {
            context.nothing_hidden("the task is not complete")?;
            task.check_complete()?;
        },
        Fail { text } => {
            task.is_blocked_by(text);
            task.metadata.reason = Some(Reason::Failure);
        },
        RateLimit { note, .. } => {
            if let Some(note) = note {
                task.worked_on(context.now)?.partial_work = Some(note.clone());
            }
            task.stops(Reason::RateLimit, context.now);
        },
        Context { used } => {
            if used.level() >= ContextLevel::Approaching {
                task.stops(Reason::ContextLimit, context.now);
            }
        },
        Reassign { to } => {
            if task.metadata.created_by.as_ref() != Some(to) {
                task.reassign();
            }
        },
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
    if value.is_known() || force {
        return Ok(value);
    }
    Err(Error::refused(format!(
        "{text} is no {what} of this format; it has {}",
        E::KNOWN.join(", "),
        text = quoted(text)
    )))
}

impl TaskCheckpoint {
    /// A checkpoint for a task that `agent` begins with this plan.
    ///
    /// The phase is *planning* while there is no plan, else *implementation*.
    pub fn begin(
        agent: impl Into<String>,
        plan: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Self {
        let pending_steps: Vec<String> = plan.into_iter().map(Into::into).collect();
        TaskCheckpoint {
            phase: Some(if pending_steps.is_empty() {
                Phase::Planning
            } else {
                Phase::Implementation
            }),
            pending_steps,
            metadata: Metadata {
                created_by: Some(agent.into()),
                last_updated_at: Some(Timestamp::like(None, now)),
                reason: Some(Reason::Periodic),
                previous_agents: Vec::new(),
            },
            ..TaskCheckpoint::default()
        }
    }

    /// Gives stamps this precision from now on. The protocol writes whole seconds; finer ones let the
    /// staleness verdict tell apart what happened within a second.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        let stamp = &mut self.metadata.last_updated_at;
        if let Some(time) = stamp.as_ref().and_then(Timestamp::time) {
            *stamp = Some(Timestamp::at(time.to_utc(), precision));
        }
        self
    }

    fn new_stamp(&self, now: DateTime<Utc>) -> Timestamp {
        Timestamp::like(self.metadata.last_updated_at.as_ref(), now)
    }

    /// A report of work: the last one says why the checkpoint is as it is.
    fn goes_on(&mut self) {
        self.metadata.reason = Some(Reason::Periodic);
    }

    fn current(&self) -> Option<String> {
        self.current_step.as_ref()?.description.clone()
    }

    /// Begins a step. Another that was current goes back to the head of the plan, unless it is in the plan; its note is kept
    /// by the save.
    fn start_step(&mut self, text: &str, now: DateTime<Utc>) -> Result<()> {
        if self.current().as_deref() == Some(text) {
            return Ok(());
        }
        let step = CurrentStep {
            started_at: Some(self.new_stamp(now)),
            ..CurrentStep::new(text)
        };
        let aside = self.current_step.replace(step);
        if let Some(aside) = aside.and_then(|aside| aside.description)
            && !self.pending_steps.contains(&aside)
        {
            self.pending_steps.insert(0, aside);
        }
        self.goes_on();
        Ok(())
    }

    /// The current step; where none is, the first planned one begins.
    fn worked_on(&mut self, now: DateTime<Utc>) -> Result<&mut CurrentStep> {
        if self.current_step.is_none() {
            let Some(first) = self.pending_steps.first() else {
                return Err(Error::refused(
                    "no step is in progress or planned that this could be noted of; start one first",
                ));
            };
            self.current_step = Some(CurrentStep {
                started_at: Some(self.new_stamp(now)),
                ..CurrentStep::new(first)
            });
        }
        Ok(self.current_step.get_or_insert_default())
    }

    /// Drops a step from the plan, also the current one, and records that and why as a decision.
    fn drop_step(&mut self, text: &str, because: &str, now: DateTime<Utc>) -> Result<()> {
        let current = self.current();
        if steps::drop(&mut self.pending_steps, current.as_deref(), text)? {
            self.current_step = None;
        }
        self.decide(&Self::dropping(text), Some(because), now)
    }

    /// The decision that a step is dropped.
    pub(super) fn dropping(text: &str) -> String {
        format!("Dropped the step: {text}")
    }

    fn reword_step(&mut self, text: &str, to: &str) -> Result<()> {
        let current = self.current();
        if steps::reword(&mut self.pending_steps, current.as_deref(), text, to)?
            && let Some(step) = &mut self.current_step
        {
            step.description = Some(to.to_owned());
        }
        self.goes_on();
        Ok(())
    }

    fn finish_step(&mut self, done: &StepDone, context: &OperationContext<'_>) -> Result<()> {
        let current = self.current();
        let is_finished = |text: &str| self.is_finished(text);
        let planned = &self.pending_steps;
        let finished = steps::finished(done, current.as_deref(), planned, "pending", is_finished)?;
        let Some(finished) = finished else {
            return Ok(());
        };
        if finished.leave(&mut self.pending_steps, current.as_deref()) {
            self.current_step = None;
        }
        let usual = SourceFiles::default();
        let sources = context.sources.unwrap_or(&usual);
        let of_source = |files: &[String]| sources.sort(files.iter().map(String::as_str)).0;
        self.completed_steps.push(CompletedStep {
            step: Some(finished.text),
            files_created: of_source(done.created()),
            files_modified: of_source(done.modified()),
            timestamp: Some(self.new_stamp(context.now)),
        });
        self.goes_on();
        Ok(())
    }

    pub(super) fn is_finished(&self, text: &str) -> bool {
        let mut steps = self.completed_steps.iter();
        steps.any(|step| step.step.as_deref() == Some(text))
    }

    /// Records a decision. One that is there already, with the same reason, is not recorded again.
    fn decide(&mut self, text: &str, rationale: Option<&str>, now: DateTime<Utc>) -> Result<()> {
        let is_this = |made: &Decision| {
            made.decision.as_deref() == Some(text) && made.rationale.as_deref() == rationale
        };
        if self.decisions.iter().any(is_this) {
            return Ok(());
        }
        self.decisions.push(Decision {
            decision: Some(text.to_owned()),
            rationale: rationale.map(str::to_owned),
            timestamp: Some(self.new_stamp(now)),
        });
        // What failed has failed all the same.
        if self.metadata.reason != Some(Reason::Failure) {
            self.goes_on();
        }
        Ok(())
    }

    /// Refuses a task of which something is left, and names that: the format has no word for complete, it follows
    /// from the steps.
    fn check_complete(&self) -> Result<()> {
        let mut left: Vec<String> = Vec::new();
        let current = self.current_step.as_ref();
        let current = current.and_then(|step| step.description.as_ref());
        left.extend(current.map(|step| format!("in progress: {step}")));
        let pending = self.pending_steps.iter();
        left.extend(
            pending
                .filter(|step| current != Some(step))
                .map(|step| format!("pending: {step}")),
        );
        left.extend(
            self.blockers
                .iter()
                .map(|text| format!("in the way: {text}")),
        );
        if self.completed_steps.is_empty() {
            left.push("no step is finished".to_owned());
        }
        match self.status() {
            Status::Complete => Ok(()),
            _ if left.is_empty() => Err(Error::refused(
                "the task is not complete: its verification has not passed, or its phase is planning; report what the verification \
                 gave, or the phase",
            )),
            _ => Err(Error::refused(format!(
                "the task is not complete: {}; report what is done, drop the steps that are not to be done, or unblock what is no longer in the way",
                left.join(", ")
            ))),
        }
    }

    /// Each is listed once.
    fn is_blocked_by(&mut self, blocker: &str) {
        if !self.blockers.iter().any(|known| known == blocker) {
            self.blockers.push(blocker.to_owned());
        }
    }

    /// Nothing is in the way any more. A task that had failed can be taken up again.
    fn unblock(&mut self) {
        self.blockers.clear();
        if self.metadata.reason == Some(Reason::Failure) {
            // Not `manual`, as of an agent that stopped in order: this one failed in the middle of its step.
            self.goes_on();
        }
    }

    /// Records what an activity of verification gave; a later result takes the place of an earlier.
    fn verify(&mut self, activity: &str, status: ResultStatus, now: DateTime<Utc>) -> Result<()> {
        let result = VerificationResult {
            run_at: Some(self.new_stamp(now)),
            ..VerificationResult::new(activity, status)
        };
        let results = &mut self.verification.get_or_insert_default().results;
        match results
            .iter_mut()
            .find(|known| known.activity == result.activity)
        {
            Some(known) => *known = result,
            None => results.push(result),
        }
        self.goes_on();
        Ok(())
    }

    /// Makes this a full checkpoint of an agent that has to stop: what failed before has failed all the same.
    fn stops(&mut self, reason: Reason, now: DateTime<Utc>) {
        if self.metadata.reason != Some(Reason::Failure) {
            self.metadata.reason = Some(reason);
        }
        self.stamp(now);
    }

    /// What failed is in the way; an agent that was only asked to stop leaves no blocker.
    pub(super) fn interrupted(&mut self, interruption: &Interruption, now: DateTime<Utc>) {
        if let Interruption::Failed(because) = interruption {
            // Whatever it says: an agent that dies has no second word.
            self.is_blocked_by(because);
            self.metadata.reason = Some(Reason::Failure);
        }
        self.stops(Reason::Manual, now);
    }

    /// The agent that made the checkpoint joins those that worked on the task. The checkpoint stays that agent's until
    /// another one reports.
    fn reassign(&mut self) {
        self.metadata.reason = Some(Reason::Reassignment);
        if let Some(agent) = self.metadata.created_by.clone()
            && self.metadata.previous_agents.last() != Some(&agent)
        {
            self.metadata.previous_agents.push(agent);
        }
    }

    /// The agent that reports has the task from now on; the one before joins those that worked on it.
    pub(super) fn take_over(&mut self, context: &OperationContext<'_>) {
        let Some(agent) = said(context.agent) else {
            return;
        };
        if self.metadata.created_by.as_deref() != Some(agent) {
            self.reassign();
            self.metadata.created_by = Some(agent.to_owned());
        }
    }

    /// The agent that left the checkpoint to the next one: its maker, or while nothing was done since it was
    /// reassigned the agent before.
    pub(super) fn left_by(&self) -> Option<&str> {
        let metadata = &self.metadata;
        let before = metadata.previous_agents.last();
        let was_reassigned = metadata.reason == Some(Reason::Reassignment);
        let left = before.filter(|_| was_reassigned);
        left.or(metadata.created_by.as_ref()).map(String::as_str)
    }
}
