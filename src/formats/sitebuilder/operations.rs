//! The operations that an agent or a supervisor reports.
//!
//! The states: *in progress* → *blocked* (an error) → *in progress* (errors cleared); *in progress* →
//! *complete*; *complete* → *in progress* only where an acceptance criterion is open.

use chrono::{DateTime, Utc};

use super::handoff::BLOCKER;
use super::layout::checkpoint_id;
use super::messages::continue_from;
use super::progress::count;
use super::resume;
use super::{SitebuilderCheckpoint, Subtask, SubtaskStatus, Subtasks, TaskError, TaskStatus};
use crate::checkpoint::{
    Checkpoint, ContextLevel, Detail, Error, OperationContext, Result, ResumeDecision, StepDone,
    Timestamp, operations,
};
use crate::formats::steps::{self, add_each_once, decided};
use crate::quoted;

/// The error type for a failed subtask.
const SUBTASK_FAILED: &str = "subtask_failed";

/// The details that the format has members for.
const DETAILS: &[&str] = &["created", "modified", "instructions", "processed", "next"];

/// The prefix of a decision in the notes, where the format keeps decisions.
const DECIDED: &str = "Decided: ";

operations! {
    pub(super) fn apply(site: &mut SitebuilderCheckpoint, context) takes OPERATIONS {
        StepStart { text } => site.start_subtask(text, context.force)?,
        StepDone(done) => {
            let id = site.subtask_of(done)?;
            let (created, modified) = (done.created(), done.modified());
            site.finish_subtask(&id, created, modified, done.text(), context.force)?;
        },
        Decide { text, rationale } => site.decide(&decided(text, rationale.as_deref())),
        Note { text } => site.note(text),
        Block { text, kind: None } => site.block(BLOCKER, text, context)?,
        Unblock => {
            site.go_on(context.force)?;
            site.errors.clear();
        },
        Heartbeat => site.beat(context.now),
        // The protocol has no failed status: a failure blocks the task.
        Fail { text } => site.block("error", text, context)?,
        RateLimit { note, .. } => {
            if let Some(note) = note {
                site.note(note);
            }
            site.stamp(context.now);
        },
        Context { used } => {
            if used.level() >= ContextLevel::Approaching {
                site.stamp(context.now);
            }
        },
        Complete => site.complete(context)?,
        SubtaskAdd { id } => {
            site.record(context.force)?;
            if site.subtask(id).is_none() {
                site.set_subtask(id, SubtaskStatus::Pending);
            }
        },
        SubtaskStart { id } => site.start_subtask(id, context.force)?,
        SubtaskDone { id, files } => site.finish_subtask(id, files, &[], None, context.force)?,
        SubtaskFail { id, because } => site.fail_subtask(id, because.as_deref(), context)?,
        Verify { activity, status } => site.verify(activity, status, context.force)?,
        Block { text, kind: Some(kind) } => site.block(kind, text, context)?,
        Detail(detail) => site.add_details(detail)?,
    }
}

