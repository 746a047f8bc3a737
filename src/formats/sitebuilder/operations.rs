//! What an agent or a supervisor does to a checkpoint.
//!
//! The states: *in progress* → *blocked* (an error) → *in progress* (errors cleared); *in progress* →
//! *complete*; *complete* → *in progress* only where an acceptance criterion is open.

use crate::quoted;
use chrono::{DateTime, Utc};

use super::{
    Heartbeat, SitebuilderCheckpoint, Subtask, SubtaskStatus, Subtasks, TaskError, TaskStatus,
};
use crate::checkpoint::{
    Checkpoint, ContextLevel, Detail, Error, Operation, OperationContext, Result, StepDone,
    Timestamp, have_names,
};
use crate::formats::steps::{self, says};

/// How often an agent shows that it is alive, in seconds, unless its checkpoint says otherwise.
pub const HEARTBEAT_INTERVAL: f64 = 300.0;

/// The type of an error that was reported without one.
pub(super) const BLOCKER: &str = "blocker";

/// The type of the error of a subtask that failed.
const SUBTASK_FAILED: &str = "subtask_failed";

/// The operations that the format has.
pub(super) const OPERATIONS: &[&str] = &[
    "step start",
    "step done",
    "decide",
    "note",
    "block",
    "unblock",
    "heartbeat",
    "fail",
    "rate-limit",
    "context",
    "complete",
    "subtask add",
    "subtask start",
    "subtask done",
    "subtask fail",
    "verify",
    "block with a type",
    "detail",
];

/// The details that the format has a place for.
const DETAILS: &[&str] = &["created", "modified", "instructions", "processed", "next"];

/// How a decision begins among the notes: the format has no other place for it.
const DECIDED: &str = "Decided: ";

/// A subtask that an agent reports as finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubtaskDone {
    /// The file it made, as it is to stand in the subtask; the first of the others when `None`.
    pub output: Option<String>,
    /// Files it made, relative to the project's root.
    pub files_created: Vec<String>,
    /// Files it changed, relative to the project's root.
    pub files_modified: Vec<String>,
    /// What of the material was processed with it; the subtask's id when `None`.
    pub processed: Option<String>,
    /// What of the material comes next; the next subtask that is open when `None`.
    pub next: Option<String>,
}

impl SubtaskDone {
    /// A subtask that made these files.
    #[must_use]
    pub fn creating(files: impl IntoIterator<Item = impl Into<String>>) -> Self {
        SubtaskDone {
            files_created: files.into_iter().map(Into::into).collect(),
            ..SubtaskDone::default()
        }
    }

    /// Adds files that it changed.
    #[must_use]
    pub fn modifying(mut self, files: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.files_modified
            .extend(files.into_iter().map(Into::into));
        self
    }

    /// Names the file that stands in the subtask.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<String>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Says where in the material the agent is: what was processed, and what comes next.
    #[must_use]
    pub fn at(mut self, processed: impl Into<String>, next: Option<String>) -> Self {
        self.processed = Some(processed.into());
        self.next = next;
        self
    }
}

/// The id of a run of a task that begins at this time.
pub(super) fn checkpoint_id(agent: &str, task_id: &str, at: DateTime<Utc>) -> String {
    format!("{agent}-{task_id}-{}", at.format("%Y%m%d-%H%M%S"))
}

impl SitebuilderCheckpoint {
    /// A checkpoint for a task that an agent of this type begins, with the subtasks that are planned.
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
        let total = (!items.is_empty()).then(|| super::progress::count(items.iter()));
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

