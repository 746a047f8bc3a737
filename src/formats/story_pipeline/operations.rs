//! What a worker and the lead do to a story's checkpoint.

use crate::quoted;
use crate::shown::quoted_all;
use chrono::{DateTime, Utc};

use super::spelling::{self, Name, Spelling};
use super::{
    Counters, NextStep, Number, StoryCheckpoint, StoryState, Verdict, inputs, is_story_id,
};
use crate::checkpoint::{
    DropReason, Dropped, Error, ErrorKind, Interruption, Operation, OperationContext, Result,
    RuleContext, Timestamp,
};
use crate::json::pointer;

/// Between what was finished last and what went wrong then.
const INTERRUPTED: &str = "; then interrupted: ";

/// What the quality gate of stage 3 concluded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gate {
    /// Passed.
    Pass,
    /// Passed, with remarks.
    Concerns,
    /// Somebody let it pass.
    Waived,
    /// Not passed.
    Fail {
        /// What is wrong.
        issues: String,
    },
}

impl StoryCheckpoint {
    /// The checkpoint that a worker writes at the end of stage 0: these tasks were created.
    ///
    /// # Errors
    ///
    /// Refused when the id is no story's, the score is not within 0 to 4, or a task is named twice.
    pub fn planned(
        story: impl Into<String>,
        agent: impl Into<String>,
        score: Number,
        tasks: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let story = story.into();
        if !is_story_id(&story) {
            return Err(Error::refused(format!(
                "{story} is no story id, such as PROJ-42",
                story = quoted(story.as_str())
            )));
        }
        let mut checkpoint = StoryCheckpoint {
            story_id: Some(story),
            stage: Some(Number::from(0_u8)),
            agent_id: Some(agent.into()),
            tasks_completed: Some(Vec::new()),
            tasks_remaining: Some(Vec::new()),
            timestamp: Some(Timestamp::like(None, now)),
            ..StoryCheckpoint::default()
        };
        checkpoint.finish_planning(score, tasks)?;
        Ok(checkpoint)
    }

    /// The checkpoint of a story that begins, with the tasks that stage 0 has made so far; the score of the plan is
    /// reported at the end of the stage.
    ///
    /// # Errors
    ///
    /// As [`planned`](Self::planned).
    pub fn begin(
        story: impl Into<String>,
        agent: impl Into<String>,
        tasks: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let mut checkpoint =
            StoryCheckpoint::planned(story, agent, Number::from(0_u8), tasks, now)?;
        checkpoint.plan_score = None;
        if checkpoint.remaining().is_empty() {
            checkpoint.set_action("Story begun");
        }
        Ok(checkpoint)
    }

