//! `builder-state`: the host file of a builder's session, with task checkpoints inside it.

mod recognise;
mod slots;
#[cfg(feature = "proptest")]
mod strategies;

use serde::{Deserialize, Serialize};

pub(crate) use recognise::recognise;
pub(crate) use slots::NO_SUCH_SLOT;
pub use slots::{Slot, SlotPlace};

use super::fields::{self, null_is_default};
use super::task::{TaskCheckpoint, rules};
#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{Inspection, SchemaVersion, Timestamp};

/// The name of the format.
pub const FORMAT: &str = "builder-state";

/// The page for an agent whose checkpoint is in a host file.
pub(crate) const GUIDE: &str = include_str!("guide.md");

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the builder-state protocol, Checkpoint Location";

/// The members that are checked in an object that holds a checkpoint.
#[cfg(feature = "schema")]
const JUDGED_IN_SLOTS: &[&str] = &["checkpoint"];

/// The released versions of the host file.
pub const SCHEMA_VERSIONS: &[SchemaVersion] = &[
    SchemaVersion::new(
        1,
        "A checkpoint at the top level, in activePrd, and in each entry of adhocQueue.",
    ),
    SchemaVersion::new(
        2,
        "A checkpoint in activeWork, which replaced the former. Version 1 is read and written too.",
    ),
];

/// The host file, usually `docs/builder-state.json`.
///
/// A checkpoint has been placed at the top level, in `activePrd`, in `activeWork` (which replaced
/// the former) and in the entries of `adhocQueue`; all are read. Everything else in the file is the
/// builder's own and is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().judging(Self::JUDGED)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct BuilderState {
    /// The builder's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When the builder last showed that it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<Timestamp>,
    /// The requirements document that is being worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_prd: Option<ActivePrd>,
    /// The work that is active, in later revisions of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_work: Option<ActiveWork>,
    /// Tasks outside any requirements document.
    #[serde(deserialize_with = "null_is_default")]
    pub adhoc_queue: Vec<AdhocTask>,
    /// A checkpoint at the top level, where the first implementation wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<TaskCheckpoint>,
}

/// The requirements document that is being worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().judging(JUDGED_IN_SLOTS)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ActivePrd {
    /// Its id.
    #[serde(deserialize_with = "fields::id")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its file, relative to the project's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The branch the work is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The story that is being worked on: the task of the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_story: Option<String>,
    /// Stories that are finished.
    #[serde(deserialize_with = "null_is_default")]
    pub stories_completed: Vec<String>,
    /// Stories that are left.
    #[serde(deserialize_with = "null_is_default")]
    pub stories_pending: Vec<String>,
    /// The checkpoint of the current story.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<TaskCheckpoint>,
}

/// The work that is active, in later revisions of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().judging(JUDGED_IN_SLOTS)))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ActiveWork {
    /// Its id: the task of the checkpoint, unless it has a `currentStory`.
    #[serde(deserialize_with = "fields::id")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The checkpoint of this work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<TaskCheckpoint>,
}

/// A task outside any requirements document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().judging(JUDGED_IN_SLOTS).of_any_type()))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdhocTask {
    /// Its id.
    #[serde(deserialize_with = "fields::id")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its state, in the builder's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Its checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<TaskCheckpoint>,
}

/// The members that are checked. All others belong to the builder and may have any type.
#[cfg(feature = "schema")]
impl BuilderState {
    const JUDGED: &'static [&'static str] = &[
        "lastHeartbeat",
        "activePrd",
        "activeWork",
        "adhocQueue",
        "checkpoint",
    ];
}

impl BuilderState {
    /// Reports violations of the host file and of every checkpoint in it.
    pub fn inspect(&self, inspection: &mut Inspection<'_>) {
        inspection.timestamp("/lastHeartbeat", self.last_heartbeat.as_ref());
        if let Some(prd) = &self.active_prd {
            inspection.within("activePrd", |inspection| {
                inspect_checkpoint(prd.checkpoint.as_ref(), inspection);
            });
        }
        if let Some(work) = &self.active_work {
            inspection.within("activeWork", |inspection| {
                inspect_checkpoint(work.checkpoint.as_ref(), inspection);
            });
        }
        inspection.each("adhocQueue", &self.adhoc_queue, |task, inspection| {
            inspect_checkpoint(task.checkpoint.as_ref(), inspection);
        });
        let ids = self.adhoc_queue.iter().map(|task| task.id.as_deref());
        inspection.each_once("adhocQueue", ids, "/id");
        inspect_checkpoint(self.checkpoint.as_ref(), inspection);
    }
}

fn inspect_checkpoint(checkpoint: Option<&TaskCheckpoint>, inspection: &mut Inspection<'_>) {
    if let Some(checkpoint) = checkpoint {
        inspection.within("checkpoint", |inspection| {
            inspection.version(checkpoint);
            rules::inspect(checkpoint, inspection);
        });
    }
}
