//! The context of a checkpoint, from the command line.

use std::path::Path;

use agent_checkpoint::formats;
use agent_checkpoint::formats::FileRole;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::store::read_document;
use agent_checkpoint::{Checkpoint, Error, ExecutionSpec, RuleContext};

use crate::args::{Global, Known};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::read;

/// What a plan of a build looks like.
const SPEC: &str =
    r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "…"}]}], "gates": ["…"]}"#;

/// What was given, read.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) spec: Option<ExecutionSpec>,
    pub(crate) story_state: Option<String>,
    pub(crate) state: Option<PipelineState>,
}

impl Given {
    /// What the options name.
    pub(crate) fn read(known: &Known, global: &Global) -> Result<Given, Failure> {
        let (spec, state) = (known.spec.as_deref(), known.state.as_deref());
        Ok(Given {
            spec: spec.map(|path| spec_of(path, global)).transpose()?,
            story_state: known.story_state.clone(),
            state: state.map(|path| state_of(path, global)).transpose()?,
        })
    }

    /// For a judgement of this file.
    pub(crate) fn context(&self, path: &Path, document: &Document) -> RuleContext<'_> {
        let mut context = match (&self.state, story_of(path, document)) {
            (Some(state), Some(story)) => state.context(&story),
            _ => RuleContext::none(),
        };
        context.execution_spec = self.spec.as_ref();
        if let Some(state) = &self.story_state {
            context = context.with_story_state(state);
        }
        context
    }

    /// Notes which given inputs do not apply to a file of this format.
    pub(crate) fn say_unused(&self, file: &Path, format: &str, outcome: &mut Outcome) {
        for (option, is_given, judged) in [
            ("--spec", self.spec.is_some(), BuildCheckpoint::FORMAT),
            (
                "--story-state",
                self.story_state.is_some(),
                StoryCheckpoint::FORMAT,
            ),
        ] {
            if is_given && format != judged {
                note_unused(option, judged, file, format, outcome);
            }
        }
        if self.state.is_some() {
            say_unused_state(file, format, outcome);
        }
    }

    /// Says that the pipeline's state does not have the story of this file.
    pub(crate) fn say_unknown(
        &self,
        file: &Path,
        document: &Document,
        format: &str,
        outcome: &mut Outcome,
    ) {
        if let Some(state) = &self.state {
            say_unknown(state, file, document, format, outcome);
        }
    }
}

/// Notes that a pipeline's state lacks the story of a file, so it does not apply.
pub(crate) fn say_unknown(
    state: &PipelineState,
    file: &Path,
    document: &Document,
    format: &str,
    outcome: &mut Outcome,
) {
    let story = story_of(file, document);
    let is_known = story
        .as_ref()
        .is_some_and(|story| state.story_state.contains_key(story));
    if format == StoryCheckpoint::FORMAT && !is_known {
        let (place, story) = (file.display(), story.as_deref().unwrap_or("(no id)"));
        outcome.note(format!(
            "{place}: the pipeline's state does not say where the story {story} is"
        ));
    }
}

/// Notes that a pipeline's state does not apply to a file of this format.
pub(crate) fn say_unused_state(file: &Path, format: &str, outcome: &mut Outcome) {
    if format != StoryCheckpoint::FORMAT {
        note_unused("--state", StoryCheckpoint::FORMAT, file, format, outcome);
    }
}

fn note_unused(option: &str, judged: &str, file: &Path, format: &str, outcome: &mut Outcome) {
    let place = file.display();
    outcome.note(format!(
        "{place}: {option} judges {judged} only, and this is {format}"
    ));
}

/// The story that a file is of: by its content, else by its name.
fn story_of(path: &Path, document: &Document) -> Option<String> {
    let mut ids = ["/storyId", "/story_id"]
        .into_iter()
        .filter_map(|pointer| Some(document.get(pointer)?.as_str()?.into_owned()));
    ids.next().or_else(|| {
        let name = path.file_name()?.to_str()?;
        match (StoryCheckpoint::layout().role)(name) {
            FileRole::Current(key) => key.map(|key| key.to_string()),
            _ => None,
        }
    })
}

