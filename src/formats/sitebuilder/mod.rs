//! `sitebuilder`: one file for each task of an agent that builds a site, in `progress/checkpoints/`.

mod handoff;
mod inputs;
mod layout;
mod messages;
mod operations;
mod progress;
mod pulse;
mod resume;
mod rules;
#[cfg(feature = "proptest")]
mod strategies;

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use messages::STATUS_HEADING;
#[cfg(feature = "template")]
pub(crate) use messages::TEMPLATES;
pub use pulse::{HEARTBEAT_INTERVAL, LATE_AT, SESSION_TIMEOUT, STALLED_AT, supervisor_thresholds};

use super::fields::{self, members, null_is_default};
use super::steps::each_once;
#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{
    Checkpoint, Evidence, Handoff, Input, Inspection, ItemState, Key, Layout, OpenEnum, Operation,
    OperationContext, Progress, Pulse, Result, ResumePlan, RuleContext, SchemaVersion, Start,
    Status, Thresholds, Timestamp, open_enum,
};
use crate::json::{Document, Identity};

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the sitebuilder protocol, Checkpoint Schema";

open_enum! {
    /// The state of a task.
    TaskStatus {
        /// Being worked on, or left by an agent whose session ended.
        InProgress = "in_progress",
        /// Ended. Where an acceptance criterion is still open, that is left to do.
        Complete = "complete",
        /// An error keeps the task from going on.
        Blocked = "blocked",
    }
}

open_enum! {
    /// The state of a subtask.
    SubtaskStatus {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Finished; a resume skips it.
        Complete = "complete",
        /// Tried without success; a resume tries it again.
        Failed = "failed",
    }
}

/// Normalises the spelling of a state: agents also write `COMPLETED`, `In Progress` and `in-progress`.
fn spelled(text: &str) -> String {
    let word = text.trim().to_lowercase().replace(['-', ' '], "_");
    match word.as_str() {
        "completed" | "done" => "complete".to_owned(),
        _ => word,
    }
}

impl TaskStatus {
    /// The listed state that the text means; `None` if it means none.
    ///
    /// Also accepted are the listed words in capitals or with `-` or a space for `_`, and `completed` and `done`.
    #[must_use]
    pub fn meaning(&self) -> Option<TaskStatus> {
        let meant = TaskStatus::from(spelled(self.as_str()).as_str());
        meant.is_known().then_some(meant)
    }
}

impl SubtaskStatus {
    /// The listed state that the text means; see [`TaskStatus::meaning`].
    #[must_use]
    pub fn meaning(&self) -> Option<SubtaskStatus> {
        let meant = SubtaskStatus::from(spelled(self.as_str()).as_str());
        meant.is_known().then_some(meant)
    }
}

/// How far an agent is with one task.
///
/// Member names in the file are `snake_case`. Times are RFC 3339 with a zone, paths relative to the
/// project's root. Numbers may be whole or fractional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default)]
#[non_exhaustive]
pub struct SitebuilderCheckpoint {
    /// The id of this run of the task: `{agent}-{task_id}-{YYYYMMDD-HHMMSS}`, with the time it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// The type of the agent, such as `migration`; with the task's id it names the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// The id of the task, such as `T060`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::id")]
    pub task_id: Option<String>,
    /// What is to be done, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_title: Option<String>,
    /// The state of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// How much is done, in percent: 0 to 100, and within 1 of completed by total subtasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub progress_percent: Option<f64>,
    /// When the task was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the checkpoint was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When the task was completed; `null` until then, required of a complete one.
    pub completed_at: Option<Timestamp>,
    /// The parts of the task.
    #[serde(deserialize_with = "null_is_default")]
    pub subtasks: Subtasks,
    /// Files that the task created, each once.
    #[serde(deserialize_with = "null_is_default")]
    pub files_created: Vec<String>,
    /// Files that the task changed, each once.
    #[serde(deserialize_with = "null_is_default")]
    pub files_modified: Vec<String>,
    /// Whether each acceptance criterion is met, by its name; `null` if it was not checked yet.
    #[serde(deserialize_with = "null_is_default")]
    pub acceptance_criteria_met: BTreeMap<String, Option<bool>>,
    /// The score from each reviewing agent; `null` until it is given.
    #[serde(deserialize_with = "null_is_default")]
    #[serde(serialize_with = "fields::plain_in_map")]
    pub review_scores: BTreeMap<String, Option<f64>>,
    /// What went wrong, oldest first. A blocked task has at least one.
    #[serde(deserialize_with = "null_is_default")]
    pub errors: Vec<TaskError>,
    /// Where the agent is in its material.
    #[serde(deserialize_with = "null_is_default")]
    pub context: Context,
    /// The agent's heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Heartbeat>,
    /// Whether another agent may carry on from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumable: Option<bool>,
    /// How the next agent carries on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_instructions: Option<String>,
}

/// The parts of a task: how many there are, and those that are listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent()))]
#[serde(default)]
#[non_exhaustive]
pub struct Subtasks {
    /// The number of subtasks of the task, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub total: Option<f64>,
    /// How many are finished, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub completed: Option<f64>,
    /// How many failed, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub failed: Option<f64>,
    /// The subtasks that are listed: all, or those of interest.
    #[serde(deserialize_with = "null_is_default")]
    pub items: Vec<Subtask>,
}

/// One part of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent()))]
#[serde(default)]
#[non_exhaustive]
pub struct Subtask {
    /// Its id, such as `post-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::id")]
    pub id: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SubtaskStatus>,
    /// The file it made; `null` until it is finished.
    pub output: Option<String>,
}

