//! Strategies for property tests, here and in downstream crates.
//!
//! Feature `proptest`. Each function says what it generates and how often.

mod json;
mod story_pipeline;
mod task;

pub use json::{json_object, json_value, restyled};
pub use story_pipeline::{pipeline_state, story_checkpoint};
pub use task::{task_checkpoint, timestamp};
