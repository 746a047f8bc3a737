//! An orchestrator as a user of `agent-checkpoint` would write it. It is not published: its tests prove that all of
//! this can be done outside of the library.

mod errand;
#[cfg(all(test, feature = "proptest"))]
mod properties;
#[cfg(all(test, feature = "proptest", feature = "schema"))]
mod shapes;
mod team;

use std::path::Path;

use agent_checkpoint::formats::{Format, Formats};
use agent_checkpoint::resume::{Resume, ResumeDecision, ResumeOptions};
use agent_checkpoint::{Begun, Checkpoints, Key, Result};
use chrono::Utc;

pub use errand::Errand;
pub use team::Team;

/// The JSON Schema of errands, written when this crate was built.
#[cfg(feature = "schema")]
pub const ERRAND_SCHEMA: &str = include_str!(concat!(env!("OUT_DIR"), "/errand.read.schema.json"));

/// The formats of this orchestrator: those of the library and its own.
#[must_use]
pub fn formats() -> Formats {
    let mut formats = Formats::default();
    #[cfg(feature = "schema")]
    formats.register(Format::with_schema::<Errand>());
    #[cfg(not(feature = "schema"))]
    formats.register(Format::of::<Errand>());
    formats
}

/// The next action for an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An agent begins.
    Begin,
    /// An agent continues with this prompt.
    Resume(String),
    /// A person must decide first.
    Ask(Vec<String>),
    /// Nothing is left to do.
    Nothing,
}

/// Begins an errand, or decides how to continue an existing one.
///
/// # Errors
///
/// Those of the store, and of the prompt's template.
pub fn next(errands: &Checkpoints<Errand>, key: &Key, stops: &[&str], root: &Path) -> Result<Next> {
    match errands.begin(key, &Errand::new(stops, Utc::now()))? {
        Begun::Created(_) => Ok(Next::Begin),
        Begun::Found(_) => {
            let resume = errands.resume(key, &ResumeOptions::new(root))?;
            Ok(match resume.plan.decision {
                ResumeDecision::Continue | ResumeDecision::Verify => Next::Resume(prompt(&resume)?),
                ResumeDecision::Refuse => Next::Nothing,
                _ => Next::Ask(resume.plan.questions),
            })
        }
    }
}

#[cfg(feature = "template")]
fn prompt(resume: &Resume) -> Result<String> {
    resume.prompt()
}

/// A build without templates has only the plan.
#[cfg(not(feature = "template"))]
fn prompt(resume: &Resume) -> Result<String> {
    let next = resume.plan.start_at.as_deref().unwrap_or_default();
    Ok(format!("{} Go on with: {next}", resume.plan.message))
}
