//! An orchestrator as a user of `agent-checkpoint` would write one. It is not published: it shows, and
//! its tests prove, that all of this can be done from outside the library.

mod errand;
#[cfg(test)]
mod properties;

use std::path::Path;

use agent_checkpoint::{
    Begun, CheckpointStore, CheckpointStoreExt, Format, Formats, Key, Result, ResumeDecision,
    ResumeOptions,
};
use chrono::Utc;

pub use errand::Errand;

/// The JSON Schema of `task` checkpoints, written when this crate was built.
pub const TASK_SCHEMA: &str = include_str!(concat!(env!("OUT_DIR"), "/task.schema.json"));

/// The JSON Schema of `build-pipeline` checkpoints, written when this crate was built.
pub const BUILD_SCHEMA: &str =
    include_str!(concat!(env!("OUT_DIR"), "/build-pipeline.schema.json"));

/// The formats that this orchestrator speaks: those of the library and its own.
#[must_use]
pub fn formats() -> Formats {
    let mut formats = Formats::default();
    formats.register(Format::of::<Errand>());
    formats
}

/// What the orchestrator does next with an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An agent begins.
    Begin,
    /// An agent goes on with this prompt.
    Resume(String),
    /// Somebody has to decide first.
    Ask(Vec<String>),
    /// Nothing is left to do.
    Nothing,
}

/// Begins an errand, or finds out how to go on with the one that is there.
///
/// # Errors
///
/// Those of the store, and of the prompt's template.
pub fn next(store: &dyn CheckpointStore, key: &Key, stops: &[&str], root: &Path) -> Result<Next> {
    let errands = store.checkpoints::<Errand>();
    match errands.begin(key, &Errand::new(stops, Utc::now()))? {
        Begun::Created(_) => Ok(Next::Begin),
        Begun::Found(_) => {
            let resume = errands.resume(key, &ResumeOptions::new(root))?;
            Ok(match resume.plan.decision {
                ResumeDecision::Continue | ResumeDecision::Verify => Next::Resume(resume.prompt()?),
                ResumeDecision::Refuse => Next::Nothing,
                _ => Next::Ask(resume.plan.questions),
            })
        }
    }
}
