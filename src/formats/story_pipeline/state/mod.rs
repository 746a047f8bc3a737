//! `story-pipeline-state`: the state of all stories of a pipeline, which the lead writes on every heartbeat.

mod handoff;
mod lead;
mod operations;
mod place;
mod rules;

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use operations::AfterCrash;
pub(super) use place::check_place;
pub use place::pipeline_folder;

#[cfg(feature = "schema")]
use super::schema::{self, by_story, by_story_within};
pub(crate) use lead::VERBS;

use super::guards::Counters;
use super::{Number, layout};
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Evidence, Handoff, Inspection, ItemState, Layout, Operation,
    OperationContext, Progress, Pulse, Result, ResumePlan, RuleContext, SchemaVersion, Start,
    Status, Timestamp, open_enum,
};
#[cfg(feature = "schema")]
use crate::checkpoint::{Shape, entries as named};
use crate::formats::fields::{members, null_is_default};
use crate::json::{Document, Identity};

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the story-pipeline protocol, Pipeline State Schema";

open_enum! {
    /// Where a story is.
    StoryState {
        /// Not begun.
        Queued = "QUEUED",
        /// Its tasks are being planned.
        Stage0 = "STAGE_0",
        /// Its plan is being validated.
        Stage1 = "STAGE_1",
        /// Its tasks are being executed.
        Stage2 = "STAGE_2",
        /// It is at the quality gate.
        Stage3 = "STAGE_3",
        /// Done.
        Done = "DONE",
        /// Paused until a decision is made.
        Paused = "PAUSED",
    }
}

impl StoryState {
    /// The state of a story in this stage.
    fn of_stage(stage: u8) -> Option<StoryState> {
        match stage {
            0 => Some(StoryState::Stage0),
            1 => Some(StoryState::Stage1),
            2 => Some(StoryState::Stage2),
            3 => Some(StoryState::Stage3),
            _ => None,
        }
    }

    /// The stage, if the state is one.
    pub(super) fn stage(&self) -> Option<u8> {
        match self {
            StoryState::Stage0 => Some(0),
            StoryState::Stage1 => Some(1),
            StoryState::Stage2 => Some(2),
            StoryState::Stage3 => Some(3),
            _ => None,
        }
    }

    /// Whether a checkpoint of this stage fits the state. A done story has passed stage 3, a paused one may be in any
    /// stage, a queued one has no checkpoint. An unlisted state fits every stage.
    pub(super) fn fits(&self, stage: u8) -> bool {
        match self {
            StoryState::Queued => false,
            StoryState::Done => stage == 3,
            StoryState::Paused | StoryState::Other(_) => true,
            state => state.stage() == Some(stage),
        }
    }
}

open_enum! {
    /// Where tasks are kept.
    StorageMode {
        /// In files.
        File = "file",
        /// In Linear.
        Linear = "linear",
    }
}

/// The complete state of a pipeline, from which a restarted lead continues.
///
/// Maps are by story id unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent()))]
#[cfg_attr(feature = "schema", schemars(transform = schema::any_variable))]
#[serde(default)]
#[non_exhaustive]
pub struct PipelineState {
    /// Whether the pipeline is done; set before it cleans up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_workers: Option<Number>,
    /// The number of stories that are neither `DONE` nor `PAUSED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stories_remaining: Option<Number>,
    /// When the lead last wrote the state: its heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<Timestamp>,
    /// Where each story is.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<StoryState>"))]
    pub story_state: BTreeMap<String, StoryState>,
    /// The name of each story's worker.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<String>"))]
    pub worker_map: BTreeMap<String, String>,
    /// How often each story went from `FAIL` back to stage 2, at most 2 times.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story_within::<0, 2>"))]
    pub quality_cycles: BTreeMap<String, Number>,
    /// How often each story was validated again after `NO-GO`, at most once.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story_within::<0, 1>"))]
    pub validation_retries: BTreeMap<String, Number>,
    /// How often each story's worker was started again after a crash, at most once.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story_within::<0, 1>"))]
    pub crash_count: BTreeMap<String, Number>,
    /// The ids of the stories that wait, the first one first.
    #[serde(deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::story_ids"))]
    pub priority_queue_ids: Vec<String>,
    /// The result of each stage of each story, for the report.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<StageResults>"))]
    pub story_results: BTreeMap<String, StageResults>,
    /// Problems of the infrastructure, for the report.
    #[serde(deserialize_with = "null_is_default")]
    pub infra_issues: Vec<InfraIssue>,
    /// The folder of each story's worktree; every story has one.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<String>"))]
    pub worktree_map: BTreeMap<String, String>,
    /// The stories that must be done before each story.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::depends_on"))]
    pub depends_on: BTreeMap<String, Vec<String>>,
    /// The id of each status of Linear, by the status's name; empty with tasks in files.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "named::<String>"))]
    pub status_cache: BTreeMap<String, String>,
    /// When each stage of each story began and ended.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<StageTimes>"))]
    pub stage_timestamps: BTreeMap<String, StageTimes>,
    /// The amount of code of each story.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<GitStats>"))]
    pub git_stats: BTreeMap<String, GitStats>,
    /// When the pipeline began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_start_time: Option<Timestamp>,
    /// How ready each story was at its `GO` of stage 1, 1 to 10: stage 3 may be faster for a ready one.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story_within::<1, 10>"))]
    pub readiness_scores: BTreeMap<String, Number>,
    /// The name of the team of workers, such as `pipeline-2026-02-15`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
    /// The answers given before the pipeline began, by question; every worker's prompt contains them.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "named::<Value>"))]
    pub business_answers: BTreeMap<String, Value>,
    /// Where tasks are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_mode: Option<StorageMode>,
    /// The folder of the skills, as an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_repo_path: Option<String>,
    /// What the project is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_brief: Option<ProjectBrief>,
    /// What each story is about.
    #[serde(deserialize_with = "entries")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "by_story::<StoryBrief>"))]
    pub story_briefs: BTreeMap<String, StoryBrief>,
}

