//! Strategies for property tests, here and in downstream crates.
//!
//! Feature `proptest`. Each function says what it generates and how often.

mod agent_session;
mod build_pipeline;
mod deviating;
mod json;
mod sitebuilder;
mod story_pipeline;
mod task;

pub use agent_session::agent_checkpoint;
pub use build_pipeline::build_checkpoint;
pub use deviating::deviating;
pub use json::{json_object, json_value, restyled};
pub use sitebuilder::sitebuilder_checkpoint;
pub use story_pipeline::{pipeline_state, story_checkpoint};
pub use task::{task_checkpoint, timestamp};