impl SitebuilderCheckpoint {
    /// The checkpoint of a task that an agent of this type begins, with the planned subtasks.
    pub fn begin(
        agent: impl Into<String>,
        task_id: impl Into<String>,
        plan: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Self {
        let (agent, task_id) = (agent.into(), task_id.into());
        let stamp = Timestamp::like(None, now);
        let items: Vec<Subtask> = plan
            .into_iter()
            .map(|id| Subtask::new(id, SubtaskStatus::Pending))
            .collect();
        // Without a plan the total is unknown.
        let total = (!items.is_empty()).then(|| count(items.iter()));
        SitebuilderCheckpoint {
            checkpoint_id: Some(checkpoint_id(&agent, &task_id, now)),
            agent: Some(agent),
            task_id: Some(task_id),
            status: Some(TaskStatus::InProgress),
            progress_percent: Some(0.0),
            started_at: Some(stamp.clone()),
            updated_at: Some(stamp),
            subtasks: Subtasks {
                total,
                completed: Some(0.0),
                failed: Some(0.0),
                items,
            },
            resumable: Some(true),
            ..SitebuilderCheckpoint::default()
        }
    }

    /// Sets the total number of subtasks when not all are listed. It is never less than the number listed.
    #[must_use]
    pub fn with_total(mut self, total: u32) -> Self {
        let listed = count(self.subtasks.items.iter());
        self.subtasks.total = Some(f64::from(total).max(listed));
        self.keep_percent();
        self
    }

    /// Adds acceptance criteria, none of which is met yet.
    #[must_use]
    pub fn with_criteria(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(|name| (name.into(), Some(false)));
        self.acceptance_criteria_met.extend(names);
        self
    }

    /// Begins a subtask. An unlisted one is added to the list; a failed one is tried again.
    fn start_subtask(&mut self, id: &str, force: bool) -> Result<()> {
        if self.is_finished(id) && !force {
            return Err(Error::refused(format!(
                "the subtask {id} is complete already; force the report to begin it again",
                id = quoted(id)
            )));
        }
        if self.state() == Some(TaskStatus::Blocked) && !self.errors.is_empty() && !force {
            return Err(Error::refused(
                "the task is blocked; resolve its errors and clear them (unblock) first",
            ));
        }
        self.go_on(force)?;
        self.set_subtask(id, SubtaskStatus::InProgress);
        Ok(())
    }

    /// The id of the subtask that a finished step means: the one given as pending, else one whose id equals the text,
    /// else the only one in progress.
    fn subtask_of(&self, done: &StepDone) -> Result<String> {
        let in_progress = self.handoff().in_progress.into_iter().next();
        let in_progress = in_progress.map(|item| item.text);
        let text = done.text();
        if let Some(pending) = done.named(in_progress.as_deref())? {
            return match self.subtask(&pending) {
                Some(_) => Ok(pending),
                None => Err(Error::refused(format!(
                    "the subtask {pending} is not listed; omit it to add one",
                    pending = quoted(&pending)
                ))),
            };
        }
        if let Some(text) = text.filter(|text| self.subtask(text).is_some()) {
            return Ok(text.to_owned());
        }
        let items = self.subtasks.items.iter();
        let mut begun = items
            .filter(|item| item.is(&SubtaskStatus::InProgress))
            .filter_map(|item| item.id.as_deref());
        match (begun.next(), begun.next(), text) {
            (Some(only), None, Some(text)) => {
                let open = self.subtasks.open();
                let open: Vec<String> = open.filter_map(|item| item.id.clone()).collect();
                let left = steps::finished_with(text, Some(only), &open)?;
                Ok(left.unwrap_or_else(|| only.to_owned()))
            }
            (Some(only), None, None) => Ok(only.to_owned()),
            (_, _, Some(text)) => Ok(text.to_owned()),
            _ => Err(Error::refused(
                "not exactly one subtask is in progress; name the one that is finished",
            )),
        }
    }

    /// Finishes a subtask: counts it, lists its files, and moves the context to the next one.
    ///
    /// A subtask that is already finished only gains files. In a blocked task, finished work is recorded and the task
    /// stays blocked.
    fn finish_subtask(
        &mut self,
        id: &str,
        created: &[String],
        modified: &[String],
        processed: Option<&str>,
        force: bool,
    ) -> Result<()> {
        self.record(force)?;
        let again = self.is_finished(id);
        self.set_subtask(id, SubtaskStatus::Complete);
        self.add_files(created, modified);
        let output = created.iter().chain(modified).next();
        if let (Some(output), Some(item)) = (output, self.subtask_mut(id)) {
            item.output.get_or_insert_with(|| output.clone());
        }
        if again {
            return Ok(());
        }
        let next = self.subtasks.open().next().and_then(|item| item.id.clone());
        let noted = self.context.next_to_process.take();
        self.context.last_processed = Some(processed.unwrap_or(id).to_owned());
        self.context.next_to_process = next;
        // The agent's own instructions stay, with a remark if they send the next agent to the subtask that is now
        // finished. A generated instruction is replaced by the one for the next subtask.
        let follows = |text: &String| {
            let mut starts = noted.as_deref().into_iter().chain([id]);
            starts.any(|start| *text == continue_from(start))
        };
        if self.resume_instructions.as_ref().is_some_and(follows) {
            let next = self.context.next_to_process.as_deref();
            self.resume_instructions = next.map(continue_from);
        } else if let Some(text) = self
            .resume_instructions
            .as_mut()
            .filter(|text| sends_to(text, id))
        {
            *text = format!("{id} is done since this was written: {text}");
        }
        Ok(())
    }

    /// Records that a subtask failed. The reason becomes an error that does not block the task.
    fn fail_subtask(
        &mut self,
        id: &str,
        because: Option<&str>,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        if self.is_finished(id) && !context.force {
            return Err(Error::refused(format!(
                "the subtask {id} is complete already; force the report to mark it as failed",
                id = quoted(id)
            )));
        }
        self.record(context.force)?;
        self.set_subtask(id, SubtaskStatus::Failed);
        if let Some(because) = because {
            let message = format!("{id}: {because}");
            self.add_error(SUBTASK_FAILED, &message, false, context.now);
        }
        Ok(())
    }

    /// Adds files that the task created or changed. A created file is not also listed as changed.
    fn add_files(&mut self, created: &[String], modified: &[String]) {
        add_each_once(&mut self.files_created, created);
        let made = &self.files_created;
        let modified = modified.iter().filter(|file| !made.contains(file));
        add_each_once(&mut self.files_modified, modified);
    }

    /// Records what blocks the task, as an error of this type, such as `dependency_missing`.
    ///
    /// The task is then *blocked* and stays resumable. The same error is recorded once.
    fn block(&mut self, kind: &str, message: &str, context: &OperationContext<'_>) -> Result<()> {
        let complete = self.state() == Some(TaskStatus::Complete);
        if (complete || self.is_in_unknown_state()) && !context.force {
            return Err(self.no_way_to(&TaskStatus::Blocked));
        }
        if complete {
            self.completed_at = None;
        }
        self.add_error(kind, message, true, context.now);
        self.take_state(TaskStatus::Blocked);
        self.resumable = Some(true);
        Ok(())
    }

    /// Lets an agent of this type continue. A blocked task stays blocked until it is unblocked.
    pub(super) fn taken_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        if let (Some(agent), Some(own)) = (context.agent, self.agent.as_deref())
            && agent != own
        {
            return Err(Error::refused(format!(
                "the file is named after the agent {own}; dispatch an agent of that type to continue"
            )));
        }
        if self.state() == Some(TaskStatus::Blocked) && self.resumable == Some(true) {
            return Ok(());
        }
        let plan = resume::plan(self);
        if plan.decision > ResumeDecision::Verify && !context.force {
            let question = plan.questions.into_iter().next();
            return Err(Error::refused(question.unwrap_or(plan.message)));
        }
        self.go_on(context.force)
    }

