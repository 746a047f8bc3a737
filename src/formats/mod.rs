//! The formats of the library, and their registry.

pub mod agent_session;
pub mod build_pipeline;
pub mod builder_state;
mod convert;
mod detect;
mod fields;
mod format;
mod number;
pub mod sitebuilder;
mod steps;
pub mod story_pipeline;
mod survey;
pub mod task;

pub use crate::checkpoint::{
    Archive, Backups, Current, Evidence, FUTURE_TOLERANCE, FileRole, FilesTold, Inspection,
    Interruption, ItemState, Layout, Migration, OpenEnum, SchemaVersion, SourceFiles,
    UnreadableItem, read, violations,
};
pub(crate) use agent_session::AgentCheckpoint;
pub(crate) use build_pipeline::BuildCheckpoint;
pub(crate) use builder_state::BuilderState;
pub use convert::{Converted, convert, convert_from, members_not_held};
pub use detect::Detected;
pub use format::{Examined, Format, Formats};
pub use number::Number;
pub(crate) use sitebuilder::SitebuilderCheckpoint;
pub(crate) use story_pipeline::{PipelineState, StoryCheckpoint};
pub use survey::Surveyed;
pub(crate) use task::TaskCheckpoint;
