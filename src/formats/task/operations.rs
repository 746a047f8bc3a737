//! What an agent does to its checkpoint.

use crate::quoted;
use crate::shown::quoted_all;
use chrono::{DateTime, Utc};

use super::{
    CompletedStep, CurrentStep, Decision, Metadata, Phase, Reason, ResultStatus, TaskCheckpoint,
    VerificationResult,
};
use crate::checkpoint::{
    Checkpoint, Error, Precision, Result, Status, StepDone, Timestamp, have_names,
};
use crate::formats::steps::{self, says};

/// What became of the step that was to begin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepStarted {
    /// It is the current step now.
    Begun,
    /// It was the current step already, perhaps another agent's: see its note.
    Already,
    /// It is the current step now, and this one was put aside for it.
    InsteadOf(CurrentStep),
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

    pub(super) fn new_stamp(&self, now: DateTime<Utc>) -> Timestamp {
        Timestamp::like(self.metadata.last_updated_at.as_ref(), now)
    }

    /// Begins a step; it stays pending until it is finished.
    ///
    /// A step that is already the current one goes on unchanged. Another step that was current goes
    /// back to the head of the plan, unless it is in the plan, and is handed back with its note.
    ///
    /// # Errors
    ///
    /// Refused when the description says nothing. The checkpoint is then unchanged.
    pub fn start_step(
        &mut self,
        description: impl Into<String>,
        now: DateTime<Utc>,
    ) -> Result<StepStarted> {
        let description = description.into();
        says(&description, "say which step begins")?;
        let current = self.current_step.as_ref();
        if current.is_some_and(|step| step.description.as_ref() == Some(&description)) {
            return Ok(StepStarted::Already);
        }
        let step = CurrentStep {
            description: Some(description),
            started_at: Some(self.new_stamp(now)),
            partial_work: None,
        };
        self.metadata.reason = Some(Reason::Periodic);
        let Some(aside) = self.current_step.replace(step) else {
            return Ok(StepStarted::Begun);
        };
        if let Some(text) = &aside.description
            && !self.pending_steps.contains(text)
        {
            self.pending_steps.insert(0, text.clone());
        }
        Ok(StepStarted::InsteadOf(aside))
    }

    /// Notes how far the current step is; where none is, the first planned one begins with it.
    ///
    /// # Errors
    ///
    /// Refused when no step is in progress or planned, and when the note says nothing.
    pub fn note_progress(&mut self, note: impl Into<String>, now: DateTime<Utc>) -> Result<()> {
        let note = note.into();
        says(&note, "say how far the step is")?;
        self.worked_on(now)?.partial_work = Some(note);
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }

    /// The current step; where none is, the first planned one begins.
    pub(super) fn worked_on(&mut self, now: DateTime<Utc>) -> Result<&mut CurrentStep> {
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

    /// Adds a step to the plan, before another or at its end. One that is planned already changes nothing.
    ///
    /// # Errors
    ///
    /// Refused when the text says nothing, and when the other step is not planned.
    pub fn add_step(&mut self, text: &str, before: Option<&str>) -> Result<()> {
        let current = self.current();
        steps::add(&mut self.pending_steps, current.as_deref(), text, before)?;
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }

    /// Drops a step from the plan, also the current one, and records that and why as a decision.
    ///
    /// # Errors
    ///
    /// Refused when the step is not planned, and when the reason says nothing.
    pub fn drop_step(&mut self, text: &str, because: &str, now: DateTime<Utc>) -> Result<()> {
        says(because, "say why the step is dropped")?;
        let current = self.current();
        if steps::drop(&mut self.pending_steps, current.as_deref(), text)? {
            self.current_step = None;
        }
        self.decide(Self::dropping(text), Some(because.to_owned()), now)
    }

    /// The decision that a step is dropped.
    pub(super) fn dropping(text: &str) -> String {
        format!("Dropped the step: {text}")
    }

    /// Gives a planned step another text, also the current one; it stays where it is.
    ///
    /// # Errors
    ///
    /// Refused when the step is not planned, and when the new text says nothing or is planned already.
    pub fn reword_step(&mut self, text: &str, to: &str) -> Result<()> {
        let current = self.current();
        if steps::reword(&mut self.pending_steps, current.as_deref(), text, to)?
            && let Some(step) = &mut self.current_step
        {
            step.description = Some(to.to_owned());
        }
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }

    /// Moves a planned step before another.
    ///
    /// # Errors
    ///
    /// Refused when one of them is not planned.
    pub fn move_step(&mut self, text: &str, before: &str) -> Result<()> {
        steps::reorder(&mut self.pending_steps, text, before)?;
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }

    fn current(&self) -> Option<String> {
        self.current_step.as_ref()?.description.clone()
    }

    /// Records a finished step: it joins the finished ones, leaves the plan, and is no longer
    /// current. One that is reported again, in the same words and without a pending step, changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// Refused when neither a text nor a current step says what was done, when a file has no name, when the
    /// pending step that is named is not in the plan, and when none is named and the text reads more like another
    /// planned step than like the current one, by the words they have in common. The checkpoint is then unchanged.
    pub fn finish_step(&mut self, done: &StepDone, now: DateTime<Utc>) -> Result<()> {
        if let Some(text) = done.text() {
            says(text, "say what was finished")?;
        }
        have_names(done.files())?;
        let current = self.current();
        let finished = done.named(current.as_deref())?;
        let Some(text) = done.text().or(current.as_deref()).map(str::to_owned) else {
            return Err(Error::refused(
                "no step is in progress; say what was finished",
            ));
        };
        let is_pending = |step: &str| self.pending_steps.iter().any(|pending| pending == step);
        let leaves = match finished {
            Some(named) if !is_pending(&named) && current.as_ref() != Some(&named) => {
                return Err(Error::refused(format!(
                    "{named} is no pending step; pending are {}",
                    quoted_all(&self.pending_steps),
                    named = quoted(&named)
                )));
            }
            Some(named) => Some(named),
            None if is_pending(&text) => Some(text.clone()),
            // Reported again, as after a time-out: what is current now is another step.
            None if current.as_ref() != Some(&text) && self.is_finished(&text) => return Ok(()),
            None if current.as_ref() == Some(&text) => Some(text.clone()),
            None => steps::finished_with(&text, current.as_deref(), &self.pending_steps)?,
        };
        if let Some(leaves) = leaves {
            if let Some(at) = self.pending_steps.iter().position(|step| *step == leaves) {
                self.pending_steps.remove(at);
            }
            if current.as_ref() == Some(&leaves) {
                self.current_step = None;
            }
        }
        self.completed_steps.push(CompletedStep {
            step: Some(text),
            files_created: done.created().to_vec(),
            files_modified: done.modified().to_vec(),
            timestamp: Some(self.new_stamp(now)),
        });
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }

    pub(super) fn is_finished(&self, text: &str) -> bool {
        self.completed_steps
            .iter()
            .any(|step| step.step.as_deref() == Some(text))
    }

    /// Records a decision. One that is there already, with the same reason, is not recorded again.
    ///
    /// # Errors
    ///
    /// Refused when it says nothing.
    pub fn decide(
        &mut self,
        decision: impl Into<String>,
        rationale: Option<String>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let decision = decision.into();
        says(&decision, "say what was decided")?;
        let known = self
            .decisions
            .iter()
            .any(|made| made.decision.as_ref() == Some(&decision) && made.rationale == rationale);
        if known {
            return Ok(());
        }
        self.decisions.push(Decision {
            decision: Some(decision),
            rationale,
            timestamp: Some(self.new_stamp(now)),
        });
        // What failed has failed all the same.
        if self.metadata.reason != Some(Reason::Failure) {
            self.metadata.reason = Some(Reason::Periodic);
        }
        Ok(())
    }

    /// Refuses a task of which something is left, and names that: the format has no word for complete, it follows
    /// from the steps.
    ///
    /// # Errors
    ///
    /// Refused when the task is not complete.
    pub fn check_complete(&self) -> Result<()> {
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

    /// Records what is in the way, once.
    ///
    /// # Errors
    ///
    /// Refused when it says nothing.
    pub fn block(&mut self, blocker: impl Into<String>) -> Result<()> {
        let blocker = blocker.into();
        says(&blocker, "say what is in the way")?;
        self.is_blocked_by(blocker);
        Ok(())
    }

    pub(super) fn is_blocked_by(&mut self, blocker: String) {
        if !self.blockers.contains(&blocker) {
            self.blockers.push(blocker);
        }
    }

    /// Nothing is in the way any more. A task that had failed can be taken up again.
    pub fn unblock(&mut self) {
        self.blockers.clear();
        if self.metadata.reason == Some(Reason::Failure) {
            // Not `manual`, as of an agent that stopped in order: this one failed in the middle of its step.
            self.metadata.reason = Some(Reason::Periodic);
        }
    }

    /// Names the contract that says what success looks like, such as `US-003.verificationContract`.
    #[must_use]
    pub fn with_contract(mut self, contract: impl Into<String>) -> Self {
        let verification = self.verification.get_or_insert_default();
        verification.contract_ref = Some(contract.into());
        self
    }

    /// Records what an activity of verification gave; a later result takes the place of an earlier.
    ///
    /// # Errors
    ///
    /// Refused when the activity has no name.
    pub fn verify(
        &mut self,
        activity: impl Into<String>,
        status: ResultStatus,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let activity = activity.into();
        says(&activity, "say what was run")?;
        let run_at = Some(self.new_stamp(now));
        let results = &mut self.verification.get_or_insert_default().results;
        let known = results
            .iter_mut()
            .find(|result| result.activity.as_ref() == Some(&activity));
        if let Some(result) = known {
            result.status = Some(status);
            result.run_at = run_at;
        } else {
            results.push(VerificationResult {
                activity: Some(activity),
                status: Some(status),
                run_at,
            });
        }
        self.metadata.reason = Some(Reason::Periodic);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-03-02T08:10:00Z")
            .unwrap()
            .to_utc()
    }

    fn planned() -> TaskCheckpoint {
        TaskCheckpoint::begin("dev", ["one", "two"], now())
    }

    #[test]
    fn the_current_step_is_the_default_for_both_texts() {
        let mut task = planned();
        task.start_step("one", now()).unwrap();
        task.finish_step(&StepDone::current(), now()).unwrap();
        assert_eq!(task.completed_steps[0].step.as_deref(), Some("one"));
        assert_eq!(task.pending_steps, ["two"]);
        assert!(task.current_step.is_none());
    }

    #[test]
    fn a_finished_text_may_differ_from_the_pending_one() {
        let mut task = planned();
        task.start_step("one", now()).unwrap();
        task.finish_step(&StepDone::new("did one"), now()).unwrap();
        assert_eq!(task.pending_steps, ["two"]);
        let done = StepDone::new("did two").with_pending("two");
        task.finish_step(&done, now()).unwrap();
        assert!(task.pending_steps.is_empty());
    }

    #[test]
    fn another_pending_step_can_be_finished_while_one_is_current() {
        let mut task = planned();
        task.start_step("one", now()).unwrap();
        task.finish_step(&StepDone::new("two"), now()).unwrap();
        assert_eq!(task.pending_steps, ["one"]);
        assert!(task.current_step.is_some());
    }

    #[test]
    fn a_step_that_is_not_in_the_plan_is_refused_and_changes_nothing() {
        let mut task = planned();
        let before = task.clone();
        let done = StepDone::new("did").with_pending("three");
        assert!(task.finish_step(&done, now()).is_err());
        assert!(task.finish_step(&StepDone::current(), now()).is_err());
        assert_eq!(task, before);
    }

    #[test]
    fn a_step_put_aside_is_handed_back_and_stays_in_the_plan() {
        let mut task = planned();
        task.start_step("extra", now()).unwrap();
        task.note_progress("half", now()).unwrap();
        let StepStarted::InsteadOf(aside) = task.start_step("one", now()).unwrap() else {
            panic!("another step was current");
        };
        assert_eq!(aside.partial_work.as_deref(), Some("half"));
        assert_eq!(task.pending_steps, ["extra", "one", "two"]);
        assert_eq!(task.start_step("one", now()).unwrap(), StepStarted::Already);
    }

    #[test]
    fn what_says_nothing_is_refused_and_changes_nothing() {
        let mut task = planned();
        let before = task.clone();
        for blank in ["", " \t"] {
            assert!(task.start_step(blank, now()).is_err());
            assert!(task.decide(blank, None, now()).is_err());
            assert!(task.block(blank).is_err());
            assert!(task.fail(blank).is_err());
            assert!(task.verify(blank, ResultStatus::Passed, now()).is_err());
            let done = StepDone::new("one").with_created(blank);
            assert!(task.finish_step(&done, now()).is_err());
            let done = StepDone::new("one").with_modified(blank);
            assert!(task.finish_step(&done, now()).is_err());
        }
        assert_eq!(task, before);
    }

    #[test]
    fn a_step_that_is_reported_again_takes_no_other_out_of_the_plan() {
        let mut task = planned();
        task.start_step("one", now()).unwrap();
        task.finish_step(&StepDone::new("did one"), now()).unwrap();
        task.start_step("two", now()).unwrap();
        let before = task.clone();
        task.finish_step(&StepDone::new("did one"), now()).unwrap();
        assert_eq!(task, before);
    }

    #[test]
    fn the_same_decision_is_recorded_once() {
        let mut task = planned();
        task.decide("a", None, now()).unwrap();
        task.decide("a", None, now()).unwrap();
        task.decide("a", Some("because".into()), now()).unwrap();
        assert_eq!(task.decisions.len(), 2);
    }

    #[test]
    fn every_agent_that_worked_on_a_task_is_known() {
        let mut task = planned();
        task.take_over("second");
        task.take_over("second");
        assert_eq!(task.metadata.previous_agents, ["dev"]);
        task.reassign();
        task.take_over("third");
        assert_eq!(task.metadata.previous_agents, ["dev", "second"]);
        assert_eq!(task.metadata.created_by.as_deref(), Some("third"));
        assert_eq!(task.metadata.reason, Some(Reason::Reassignment));
    }
}