    /// Records whether an acceptance criterion is met.
    fn judge(&mut self, criterion: &str, met: bool, force: bool) -> Result<()> {
        let before = self.acceptance_criteria_met.get(criterion).copied();
        let complete = self.state() == Some(TaskStatus::Complete);
        if complete && !met && before != Some(Some(false)) {
            if !force {
                return Err(Error::refused(format!(
                    "the task is complete; force the report to reset the criterion {criterion} and continue",
                    criterion = quoted(criterion)
                )));
            }
            self.reopen();
        }
        self.acceptance_criteria_met
            .insert(criterion.to_owned(), Some(met));
        Ok(())
    }

    /// Records a result: a word is the state of an acceptance criterion, a number the score of a reviewing agent.
    fn verify(&mut self, activity: &str, status: &str, force: bool) -> Result<()> {
        let word = status.trim().to_ascii_lowercase();
        match word.as_str() {
            "passed" | "met" | "true" => self.judge(activity, true, force),
            "failed" | "pending" | "unmet" | "false" => self.judge(activity, false, force),
            _ => {
                let score = word.parse::<f64>().ok().filter(|score| score.is_finite());
                let Some(score) = score else {
                    return Err(Error::refused(format!(
                        "{status} is not a result: a criterion is passed or failed, a review has a number",
                        status = quoted(status)
                    )));
                };
                self.review_scores.insert(activity.to_owned(), Some(score));
                Ok(())
            }
        }
    }