members! {
    /// The result of each stage of a story in one word, such as `skip` or `Done`.
    StageResults from SOURCE {
        /// The result of stage 0.
        stage0: Option<String>,
        /// The result of stage 1.
        stage1: Option<String>,
        /// The result of stage 2.
        stage2: Option<String>,
        /// The result of stage 3.
        stage3: Option<String>,
    }
}

impl StageResults {
    /// The result of a stage; `None` if there is no such stage.
    fn of_stage(&mut self, stage: u8) -> Option<&mut Option<String>> {
        match stage {
            0 => Some(&mut self.stage0),
            1 => Some(&mut self.stage1),
            2 => Some(&mut self.stage2),
            3 => Some(&mut self.stage3),
            _ => None,
        }
    }
}

members! {
    /// A problem of the infrastructure.
    InfraIssue from SOURCE {
        /// The phase of the pipeline it came up in: a name or a number.
        phase: Option<Value>,
        /// The kind of problem.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// What happened.
        message: Option<String>,
    }
}

members! {
    /// When the stages of a story began and ended.
    StageTimes from SOURCE {
        /// When stage 0 began.
        stage_0_start: Option<Timestamp>,
        /// When stage 0 ended.
        stage_0_end: Option<Timestamp>,
        /// When stage 1 began.
        stage_1_start: Option<Timestamp>,
        /// When stage 1 ended.
        stage_1_end: Option<Timestamp>,
        /// When stage 2 began.
        stage_2_start: Option<Timestamp>,
        /// When stage 2 ended.
        stage_2_end: Option<Timestamp>,
        /// When stage 3 began.
        stage_3_start: Option<Timestamp>,
        /// When stage 3 ended.
        stage_3_end: Option<Timestamp>,
    }
}

impl StageTimes {
    /// When a stage began and ended. A number above 3 means stage 3.
    fn of(&self, stage: u8) -> (&Option<Timestamp>, &Option<Timestamp>) {
        match stage {
            0 => (&self.stage_0_start, &self.stage_0_end),
            1 => (&self.stage_1_start, &self.stage_1_end),
            2 => (&self.stage_2_start, &self.stage_2_end),
            _ => (&self.stage_3_start, &self.stage_3_end),
        }
    }

    fn of_mut(&mut self, stage: u8) -> (&mut Option<Timestamp>, &mut Option<Timestamp>) {
        match stage {
            0 => (&mut self.stage_0_start, &mut self.stage_0_end),
            1 => (&mut self.stage_1_start, &mut self.stage_1_end),
            2 => (&mut self.stage_2_start, &mut self.stage_2_end),
            _ => (&mut self.stage_3_start, &mut self.stage_3_end),
        }
    }

    /// When a stage began.
    fn start(&self, stage: u8) -> Option<&Timestamp> {
        self.of(stage).0.as_ref()
    }

    /// When a stage ended.
    fn end(&self, stage: u8) -> Option<&Timestamp> {
        self.of(stage).1.as_ref()
    }

    fn begin(&mut self, stage: u8, at: Timestamp) {
        let (start, end) = self.of_mut(stage);
        // A repeated stage counts from its first start, and has no end until it ends again.
        start.get_or_insert(at);
        *end = None;
    }

    fn finish(&mut self, stage: u8, at: Timestamp) {
        *self.of_mut(stage).1 = Some(at);
    }