impl Subtask {
    /// Whether the subtask has this state, in any spelling.
    fn is(&self, state: &SubtaskStatus) -> bool {
        let meaning = self.status.as_ref().and_then(SubtaskStatus::meaning);
        meaning.as_ref() == Some(state)
    }

    /// A subtask with this state and no output.
    pub fn new(id: impl Into<String>, status: SubtaskStatus) -> Self {
        Subtask {
            id: Some(id.into()),
            status: Some(status),
            output: None,
        }
    }
}

members! {
    /// An error.
    TaskError from SOURCE {
        /// What kind of error it is, such as `dependency_missing`.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// What happened, for a person.
        message: Option<String>,
        /// When.
        timestamp: Option<Timestamp>,
        /// Whether the task cannot go on until it is resolved.
        blocking: Option<bool>,
    }
}

members! {
    /// Where the agent is in its material.
    Context from SOURCE {
        /// What was finished last.
        last_processed: Option<String>,
        /// Where to begin.
        next_to_process: Option<String>,
        /// Other notes for the next agent.
        notes: Option<String>,
    }
}

members! {
    /// The agent's heartbeat.
    Heartbeat from SOURCE {
        /// When the agent last showed that it is alive.
        last_beat: Option<Timestamp>,
        /// The planned interval between heartbeats in seconds; 300 by the protocol.
        #[serde(serialize_with = "fields::plain")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        interval_seconds: Option<f64>,
        /// What the agent says of itself, such as `alive`.
        status: Option<String>,
    }
}

impl Checkpoint for SitebuilderCheckpoint {
    const FORMAT: &'static str = "sitebuilder";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] =
        &[SchemaVersion::new(1, "One file for each task of an agent.")];
    const IDENTITIES: &'static [Identity] = &[
        Identity {
            list: "items",
            by: &["id"],
        },
        Identity {
            list: "errors",
            by: &["type", "message", "timestamp"],
        },
    ];
    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/subtasks/items/*", ItemState::Unknown),
        ("/acceptance_criteria_met/*", ItemState::Criterion),
        ("/errors/*", ItemState::Blocker),
    ];
    const WORK_HAS_IDS: bool = true;
    const INPUTS: &'static [Input] = inputs::INPUTS;
    const AGENTS_ARE_ROLES: bool = true;
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));
    const HAS_HEARTBEAT: bool = true;

    fn updated_at(&self) -> Option<&Timestamp> {
        self.updated_at.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        self.updated_at = Some(self.new_stamp(now));
    }

    /// A heartbeat is no progress: a change of the heartbeat alone leaves `updated_at` unchanged. This distinguishes an
    /// agent that is only alive from one that makes progress.
    fn stamp_change(&mut self, before: Option<&Self>, now: DateTime<Utc>) {
        if !before.is_some_and(|before| self.is_heartbeat(before)) {
            self.stamp(now);
        }
    }

    fn is_heartbeat(&self, before: &Self) -> bool {
        let mut as_before = self.clone();
        as_before.heartbeat.clone_from(&before.heartbeat);
        as_before == *before && self.heartbeat != before.heartbeat && self.updated_at.is_some()
    }

    fn files(&self) -> Vec<&str> {
        each_once(self.files_created.iter().chain(&self.files_modified))
    }

    /// The protocol's supervisor compares changed files, not created ones.
    fn exclusive_files(&self) -> Vec<&str> {
        self.files_modified.iter().map(String::as_str).collect()
    }

    fn status(&self) -> Status {
        handoff::status(self)
    }

    fn handoff(&self) -> Handoff {
        handoff::handoff(self)
    }

    fn pulse(&self) -> Pulse {
        pulse::pulse(self)
    }

    /// Late at 10 minutes without a signal, when the session also counts as ended; stalled at 30.
    fn thresholds() -> Thresholds {
        Thresholds {
            session_timeout: Some(SESSION_TIMEOUT),
            ..Thresholds::at(LATE_AT, STALLED_AT)
        }
    }

    fn progress(&self, _: &Handoff, now: DateTime<Utc>) -> Progress {
        progress::progress(self, now)
    }

    /// The progress message; for a stalled agent also the command for another agent to continue.
    #[cfg(feature = "template")]
    fn notice(&self, notice: crate::checkpoint::Notice, _now: DateTime<Utc>) -> Option<String> {
        let message = self.progress_message();
        Some(match notice {
            crate::checkpoint::Notice::Late => message,
            crate::checkpoint::Notice::Stalled => format!("{message}\n{}", self.dispatch_command()),
        })
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, _context: &RuleContext<'_>) -> ResumePlan {
        resume::plan(self)
    }

    fn take_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        self.taken_up(context)
    }

    #[cfg(feature = "template")]
    fn progress_report(&self) -> Option<String> {
        Some(self.progress_message())
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn message_values(&self, _: &RuleContext<'_>) -> serde_json::Value {
        self.values()
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        inputs::start(start)
    }

    fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
        layout::recognise(path, document)
    }

    fn layout() -> Layout {
        layout::layout()
    }

    fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> Option<Self> {
        Some(handoff::from_handoff(handoff, now))
    }
}

impl SitebuilderCheckpoint {
    /// The key of the checkpoint, `{agent}-{task_id}`, from its content.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let (agent, task) = (self.agent.as_deref()?, self.task_id.as_deref()?);
        Key::new(format!("{agent}-{task}")).ok()
    }

    /// The state that the status means, in any spelling.
    fn state(&self) -> Option<TaskStatus> {
        self.status.as_ref().and_then(TaskStatus::meaning)
    }

    fn new_stamp(&self, now: DateTime<Utc>) -> Timestamp {
        Timestamp::like(self.updated_at.as_ref(), now)
    }
}