    /// Replaces the note; decisions in the notes stay.
    fn note(&mut self, text: &str) {
        let decided = self.decided().map(str::to_owned);
        let lines: Vec<String> = [text.to_owned()].into_iter().chain(decided).collect();
        self.context.notes = Some(lines.join("\n"));
    }

    /// The lines of the notes that are decisions.
    fn decided(&self) -> impl Iterator<Item = &str> {
        let lines = self.context.notes.iter().flat_map(|notes| notes.lines());
        lines.filter(|line| line.starts_with(DECIDED))
    }

    /// Adds a decision to the notes, once.
    fn decide(&mut self, decision: &str) {
        // Each decision is one line.
        let line = decision.replace(['\r', '\n'], " ");
        if !self.decided().any(|decided| decided == line) {
            let notes = self.context.notes.take();
            self.context.notes =
                Some(notes.map_or(line.clone(), |notes| format!("{notes}\n{line}")));
        }
    }

    /// Records details of the work besides its subtasks.
    fn add_details(&mut self, detail: &Detail) -> Result<()> {
        detail.check(DETAILS)?;
        self.add_files(&detail.files_created, &detail.files_modified);
        if let Some(text) = &detail.instructions {
            self.resume_instructions = Some(text.clone());
        }
        if let Some(processed) = &detail.processed {
            self.context.last_processed = Some(processed.clone());
        }
        if let Some(next) = &detail.next {
            self.context.next_to_process = Some(next.clone());
        }
        Ok(())
    }

    /// Completes the task, which is then not resumable.
    fn complete(&mut self, context: &OperationContext<'_>) -> Result<()> {
        let whole = self.may_complete();
        let is_whole = whole.is_ok();
        if !context.force {
            context.nothing_hidden("the task is not complete")?;
            whole?;
        }
        let before = self.completed_at.as_ref().or(self.updated_at.as_ref());
        self.completed_at = Some(Timestamp::like(before, context.now));
        self.take_state(TaskStatus::Complete);
        self.resumable = Some(false);
        // Without counts, the percentage of a forced completion is unknown.
        if is_whole && self.subtasks.percent().is_none() {
            self.progress_percent = Some(100.0);
        }
        self.keep_percent();
        Ok(())
    }

    fn may_complete(&self) -> Result<()> {
        match self.state() {
            Some(TaskStatus::Blocked) => return Err(self.no_way_to(&TaskStatus::Complete)),
            None if self.is_in_unknown_state() => {
                return Err(self.no_way_to(&TaskStatus::Complete));
            }
            Some(TaskStatus::Complete)
                if self.completed_at.is_some() && self.open_criteria().is_empty() =>
            {
                return Err(Error::refused("the task is complete already"));
            }
            _ => {}
        }
        let unmet: Vec<_> = self
            .acceptance_criteria_met
            .iter()
            .filter(|(_, met)| **met != Some(true))
            .map(|(name, _)| name.as_str())
            .collect();
        if !unmet.is_empty() {
            return Err(Error::refused(format!(
                "these acceptance criteria are not met: {}",
                unmet.join(", ")
            )));
        }
        let subtasks = &self.subtasks;
        let open: Vec<_> = subtasks
            .open()
            .filter(|item| !item.is(&SubtaskStatus::Failed))
            .map(|item| subtasks.name(item))
            .collect();
        if !open.is_empty() {
            return Err(Error::refused(format!(
                "these subtasks are not finished: {}",
                open.join(", ")
            )));
        }
        let failed = subtasks.failed.unwrap_or_default();
        match subtasks.remaining() {
            Some(remaining) if remaining > failed => Err(Error::refused(format!(
                "{} subtasks are not finished",
                remaining - failed
            ))),
            _ => Ok(()),
        }
    }