    /// The end of stage 0: the score of the plan, and its tasks, which are all left.
    ///
    /// # Errors
    ///
    /// Refused in another stage, when the score is not within 0 to 4, or a task is named twice.
    pub fn finish_planning(
        &mut self,
        score: Number,
        tasks: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<()> {
        self.must_be_in(0)?;
        in_range("planScore", score, 0, 4)?;
        let tasks: Vec<String> = tasks.into_iter().map(Into::into).collect();
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = tasks.iter().find(|task| !seen.insert(*task)) {
            return Err(Error::refused(format!(
                "the task {twice} is named twice",
                twice = quoted(twice)
            )));
        }
        self.set_plan_score(Some(score));
        self.set_action(format!("Tasks created: {}", tasks.join(", ")));
        self.set_remaining(tasks);
        Ok(())
    }

    /// The end of stage 1 with `GO`.
    ///
    /// # Errors
    ///
    /// Refused in another stage, or when the readiness is not within 1 to 10.
    pub fn validate_go(&mut self, readiness: Number) -> Result<()> {
        self.must_be_in(1)?;
        in_range("readiness", readiness, 1, 10)?;
        self.readiness = Some(readiness);
        self.verdict = Some(Verdict::Go);
        self.reason = None;
        self.set_action(format!("Validation: GO, readiness {readiness}"));
        Ok(())
    }

    /// The end of stage 1 with `NO-GO`, for this reason.
    ///
    /// # Errors
    ///
    /// Refused in another stage, when the readiness is not within 1 to 10, or the reason says nothing.
    pub fn validate_no_go(&mut self, readiness: Number, reason: impl Into<String>) -> Result<()> {
        self.must_be_in(1)?;
        in_range("readiness", readiness, 1, 10)?;
        let reason = reason.into();
        says(&reason, "NO-GO needs its reason")?;
        self.readiness = Some(readiness);
        self.no_go(reason);
        Ok(())
    }

    fn no_go(&mut self, reason: String) {
        self.verdict = Some(Verdict::NoGo);
        self.set_action(format!("Validation: NO-GO: {reason}"));
        self.reason = Some(reason);
    }

    /// Adds tasks to those that are left; one that is known already, finished or left, is not added.
    ///
    /// # Errors
    ///
    /// Refused in stages 1 and 3, where no task is left.
    pub fn plan_tasks(&mut self, tasks: impl IntoIterator<Item = impl Into<String>>) -> Result<()> {
        if !matches!(self.stage_number(), Some(0 | 2)) {
            return Err(self.not_now("tasks are planned in stages 0 and 2"));
        }
        let mut remaining = self.remaining().to_vec();
        for task in tasks {
            let task = task.into();
            if !remaining.contains(&task) && !self.completed().contains(&task) {
                remaining.push(task);
            }
        }
        self.set_remaining(remaining);
        if self.lacks_plan() {
            self.verdict = None;
        }
        Ok(())
    }

    /// Begins a task: it is the first of those that are left, where a worker that resumes begins. One
    /// that is not in the plan joins it.
    ///
    /// # Errors
    ///
    /// Refused outside stage 2, and when the task is finished already.
    pub fn start_task(&mut self, id: &str) -> Result<()> {
        self.start(id, false)
    }

    /// Begins a task in any stage, even one that was finished: it is left again.
    pub fn force_start_task(&mut self, id: &str) {
        self.put_first(id);
    }

    fn start(&mut self, id: &str, force: bool) -> Result<()> {
        if !force {
            self.must_be_in(2)?;
            if self.completed().iter().any(|done| done == id) {
                return Err(Error::refused(format!(
                    "{id} is finished already: do not execute it again"
                )));
            }
        }
        self.put_first(id);
        Ok(())
    }

    fn put_first(&mut self, id: &str) {
        if self.completed().iter().any(|done| done == id) {
            self.set_completed(without(self.completed(), id));
        }
        let mut remaining = without(self.remaining(), id);
        remaining.insert(0, id.to_owned());
        self.set_remaining(remaining);
    }

    /// Finishes a task: its id moves from the remaining to the completed ones.
    ///
    /// # Errors
    ///
    /// Refused outside stage 2, and when the task is not one of those that remain.
    pub fn finish_task(&mut self, id: &str) -> Result<()> {
        self.finish(id, false)
    }

    /// Finishes a task in any stage, even one that was not in the plan.
    pub fn force_finish_task(&mut self, id: &str) {
        self.end(id);
    }

    fn finish(&mut self, id: &str, force: bool) -> Result<()> {
        if !force {
            self.must_be_in(2)?;
            if self.completed().iter().any(|done| done == id) {
                return Err(Error::refused(format!("{id} is finished already")));
            }
            if !self.remaining().iter().any(|task| task == id) {
                return Err(Error::refused(format!(
                    "{id} is no task that remains; remaining are {}; start it first",
                    quoted_all(self.remaining())
                )));
            }
        }
        self.end(id);
        Ok(())
    }

    fn end(&mut self, id: &str) {
        self.set_remaining(without(self.remaining(), id));
        if !self.completed().iter().any(|done| done == id) {
            let mut completed = self.completed().to_vec();
            completed.push(id.to_owned());
            self.set_completed(completed);
        }
        self.set_action(format!("{id} done"));
        if self.is_to_be_mended() {
            self.verdict = None;
        }
    }

    /// The end of stage 3: what the quality gate concluded, and its score.
    ///
    /// # Errors
    ///
    /// Refused in another stage, when the score is not within 0 to 100, or the issues of a failed gate
    /// say nothing.
    pub fn finish_gate(&mut self, gate: Gate, score: Number) -> Result<()> {
        self.must_be_in(3)?;
        in_range("qualityScore", score, 0, 100)?;
        if let Gate::Fail { issues } = &gate {
            says(issues, "FAIL needs its issues")?;
        }
        self.set_quality_score(Some(score));
        let verdict = match gate {
            Gate::Pass => Verdict::Pass,
            Gate::Concerns => Verdict::Concerns,
            Gate::Waived => Verdict::Waived,
            Gate::Fail { issues } => {
                self.fail_gate(issues);
                return Ok(());
            }
        };
        self.issues = None;
        self.set_action(format!("Quality gate completed, verdict: {verdict}"));
        self.verdict = Some(verdict);
        Ok(())
    }

    fn fail_gate(&mut self, issues: String) {
        self.verdict = Some(Verdict::Fail);
        self.set_action(format!("Quality gate completed, verdict: FAIL: {issues}"));
        self.issues = Some(issues);
    }

    /// Enters a stage, on the protocol's conditions.
    ///
    /// What belongs to the stage before leaves the checkpoint and is told in its last action; the fields
    /// of the new stage are written at its end. In stage 1 no task is listed: a save keeps the ids beside the
    /// checkpoint, and the save that enters stage 2 brings them back. Where nothing is kept, the verdict `GO` stays and
    /// stage 3 is refused until [`plan_tasks`](Self::plan_tasks) has named them. A story that goes back to stage 2 keeps
    /// `FAIL` until a task was finished there, and the issues until the stage ends.
    /// To enter stage 0 in stage 0 changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`] when no such transition is in the protocol,
    /// refused when its condition does not hold. The checkpoint is then unchanged.
    pub fn enter_stage(&mut self, stage: u8, counters: Counters, now: DateTime<Utc>) -> Result<()> {
        let Some(from) = self.stage_number() else {
            if self.stage.is_none() && stage == 0 {
                self.set_stage(0, now);
                return Ok(());
            }
            return Err(Error::transition(
                self.stage_name(),
                name_of(stage),
                ["STAGE_0"],
            ));
        };
        if (from, stage) == (0, 0) {
            return Ok(());
        }
        let next = self.next_step(counters);
        let goes_on = match &next {
            NextStep::Enter { stage: to } => *to == stage,
            NextStep::Retry { .. } => stage == 1,
            NextStep::Rework { .. } => stage == 2,
            _ => false,
        };
        if !goes_on {
            if !followers(from).contains(&stage) {
                return Err(self.no_transition(name_of(stage)));
            }
            return Err(Error::refused(format!(
                "{} cannot follow {}: {next}",
                name_of(stage),
                name_of(from)
            )));
        }
        let ending = self.ending(from, &next);
        if from == 0 {
            self.set_remaining(Vec::new());
        }
        let (verdict, issues) = (self.verdict.take(), self.issues.take());
        self.clear_stage_fields();
        if stage == 2 {
            (self.verdict, self.issues) = (verdict, issues.filter(|_| from == 3));
            if from == 1 && !self.remaining().is_empty() {
                self.verdict = None;
            }
        }
        self.set_action(ending);
        self.set_stage(stage, now);
        Ok(())
    }

    /// Brings the tasks back that stage 0 planned, when the story enters stage 2.
    pub(super) fn bring_plan_back(
        &mut self,
        before: &StoryCheckpoint,
        kept: &mut dyn FnMut() -> Result<Vec<Dropped>>,
    ) -> Result<()> {
        let entered =
            self.stage_number() == Some(2) && matches!(before.stage_number(), Some(0 | 1));
        if !entered || !self.remaining().is_empty() || !self.completed().is_empty() {
            return Ok(());
        }
        let planned = if before.remaining().is_empty() {
            kept()?.iter().rev().find_map(planned_in)
        } else {
            Some(before.remaining().to_vec())
        };
        if let Some(tasks) = planned.filter(|tasks| !tasks.is_empty()) {
            let action = self.action().unwrap_or_default().to_owned();
            self.set_action(format!("{action}; tasks: {}", tasks.join(", ")));
            self.plan_tasks(tasks)?;
        }
        Ok(())
    }

    /// What a save keeps beside the checkpoint: the planned tasks, which stage 1 does not list.
    pub(super) fn kept_beside(&self, before: &StoryCheckpoint) -> Vec<Dropped> {
        let entered = self.stage_number() == Some(1) && before.stage_number() != Some(1);
        let tasks = before.remaining();
        if !entered || !self.remaining().is_empty() || tasks.is_empty() {
            return Vec::new();
        }
        let pointer = pointer::join("", spelling::REMAINING.of(before.spelling()));
        vec![Dropped::new(pointer, DropReason::PutAside, tasks.into())]
    }

    /// Enters a stage whatever the protocol says. The lists stay as they are.
    ///
    /// # Errors
    ///
    /// Refused when there is no such stage.
    pub fn force_stage(&mut self, stage: u8, now: DateTime<Utc>) -> Result<()> {
        if stage > 3 {
            return Err(no_stage(&stage.to_string()));
        }
        let mut action = format!("{} entered from {}", name_of(stage), self.stage_name());
        if self.stage_number() != Some(stage) {
            let verdict = self.verdict.as_ref().map(|verdict| format!(", {verdict}"));
            action += &verdict.unwrap_or_default();
            action += &self.scores();
            action += &self.remarks(None);
            self.clear_stage_fields();
        }
        self.set_action(action);
        self.set_stage(stage, now);
        Ok(())
    }

    /// Ends the story.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`] before stage 3, refused when its quality gate
    /// has not passed.
    pub fn complete(&mut self) -> Result<()> {
        self.complete_with(Counters::default())
    }

    fn complete_with(&mut self, counters: Counters) -> Result<()> {
        if self.stage_number() != Some(3) {
            return Err(self.no_transition("DONE".to_owned()));
        }
        match self.next_step(counters) {
            NextStep::Finish => {
                self.end_story();
                Ok(())
            }
            other => Err(Error::refused(format!("the story is not done: {other}"))),
        }
    }

    /// Ends the story whatever the protocol says.
    pub fn force_complete(&mut self) {
        self.end_story();
    }

    fn end_story(&mut self) {
        let verdict = self.verdict.as_ref().map(|verdict| format!(": {verdict}"));
        let score = self.quality_score().map(|score| format!(", score {score}"));
        self.set_action(format!(
            "Story done{}{}",
            verdict.unwrap_or_default(),
            score.unwrap_or_default()
        ));
    }

    /// Another worker takes the story over; it is the one to resume from now on. The later revision has
    /// no place for it.
    pub fn take_over(&mut self, agent: impl Into<String>) {
        if self.spelling() == Spelling::CamelCase {
            self.agent_id = Some(agent.into());
        }
    }

    /// The worker failed: its last action says so. A verdict is none of its failures', so none is given.
    pub(super) fn interrupted(&mut self, interruption: &Interruption) {
        if let Interruption::Failed(because) = interruption {
            let last = self.action().unwrap_or_default();
            let before = last.split(INTERRUPTED).next().unwrap_or_default();
            self.set_action(format!("{before}{INTERRUPTED}{because}"));
        }
    }

    /// How much of the story's tasks is finished, in percent; `None` where no task is known.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let all = self.completed().len() + self.remaining().len();
        (all > 0).then(|| self.completed().len() as f64 * 100.0 / all as f64)
    }