    /// Says what is to be done.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.task_title = Some(title.into());
        self
    }

    /// Says what the agent is called.
    #[must_use]
    pub fn with_agent_name(mut self, name: impl Into<String>) -> Self {
        self.agent_name = Some(name.into());
        self
    }

    /// Says how many subtasks there are where they are not all listed; never fewer than are listed.
    #[must_use]
    pub fn with_total(mut self, total: u32) -> Self {
        let listed = super::progress::count(self.subtasks.items.iter());
        self.subtasks.total = Some(f64::from(total).max(listed));
        self.keep_percent();
        self
    }

    /// Names the acceptance criteria, none of which is met yet.
    #[must_use]
    pub fn with_criteria(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(|name| (name.into(), Some(false)));
        self.acceptance_criteria_met.extend(names);
        self
    }

    /// Begins a subtask; one that is not listed joins the list, one that failed is tried again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the id says nothing, while the task is
    /// blocked and when the subtask is complete, [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete;
    /// unless it is forced.
    pub fn start_subtask(&mut self, id: &str, context: &OperationContext<'_>) -> Result<()> {
        says(id, "name the subtask")?;
        if self.is_finished(id) && !context.force {
            return Err(Error::refused(format!(
                "the subtask {id} is complete already; force it to begin it again",
                id = quoted(id)
            )));
        }
        if self.state() == Some(TaskStatus::Blocked) && !self.errors.is_empty() && !context.force {
            return Err(Error::refused(
                "the task is blocked; resolve its errors and clear them (unblock) first",
            ));
        }
        self.go_on(context.force)?;
        self.set_subtask(id, SubtaskStatus::InProgress);
        Ok(())
    }

    /// Adds a subtask to those that are pending; one that is listed already stays as it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the id says nothing,
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete, unless a criterion is open or
    /// it is forced.
    pub fn add_subtask(&mut self, id: &str, context: &OperationContext<'_>) -> Result<()> {
        says(id, "name the subtask")?;
        self.record(context.force)?;
        if self.subtask_mut(id).is_none() {
            self.set_subtask(id, SubtaskStatus::Pending);
        }
        Ok(())
    }

    /// Finishes a subtask: counts it, lists its files, and moves on to what comes next.
    ///
    /// One that is finished already only gains files. Of a blocked task, which stays blocked, finished
    /// work is recorded as well.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete, unless a
    /// criterion is open or it is forced; [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the id
    /// says nothing or a file has no name.
    pub fn finish_subtask(
        &mut self,
        id: &str,
        done: &SubtaskDone,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        says(id, "name the subtask")?;
        have_names(done.files_created.iter().chain(&done.files_modified))?;
        self.record(context.force)?;
        let again = self.is_finished(id);
        self.set_subtask(id, SubtaskStatus::Complete);
        self.add_files(&done.files_created, &done.files_modified);
        let files = done.files_created.iter().chain(&done.files_modified);
        let output = done.output.as_ref().or_else(|| files.into_iter().next());
        if let (Some(output), Some(item)) = (output, self.subtask_mut(id))
            && (done.output.is_some() || item.output.is_none())
        {
            item.output = Some(output.clone());
        }
        if again {
            return Ok(());
        }
        let next = self.subtasks.open().next().and_then(|item| item.id.clone());
        let noted = self.context.next_to_process.take();
        self.context.last_processed = Some(done.processed.as_deref().unwrap_or(id).to_owned());
        self.context.next_to_process = done.next.clone().or(next);
        // The agent's own words stay, and say so where they send the next agent to what is finished now; a sentence
        // that says no more than the context follows it.
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

    /// Records that a subtask failed, and why, as an error that does not block the task.
    ///
    /// # Errors
    ///
    /// As [`finish_subtask`](SitebuilderCheckpoint::finish_subtask); and
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the subtask is complete, unless it is
    /// forced.
    pub fn fail_subtask(
        &mut self,
        id: &str,
        because: Option<&str>,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        says(id, "name the subtask")?;
        if self.is_finished(id) && !context.force {
            return Err(Error::refused(format!(
                "the subtask {id} is complete already; force it to count as failed",
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

    /// Adds files that the task made or changed; each is listed once, one that it made is not listed
    /// as changed as well, and one without a name not at all.
    pub fn add_files(&mut self, created: &[String], modified: &[String]) {
        let has_name = |file: &&String| !file.trim().is_empty();
        for file in created.iter().filter(has_name) {
            if !self.files_created.contains(file) {
                self.files_created.push(file.clone());
            }
        }
        for file in modified.iter().filter(has_name) {
            if !self.files_created.contains(file) && !self.files_modified.contains(file) {
                self.files_modified.push(file.clone());
            }
        }
    }

    /// Records what keeps the task from going on: an error of this type, such as
    /// `dependency_missing`.
    ///
    /// The task is *blocked* and can be resumed once that is resolved. The same error is recorded once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete, unless it is
    /// forced; [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the message says nothing.
    pub fn block(
        &mut self,
        kind: &str,
        message: &str,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        says(message, "say what is in the way")?;
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

    /// Clears the errors: the task goes on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete, unless a
    /// criterion is open or it is forced.
    pub fn unblock(&mut self, context: &OperationContext<'_>) -> Result<()> {
        self.go_on(context.force)?;
        self.errors.clear();
        Ok(())
    }

    /// Takes a task up again: after a session that ended, after a block that was resolved, or with
    /// the criteria that are open.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the protocol does not let it be resumed
    /// or the errors are not cleared, unless it is forced.
    pub fn resume(&mut self, context: &OperationContext<'_>) -> Result<()> {
        let plan = super::resume::plan(self);
        if plan.decision > crate::checkpoint::ResumeDecision::Verify && !context.force {
            let question = plan.questions.into_iter().next();
            return Err(Error::refused(question.unwrap_or(plan.message)));
        }
        self.go_on(context.force)
    }

    /// An agent of the type goes on. A task that is blocked stays so until it is unblocked.
    pub(super) fn taken_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        if let (Some(agent), Some(own)) = (context.agent, self.agent.as_deref())
            && agent != own
        {
            return Err(Error::refused(format!(
                "the task is one for the agent {own}, whose name its file has; dispatch one of that type to go on"
            )));
        }
        if self.state() == Some(TaskStatus::Blocked) && self.resumable == Some(true) {
            return Ok(());
        }
        self.resume(context)
    }

    /// Shows that the agent is alive.
    pub fn beat(&mut self, now: DateTime<Utc>) {
        let before = self
            .heartbeat
            .as_ref()
            .and_then(|beat| beat.last_beat.as_ref());
        let beat = Timestamp::like(before.or(self.updated_at.as_ref()), now);
        let heartbeat = self.heartbeat.get_or_insert_with(|| Heartbeat {
            interval_seconds: Some(HEARTBEAT_INTERVAL),
            ..Heartbeat::default()
        });
        heartbeat.last_beat = Some(beat);
        heartbeat.status = Some("alive".to_owned());
    }

    /// When the next sign of life is due: the interval after the last one, or after the last change
    /// where there was none since.
    #[must_use]
    pub fn next_beat_due(&self) -> Option<DateTime<Utc>> {
        let beat = self.heartbeat.as_ref();
        let seconds = beat.and_then(|beat| beat.interval_seconds);
        let seconds = seconds.unwrap_or(HEARTBEAT_INTERVAL);
        let last = [
            beat.and_then(|beat| beat.last_beat.as_ref()),
            self.updated_at.as_ref(),
        ];
        let last = last
            .into_iter()
            .flatten()
            .filter_map(Timestamp::time)
            .max()?;
        let interval = std::time::Duration::try_from_secs_f64(seconds).ok()?;
        last.to_utc()
            .checked_add_signed(chrono::TimeDelta::from_std(interval).ok()?)
    }

    /// Records whether an acceptance criterion is met.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the task is complete and would lose a
    /// criterion; forced, it goes on.
    pub fn judge(
        &mut self,
        criterion: &str,
        met: bool,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        let before = self.acceptance_criteria_met.get(criterion).copied();
        let complete = self.state() == Some(TaskStatus::Complete);
        if complete && !met && before != Some(Some(false)) {
            if !context.force {
                return Err(Error::refused(format!(
                    "the task is complete; force it to take the criterion {criterion} back and \
                     go on",
                    criterion = quoted(criterion)
                )));
            }
            self.reopen();
        }
        self.acceptance_criteria_met
            .insert(criterion.to_owned(), Some(met));
        Ok(())
    }

    /// Records the score that a reviewing agent gave.
    pub fn review(&mut self, agent: impl Into<String>, score: f64) {
        self.review_scores.insert(agent.into(), Some(score));
    }

    /// Notes how far the work is, in place of the last note; decisions stay.
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
    fn decide(&mut self, text: &str, because: Option<&str>) {
        let because = because.map_or_else(String::new, |why| format!(" (because {why})"));
        // A line is a decision.
        let line = format!("{DECIDED}{text}{because}").replace(['\r', '\n'], " ");
        if !self.decided().any(|decided| decided == line) {
            let notes = self.context.notes.take();
            self.context.notes =
                Some(notes.map_or(line.clone(), |notes| format!("{notes}\n{line}")));
        }
    }

    /// What goes with the work beside its subtasks.
    fn add_details(&mut self, detail: &Detail) -> Result<()> {
        detail.check(DETAILS)?;
        self.add_files(&detail.files_created, &detail.files_modified);
        if let Some(text) = &detail.instructions {
            self.instruct(text);
        }
        if let Some(processed) = &detail.processed {
            self.context.last_processed = Some(processed.clone());
        }
        if let Some(next) = &detail.next {
            self.context.next_to_process = Some(next.clone());
        }
        Ok(())
    }

    /// Leaves word for the next agent.
    pub fn instruct(&mut self, instructions: impl Into<String>) {
        self.resume_instructions = Some(instructions.into());
    }

    /// Completes the task, which then cannot be resumed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when it is blocked,
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when it is complete already, when a criterion
    /// is not met or a subtask is neither complete nor failed. Forced, it is completed all the same:
    /// a partial completion, which resumes with the criteria that are open.
    pub fn complete(&mut self, context: &OperationContext<'_>) -> Result<()> {
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
        // Without counts, the extent of a partial completion is unknown.
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
            .map(|item| super::handoff::name(item, &subtasks.items))
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
                "the status {from} is none of the protocol's, so nothing is known to follow it; set \
                 it to in_progress, blocked or complete first, or force this",
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

    /// Whether there is a state of unknown meaning.
    fn is_in_unknown_state(&self) -> bool {
        self.status.is_some() && self.state().is_none()
    }

    /// The task has this state from now on; a spelling that says so already stays.
    fn take_state(&mut self, state: TaskStatus) {
        if self.state().as_ref() != Some(&state) {
            self.status = Some(state);
        }
    }

    /// The task is in progress from now on.
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

    /// Something was done or tried: a blocked task stays blocked.
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

    fn subtask(&self, id: &str) -> Option<&Subtask> {
        self.subtasks.items.get(self.place_of(id)?)
    }

    /// Where the subtask is; of two with the id the one that is not complete.
    fn place_of(&self, id: &str) -> Option<usize> {
        let items = self.subtasks.items.iter().enumerate();
        let fitting = items.filter(|(_, item)| item.id.as_deref() == Some(id));
        let first = fitting.min_by_key(|(_, item)| item.is(&SubtaskStatus::Complete));
        first.map(|(place, _)| place)
    }

    fn is_finished(&self, id: &str) -> bool {
        let item = self.subtask(id);
        item.is_some_and(|item| item.is(&SubtaskStatus::Complete))
    }

    fn subtask_mut(&mut self, id: &str) -> Option<&mut Subtask> {
        let place = self.place_of(id)?;
        self.subtasks.items.get_mut(place)
    }

    /// Gives a subtask this state, and keeps the counts.
    fn set_subtask(&mut self, id: &str, status: SubtaskStatus) {
        let subtasks = &self.subtasks;
        // A stated total of nothing is a number like any other: with it no list is counted.
        let all_listed = subtasks.lists_all() && !subtasks.items.is_empty();
        let listed_complete = subtasks.listed(&SubtaskStatus::Complete);
        let listed_failed = subtasks.listed(&SubtaskStatus::Failed);
        let before = match self.subtask_mut(id) {
            Some(item) if item.is(&status) => return,
            Some(item) => item.status.replace(status.clone()),
            None => {
                self.subtasks.items.push(Subtask::new(id, status.clone()));
                None
            }
        };
        if all_listed {
            self.recount();
            return;
        }
        // Counts are of all subtasks, so they move by one; what was not counted is not known now.
        let before = before.as_ref().and_then(SubtaskStatus::meaning);
        let moved =
            |of: SubtaskStatus| f64::from(status == of) - f64::from(before.as_ref() == Some(&of));
        let subtasks = &mut self.subtasks;
        let counted = subtasks.total.is_some() || subtasks.completed.is_some();
        let completed = subtasks.completed.unwrap_or(listed_complete);
        let completed = (completed + moved(SubtaskStatus::Complete)).max(0.0);
        if counted {
            subtasks.completed = Some(completed);
        }
        let failed = subtasks.failed.unwrap_or(listed_failed) + moved(SubtaskStatus::Failed);
        if subtasks.failed.is_some() || (counted && failed > 0.0) {
            subtasks.failed = Some(failed.max(0.0));
        }
        let ended = [SubtaskStatus::Complete, SubtaskStatus::Failed];
        let open = subtasks
            .items
            .iter()
            .filter(|item| !ended.iter().any(|state| item.is(state)));
        let least = completed + failed.max(0.0) + super::progress::count(open);
        // A subtask that was not planned makes the task longer.
        let least = least.max(super::progress::count(subtasks.items.iter()));
        subtasks.total = subtasks.total.map(|total| total.max(least));
        if subtasks.lists_all() {
            // The list is whole now, so its length is better than a running count.
            self.recount();
        }
        self.keep_percent();
    }

    /// Counts the list, which has all subtasks.
    pub(crate) fn recount(&mut self) {
        let subtasks = &mut self.subtasks;
        subtasks.total = Some(super::progress::count(subtasks.items.iter()));
        subtasks.completed = Some(subtasks.listed(&SubtaskStatus::Complete));
        let failed = subtasks.listed(&SubtaskStatus::Failed);
        if subtasks.failed.is_some() || failed > 0.0 {
            subtasks.failed = Some(failed);
        }
        self.keep_percent();
    }

    fn keep_percent(&mut self) {
        if self.subtasks.percent().is_some() {
            self.progress_percent = self.percent().map(f64::from);
        }
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

/// The library's own words for where to go on.
pub(super) fn continue_from(start: &str) -> String {
    format!("Continue from {start}")
}

/// Whether a text sends its reader to this subtask: "Resolve it, then continue from post-20.md".
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

pub(super) fn apply(
    checkpoint: &mut SitebuilderCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    match operation {
        Operation::StepStart { text } => checkpoint.start_subtask(text, context),
        Operation::StepDone(step) => {
            let id = subtask_of(checkpoint, step)?;
            let done = SubtaskDone {
                files_created: step.created().to_vec(),
                files_modified: step.modified().to_vec(),
                processed: step.text().map(str::to_owned),
                ..SubtaskDone::default()
            };
            checkpoint.finish_subtask(&id, &done, context)
        }
        Operation::Note { text } => {
            says(text, "say how far the work is")?;
            checkpoint.note(text);
            Ok(())
        }
        Operation::Decide { text, rationale } => {
            says(text, "say what was decided")?;
            checkpoint.decide(text, rationale.as_deref());
            Ok(())
        }
        Operation::RateLimit { note } => {
            if let Some(note) = note.as_deref().filter(|note| !note.trim().is_empty()) {
                checkpoint.note(note);
            }
            checkpoint.stamp(context.now);
            Ok(())
        }
        Operation::Context { used } => {
            if used.level() >= ContextLevel::Approaching {
                checkpoint.stamp(context.now);
            }
            Ok(())
        }
        Operation::Block { text, kind } => {
            let kind = kind.as_deref().unwrap_or(BLOCKER);
            says(kind, "say of which type the error is")?;
            checkpoint.block(kind, text, context)
        }
        Operation::Detail(detail) => checkpoint.add_details(detail),
        // The protocol has no failed task: an error that an agent cannot get past blocks it.
        Operation::Fail { text } => checkpoint.block("error", text, context),
        Operation::Unblock => checkpoint.unblock(context),
        Operation::Heartbeat => {
            checkpoint.beat(context.now);
            Ok(())
        }
        Operation::Complete => checkpoint.complete(context),
        Operation::SubtaskAdd { id } => checkpoint.add_subtask(id, context),
        Operation::SubtaskStart { id } => checkpoint.start_subtask(id, context),
        Operation::SubtaskDone { id, files } => {
            checkpoint.finish_subtask(id, &SubtaskDone::creating(files), context)
        }
        Operation::SubtaskFail { id, because } => {
            checkpoint.fail_subtask(id, because.as_deref(), context)
        }
        Operation::Verify { activity, status } => verify(checkpoint, activity, status, context),
        other => Err(Error::unsupported(other, OPERATIONS)),
    }
}

/// The subtask that a finished step is: the one named as pending, the one that reads like it, else the
/// only one in progress.
fn subtask_of(checkpoint: &SitebuilderCheckpoint, done: &StepDone) -> Result<String> {
    let in_progress = checkpoint.handoff().in_progress.into_iter().next();
    let in_progress = in_progress.map(|item| item.text);
    let text = done.text();
    if let Some(pending) = done.named(in_progress.as_deref())? {
        return match checkpoint.subtask(&pending) {
            Some(_) => Ok(pending),
            None => Err(Error::refused(format!(
                "no subtask {pending} is listed; leave it out to add one",
                pending = quoted(&pending)
            ))),
        };
    }
    if let Some(text) = text.filter(|text| checkpoint.subtask(text).is_some()) {
        return Ok(text.to_owned());
    }
    let items = checkpoint.subtasks.items.iter();
    let mut begun = items
        .filter(|item| item.is(&SubtaskStatus::InProgress))
        .filter_map(|item| item.id.as_deref());
    match (begun.next(), begun.next(), text) {
        (Some(only), None, Some(text)) => {
            let open = checkpoint.subtasks.open();
            let open: Vec<String> = open.filter_map(|item| item.id.clone()).collect();
            let left = steps::finished_with(text, Some(only), &open)?;
            Ok(left.unwrap_or_else(|| only.to_owned()))
        }
        (Some(only), None, None) => Ok(only.to_owned()),
        (_, _, Some(text)) => Ok(text.to_owned()),
        _ => Err(Error::refused(
            "not exactly one subtask is in progress; say which one is finished",
        )),
    }
}

/// A word is the state of an acceptance criterion, a number the score of a reviewing agent.
fn verify(
    checkpoint: &mut SitebuilderCheckpoint,
    activity: &str,
    status: &str,
    context: &OperationContext<'_>,
) -> Result<()> {
    let met = match status.trim().to_ascii_lowercase().as_str() {
        "passed" | "met" | "true" => true,
        "failed" | "pending" | "unmet" | "false" => false,
        other => {
            let score = other.parse::<f64>().ok().filter(|score| score.is_finite());
            let Some(score) = score else {
                return Err(Error::refused(format!(
                    "{status} is no result: a criterion is passed or failed, a review has a number",
                    status = quoted(status)
                )));
            };
            checkpoint.review(activity, score);
            return Ok(());
        }
    };
    checkpoint.judge(activity, met, context)
}
