//! The operations that an agent or a supervisor reports.

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
    // A refused report changes at most the metadata, so only these are copied; a copy of the whole grows with the task.
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
    // After a reassignment, the agent that reports work becomes the agent of this checkpoint.
    if task.metadata.reason == Some(Reason::Reassignment) {
        whole.metadata = before;
        if whole != *task {
            task.metadata.reason = Some(Reason::Periodic);
        }
    }
    // If that is the agent that was to leave, it is not one of the previous agents.
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

/// Parses a word of a list. A word that is not in it is accepted only when forced.
fn listed<E: OpenEnum + for<'t> From<&'t str>>(text: &str, what: &str, force: bool) -> Result<E> {
    let value = E::from(text);
    if value.is_known() || force {
        return Ok(value);
    }
    Err(Error::refused(format!(
        "{text} is not a {what} of this format; it has {}",
        E::KNOWN.join(", "),
        text = quoted(text)
    )))
}

impl TaskCheckpoint {
    /// The checkpoint of a task that `agent` begins with this plan.
    ///
    /// The phase is *planning* if the plan is empty, else *implementation*.
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

    /// Sets the precision of all later stamps. The protocol writes whole seconds; finer stamps let the staleness check
    /// distinguish events within a second.
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

    /// Notes a report of work as the reason for the last change.
    fn goes_on(&mut self) {
        self.metadata.reason = Some(Reason::Periodic);
    }

    fn current(&self) -> Option<String> {
        self.current_step.as_ref()?.description.clone()
    }

    /// Begins a step. A step that was current goes back to the head of the plan, unless the plan has it; the save keeps
    /// its note among the dropped items.
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

    /// The current step. If there is none, the first planned one begins.
    fn worked_on(&mut self, now: DateTime<Utc>) -> Result<&mut CurrentStep> {
        if self.current_step.is_none() {
            let Some(first) = self.pending_steps.first() else {
                return Err(Error::refused(
                    "there is no step in progress and no planned step to note this on; start a step first",
                ));
            };
            self.current_step = Some(CurrentStep {
                started_at: Some(self.new_stamp(now)),
                ..CurrentStep::new(first)
            });
        }
        Ok(self.current_step.get_or_insert_default())
    }

    /// Removes a step from the plan, even the current one, and records the reason as a decision.
    fn drop_step(&mut self, text: &str, because: &str, now: DateTime<Utc>) -> Result<()> {
        let current = self.current();
        if steps::drop(&mut self.pending_steps, current.as_deref(), text)? {
            self.current_step = None;
        }
        self.decide(&Self::dropping(text), Some(because), now)
    }

    /// The text of the decision to drop a step.
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

    /// Records a decision. A decision with the same text and reason is recorded once.
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
        // A decision does not end a failure.
        if self.metadata.reason != Some(Reason::Failure) {
            self.goes_on();
        }
        Ok(())
    }

    /// Refuses if something is left to do, and names it. The format has no status member, so completion follows from
    /// the steps.
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
                "the task is not complete: {}; report what is done, drop the steps that are not to be done, or clear \
                 the blockers that are gone (unblock)",
                left.join(", ")
            ))),
        }
    }

    /// Adds a blocker, once.
    fn is_blocked_by(&mut self, blocker: &str) {
        if !self.blockers.iter().any(|known| known == blocker) {
            self.blockers.push(blocker.to_owned());
        }
    }

    /// Clears the blockers. A failed task can then be resumed.
    fn unblock(&mut self) {
        self.blockers.clear();
        if self.metadata.reason == Some(Reason::Failure) {
            // Not `manual`, which means that the agent stopped in order: this one failed in the middle of its step.
            self.goes_on();
        }
    }

    /// Records the result of a verification activity, in place of an earlier one.
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

    /// Records that the agent has to stop. A failure recorded before stays the reason.
    fn stops(&mut self, reason: Reason, now: DateTime<Utc>) {
        if self.metadata.reason != Some(Reason::Failure) {
            self.metadata.reason = Some(reason);
        }
        self.stamp(now);
    }

    /// Records an interruption. A failure becomes a blocker; a requested stop does not.
    pub(super) fn interrupted(&mut self, interruption: &Interruption, now: DateTime<Utc>) {
        if let Interruption::Failed(because) = interruption {
            // Recorded even when it is blank: the agent cannot report again.
            self.is_blocked_by(because);
            self.metadata.reason = Some(Reason::Failure);
        }
        self.stops(Reason::Manual, now);
    }

    /// Adds the agent of the checkpoint to the previous agents. It stays the agent of the checkpoint until another one
    /// reports.
    fn reassign(&mut self) {
        self.metadata.reason = Some(Reason::Reassignment);
        if let Some(agent) = self.metadata.created_by.clone()
            && self.metadata.previous_agents.last() != Some(&agent)
        {
            self.metadata.previous_agents.push(agent);
        }
    }

    /// Makes the reporting agent the agent of the checkpoint; the former one joins the previous agents.
    pub(super) fn take_over(&mut self, context: &OperationContext<'_>) {
        let Some(agent) = said(context.agent) else {
            return;
        };
        if self.metadata.created_by.as_deref() != Some(agent) {
            self.reassign();
            self.metadata.created_by = Some(agent.to_owned());
        }
    }

    /// The agent that left the checkpoint: the agent of the checkpoint, or the previous one if the task was reassigned
    /// and nothing was reported since.
    pub(super) fn left_by(&self) -> Option<&str> {
        let metadata = &self.metadata;
        let before = metadata.previous_agents.last();
        let was_reassigned = metadata.reason == Some(Reason::Reassignment);
        let left = before.filter(|_| was_reassigned);
        left.or(metadata.created_by.as_ref()).map(String::as_str)
    }
}
