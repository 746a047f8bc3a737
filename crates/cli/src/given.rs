//! What the command line tells of a checkpoint's surroundings.

use std::path::Path;

use agent_checkpoint::Checkpoint;
use agent_checkpoint::checkpoint::{ExecutionSpec, Knowledge};
use agent_checkpoint::formats::{BuildCheckpoint, StoryCheckpoint};

use crate::args::{Global, Known};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::read;

/// What a plan of a build looks like.
const SPEC: &str =
    r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "…"}]}], "gates": ["…"]}"#;

/// What was given, read.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) spec: Option<ExecutionSpec>,
    pub(crate) story_state: Option<String>,
}

impl Given {
    /// What the options name.
    pub(crate) fn read(known: &Known, global: &Global) -> Result<Given, Failure> {
        let spec = known.spec.as_deref();
        Ok(Given {
            spec: spec.map(|path| spec_of(path, global)).transpose()?,
            story_state: known.story_state.clone(),
        })
    }

    /// For a judgement.
    pub(crate) fn knowledge(&self) -> Knowledge<'_> {
        let mut knowledge = Knowledge::none();
        knowledge.execution_spec = self.spec.as_ref();
        knowledge.story_state = self.story_state.as_deref();
        knowledge
    }
}

/// Says which of what was given tells nothing of a file of this format.
pub(crate) fn say_unused(
    knowledge: &Knowledge<'_>,
    file: &Path,
    format: &str,
    outcome: &mut Outcome,
) {
    let spec = knowledge.execution_spec.is_some();
    let state = knowledge.story_state.is_some();
    for (option, is_given, judged) in [
        ("--spec", spec, BuildCheckpoint::FORMAT),
        ("--story-state", state, StoryCheckpoint::FORMAT),
    ] {
        if is_given && format != judged {
            let place = file.display();
            outcome.note(format!(
                "{place}: {option} judges {judged} only, and this is {format}"
            ));
        }
    }
}

/// The plan of a build, from its file.
pub(crate) fn spec_of(path: &Path, global: &Global) -> Result<ExecutionSpec, Failure> {
    let text = read::text(path, global.max_bytes)?;
    let spec: ExecutionSpec = serde_json::from_str(&text).map_err(|error| {
        Failure::new(format!(
            "{}: is no plan of a build ({error}); it is {SPEC}",
            path.display()
        ))
    })?;
    if spec.workstreams().next().is_none() {
        return Err(Failure::new(format!(
            "{}: the plan has no workstreams; it is {SPEC}",
            path.display()
        )));
    }
    Ok(spec)
}
