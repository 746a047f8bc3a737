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

pub use agent_session::AgentCheckpoint;
pub use build_pipeline::BuildCheckpoint;
pub use builder_state::BuilderState;
pub use convert::{Converted, convert, convert_from, members_not_held};
pub use detect::Detected;
pub use format::{Examined, Format, Formats};
pub use number::Number;
pub use sitebuilder::SitebuilderCheckpoint;
pub use story_pipeline::{PipelineState, StoryCheckpoint};
pub use survey::Surveyed;
pub use task::TaskCheckpoint;
