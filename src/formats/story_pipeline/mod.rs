//! `story-pipeline`: one [`StoryCheckpoint`] for each story, written by its worker, and one [`PipelineState`] for all
//! stories, written by the lead.
//!
//! A story goes through four stages: 0 plans its tasks, 1 validates the plan, 2 executes the tasks, 3 is the quality
//! gate. [`StoryCheckpoint::next_step`] decides what follows.

mod guards;
mod handoff;
mod inputs;
mod layout;
mod messages;
mod operations;
mod resume;
mod rules;
#[cfg(feature = "schema")]
mod schema;
mod spelling;
mod state;
#[cfg(feature = "proptest")]
mod strategies;

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Number, fields};
pub use guards::{Counters, NextStep};
pub use inputs::Pipeline;
#[cfg(feature = "template")]
pub(crate) use messages::TEMPLATES;
pub(crate) use state::VERBS;
pub use state::{
    AfterCrash, GitStats, InfraIssue, PipelineState, ProjectBrief, StageResults, StageTimes,
    StorageMode, StoryBrief, StoryState, pipeline_folder,
};

#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Dropped, Error, Evidence, Given, Handoff, Input, Inputs,
    Inspection, Interruption, ItemState, Layout, Limits, Operation, OperationContext, Report,
    Result, ResumePlan, RuleContext, SchemaVersion, Start, Status, Supervised, Timestamp,
    Truncation, open_enum,
};
use crate::json::{Code, Document};
use crate::quoted;

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the story-pipeline protocol, Checkpoint Schema";

open_enum! {
    /// What stage 1 or stage 3 concluded.
    Verdict {
        /// Stage 1: the plan is good, its tasks can be executed.
        Go = "GO",
        /// Stage 1: it is not; the checkpoint has the reason.
        NoGo = "NO-GO",
        /// Stage 3: passed.
        Pass = "PASS",
        /// Stage 3: passed, with remarks.
        Concerns = "CONCERNS",
        /// Stage 3: it was waived, whatever its score.
        Waived = "WAIVED",
        /// Stage 3: not passed; the checkpoint has the issues.
        Fail = "FAIL",
    }
}

impl Verdict {
    /// The verdicts of a stage; stages 0 and 2 have none.
    fn of_stage(stage: u8) -> &'static [Verdict] {
        match stage {
            1 => &[Verdict::Go, Verdict::NoGo],
            3 => &[
                Verdict::Pass,
                Verdict::Concerns,
                Verdict::Waived,
                Verdict::Fail,
            ],
            _ => &[],
        }
    }

    /// The verdicts of a stage as a list in a message.
    fn listed(stage: u8) -> String {
        let names: Vec<_> = Verdict::of_stage(stage)
            .iter()
            .map(Verdict::as_str)
            .collect();
        names.join(", ")
    }
}

/// How far one story is.
///
/// The worker that has the story writes it at the end of each stage, and in stage 2 after each task.
/// There are two revisions: `camelCase` names, and later `snake_case` ones, which have `started_at` and
/// `completed_at` for `timestamp` and no agent. Either is read, and each file keeps its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[cfg_attr(feature = "schema", schemars(transform = schema::conditions))]
#[serde(default)]
#[non_exhaustive]
pub struct StoryCheckpoint {
    /// The story's id: capital letters, a hyphen and digits, such as `SHOP-12`.
    #[serde(rename = "storyId", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = schema::STORY_ID)))]
    pub story_id: Option<String>,
    /// The story's id, in the later revision, which may leave it out.
    #[serde(rename = "story_id", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = schema::STORY_ID)))]
    pub snake_story_id: Option<String>,
    /// The stage: 0 plan, 1 validation, 2 execution, 3 quality gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::stage"))]
    pub stage: Option<Number>,
    /// The worker's agent id, by which it can be resumed with its context.
    #[serde(rename = "agentId", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// When the stage was begun, in the later revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the last finished work was finished, in the later revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The ids of the tasks that are finished, oldest first. Empty in stages 0 and 1.
    #[serde(rename = "tasksCompleted")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub tasks_completed: Option<Vec<String>>,
    /// The ids of the tasks that are finished, in the later revision.
    #[serde(rename = "tasks_completed")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub snake_tasks_completed: Option<Vec<String>>,
    /// The ids of the tasks that are left, in order. Empty in stages 1 and 3.
    #[serde(rename = "tasksRemaining")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub tasks_remaining: Option<Vec<String>>,
    /// The ids of the tasks that are left, in the later revision.
    #[serde(rename = "tasks_remaining")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub snake_tasks_remaining: Option<Vec<String>>,
    /// What was finished last, in a sentence.
    #[serde(rename = "lastAction", skip_serializing_if = "Option::is_none")]
    pub last_action: Option<String>,
    /// What was finished last, in the later revision.
    #[serde(rename = "last_action", skip_serializing_if = "Option::is_none")]
    pub snake_last_action: Option<String>,
    /// When the checkpoint was written, in the original revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Stage 0: how good the task plan is, 0 to 4.
    #[serde(rename = "planScore", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 4)))]
    pub plan_score: Option<Number>,
    /// Stage 0: how good the task plan is, in the later revision.
    #[serde(rename = "plan_score", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 4)))]
    pub snake_plan_score: Option<Number>,
    /// Stage 1: how ready the story is, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    pub readiness: Option<Number>,
    /// What the stage concluded: stage 1 `GO` or `NO-GO`; stage 3 `PASS`, `CONCERNS`, `WAIVED` or
    /// `FAIL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Stage 1: why the verdict is `NO-GO`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Stage 3: the score of the quality gate, 0 to 100.
    #[serde(rename = "qualityScore", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub quality_score: Option<Number>,
    /// Stage 3: the score of the quality gate, in the later revision.
    #[serde(rename = "quality_score", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub snake_quality_score: Option<Number>,
    /// Stage 3: what is wrong, when the verdict is `FAIL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<String>,
}