    /// What the stage that ends has left, in a sentence: what leaves the checkpoint with it is told here.
    fn ending(&self, from: u8, next: &NextStep) -> String {
        let scores = self.scores();
        match (from, next) {
            (0, _) => {
                let tasks = self.remaining().join(", ");
                let remarks = self.remarks(None);
                format!("Stage 0 completed{scores}, tasks: {tasks}{remarks}")
            }
            (1, NextStep::Retry { reason, .. }) => {
                let remarks = self.remarks(reason.as_deref());
                format!("Stage 1 again{scores}: {next}{remarks}")
            }
            (1, _) => {
                let remarks = self.remarks(None);
                format!("Stage 1 completed: GO{scores}{remarks}")
            }
            (2, _) => {
                let count = self.completed().len();
                let remarks = self.remarks(None);
                format!("Stage 2 completed, tasks done: {count}{scores}{remarks}")
            }
            _ => {
                let remarks = self.remarks(self.issues.as_deref());
                format!("Stage 2 again{scores}: {next}{remarks}")
            }
        }
    }

    /// The scores that the checkpoint has, each after a comma.
    fn scores(&self) -> String {
        [
            ("planScore", self.plan_score()),
            ("readiness", self.readiness),
            ("qualityScore", self.quality_score()),
        ]
        .into_iter()
        .filter_map(|(name, score)| Some(format!(", {name} {}", score?)))
        .collect()
    }

