//! The operations that a worker and the lead report of a story.

use chrono::{DateTime, Utc};

use super::guards::NextStep;
use super::inputs;
use super::spelling::{self, Name, Spelling};
use super::state::StoryState;
use super::{Number, StoryCheckpoint, Verdict, must_be_story_id};
use crate::checkpoint::{
    DropReason, Dropped, Error, ErrorKind, Interruption, Operation, OperationContext, Result,
    Timestamp, operations,
};
use crate::formats::steps::said;
use crate::json::pointer;
use crate::quoted;
use crate::shown::quoted_all;

/// Separates the last action from the failure that interrupted it.
const INTERRUPTED: &str = "; then interrupted: ";

const NOT_AT_ITS_END: &str = "the stage is not at its end";

operations! {
    fn report(story: &mut StoryCheckpoint, context) takes OPERATIONS {
        Note { text } => story.set_action(text.clone()),
        Heartbeat => story.stamp_at(context.now),
        Fail { text } => story.refuse(text)?,
        Complete => {
            if !context.force {
                context.nothing_hidden(NOT_AT_ITS_END)?;
            }
            story.finish(context)?;
        },
        Reassign { to } => story.reassign(to)?,
        TaskAdd { id } => story.add_task(id)?,
        TaskStart { id } => story.start_task(id, context.force)?,
        TaskDone { id, files } => story.finish_task(id, files, context.force)?,
        Stage { name } => story.enter(name, context)?,
        Verify { activity, status } => story.verify(activity, status, context.force)?,
    }
}

pub(super) fn apply(
    story: &mut StoryCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    report(story, operation, context)?;
    // When the lead enters a stage, the worker to resume stays the same.
    if let Some(agent) = context.agent
        && operation.is_work()
        && !matches!(operation, Operation::Stage { .. })
    {
        story.take_over(agent);
    }
    Ok(())
}

impl StoryCheckpoint {
    /// The checkpoint of a story that begins, with the tasks that stage 0 has created so far. The score of the plan is
    /// reported at the end of the stage.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] when the id is no story id, or a task is named twice.
    pub fn begin(
        story: impl Into<String>,
        agent: impl Into<String>,
        tasks: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let story = story.into();
        must_be_story_id(&story)?;
        let tasks: Vec<String> = tasks.into_iter().map(Into::into).collect();
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = tasks.iter().find(|task| !seen.insert(*task)) {
            return Err(Error::refused(format!(
                "the task {twice} is named twice",
                twice = quoted(twice)
            )));
        }
        let action = match tasks.as_slice() {
            [] => "Story begun".to_owned(),
            tasks => format!("Tasks created: {}", tasks.join(", ")),
        };
        Ok(StoryCheckpoint {
            story_id: Some(story),
            stage: Some(Number::from(0_u8)),
            agent_id: Some(agent.into()),
            tasks_completed: Some(Vec::new()),
            tasks_remaining: Some(tasks),
            last_action: Some(action),
            timestamp: Some(Timestamp::like(None, now)),
            ..StoryCheckpoint::default()
        })
    }

    /// Records `NO-GO` in stage 1 or `FAIL` in stage 3, with its reason.
    fn refuse(&mut self, because: &str) -> Result<()> {
        match self.stage_number() {
            Some(1) => {
                self.verdict = Some(Verdict::NoGo);
                self.reason = Some(because.to_owned());
                self.set_action(format!("Validation: NO-GO: {because}"));
            }
            Some(3) => {
                self.verdict = Some(Verdict::Fail);
                self.issues = Some(because.to_owned());
                self.set_action(format!("Quality gate completed, verdict: FAIL: {because}"));
            }
            _ => return Err(self.not_now("stages 1 and 3 have a verdict")),
        }
        Ok(())
    }

    /// Adds a task to the remaining ones, unless it is known already.
    fn add_task(&mut self, id: &str) -> Result<()> {
        if !matches!(self.stage_number(), Some(0 | 2)) {
            return Err(self.not_now("tasks are planned in stages 0 and 2"));
        }
        self.plan(&[id.to_owned()]);
        Ok(())
    }