/// Whether a text is a story's id: capital letters, a hyphen, digits.
fn is_story_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(project, number)| {
        !project.is_empty()
            && project.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// An error text if this is no story id.
fn no_story_id(id: &str) -> Option<String> {
    let id = Some(id).filter(|id| !is_story_id(id))?;
    Some(format!(
        "{id} is not a story id, such as PROJ-42",
        id = quoted(id)
    ))
}

/// Refuses a text that is no story id.
fn must_be_story_id(id: &str) -> Result<()> {
    no_story_id(id).map_or(Ok(()), |wrong| Err(Error::refused(wrong)))
}

impl Checkpoint for StoryCheckpoint {
    const FORMAT: &'static str = "story-pipeline";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[
        SchemaVersion::new(
            1,
            "Names in camelCase, one timestamp, the worker's agent id.",
        ),
        SchemaVersion::new(
            2,
            "Names in snake_case, started_at and completed_at for the timestamp; the story's id may be absent. Version 1 is read and written too.",
        ),
    ];
    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/tasksCompleted/*", ItemState::Finished),
        ("/tasks_completed/*", ItemState::Finished),
        ("/tasksRemaining/*", ItemState::Pending),
        ("/tasks_remaining/*", ItemState::Pending),
    ];
    const WORK_HAS_IDS: bool = true;
    /// The fields of a stage are written when it ends.
    const TRANSIENT: &'static [(Code, &'static str)] = &[
        (Code::MISSING, "/planScore"),
        (Code::MISSING, "/plan_score"),
        (Code::MISSING, "/readiness"),
        (Code::MISSING, "/verdict"),
        (Code::MISSING, "/qualityScore"),
        (Code::MISSING, "/quality_score"),
    ];
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const INPUTS: &'static [Input] = inputs::INPUTS;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));

    fn updated_at(&self) -> Option<&Timestamp> {
        self.written_at()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        self.stamp_at(now);
    }

    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    fn status(&self) -> Status {
        handoff::status(self)
    }

    fn handoff(&self) -> Handoff {
        handoff::handoff(self)
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, context: &RuleContext<'_>) -> ResumePlan {
        resume::plan(self, context)
    }

    fn take_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        if let Some(agent) = context.agent {
            self.take_over(agent);
        }
        Ok(())
    }

    fn interrupt(
        &mut self,
        interruption: &Interruption,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        self.interrupted(interruption);
        self.stamp(context.now);
        Ok(())
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn complete_change(
        &mut self,
        before: &Self,
        kept: &mut dyn FnMut() -> Result<Vec<Dropped>>,
    ) -> Result<()> {
        self.bring_plan_back(before, kept)
    }

    fn shrink(&mut self, _: &Limits, before: Option<&Self>) -> Truncation {
        Truncation {
            dropped: before.map_or_else(Vec::new, |before| self.kept_beside(before)),
            ..Truncation::default()
        }
    }

    fn message_values(&self, context: &RuleContext<'_>) -> serde_json::Value {
        messages::values(self, context.unreadable)
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        let worker = (start.agent, "the worker's id (--agent)");
        let [agent] = start.needs(Self::FORMAT, [worker])?;
        StoryCheckpoint::begin(start.key.as_str(), agent, start.plan, start.now)
    }

    fn take_inputs(given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
        inputs::take(given, file)
    }

    fn inputs_beside(file: &CheckpointFile<'_>, report: Option<&Report>) -> Result<Inputs> {
        inputs::beside(file, report)
    }

    fn supervised(&self, context: &RuleContext<'_>, judged: &mut Supervised) -> Option<String> {
        inputs::supervised(self, context, judged)
    }

    fn check_place(file: &CheckpointFile<'_>) -> Result<()> {
        state::check_place(file)
    }

    fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
        layout::recognise_story(path, document)
    }

    fn layout() -> Layout {
        layout::story()
    }

    fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> Option<Self> {
        Some(handoff::from_handoff(handoff, now))
    }
}