    /// The reason and the issues that the checkpoint has, but for those that were told already.
    fn remarks(&self, told: Option<&str>) -> String {
        [("reason", &self.reason), ("issues", &self.issues)]
            .into_iter()
            .filter_map(|(name, text)| {
                let text = text.as_deref().filter(|text| !text.trim().is_empty())?;
                (Some(text) != told).then(|| format!("; {name}: {text}"))
            })
            .collect()
    }

    fn clear_stage_fields(&mut self) {
        self.set_plan_score(None);
        self.set_quality_score(None);
        self.readiness = None;
        self.verdict = None;
        self.reason = None;
        self.issues = None;
    }

    fn set_stage(&mut self, stage: u8, now: DateTime<Utc>) {
        self.stage = Some(Number::from(stage));
        if self.spelling() == Spelling::SnakeCase {
            self.started_at = Some(Timestamp::like(self.written_at(), now));
            self.completed_at = None;
        }
    }

    fn stage_name(&self) -> String {
        match (self.stage_number(), self.stage) {
            (Some(stage), _) => name_of(stage),
            (None, Some(other)) => format!("stage {other}"),
            (None, None) => "QUEUED".to_owned(),
        }
    }

    fn no_transition(&self, to: String) -> Error {
        let mut allowed: Vec<String> = match self.stage_number() {
            Some(stage) => followers(stage).iter().map(|next| name_of(*next)).collect(),
            None => vec![name_of(0)],
        };
        if self.stage_number() == Some(3) {
            allowed.push("DONE".to_owned());
        }
        Error::transition(self.stage_name(), to, allowed)
    }