    fn plan(&mut self, tasks: &[String]) {
        let mut remaining = self.remaining().to_vec();
        for task in tasks {
            if !remaining.contains(task) && !self.completed().contains(task) {
                remaining.push(task.clone());
            }
        }
        self.set_remaining(remaining);
        if self.lacks_plan() {
            self.verdict = None;
        }
    }

    /// Begins a task: it becomes the first of the remaining ones, where a resumed worker begins. An unplanned task is
    /// added.
    fn start_task(&mut self, id: &str, force: bool) -> Result<()> {
        let is_finished = self.completed().iter().any(|done| done == id);
        if !force {
            self.must_be_in(2)?;
            if is_finished {
                return Err(Error::refused(format!(
                    "{id} is finished already: do not execute it again"
                )));
            }
        }
        if is_finished {
            self.set_completed(without(self.completed(), id));
        }
        let mut remaining = without(self.remaining(), id);
        remaining.insert(0, id.to_owned());
        self.set_remaining(remaining);
        Ok(())
    }

    /// Finishes a task: its id moves from the remaining to the completed ones.
    fn finish_task(&mut self, id: &str, files: &[String], force: bool) -> Result<()> {
        if !files.is_empty() {
            return Err(Error::new(ErrorKind::Unsupported {
                operation: "task done with files".to_owned(),
                supported: OPERATIONS.iter().map(|&name| name.to_owned()).collect(),
            }));
        }
        let is_finished = self.completed().iter().any(|done| done == id);
        if !force {
            self.must_be_in(2)?;
            if is_finished {
                return Err(Error::refused(format!("{id} is finished already")));
            }
            if !self.remaining().iter().any(|task| task == id) {
                return Err(Error::refused(format!(
                    "{id} is not a remaining task; the remaining tasks are {}; start it first",
                    quoted_all(self.remaining())
                )));
            }
        }
        self.set_remaining(without(self.remaining(), id));
        if !is_finished {
            let mut completed = self.completed().to_vec();
            completed.push(id.to_owned());
            self.set_completed(completed);
        }
        self.set_action(format!("{id} done"));
        if self.is_to_be_mended() {
            self.verdict = None;
        }
        Ok(())
    }

    /// Enters the stage of this name or number, or ends the story.
    fn enter(&mut self, name: &str, context: &OperationContext<'_>) -> Result<()> {
        // Stages 0 and 2 list tasks, so they end only if all tasks are readable.
        if !context.force && matches!(self.stage_number(), Some(0 | 2)) {
            context.nothing_hidden(NOT_AT_ITS_END)?;
        }
        let upper = name.to_ascii_uppercase();
        if upper == "DONE" {
            return self.finish(context);
        }
        let number = upper.strip_prefix("STAGE_").unwrap_or(&upper);
        let stage = number.parse().ok().filter(|stage| *stage <= 3_u8);
        let Some(stage) = stage else {
            return Err(Error::refused(format!(
                "{name} is not a stage; the stages are 0, 1, 2, 3 and DONE",
                name = quoted(name)
            )));
        };
        if context.force {
            self.force_stage(stage, context.now);
            return Ok(());
        }
        if inputs::state(self, &context.rules) == Some(&StoryState::Paused) {
            return Err(Error::refused(
                "the pipeline has PAUSED the story; a decision is needed before it goes on",
            ));
        }
        self.enter_stage(stage, context)
    }

