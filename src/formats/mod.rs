//! The formats that the library speaks, and the registry of them.

pub mod builder_state;
mod detect;
mod format;
pub mod task;

pub use builder_state::BuilderState;
pub use detect::Detected;
pub use format::{Examined, Format, Formats};
pub use task::TaskCheckpoint;