    fn must_be_in(&self, stage: u8) -> Result<()> {
        if self.stage_number() == Some(stage) {
            return Ok(());
        }
        Err(self.not_now(&format!("this is done in stage {stage}")))
    }

    fn not_now(&self, what: &str) -> Error {
        Error::refused(format!("{what}; the story is in {}", self.stage_name()))
    }
}

/// The tasks in a piece that a save kept, where it is one of those.
fn planned_in(piece: &Dropped) -> Option<Vec<String>> {
    let Name { camel, snake } = spelling::REMAINING;
    let is_plan = piece.reason == DropReason::PutAside
        && [camel, snake].contains(&piece.pointer.trim_start_matches('/'));
    serde_json::from_value(piece.value.clone())
        .ok()
        .filter(|_| is_plan)
}

fn without(list: &[String], id: &str) -> Vec<String> {
    list.iter().filter(|other| *other != id).cloned().collect()
}

/// Refuses a text that says nothing.
fn says(text: &str, advice: &str) -> Result<()> {
    if super::is_said(Some(text)) {
        return Ok(());
    }
    Err(Error::refused(advice))
}

fn in_range(what: &str, number: Number, least: u32, most: u32) -> Result<()> {
    if number.is_within(least, most) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{what} {number} is not within {least} to {most}"
    )))
}

