//! `agent-session`: one file for each agent of a group that works in parallel, so that a session that crashed or lost
//! its context can be resumed.

mod backups;
mod handoff;
mod inputs;
mod layout;
pub mod messages;
mod operations;
mod recovery;
mod resume;
mod rules;
mod status;
#[cfg(feature = "proptest")]
mod strategies;
mod take_over;

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

pub use backups::{Backup, BackupAge, NewestBackup, backups_in, newest_backup};
pub(crate) use inputs::VERBS;
pub use layout::{same_agent, take_over_id};
pub use recovery::RESTART_BELOW;
pub use resume::{Worked, corrupt_plan};
pub use status::{AgentStatus, AgentType};
pub use take_over::{TakeOver, TakenOver, take_over};

use super::fields::{self, members, null_is_default};
use super::steps::{each_once, said};
#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Evidence, Given, Handoff, Input, Inputs, Inspection, ItemState,
    Layout, Operation, OperationContext, Pulse, Result, ResumePlan, RuleContext, SchemaVersion,
    Start, Status, Thresholds, Timestamp,
};
use crate::json::Document;

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the agent-session protocol, Checkpoint File Format";

/// How long after a write the next one is expected.
pub const INTERVAL: TimeDelta = TimeDelta::minutes(15);

/// What one agent of a group did, is doing and does next, and how its work can be resumed.
///
/// Member names in the file are `snake_case`. Times are RFC 3339 with a zone. Files lie in
/// `agent_checkpoints/`, named after the agent: that of `Secondary-A` is `secondary_a.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[serde(default)]
#[non_exhaustive]
pub struct AgentCheckpoint {
    /// Which agent this is, such as `Agent-Primary` or `Secondary-A`; the file is named after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            length(max = 200),
            extend("pattern" = layout::ID_PATTERN, "not" = {"pattern": layout::ID_IS_EMPTY})
        )
    )]
    pub agent_id: Option<String>,
    /// Whether the agent coordinates the others or is one of them: `primary` or `secondary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<AgentType>,
    /// The session it works in; a resumed agent has a fresh one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The feature it owns, usually the name of its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The stage it is in: `S2.P1`, `S2.P2` or `S2.P3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The phase in words, such as `Specification - Starting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When the checkpoint was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Timestamp>,
    /// When the next write is due: 15 minutes after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_checkpoint_expected: Option<Timestamp>,
    /// What the agent is doing: `IN_PROGRESS`, `WAITING`, `BLOCKED` or `COMPLETE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<AgentStatus>,
    /// Whether work can be continued from this checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_resume: Option<bool>,
    /// The blockers; at least one while the agent is blocked.
    #[serde(deserialize_with = "null_is_default")]
    pub blockers: Vec<String>,
    /// Files changed since the last commit, relative to the project's root.
    #[serde(deserialize_with = "null_is_default")]
    pub files_modified: Vec<String>,
    /// Instructions for the next agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_instructions: Option<String>,
    /// What the agent is working on right now; null between two steps.
    pub current_step: Option<String>,
    /// Steps that are done, oldest first.
    #[serde(deserialize_with = "null_is_default")]
    pub completed_steps: Vec<String>,
    /// Steps that are to be done next, in order.
    #[serde(deserialize_with = "null_is_default")]
    pub next_steps: Vec<String>,
    /// When the agent last took part in the group's coordination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordination_state: Option<CoordinationState>,
    /// The agent whose work this one took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_agent: Option<String>,
    /// How the work was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_notes: Option<String>,
}

members! {
    /// When an agent last took part in the group's coordination.
    CoordinationState from SOURCE {
        /// When it last looked for messages.
        last_inbox_check: Option<Timestamp>,
        /// The number of messages that were unread then, at least 0.
        #[serde(serialize_with = "fields::plain")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        unread_messages: Option<f64>,
        /// When it last updated the group's overview, `EPIC_README.md`.
        last_epic_readme_update: Option<Timestamp>,
        /// When it last updated its own status file.
        last_status_update: Option<Timestamp>,
    }
}

