//! `ckpt step`: a step begins or is finished.

use agent_checkpoint::TaskCheckpoint;
use agent_checkpoint::formats::task::{SourceFiles, StepDone, StepStarted};

use crate::address::Target;
use crate::args::{Global, Step};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::saved;

pub(super) fn run(step: &Step, global: &Global) -> Result<Outcome, Failure> {
    match step {
        Step::Start { text } => start(text, global),
        Step::Done {
            text,
            pending,
            created,
            modified,
        } => {
            let mut outcome = Outcome::new();
            let mut done = StepDone::default();
            done.text.clone_from(text);
            done.pending.clone_from(pending);
            done.files_created = sources(created, &mut outcome);
            done.files_modified = sources(modified, &mut outcome);
            finish(&done, outcome, global)
        }
    }
}

/// The source files among those given; the others are named.
fn sources(files: &[String], outcome: &mut Outcome) -> Vec<String> {
    let (taken, left_out) = SourceFiles::default().sort(files.iter().map(String::as_str));
    for file in left_out {
        outcome.note(format!(
            "{file} is no source file (a tool made it, by its folder); it is not recorded"
        ));
    }
    taken
}

fn start(text: &str, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    target.require_file()?;
    let now = super::now(global);
    let mut started = StepStarted::Begun;
    let saved = target
        .checkpoints(global)
        .update(&target.key, |task| started = task.start_step(text, now))
        .map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if let StepStarted::InsteadOf(step) = started {
        let description = step.description.unwrap_or_default();
        let note = match step.partial_work {
            Some(note) => format!("; its partial work was: {note}"),
            None => String::new(),
        };
        outcome.note(format!("{description:?} was put back in the plan{note}"));
    }
    let line = match saved.outcome {
        agent_checkpoint::Outcome::Unchanged => format!("already in progress: {text}"),
        _ => format!("started: {text}"),
    };
    saved::report(&mut outcome, global, &saved, &line);
    Ok(outcome)
}

fn finish(done: &StepDone, mut outcome: Outcome, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    target.require_file()?;
    let now = super::now(global);
    let mut line = String::new();
    let saved = target
        .checkpoints(global)
        .try_update(&target.key, |task| {
            task.finish_step(done, now)?;
            line = what_is_left(task);
            Ok(())
        })
        .map_err(|error| target.error(error))?;
    saved::report(&mut outcome, global, &saved, &line);
    Ok(outcome)
}

/// What was finished and what is left.
fn what_is_left(task: &TaskCheckpoint) -> String {
    let last = task.completed_steps.last();
    let done = last.and_then(|step| step.step.as_deref()).unwrap_or("step");
    let current = task.current_step.as_ref();
    let current = current.and_then(|step| step.description.as_deref());
    let next = match (current, task.pending_steps.first()) {
        (Some(current), _) => format!("in progress: {current}"),
        (None, Some(next)) => format!("next: {next}"),
        (None, None) => "nothing is left".to_owned(),
    };
    format!("done: {done}; {} pending, {next}", task.pending_steps.len())
}