/// The stages that can follow one in the protocol, whatever the conditions.
fn followers(stage: u8) -> &'static [u8] {
    match stage {
        0 => &[1],
        1 => &[2, 1],
        2 => &[3],
        _ => &[2],
    }
}

fn name_of(stage: u8) -> String {
    format!("STAGE_{stage}")
}

fn no_stage(text: &str) -> Error {
    Error::refused(format!(
        "{text} is no stage; stages are 0, 1, 2, 3 and DONE",
        text = quoted(text)
    ))
}

/// The operations that the format has.
pub(super) const OPERATIONS: &[&str] = &[
    "note",
    "heartbeat",
    "fail",
    "complete",
    "reassign",
    "task add",
    "task start",
    "task done",
    "stage",
    "verify",
];

pub(super) fn apply(
    story: &mut StoryCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    let force = context.force;
    // The stages that list tasks end when their tasks are known.
    let ends = match operation {
        Operation::Stage { .. } => matches!(story.stage_number(), Some(0 | 2)),
        Operation::Complete => true,
        _ => false,
    };
    if ends && !force {
        context.nothing_hidden("the stage is not at its end")?;
    }
    match operation {
        Operation::Note { text } => {
            says(text, "say what is being done")?;
            story.set_action(text);
        }
        Operation::Fail { text } => match story.stage_number() {
            Some(1) => {
                says(text, "NO-GO needs its reason")?;
                story.no_go(text.clone());
            }
            Some(3) => {
                says(text, "FAIL needs its issues")?;
                story.fail_gate(text.clone());
            }
            _ => return Err(story.not_now("stages 1 and 3 have a verdict")),
        },
        Operation::Complete if force => story.force_complete(),
        Operation::Complete => {
            let counters = inputs::counters(story, &context.rules);
            story.complete_with(counters.unwrap_or_default())?;
        }
        Operation::TaskStart { id } => story.start(id, force)?,
        Operation::TaskDone { id, files } => {
            if !files.is_empty() {
                return Err(Error::new(ErrorKind::Unsupported {
                    operation: "task done with files".to_owned(),
                    supported: OPERATIONS.iter().map(|&name| name.to_owned()).collect(),
                }));
            }
            story.finish(id, force)?;
        }
        Operation::TaskAdd { id } => {
            says(id, "name the task")?;
            story.plan_tasks([id])?;
        }
        Operation::Heartbeat => story.stamp_at(context.now),
        Operation::Reassign { to } => {
            if story.spelling() == Spelling::SnakeCase {
                return Err(Error::refused(
                    "this revision of the checkpoint names no agent; name the agent in its prompt",
                ));
            }
            says(to, "name the agent that goes on")?;
            story.take_over(to);
        }
        Operation::Stage { name } => return enter(story, name, context),
        Operation::Verify { activity, status } => verify(story, activity, status, force)?,
        other => return Err(Error::unsupported(other, OPERATIONS)),
    }
    // What a lead says of a story is no work of the one to resume.
    if let Some(agent) = context.agent
        && operation.is_work()
    {
        story.take_over(agent);
    }
    Ok(())
}

