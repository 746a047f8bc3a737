//! The formats that the library supports, one folder each.

pub mod agent_session;
pub mod build_pipeline;
pub mod builder_state;
mod convert;
mod fields;
mod number;
pub mod sitebuilder;
mod steps;
pub mod story_pipeline;
pub mod task;

pub use crate::checkpoint::{
    Archive, Backups, CheckpointFile, Current, Evidence, FUTURE_TOLERANCE, FileRole, Given,
    GivenValue, Input, InputKind, Inputs, Inspection, Interruption, ItemState, Layout, Migration,
    OpenEnum, SavedFiles, SchemaVersion, SourceFiles, Start, Supervised, UnreadableItem, read,
    violations,
};
pub use crate::registry::{
    AnyCheckpoints, Detected, Format, Formats, Inspected, OwnVerb, VerbCall, VerbDone,
};
pub(crate) use agent_session::AgentCheckpoint;
pub(crate) use build_pipeline::BuildCheckpoint;
pub use convert::{Converted, convert, convert_from, members_not_held};
pub use number::Number;
pub(crate) use sitebuilder::SitebuilderCheckpoint;
pub(crate) use story_pipeline::{PipelineState, StoryCheckpoint};
pub(crate) use task::TaskCheckpoint;

/// The templates of each format with its own messages.
#[cfg(feature = "template")]
pub(crate) const TEMPLATES: &[&[(&str, &str)]] = &[
    agent_session::messages::TEMPLATES,
    sitebuilder::TEMPLATES,
    story_pipeline::TEMPLATES,
];
