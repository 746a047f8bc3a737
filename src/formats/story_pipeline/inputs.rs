//! The inputs that the rules of a story take from the state of its pipeline.

use std::path::{Path, PathBuf};

use super::layout::{STATE_FILE, absolute, root_of};
use super::{Counters, PipelineState, StoryCheckpoint, StoryState};
use crate::checkpoint::{
    Activity, Checkpoint, CheckpointFile, Error, FileRole, Given, Input, InputKind, Inputs,
    Operation, Report, Result, RuleContext, Supervised, read,
};
use crate::json::{Code, Document};

const STATES: &[&str] = &[
    "QUEUED", "STAGE_0", "STAGE_1", "STAGE_2", "STAGE_3", "DONE", "PAUSED",
];

pub(super) const INPUTS: &[Input] = &[
    Input::new(
        "story-state",
        InputKind::OneOf(STATES),
        "The state of the story in its pipeline's state",
        &["validate", "resume"],
    ),
    Input::new(
        "state",
        InputKind::File,
        "The pipeline's state, such as .pipeline/state.json: where the story is, and how often it was tried again",
        &["validate", "resume"],
    )
    .excluding(&["story-state"]),
    Input::new(
        "state",
        InputKind::File,
        "The pipeline's state: limits how often the stages of a story are tried again [default: the state.json beside it]",
        &["stage", "batch"],
    ),
];

/// The pipeline that a story belongs to: an input of the story's rules.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pipeline {
    /// The state of the pipeline.
    pub state: PipelineState,
    /// The project's root, which the prompt of a new worker names.
    pub root: Option<PathBuf>,
    /// The story id in the name of the checkpoint's file.
    story: Option<String>,
}

impl Pipeline {
    /// A pipeline in this state.
    #[must_use]
    pub fn new(state: PipelineState) -> Self {
        Pipeline {
            state,
            root: None,
            story: None,
        }
    }

    /// Sets the project's root.
    #[must_use]
    pub fn in_project(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    fn of(state: PipelineState, file: &CheckpointFile<'_>) -> Result<Self> {
        let path = absolute(file.path)?;
        Ok(Pipeline {
            state,
            // The protocol keeps its files in `.pipeline` in the project's root.
            root: match (root_of(&path), file.root) {
                (Some(root), _) => Some(root.to_path_buf()),
                (None, root) => root.map(absolute).transpose()?,
            },
            story: story_in_name(&path),
        })
    }

    /// The story's id, if the pipeline's state lists it.
    fn id<'a>(&'a self, story: &'a StoryCheckpoint, context: &RuleContext<'a>) -> Option<&'a str> {
        // The key is that of this checkpoint. The name is used last, since a scan shares the pipeline of the first
        // story with all stories beside it.
        let id = story.story().or(context.key.map(|key| key.as_str()));
        let id = id.or(self.story.as_deref())?;
        self.state.story_state.contains_key(id).then_some(id)
    }
}

/// The pipeline of a story, and the story's id in it.
pub(super) fn pipeline<'a>(
    story: &'a StoryCheckpoint,
    context: &RuleContext<'a>,
) -> Option<(&'a Pipeline, &'a str)> {
    let pipeline = context.input::<Pipeline>()?;
    Some((pipeline, pipeline.id(story, context)?))
}

/// The state of the story in its pipeline.
pub(super) fn state<'a>(
    story: &'a StoryCheckpoint,
    context: &RuleContext<'a>,
) -> Option<&'a StoryState> {
    context.input().or_else(|| {
        let (pipeline, id) = pipeline(story, context)?;
        pipeline.state.story_state.get(id)
    })
}

/// How often the story was retried.
pub(super) fn counters(story: &StoryCheckpoint, context: &RuleContext<'_>) -> Option<Counters> {
    context.input().copied().or_else(|| {
        let (pipeline, id) = pipeline(story, context)?;
        Some(pipeline.state.counters(id))
    })
}

/// The counters as they were before the lead granted this stage. A counter counts grants, so a story at its limit may
/// still enter the stage that the pipeline has it in.
pub(super) fn before_granted(
    story: &StoryCheckpoint,
    context: &RuleContext<'_>,
    stage: u8,
) -> Counters {
    let mut counters = counters(story, context).unwrap_or_default();
    let state = state(story, context);
    if state.and_then(|state| state.stage()) == Some(stage) {
        let counter = match stage {
            1 => &mut counters.validation_retries,
            _ => &mut counters.quality_cycles,
        };
        *counter = counter.saturating_sub(1);
    }
    counters
}