    /// How long a stage, from 0 to 3, took, or has taken until `now`; `None` if its start is not known.
    #[must_use]
    pub fn duration(&self, stage: u8, now: DateTime<Utc>) -> Option<TimeDelta> {
        let until = match self.end(stage) {
            Some(end) => end.time()?.to_utc(),
            None => now,
        };
        between(self.start(stage), until)
    }
}

fn between(start: Option<&Timestamp>, until: DateTime<Utc>) -> Option<TimeDelta> {
    let start = start?.time()?.to_utc();
    Some((until - start).max(TimeDelta::zero()))
}

members! {
    /// The amount of code of a story.
    GitStats from SOURCE {
        /// The number of added lines.
        lines_added: Option<Number>,
        /// The number of removed lines.
        lines_deleted: Option<Number>,
        /// How many files differ.
        files_changed: Option<Number>,
    }
}

members! {
    /// What the project is.
    ProjectBrief from SOURCE {
        /// What it is called.
        name: Option<String>,
        /// What it is made with: a text or a list.
        tech: Option<Value>,
        /// What kind of project it is.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// The rules that matter most: a text or a list.
        key_rules: Option<Value>,
    }
}

members! {
    /// What a story is about.
    StoryBrief from SOURCE {
        /// What it is made with: a text or a list.
        tech: Option<Value>,
        /// The files that matter most: a text or a list.
        #[serde(rename = "keyFiles")]
        key_files: Option<Value>,
        /// How the story is to be done.
        approach: Option<String>,
        /// How hard it is: a word or a number.
        complexity: Option<Value>,
    }
}

/// Reads a map. `null` counts as absent, for the whole map and for a value.
fn entries<'de, D, T>(deserializer: D) -> std::result::Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let map = Option::<BTreeMap<String, Option<T>>>::deserialize(deserializer)?;
    let present = |(name, value): (String, Option<T>)| value.map(|value| (name, value));
    Ok(map.into_iter().flatten().filter_map(present).collect())
}

impl PipelineState {
    /// How often a story was retried. A fractional count is rounded up.
    #[must_use]
    pub fn counters(&self, story: &str) -> Counters {
        let count = |map: &BTreeMap<String, Number>| {
            map.get(story)
                .map_or(0, |number| number.get().max(0.0).ceil() as u64)
        };
        Counters {
            quality_cycles: count(&self.quality_cycles),
            validation_retries: count(&self.validation_retries),
            crashes: count(&self.crash_count),
        }
    }

    /// How long the pipeline has run.
    fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        between(self.pipeline_start_time.as_ref(), now)
    }
}

impl Checkpoint for PipelineState {
    const FORMAT: &'static str = "story-pipeline-state";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[SchemaVersion::new(
        1,
        "The state of all stories, written by the lead.",
    )];
    const IDENTITIES: &'static [Identity] = &[Identity {
        list: "infra_issues",
        by: &["type", "message"],
    }];
    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/story_state/*", ItemState::Unknown),
        ("/priority_queue_ids/*", ItemState::Pending),
    ];
    const WORK_HAS_IDS: bool = true;
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const IS_TASK: bool = false;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));
    const HAS_HEARTBEAT: bool = true;
    const WRITES_ALL: bool = true;

    fn updated_at(&self) -> Option<&Timestamp> {
        self.last_check.as_ref()
    }

    /// The lead writes its whole state each time.
    fn stamp(&mut self, now: DateTime<Utc>) {
        self.last_check = Some(Timestamp::like(self.last_check.as_ref(), now));
        self.derive_absent();
    }

    /// The lead's checks are heartbeats of the pipeline; progress is in the stories' own checkpoints.
    fn is_heartbeat(&self, before: &Self) -> bool {
        let mut as_before = self.clone();
        as_before.last_check.clone_from(&before.last_check);
        as_before == *before && self.last_check != before.last_check
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

    /// The lead's writes are heartbeats, and no evidence of progress.
    fn pulse(&self) -> Pulse {
        Pulse::of(&self.handoff())
            .with_heartbeat(self.last_check.clone())
            .with_progress(None)
    }

    fn progress(&self, handoff: &Handoff, now: DateTime<Utc>) -> Progress {
        Progress::of(handoff, now).with_times(self.elapsed(now), None)
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, _: &RuleContext<'_>) -> ResumePlan {
        handoff::plan(self)
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        PipelineState::begin(start.plan, start.now)
    }

    fn check_place(file: &CheckpointFile<'_>) -> Result<()> {
        check_place(file)
    }

    fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
        layout::recognise_state(path, document)
    }

    fn layout() -> Layout {
        layout::state()
    }
}