    /// Enters a stage, under the conditions of the protocol.
    ///
    /// The values of the stage before are removed and summarised in the last action; the values of the new stage are
    /// written when it ends. Stage 1 lists no tasks: a save keeps their ids among the dropped items, and the save that
    /// enters stage 2 brings them back. If none were kept, the verdict `GO` stays and stage 3 is refused until the
    /// tasks are planned again. A story that goes back to stage 2 keeps `FAIL` until a task is finished there, and the
    /// issues until the stage ends. To enter stage 0 from stage 0 changes nothing.
    fn enter_stage(&mut self, stage: u8, context: &OperationContext<'_>) -> Result<()> {
        let from = match self.stage_number() {
            Some(0) if stage == 0 => return Ok(()),
            Some(from) => from,
            None if self.stage.is_none() && stage == 0 => {
                self.set_stage(0, context.now);
                return Ok(());
            }
            None => return Err(self.no_transition(name_of(stage))),
        };
        let next = self.next_step(inputs::before_granted(self, &context.rules, stage));
        let goes_on = match &next {
            NextStep::Enter { stage: to } => *to == stage,
            NextStep::Retry { .. } => stage == 1,
            NextStep::Rework { .. } => stage == 2,
            _ => false,
        };
        if !goes_on {
            let (to, from) = (name_of(stage), name_of(from));
            if !self.followers().contains(&to.as_str()) {
                return Err(self.no_transition(to));
            }
            return Err(Error::refused(format!("{to} cannot follow {from}: {next}")));
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
        self.set_stage(stage, context.now);
        Ok(())
    }

    /// Enters a stage without the conditions of the protocol. The lists stay unchanged.
    fn force_stage(&mut self, stage: u8, now: DateTime<Utc>) {
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
    }

    /// Ends the story.
    fn finish(&mut self, context: &OperationContext<'_>) -> Result<()> {
        if !context.force {
            if self.stage_number() != Some(3) {
                return Err(self.no_transition("DONE".to_owned()));
            }
            let counters = inputs::counters(self, &context.rules).unwrap_or_default();
            match self.next_step(counters) {
                NextStep::Finish => {}
                other => return Err(Error::refused(format!("the story is not done: {other}"))),
            }
        }
        let verdict = self.verdict.as_ref().map(|verdict| format!(": {verdict}"));
        let score = self.quality_score().map(|score| format!(", score {score}"));
        self.set_action(format!(
            "Story done{}{}",
            verdict.unwrap_or_default(),
            score.unwrap_or_default()
        ));
        Ok(())
    }

    /// Records a measurement or verdict of a stage, under its name in the checkpoint.
    fn verify(&mut self, activity: &str, status: &str, force: bool) -> Result<()> {
        let (what, stage, least, most) = match activity {
            "planScore" | "plan_score" => ("planScore", 0, 0, 4),
            "readiness" => ("readiness", 1, 1, 10),
            "qualityScore" | "quality_score" => ("qualityScore", 3, 0, 100),
            "verdict" => return self.conclude(status),
            other => {
                return Err(Error::refused(format!(
                    "{other} is not measured; there are planScore, readiness, qualityScore and verdict",
                    other = quoted(other)
                )));
            }
        };
        if !force {
            self.must_be_in(stage)?;
        }
        let number = status.trim().parse::<f64>().ok();
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Err(Error::refused(format!(
                "{what} {status} is not a number",
                status = quoted(status)
            )));
        };
        let number = Number::from(number);
        if let Some(outside) = number.outside(least, most) {
            return Err(Error::refused(format!("{what} {outside}")));
        }
        match stage {
            0 => self.set_plan_score(number),
            1 => self.readiness = Some(number),
            _ => self.set_quality_score(number),
        }
        self.set_action(format!("{activity}: {status}"));
        Ok(())
    }

    fn conclude(&mut self, status: &str) -> Result<()> {
        let verdict = Verdict::from(status);
        let Some(stage @ (1 | 3)) = self.stage_number() else {
            return Err(self.not_now("stages 1 and 3 have a verdict"));
        };
        if !Verdict::of_stage(stage).contains(&verdict) {
            return Err(Error::refused(format!(
                "{status} is not a verdict of stage {stage}: {}",
                Verdict::listed(stage),
                status = quoted(status)
            )));
        }
        match verdict {
            Verdict::NoGo if said(self.reason.as_deref()).is_none() => {
                return Err(Error::refused(
                    "NO-GO needs its reason; report it with fail",
                ));
            }
            Verdict::Fail if said(self.issues.as_deref()).is_none() => {
                return Err(Error::refused(
                    "FAIL needs its issues; report them with fail",
                ));
            }
            Verdict::NoGo | Verdict::Fail => {}
            _ if stage == 1 => self.reason = None,
            _ => self.issues = None,
        }
        self.set_action(format!("Stage {stage} completed, verdict: {verdict}"));
        self.verdict = Some(verdict);
        Ok(())
    }

    fn reassign(&mut self, to: &str) -> Result<()> {
        if self.spelling() == Spelling::SnakeCase {
            return Err(Error::refused(
                "this revision of the checkpoint names no agent; name the agent in its prompt",
            ));
        }
        self.take_over(to);
        Ok(())
    }