pub(super) fn take(given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    if let Some(state) = given.text("story-state") {
        inputs = inputs.with(StoryState::from(state));
    }
    if let Some(path) = given.file("state") {
        let document = file.read_named(path)?;
        if PipelineState::recognise(path, Some(&document)).is_none() {
            return Err(Error::wrong_input(
                "is not the state of a pipeline, such as .pipeline/state.json; name one with --state",
            )
            .with_path(path));
        }
        let state = read_state(path, &document, file, "correct it, or omit --state")?;
        let pipeline = Pipeline::of(state, file)?;
        let inside = (file.read)(file.path).ok().flatten();
        let story = inside
            .and_then(|document| Some(read::<StoryCheckpoint>(&document).ok()?.reading.value));
        let id = story.as_ref().and_then(|story| story.story());
        let id = id.or(pipeline.story.as_deref());
        if id.is_none_or(|id| !pipeline.state.story_state.contains_key(id)) {
            inputs = inputs.with_note(format!(
                "the pipeline's state does not say where the story {} is",
                id.unwrap_or("(no id)")
            ));
        }
        inputs = inputs.with(pipeline);
    }
    Ok(inputs)
}

/// Reads the pipeline's state beside the story's checkpoint; another tool's file is ignored.
pub(super) fn beside(file: &CheckpointFile<'_>, report: Option<&Report>) -> Result<Inputs> {
    let is_judged = |report: &Report| {
        use Operation::{Complete, Stage};
        !report.force && matches!(report.operation, Stage { .. } | Complete)
    };
    let path = file.path.with_file_name(STATE_FILE);
    if report.is_some_and(|report| !is_judged(report)) {
        return Ok(Inputs::default());
    }
    let document = (file.read)(&path)?;
    let ours = document.filter(|it| PipelineState::recognise(&path, Some(it)).is_some());
    let Some(document) = ours else {
        return Ok(Inputs::default());
    };
    let state = read_state(&path, &document, file, "mend it first")?;
    Ok(Inputs::default().with(Pipeline::of(state, file)?))
}

/// The members of the pipeline's state by which a story's checkpoint is judged.
const JUDGING: [&str; 4] = [
    "/story_state",
    "/quality_cycles",
    "/validation_retries",
    "/crash_count",
];

fn read_state(
    path: &Path,
    document: &Document,
    file: &CheckpointFile<'_>,
    advice: &str,
) -> Result<PipelineState> {
    let reading = read::<PipelineState>(document)
        .map_err(|error| error.with_path(path))?
        .reading;
    // A count that cannot be read must not count as zero.
    let unreadable = reading.violations.iter().find(|found| {
        let judges = |member: &&str| found.pointer.starts_with(*member);
        found.code != Code::DUPLICATE_KEY && JUDGING.iter().any(judges)
    });
    match unreadable.filter(|_| !file.lenient) {
        Some(found) => Err(Error::wrong_input(format!(
            "{}: {}; {advice}",
            found.pointer, found.message
        ))
        .with_path(path)),
        None => Ok(reading.value),
    }
}

fn story_in_name(path: &Path) -> Option<String> {
    match (StoryCheckpoint::layout().role)(path.file_name()?.to_str()?) {
        FileRole::Current(key) => key.map(|key| key.to_string()),
        _ => None,
    }
}

/// Adds what only the pipeline's state knows of a story: its worker, when its stage began, the lead's heartbeat, and
/// whether the story waits or is over.
pub(super) fn supervised(
    story: &StoryCheckpoint,
    context: &RuleContext<'_>,
    judged: &mut Supervised,
) -> Option<String> {
    let whole = &context.input::<Pipeline>()?.state;
    let pulse = judged.pulse.clone();
    judged.pulse = pulse.with_heartbeat(whole.last_check.clone());
    let (_, id) = pipeline(story, context)?;
    if judged.handoff.agent.is_none() {
        judged.handoff.agent = whole.worker_map.get(id).cloned();
    }
    let is_begun = !story.completed().is_empty();
    if let Some(times) = whole.stage_timestamps.get(id).filter(|_| is_begun) {
        let elapsed = times.duration(2, context.now.unwrap_or_default());
        judged.progress = judged.progress.with_times(elapsed, None);
    }
    let state = whole.story_state.get(id)?;
    match state {
        StoryState::Paused | StoryState::Queued => judged.pulse.activity = Activity::Waiting,
        StoryState::Done => judged.pulse.activity = Activity::Finished,
        _ => {}
    }
    let fits = story.stage_number().is_none_or(|stage| state.fits(stage));
    (!fits).then(|| state.as_str().to_owned())
}
