//! The verbs of a pipeline's lead.

use crate::checkpoint::{Checkpoint, Error, Input, InputKind, Key, Result, read};
use crate::formats::{OwnVerb, VerbCall, VerbDone};

use super::super::{NextStep, StoryCheckpoint};
use super::{AfterCrash, PipelineState};

const ABOUT: &str =
    "Report what the lead of a pipeline does; --store is .pipeline/state.json or its folder";

const STORY: Input = Input::new("STORY", InputKind::Argument(true), "The story", &[]);

pub(crate) const VERBS: &[OwnVerb] = &[
    OwnVerb::new(
        "lead begin",
        "A story that waits begins",
        &[
            STORY,
            Input::new(
                "stage",
                InputKind::Number(0, 3),
                "The stage that it begins with; those before are skipped [default: 0]",
                &[],
            ),
        ],
        begin,
    )
    .in_group(ABOUT),
    OwnVerb::new(
        "lead record",
        "A stage of a story is at its end: move the story on, as the checkpoint of its worker says, and print what follows\n\n\
         Exit 1 when the story has to wait; nothing is changed then.",
        &[STORY],
        record,
    )
    .in_group(ABOUT),
    OwnVerb::new(
        "lead crashed",
        "A story's worker crashed and cannot be resumed: it is restarted once, then the story is paused",
        &[STORY],
        crashed,
    )
    .in_group(ABOUT),
    OwnVerb::new(
        "lead finish",
        "A story is at its end, or without STORY the pipeline is",
        &[Input::new("STORY", InputKind::Argument(false), "The story", &[])],
        finish,
    )
    .in_group(ABOUT),
];

fn begin(call: &VerbCall<'_>) -> Result<VerbDone> {
    let stage = call.given.number("stage").unwrap_or(0);
    let stage = u8::try_from(stage).unwrap_or(u8::MAX);
    change(call, |state, story| {
        let worker = state.begin_story(story, stage, call.now)?;
        Ok((
            format!("{story} begins with stage {stage}; its worker is {worker}"),
            false,
        ))
    })
}

fn crashed(call: &VerbCall<'_>) -> Result<VerbDone> {
    change(call, |state, story| {
        let line = match state.crashed(story)? {
            AfterCrash::Respawn { name, attempt } => {
                format!("{story}: restart the worker {name} (restart {attempt} after a crash)")
            }
            AfterCrash::Pause => format!("{story} is paused: its worker crashed again"),
        };
        Ok((line, false))
    })
}

fn record(call: &VerbCall<'_>) -> Result<VerbDone> {
    let checkpoint = story_beside(call)?;
    change(call, |state, story| {
        let next = state.record(story, &checkpoint, call.now)?;
        let waits = matches!(next, NextStep::Wait { .. });
        let waiting = if waits { " waits" } else { "" };
        Ok((format!("{story}{waiting}: {next}"), waits))
    })
}

fn finish(call: &VerbCall<'_>) -> Result<VerbDone> {
    if !call.given.has("STORY") {
        return change(call, |state, _| {
            state.finish(false)?;
            Ok(("the pipeline is complete".to_owned(), false))
        });
    }
    let checkpoint = story_beside(call)?;
    change(call, |state, story| {
        let next = state.record(story, &checkpoint, call.now)?;
        if !matches!(next, NextStep::Finish | NextStep::Pause { .. }) {
            return Err(Error::refused(format!("{story} is not at its end: {next}")));
        }
        Ok((format!("{story}: {next}"), false))
    })
}

/// Runs the action in one update; returns its message and whether the story has to wait.
fn change(
    call: &VerbCall<'_>,
    act: impl Fn(&mut PipelineState, &str) -> Result<(String, bool)>,
) -> Result<VerbDone> {
    let story = call.given.text("STORY").unwrap_or_default();
    let mut done = (String::new(), false);
    let view = call.view.of::<PipelineState>();
    let saved = view.try_update(call.key, |state| {
        done = act(state, story)?;
        Ok(())
    })?;
    Ok(VerbDone::new(done.0, saved).with_waits(done.1))
}

/// Reads the checkpoint that a story's worker wrote beside the state.
fn story_beside(call: &VerbCall<'_>) -> Result<StoryCheckpoint> {
    let story = call.given.text("STORY").unwrap_or_default();
    let path = call
        .file
        .path
        .with_file_name((StoryCheckpoint::layout().file_name)(&Key::new(story)?)?);
    let document = call.file.read_named(&path)?;
    let current = read::<StoryCheckpoint>(&document);
    let reading = current.map_err(|error| error.with_path(&path))?.reading;
    // The story may wait for a part that could not be read.
    if let Some(found) = reading.is_partial().then(|| reading.violations.first()) {
        let found = found.map(ToString::to_string).unwrap_or_default();
        let message = format!("parts of the checkpoint cannot be read: {found}");
        return Err(Error::refused(message).with_path(&path));
    }
    Ok(reading.value)
}
