//! What an agent or a supervisor does to a checkpoint.
//!
//! The states: *in progress* → *blocked* (an error) → *in progress* (errors cleared); *in progress* →
//! *complete*; *complete* → *in progress* only where an acceptance criterion is open.

use chrono::{DateTime, Utc};

use super::{
    Heartbeat, SitebuilderCheckpoint, Subtask, SubtaskStatus, Subtasks, TaskError, TaskStatus,
};
use crate::checkpoint::{Circumstances, Error, ItemKind, Operation, Result, Timestamp};

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
    "note",
    "block",
    "unblock",
    "heartbeat",
    "fail",
    "complete",
    "subtask start",
    "subtask done",
    "subtask fail",
    "verify",
];

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
        let items = plan
            .into_iter()
            .map(|id| Subtask::new(id, SubtaskStatus::Pending));
        let mut begun = SitebuilderCheckpoint {
            checkpoint_id: Some(checkpoint_id(&agent, &task_id, now)),
            agent: Some(agent),
            task_id: Some(task_id),
            status: Some(TaskStatus::InProgress),
            progress_percent: Some(0.0),
            started_at: Some(stamp.clone()),
            updated_at: Some(stamp),
            subtasks: Subtasks {
                failed: Some(0.0),
                items: items.collect(),
                ..Subtasks::default()
            },
            resumable: Some(true),
            ..SitebuilderCheckpoint::default()
        };
        begun.recount();
        begun
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
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) while the task is blocked and when the subtask
    /// is complete, [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete;
    /// unless it is forced.
    pub fn start_subtask(&mut self, id: &str, circumstances: &Circumstances<'_>) -> Result<()> {
        let state = self.subtask(id).and_then(|item| item.status.clone());
        if state == Some(SubtaskStatus::Complete) && !circumstances.force {
            return Err(Error::refused(format!(
                "the subtask {id:?} is complete already; force it to begin it again"
            )));
        }
        if self.status == Some(TaskStatus::Blocked)
            && !self.errors.is_empty()
            && !circumstances.force
        {
            return Err(Error::refused(
                "the task is blocked; resolve its errors and clear them (unblock) first",
            ));
        }
        self.go_on(circumstances.force)?;
        self.set_subtask(id, SubtaskStatus::InProgress);
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
    /// criterion is open or it is forced.
    pub fn finish_subtask(
        &mut self,
        id: &str,
        done: &SubtaskDone,
        circumstances: &Circumstances<'_>,
    ) -> Result<()> {
        self.record(circumstances.force)?;
        let complete = Some(SubtaskStatus::Complete);
        let again = self.subtask(id).is_some_and(|item| item.status == complete);
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
        self.context.last_processed = Some(done.processed.as_deref().unwrap_or(id).to_owned());
        self.context.next_to_process = done.next.clone().or(next);
        // Instructions that begin with what is done now would send the next agent back.
        let misleads = |text: &String| mentions(text, id);
        if self.resume_instructions.as_ref().is_some_and(misleads) {
            let next = self.context.next_to_process.as_ref();
            self.resume_instructions = next.map(|next| format!("Continue from {next}"));
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
        circumstances: &Circumstances<'_>,
    ) -> Result<()> {
        let state = self.subtask(id).and_then(|item| item.status.as_ref());
        if state == Some(&SubtaskStatus::Complete) && !circumstances.force {
            return Err(Error::refused(format!(
                "the subtask {id:?} is complete already; force it to count as failed"
            )));
        }
        self.record(circumstances.force)?;
        self.set_subtask(id, SubtaskStatus::Failed);
        if let Some(because) = because {
            let message = format!("{id}: {because}");
            self.add_error(SUBTASK_FAILED, &message, false, circumstances.now);
        }
        Ok(())
    }

    /// Adds files that the task made or changed; each is listed once, one that it made is not listed
    /// as changed as well.
    pub fn add_files(&mut self, created: &[String], modified: &[String]) {
        for file in created {
            if !self.files_created.contains(file) {
                self.files_created.push(file.clone());
            }
        }
        for file in modified {
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
    /// forced.
    pub fn block(
        &mut self,
        kind: &str,
        message: &str,
        circumstances: &Circumstances<'_>,
    ) -> Result<()> {
        match &self.status {
            Some(TaskStatus::Complete | TaskStatus::Other(_)) if !circumstances.force => {
                return Err(self.no_way_to(&TaskStatus::Blocked));
            }
            Some(TaskStatus::Complete) => self.completed_at = None,
            _ => {}
        }
        self.add_error(kind, message, true, circumstances.now);
        self.status = Some(TaskStatus::Blocked);
        self.resumable = Some(true);
        Ok(())
    }

    /// Clears the errors: the task goes on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the task is complete, unless a
    /// criterion is open or it is forced.
    pub fn unblock(&mut self, circumstances: &Circumstances<'_>) -> Result<()> {
        self.go_on(circumstances.force)?;
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
    pub fn resume(&mut self, circumstances: &Circumstances<'_>) -> Result<()> {
        let plan = super::resume::plan(self);
        if plan.decision > crate::checkpoint::ResumeDecision::Verify && !circumstances.force {
            let question = plan.questions.into_iter().next();
            return Err(Error::refused(question.unwrap_or(plan.message)));
        }
        self.go_on(circumstances.force)
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
        circumstances: &Circumstances<'_>,
    ) -> Result<()> {
        let before = self.acceptance_criteria_met.get(criterion).copied();
        let complete = self.status == Some(TaskStatus::Complete);
        if complete && !met && before != Some(Some(false)) {
            if !circumstances.force {
                return Err(Error::refused(format!(
                    "the task is complete; force it to take the criterion {criterion:?} back and \
                     go on"
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
    pub fn complete(&mut self, circumstances: &Circumstances<'_>) -> Result<()> {
        if !circumstances.force {
            self.may_complete()?;
        }
        let before = self.completed_at.as_ref().or(self.updated_at.as_ref());
        self.completed_at = Some(Timestamp::like(before, circumstances.now));
        self.status = Some(TaskStatus::Complete);
        self.resumable = Some(false);
        if self.subtasks.percent().is_none() {
            self.progress_percent = Some(100.0);
        }
        self.keep_percent();
        Ok(())
    }

    fn may_complete(&self) -> Result<()> {
        match &self.status {
            Some(TaskStatus::Blocked | TaskStatus::Other(_)) => {
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
            .filter(|item| item.status != Some(SubtaskStatus::Failed))
            .filter_map(|item| item.id.as_deref())
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
        let allowed: &[&str] = match &self.status {
            Some(TaskStatus::Blocked) => &["in_progress"],
            Some(TaskStatus::InProgress) => &["blocked", "complete"],
            Some(TaskStatus::Complete) if !self.open_criteria().is_empty() => &["in_progress"],
            _ => &[],
        };
        Error::transition(from, to.as_str(), allowed)
    }

    /// The task is in progress from now on.
    fn go_on(&mut self, force: bool) -> Result<()> {
        match &self.status {
            Some(TaskStatus::Complete) if force || !self.open_criteria().is_empty() => {
                self.reopen();
            }
            Some(TaskStatus::Complete | TaskStatus::Other(_)) if !force => {
                return Err(self.no_way_to(&TaskStatus::InProgress));
            }
            _ => self.status = Some(TaskStatus::InProgress),
        }
        Ok(())
    }

    /// Something was done or tried: a blocked task stays blocked.
    fn record(&mut self, force: bool) -> Result<()> {
        if self.status == Some(TaskStatus::Blocked) {
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
        let mut items = self.subtasks.items.iter();
        items.find(|item| item.id.as_deref() == Some(id))
    }

    fn subtask_mut(&mut self, id: &str) -> Option<&mut Subtask> {
        let mut items = self.subtasks.items.iter_mut();
        items.find(|item| item.id.as_deref() == Some(id))
    }

    /// Gives a subtask this state, and keeps the counts.
    fn set_subtask(&mut self, id: &str, status: SubtaskStatus) {
        let subtasks = &self.subtasks;
        let known = subtasks.total.is_some() || subtasks.completed.is_some();
        let all_listed = subtasks.lists_all() || !known;
        let listed_complete = subtasks.listed(&SubtaskStatus::Complete);
        let before = match self.subtask_mut(id) {
            Some(item) => item.status.replace(status.clone()),
            None => {
                self.subtasks.items.push(Subtask::new(id, status.clone()));
                None
            }
        };
        if before == Some(status.clone()) {
            return;
        }
        if all_listed {
            self.recount();
            return;
        }
        // Counts are of all subtasks, so they move by one.
        let moved =
            |of: SubtaskStatus| f64::from(status == of) - f64::from(before.as_ref() == Some(&of));
        let subtasks = &mut self.subtasks;
        let completed = subtasks.completed.unwrap_or(listed_complete);
        let completed = (completed + moved(SubtaskStatus::Complete)).max(0.0);
        subtasks.completed = Some(completed);
        let failed = subtasks.failed.unwrap_or_default() + moved(SubtaskStatus::Failed);
        if subtasks.failed.is_some() || failed > 0.0 {
            subtasks.failed = Some(failed.max(0.0));
        }
        let settled = [SubtaskStatus::Complete, SubtaskStatus::Failed];
        let open = subtasks.items.iter().filter(|item| {
            let status = item.status.as_ref();
            !status.is_some_and(|status| settled.contains(status))
        });
        let least = completed + failed.max(0.0) + super::progress::count(open);
        // A subtask that was not planned makes the task longer.
        subtasks.total = subtasks.total.map(|total| total.max(least));
        if subtasks.lists_all() {
            // Now that the list is whole, it tells better than counting along.
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

/// Whether a text names an id, not merely a longer one that contains it.
fn mentions(text: &str, id: &str) -> bool {
    let part = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    !id.is_empty()
        && text
            .match_indices(id)
            .any(|(at, _)| !text[..at].ends_with(part) && !text[at + id.len()..].starts_with(part))
}

pub(super) fn apply(
    checkpoint: &mut SitebuilderCheckpoint,
    operation: &Operation,
    circumstances: &Circumstances<'_>,
) -> Result<()> {
    match operation {
        Operation::StepStart { text } => checkpoint.start_subtask(text, circumstances),
        Operation::StepDone {
            text,
            pending,
            files_created,
            files_modified,
        } => {
            let id = step(checkpoint, text.as_deref(), pending.as_deref())?;
            let done = SubtaskDone {
                files_created: files_created.clone(),
                files_modified: files_modified.clone(),
                processed: text.clone(),
                ..SubtaskDone::default()
            };
            checkpoint.finish_subtask(&id, &done, circumstances)
        }
        Operation::Note { text } => {
            checkpoint.context.notes = Some(text.clone());
            Ok(())
        }
        Operation::Block { text } => checkpoint.block(BLOCKER, text, circumstances),
        // The protocol has no failed task: an error that an agent cannot get past blocks it.
        Operation::Fail { text } => checkpoint.block("error", text, circumstances),
        Operation::Unblock => checkpoint.unblock(circumstances),
        Operation::Heartbeat => {
            checkpoint.beat(circumstances.now);
            Ok(())
        }
        Operation::Complete => checkpoint.complete(circumstances),
        Operation::ItemStart {
            kind: ItemKind::Subtask,
            id,
        } => checkpoint.start_subtask(id, circumstances),
        Operation::ItemDone {
            kind: ItemKind::Subtask,
            id,
            files,
        } => checkpoint.finish_subtask(id, &SubtaskDone::creating(files), circumstances),
        Operation::ItemFail {
            kind: ItemKind::Subtask,
            id,
            because,
        } => checkpoint.fail_subtask(id, because.as_deref(), circumstances),
        Operation::Verify { activity, status } => {
            verify(checkpoint, activity, status, circumstances)
        }
        other => Err(Error::unsupported(other, OPERATIONS)),
    }
}

/// The subtask that a finished step is: the one named as pending, the one that reads like it, else the
/// only one in progress.
fn step(
    checkpoint: &SitebuilderCheckpoint,
    text: Option<&str>,
    pending: Option<&str>,
) -> Result<String> {
    if let Some(pending) = pending {
        return match checkpoint.subtask(pending) {
            Some(_) => Ok(pending.to_owned()),
            None => Err(Error::refused(format!(
                "no subtask {pending:?} is listed; leave it out to add one"
            ))),
        };
    }
    if let Some(text) = text.filter(|text| checkpoint.subtask(text).is_some()) {
        return Ok(text.to_owned());
    }
    let items = checkpoint.subtasks.items.iter();
    let mut begun = items
        .filter(|item| item.status == Some(SubtaskStatus::InProgress))
        .filter_map(|item| item.id.as_deref());
    match (begun.next(), begun.next(), text) {
        (Some(only), None, _) => Ok(only.to_owned()),
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
    circumstances: &Circumstances<'_>,
) -> Result<()> {
    let met = match status.trim().to_ascii_lowercase().as_str() {
        "passed" | "met" | "true" => true,
        "failed" | "pending" | "unmet" | "false" => false,
        other => {
            let score = other.parse::<f64>().ok().filter(|score| score.is_finite());
            let Some(score) = score else {
                return Err(Error::refused(format!(
                    "{status:?} is no result: a criterion is passed or failed, a review has a number"
                )));
            };
            checkpoint.review(activity, score);
            return Ok(());
        }
    };
    checkpoint.judge(activity, met, circumstances)
}
