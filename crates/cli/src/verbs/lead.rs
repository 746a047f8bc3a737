//! `ckpt lead`: what the lead of a pipeline does to the state of its stories.

use std::path::{Path, PathBuf};

use agent_checkpoint::formats;
use agent_checkpoint::formats::story_pipeline::{
    AfterCrash, NextStep, PipelineState, StoryCheckpoint,
};
use agent_checkpoint::store::read_document;
use agent_checkpoint::{Checkpoint, Error, Key};
use serde_json::json;

use crate::address::Target;
use crate::args::{Global, Lead};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::read;
use crate::report::saved;

/// The file of the state in a pipeline's folder.
const STATE: &str = "state.json";

pub(super) fn run(lead: &Lead, global: &Global) -> Result<Outcome, Failure> {
    let mut global = global.clone();
    // A pipeline has one state: its folder names it.
    if let Some(folder) = global.store.as_ref().filter(|store| store.is_dir()) {
        global.store = Some(folder.join(STATE));
        global.key = None;
    }
    let target = Target::to_write(&global)?;
    if target.format.name() != PipelineState::FORMAT {
        return Err(Failure::new(format!(
            "{}: the lead's verbs are for {}, and this is {}; name .pipeline/{STATE} with --store",
            target.path.display(),
            PipelineState::FORMAT,
            target.format.name()
        )));
    }
    target.require_file()?;
    let now = super::now(&global);
    let (mut line, mut waits) = (String::new(), false);
    let story = match lead {
        Lead::Record { story } | Lead::Finish { story: Some(story) } => {
            Some(story_beside(&target.path, story, &global)?)
        }
        _ => None,
    };
    let saved = target
        .checkpoints::<PipelineState>(&global)
        .try_update(&target.key, |state| {
            (line, waits) = act(lead, state, story.as_ref(), now)?;
            Ok(())
        })
        .map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&json!({ "message": line, "waits": waits, "saved": saved }));
    } else {
        saved::report(&mut outcome, &target, &global, &saved, &[line]);
    }
    outcome.is_done = true;
    if waits {
        outcome.found();
    }
    Ok(outcome)
}

/// Does it, and gives what came of it and whether the story has to wait.
fn act(
    lead: &Lead,
    state: &mut PipelineState,
    checkpoint: Option<&StoryCheckpoint>,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(String, bool), Error> {
    let mut waits = false;
    let line = match (lead, checkpoint) {
        (Lead::Begin { story, stage }, _) => {
            let worker = state.begin_story(story, *stage, now)?;
            format!("{story} begins with stage {stage}; its worker is {worker}")
        }
        (Lead::Crashed { story }, _) => match state.crashed(story)? {
            AfterCrash::Respawn { name, attempt } => {
                format!("{story}: start the worker {name} anew (start {attempt} after a crash)")
            }
            _ => format!("{story} is paused: its worker crashed again"),
        },
        (Lead::Record { story }, Some(checkpoint)) => {
            let next = state.record(story, checkpoint, now)?;
            waits = matches!(next, NextStep::Wait(_));
            let waiting = if waits { " waits" } else { "" };
            format!("{story}{waiting}: {next}")
        }
        (Lead::Finish { story: Some(story) }, Some(checkpoint)) => {
            let next = state.record(story, checkpoint, now)?;
            if !matches!(next, NextStep::Finish | NextStep::Pause(_)) {
                return Err(Error::refused(format!("{story} is not at its end: {next}")));
            }
            format!("{story}: {next}")
        }
        _ => {
            state.finish()?;
            "the pipeline is complete".to_owned()
        }
    };
    Ok((line, waits))
}

/// The checkpoint of a story, which its worker has written beside the state.
fn story_beside(state: &Path, story: &str, global: &Global) -> Result<StoryCheckpoint, Failure> {
    let name = (StoryCheckpoint::layout().file_name)(&Key::new(story)?)?;
    let path: PathBuf = state.with_file_name(name);
    let document =
        read_document(&path, global.max_bytes)?.ok_or_else(|| read::no_such_file(&path))?;
    let current = formats::read::<StoryCheckpoint>(&document);
    let reading = current.map_err(|error| error.with_path(&path))?.reading;
    // What could not be read may be what the story waits for.
    if let Some(found) = reading.is_partial().then(|| reading.violations.first()) {
        let found = found.map(ToString::to_string).unwrap_or_default();
        return Err(Failure::from(
            Error::refused(format!("parts of the checkpoint cannot be read: {found}"))
                .with_path(&path),
        ));
    }
    Ok(reading.value)
}