    fn no_way_to(&self, to: &TaskStatus) -> Error {
        let from = self.status.as_ref().map_or("", TaskStatus::as_str);
        if self.is_in_unknown_state() {
            return Error::refused(format!(
                "the status {from} is not one of the protocol's, so it has no transitions; set it to in_progress, \
                 blocked or complete first, or force the report",
                from = quoted(from)
            ));
        }
        let allowed: &[&str] = match self.state() {
            Some(TaskStatus::Blocked) => &["in_progress"],
            Some(TaskStatus::InProgress) => &["blocked", "complete"],
            Some(TaskStatus::Complete) if !self.open_criteria().is_empty() => &["in_progress"],
            _ => &[],
        };
        Error::transition(from, to.as_str(), allowed)
    }

    /// Whether the status is present and its meaning unknown.
    fn is_in_unknown_state(&self) -> bool {
        self.status.is_some() && self.state().is_none()
    }

    /// Sets the state, but keeps a spelling that already means it.
    fn take_state(&mut self, state: TaskStatus) {
        if self.state().as_ref() != Some(&state) {
            self.status = Some(state);
        }
    }

    /// Sets the task to in progress.
    fn go_on(&mut self, force: bool) -> Result<()> {
        if self.state() == Some(TaskStatus::Complete) {
            if !force && self.open_criteria().is_empty() {
                return Err(self.no_way_to(&TaskStatus::InProgress));
            }
            self.reopen();
        } else if self.is_in_unknown_state() && !force {
            return Err(self.no_way_to(&TaskStatus::InProgress));
        } else {
            self.take_state(TaskStatus::InProgress);
        }
        Ok(())
    }

    /// Sets the task to in progress after reported work, except that a blocked task stays blocked.
    fn record(&mut self, force: bool) -> Result<()> {
        if self.state() == Some(TaskStatus::Blocked) {
            return Ok(());
        }
        self.go_on(force)
    }

    fn reopen(&mut self) {
        self.status = Some(TaskStatus::InProgress);
        self.completed_at = None;
        self.resumable = Some(true);
    }

    fn add_error(&mut self, kind: &str, message: &str, blocking: bool, now: DateTime<Utc>) {
        let same = |error: &TaskError| {
            error.kind.as_deref() == Some(kind)
                && error.message.as_deref() == Some(message)
                && error.blocking == Some(blocking)
        };
        if self.errors.iter().any(same) {
            return;
        }
        self.errors.push(TaskError {
            kind: Some(kind.to_owned()),
            message: Some(message.to_owned()),
            timestamp: Some(self.new_stamp(now)),
            blocking: Some(blocking),
        });
    }
}

/// Whether a text sends its reader to this subtask, such as "Resolve it, then continue from post-20.md".
fn sends_to(text: &str, id: &str) -> bool {
    let text = text.to_lowercase();
    ["continue from ", "resume from "].iter().any(|words| {
        let start = format!("{words}{}", id.to_lowercase());
        text.match_indices(&start).any(|(at, found)| {
            let after = text[at + found.len()..].chars().next();
            !after.is_some_and(|letter| letter.is_alphanumeric() || "-_/".contains(letter))
        })
    })
}