/// What a story's checkpoint is judged by in its pipeline's state.
const JUDGING: [&str; 4] = [
    "/story_state",
    "/quality_cycles",
    "/validation_retries",
    "/crash_count",
];

/// The state of a pipeline, from its file.
pub(crate) fn state_of(path: &Path, global: &Global) -> Result<PipelineState, Failure> {
    read_state(path, "mend it, or leave --state out", global)
}

fn read_state(path: &Path, advice: &str, global: &Global) -> Result<PipelineState, Failure> {
    let place = path.display();
    let document = read::checkpoint(path, global)?.ok_or_else(|| read::no_such_file(path))?;
    if PipelineState::recognise(path, Some(&document)).is_none() {
        return Err(Failure::new(format!(
            "{place}: is no state of a pipeline, such as .pipeline/state.json; name that with --state"
        )));
    }
    let reading = formats::read::<PipelineState>(&document)
        .map_err(|error| error.with_path(path))?
        .reading;
    // A count that cannot be read is not zero.
    let unreadable = reading.violations.iter().find(|found| {
        let judges = |member: &&str| found.pointer.starts_with(*member);
        found.code != Code::DUPLICATE_KEY && JUDGING.iter().any(judges)
    });
    match unreadable {
        Some(found) => Err(Failure::new(format!(
            "{place}: {}: {}; {advice}",
            found.pointer, found.message
        ))),
        None => Ok(reading.value),
    }
}

/// The state of a story's pipeline, which the protocol keeps beside the story's checkpoint; `None` where there is none, or it
/// does not say where the story is.
pub(crate) fn state_beside(
    path: &Path,
    format: &str,
    global: &Global,
) -> Result<Option<PipelineState>, Failure> {
    let state = path.with_file_name("state.json");
    if format != StoryCheckpoint::FORMAT || !state.exists() {
        return Ok(None);
    }
    let of_another_tool = read_document(&state, global.max_bytes)?
        .is_none_or(|document| PipelineState::recognise(&state, Some(&document)).is_none());
    if of_another_tool {
        return Ok(None);
    }
    let state = read_state(&state, "mend it first", global)?;
    let story = match read_document(path, global.max_bytes) {
        Ok(Some(document)) => story_of(path, &document),
        _ => None,
    };
    let knows = story.is_some_and(|story| state.story_state.contains_key(&story));
    Ok(knows.then_some(state))
}

/// Refuses a change of a pipeline's file inside of a worktree, where no lead looks for it.
pub(crate) fn refuse_worktree(path: &Path, format: &str, global: &Global) -> Result<(), Failure> {
    if ![StoryCheckpoint::FORMAT, PipelineState::FORMAT].contains(&format) {
        return Ok(());
    }
    let whole = std::path::absolute(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let folder = whole
        .parent()
        .filter(|folder| folder.ends_with(".pipeline"));
    let Some(root) = folder.and_then(Path::parent) else {
        return Ok(());
    };
    let git = root.ancestors().map(|above| above.join(".git"));
    let nearest = git.into_iter().find(|git| git.exists());
    // The file of a worktree leads to a folder among those of the repository; that of a submodule does not.
    let is_worktree = nearest.is_some_and(|git| {
        let text = std::fs::read_to_string(git).unwrap_or_default();
        text.replace('\\', "/").contains("/worktrees/")
    });
    if path.is_relative() && is_worktree {
        let error = Error::refused(
            "the path is relative, and this is a git worktree: its .pipeline is not the one that the lead reads; name \
             the checkpoint by its absolute path",
        );
        return Err(error.with_path(path).into());
    }
    // An unreadable state says nothing about worktrees here; the caller that needs it reports the error.
    let state = read_document(&whole.with_file_name("state.json"), global.max_bytes);
    if let Ok(Some(document)) = state
        && let Ok(current) = formats::read::<PipelineState>(&document)
    {
        current.reading.value.check_root(root)?;
    }
    Ok(())
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