    /// Makes another worker the one to resume. The later revision has no member for it.
    pub(super) fn take_over(&mut self, agent: &str) {
        if self.spelling() == Spelling::CamelCase {
            self.agent_id = Some(agent.to_owned());
        }
    }

    /// Notes a worker's failure in the last action. It is no verdict, so none is recorded.
    pub(super) fn interrupted(&mut self, interruption: &Interruption) {
        if let Interruption::Failed(because) = interruption {
            let last = self.action().unwrap_or_default();
            let before = last.split(INTERRUPTED).next().unwrap_or_default();
            self.set_action(format!("{before}{INTERRUPTED}{because}"));
        }
    }

    /// Restores the tasks that stage 0 planned, when the story enters stage 2.
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
            self.plan(&tasks);
        }
        Ok(())
    }

    /// The items that a save drops: the planned tasks, which stage 1 does not list.
    pub(super) fn kept_beside(&self, before: &StoryCheckpoint) -> Vec<Dropped> {
        let entered = self.stage_number() == Some(1) && before.stage_number() != Some(1);
        let tasks = before.remaining();
        if !entered || !self.remaining().is_empty() || tasks.is_empty() {
            return Vec::new();
        }
        let pointer = pointer::join("", spelling::REMAINING.of(before.spelling()));
        vec![Dropped::new(pointer, DropReason::Superseded, tasks.into())]
    }

    /// Summarises the stage that ends, including the values that are removed with it.
    fn ending(&self, from: u8, next: &NextStep) -> String {
        let scores = self.scores();
        let (left, stated) = match (from, next) {
            (0, _) => {
                let tasks = self.remaining().join(", ");
                (format!("Stage 0 completed{scores}, tasks: {tasks}"), None)
            }
            (1, NextStep::Retry { reason, .. }) => {
                (format!("Stage 1 again{scores}: {next}"), reason.as_deref())
            }
            (1, _) => (format!("Stage 1 completed: GO{scores}"), None),
            (2, _) => {
                let count = self.completed().len();
                (
                    format!("Stage 2 completed, tasks done: {count}{scores}"),
                    None,
                )
            }
            _ => {
                let issues = self.issues.as_deref();
                (format!("Stage 2 again{scores}: {next}"), issues)
            }
        };
        left + &self.remarks(stated)
    }

    /// The scores in the checkpoint, each after a comma.
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

    /// The reason and the issues in the checkpoint, except one that was stated already.
    fn remarks(&self, stated: Option<&str>) -> String {
        [("reason", &self.reason), ("issues", &self.issues)]
            .into_iter()
            .filter_map(|(name, text)| {
                let text = said(text.as_deref())?;
                (Some(text) != stated).then(|| format!("; {name}: {text}"))
            })
            .collect()
    }

    fn clear_stage_fields(&mut self) {
        (self.plan_score, self.snake_plan_score) = (None, None);
        (self.quality_score, self.snake_quality_score) = (None, None);
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
        Error::transition(self.stage_name(), to, self.followers())
    }

    /// The stages that the protocol lets follow, without their conditions.
    fn followers(&self) -> &'static [&'static str] {
        match self.stage_number() {
            None => &["STAGE_0"],
            Some(0) => &["STAGE_1"],
            Some(1) => &["STAGE_2", "STAGE_1"],
            Some(2) => &["STAGE_3"],
            Some(_) => &["STAGE_2", "DONE"],
        }
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

/// The planned tasks in a dropped item, if it holds them.
fn planned_in(piece: &Dropped) -> Option<Vec<String>> {
    let Name { camel, snake } = spelling::REMAINING;
    let is_plan = piece.reason == DropReason::Superseded
        && [camel, snake].contains(&piece.pointer.trim_start_matches('/'));
    serde_json::from_value(piece.value.clone())
        .ok()
        .filter(|_| is_plan)
}

fn without(list: &[String], id: &str) -> Vec<String> {
    list.iter().filter(|other| *other != id).cloned().collect()
}

fn name_of(stage: u8) -> String {
    format!("STAGE_{stage}")
}