impl AgentCheckpoint {
    /// A new stamp with the precision of the stamps in this file.
    fn new_stamp(&self, now: DateTime<Utc>) -> Timestamp {
        Timestamp::like(self.last_checkpoint.as_ref(), now)
    }

    /// The stage, if it has a name.
    fn named_stage(&self) -> Option<&str> {
        said(self.stage.as_deref())
    }

    /// The phase, if it has a name.
    fn named_phase(&self) -> Option<&str> {
        said(self.phase.as_deref())
    }

    /// How long ago the checkpoint was written; `None` without a readable `last_checkpoint`.
    #[must_use]
    pub fn age(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let last = self.last_checkpoint.as_ref()?.time()?;
        Some(now.signed_duration_since(last))
    }
}

/// The file that the protocol tells every agent to write its progress into.
const SHARED_FILE: &str = "EPIC_README.md";

impl Checkpoint for AgentCheckpoint {
    const FORMAT: &'static str = "agent-session";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] =
        &[SchemaVersion::new(1, "One file for each agent of a group.")];
    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/completed_steps/*", ItemState::Finished),
        ("/current_step", ItemState::Begun),
        ("/next_steps/*", ItemState::Pending),
        ("/blockers/*", ItemState::Blocker),
    ];
    const INPUTS: &'static [Input] = inputs::INPUTS;
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));

    fn updated_at(&self) -> Option<&Timestamp> {
        self.last_checkpoint.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        let last = self.new_stamp(now);
        let is_time = |stamp: &&Timestamp| stamp.time().is_some();
        let like = self.next_checkpoint_expected.as_ref().filter(is_time);
        let next = Timestamp::like(like.or(Some(&last)), now + INTERVAL);
        self.last_checkpoint = Some(last);
        self.next_checkpoint_expected = Some(next);
    }

    fn session(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    fn files(&self) -> Vec<&str> {
        each_once(&self.files_modified)
    }

    /// All files but `EPIC_README.md`, which every agent writes.
    fn exclusive_files(&self) -> Vec<&str> {
        let mut files = self.files();
        files.retain(|file| file.rsplit(['/', '\\']).next() != Some(SHARED_FILE));
        files
    }

    fn status(&self) -> Status {
        handoff::status(self)
    }

    fn handoff(&self) -> Handoff {
        handoff::handoff(self)
    }

    /// A write is the only heartbeat of this format; each write declares when the next is due.
    fn pulse(&self) -> Pulse {
        Pulse::of(&self.handoff()).with_next_expected(self.next_checkpoint_expected.clone())
    }

    /// Late at 30 minutes, stalled at 60.
    fn thresholds() -> Thresholds {
        Thresholds::at(messages::STATUS_CHECK_AT, messages::ESCALATION_AT)
    }

    /// The status check for the agent, as message 1 of its inbox, or the escalation to the user. There is no notice
    /// about the primary, which itself watches the others.
    #[cfg(feature = "template")]
    fn notice(&self, notice: crate::checkpoint::Notice, now: DateTime<Utc>) -> Option<String> {
        if self.agent_type == Some(AgentType::Primary) {
            return None;
        }
        Some(match notice {
            crate::checkpoint::Notice::Late => messages::status_check(self, 1, now),
            crate::checkpoint::Notice::Stalled => messages::escalation(self, now),
        })
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, rule_context: &RuleContext<'_>) -> ResumePlan {
        resume::plan(self, rule_context)
    }

    fn take_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        self.taken_up(context)
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn message_values(&self, rule_context: &RuleContext<'_>) -> serde_json::Value {
        messages::values(self, rule_context.now.unwrap_or_default())
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        inputs::start(start)
    }

    fn take_inputs(given: &Given, _: &CheckpointFile<'_>) -> Result<Inputs> {
        Ok(inputs::take(given))
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