fn enter(story: &mut StoryCheckpoint, name: &str, context: &OperationContext<'_>) -> Result<()> {
    let (now, force) = (context.now, context.force);
    let upper = name.to_ascii_uppercase();
    if upper == "DONE" {
        if force {
            story.force_complete();
            return Ok(());
        }
        let counters = inputs::counters(story, &context.rules);
        return story.complete_with(counters.unwrap_or_default());
    }
    let number = upper.strip_prefix("STAGE_").unwrap_or(&upper);
    let stage = match number.parse::<u8>() {
        Ok(stage) if stage <= 3 => stage,
        _ => return Err(no_stage(name)),
    };
    if force {
        return story.force_stage(stage, now);
    }
    let state = inputs::state(story, &context.rules);
    if state == Some(&StoryState::Paused) {
        return Err(Error::refused(
            "the pipeline has PAUSED the story; a decision is needed before it goes on",
        ));
    }
    story.enter_stage(stage, before_granted(story, &context.rules, stage), now)
}

/// The counters as they were before the lead granted this stage once more. A counter counts what was granted, so a story at
/// its limit may enter the one stage that the pipeline has it in.
pub(super) fn before_granted(
    story: &StoryCheckpoint,
    context: &RuleContext<'_>,
    stage: u8,
) -> Counters {
    let mut counters = inputs::counters(story, context).unwrap_or_default();
    let state = inputs::state(story, context);
    if state.and_then(|state| state.stage()) == Some(stage) {
        let counter = match stage {
            1 => &mut counters.validation_retries,
            _ => &mut counters.quality_cycles,
        };
        *counter = counter.saturating_sub(1);
    }
    counters
}

/// The result of what a stage measures or concludes, under its name in the checkpoint.
fn verify(story: &mut StoryCheckpoint, activity: &str, status: &str, force: bool) -> Result<()> {
    let number = |stage: u8, what: &str, least, most| {
        if !force {
            story.must_be_in(stage)?;
        }
        let number = status.trim().parse::<f64>().ok();
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Err(Error::refused(format!(
                "{what} {status} is no number",
                status = quoted(status)
            )));
        };
        in_range(what, Number::from(number), least, most)?;
        Ok(Number::from(number))
    };
    match activity {
        "planScore" | "plan_score" => {
            let score = number(0, "planScore", 0, 4)?;
            story.set_plan_score(Some(score));
        }
        "readiness" => story.readiness = Some(number(1, "readiness", 1, 10)?),
        "qualityScore" | "quality_score" => {
            let score = number(3, "qualityScore", 0, 100)?;
            story.set_quality_score(Some(score));
        }
        "verdict" => return verdict(story, status),
        other => {
            return Err(Error::refused(format!(
                "{other} is not measured; there are planScore, readiness, qualityScore and verdict",
                other = quoted(other)
            )));
        }
    }
    story.set_action(format!("{activity}: {status}"));
    Ok(())
}

fn verdict(story: &mut StoryCheckpoint, status: &str) -> Result<()> {
    let verdict = Verdict::from(status);
    let Some(stage @ (1 | 3)) = story.stage_number() else {
        return Err(story.not_now("stages 1 and 3 have a verdict"));
    };
    let verdicts = Verdict::of_stage(stage);
    if !verdicts.contains(&verdict) {
        let names: Vec<_> = verdicts.iter().map(Verdict::as_str).collect();
        return Err(Error::refused(format!(
            "{status} is no verdict of stage {stage}: {}",
            names.join(", "),
            status = quoted(status)
        )));
    }
    match verdict {
        Verdict::NoGo if !super::is_said(story.reason.as_deref()) => Err(Error::refused(
            "NO-GO needs its reason; report it with fail",
        )),
        Verdict::Fail if !super::is_said(story.issues.as_deref()) => Err(Error::refused(
            "FAIL needs its issues; report them with fail",
        )),
        verdict => {
            if verdict == Verdict::Go {
                story.reason = None;
            }
            if stage == 3 && verdict != Verdict::Fail {
                story.issues = None;
            }
            story.set_action(format!("Stage {stage} completed, verdict: {verdict}"));
            story.verdict = Some(verdict);
            Ok(())
        }
    }
}
