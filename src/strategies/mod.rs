//! Strategies for property tests, here and in downstream crates.
//!
//! Feature `proptest`. Each function says what it generates and how often.

mod agent_session;
mod any_shape;
mod arbitrary;
mod as_agents_write_it;
mod boundaries;
mod build_pipeline;
mod builder_state;
mod examine;
mod json;
mod members;
mod oversized;
mod sitebuilder;
mod story_pipeline;
mod style;
mod task;
mod tree;
mod valid;
mod vocabulary;
mod with_unknown_fields;

pub use any_shape::any_shape;
pub use as_agents_write_it::as_agents_write_it;
pub use examine::Examine;
pub use json::{json_object, json_value};
pub use oversized::oversized;
pub use style::restyled;
pub use valid::valid;
pub use vocabulary::any_spelling;
pub use with_unknown_fields::with_unknown_fields;
