//! A worker: one process, which works on one task until the task is complete, the worker dies, or another worker has
//! the task.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{AsyncRecorder, AsyncStep, Ran, RecorderOptions, RunError};
use agent_checkpoint::{Error, ErrorKind, Key, Precision, StepDone};

use super::{Result, tasks};

/// The exit code of a worker whose task another worker has.
pub(super) const TAKEN_OVER: i32 = 4;

/// The exit code of a worker that could not lock the checkpoint.
pub(super) const LOCKED: i32 = 5;

/// How long the model behind a real agent takes for a step.
const PER_STEP: Duration = Duration::from_millis(150);

pub(super) async fn work(name: &str, task: &str, root: &Path) -> ExitCode {
    let code = match try_work(name, task, root).await {
        Ok(Ran::Finished | Ran::Stopped) => 0,
        Ok(Ran::Left(found)) => {
            eprintln!("{name}: {}", found.resume.plan.message);
            1
        }
        Err(error) if error.is_taken_over() => TAKEN_OVER,
        Err(RunError::Record(error)) if matches!(error.kind(), ErrorKind::Locked { .. }) => LOCKED,
        Err(error) => {
            eprintln!("{name}: {error}");
            1
        }
    };
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

type Worked = std::result::Result<Ran<TaskCheckpoint>, RunError<Box<dyn std::error::Error>>>;

async fn try_work(name: &str, task: &str, root: &Path) -> Worked {
    let view = tasks::in_project(root, name);
    let key = Key::new(task)?;
    let first = TaskCheckpoint::begin(name, tasks::plan(), view.now())
        // This worker is quick: whole seconds would be too coarse to see whether it hangs.
        .with_precision(Precision::MILLISECONDS);
    let options = RecorderOptions::new(name)
        .resuming_with(tasks::resuming(root))
        // The orchestrator decides who has a task; the worker before is dead or hangs.
        .taking_over();
    let mut before = None;
    let ran = AsyncRecorder::run(&view, &key, options, &first, |step| {
        // Called for this step, so the previous one is saved.
        let before = before.replace(step.text.clone());
        do_step(name, &key, root, step, before)
    })
    .await?;
    if let (Ran::Finished, Some(last)) = (&ran, before) {
        tasks::note_saved(root, &key, &last)
            .map_err(|error| Error::new(ErrorKind::Io).with_source(error))?;
    }
    Ok(ran)
}

async fn do_step(
    name: &str,
    task: &Key,
    root: &Path,
    step: AsyncStep<TaskCheckpoint>,
    before: Option<String>,
) -> Result<StepDone> {
    match before {
        Some(before) => tasks::note_saved(root, task, &before)?,
        // A model would get the prompt; this worker only checks that its step is in it.
        None => {
            let prompt = fs::read_to_string(tasks::prompt_of(root, name))?;
            if !prompt.contains(&step.text) {
                return Err(
                    format!("the prompt does not speak of {}:\n{prompt}", step.text).into(),
                );
            }
        }
    }
    if tasks::is_saved(root, task, &step.text)? {
        return Err(format!("{} was saved as done, and is to be done again", step.text).into());
    }
    tokio::time::sleep(PER_STEP).await;
    // An earlier agent may have done it and died before its checkpoint said so.
    match File::create_new(tasks::effect_of(root, task, &step.text)) {
        Ok(effect) => effect.sync_all()?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    Ok(StepDone::current())
}
