//! `ckpt start`: a checkpoint for a task that begins.

use agent_checkpoint::formats::builder_state;
use agent_checkpoint::{Begun, Checkpoint, ResumeOptions, TaskCheckpoint};

use super::show::view;
use crate::address::Target;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::{count, resume, saved};

pub(super) fn run(plan: &[String], global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    if ![TaskCheckpoint::FORMAT, builder_state::FORMAT].contains(&target.format.name) {
        return Err(Failure::new(format!(
            "{}: `start` begins checkpoints of the formats {} and {} only; of {} the first is written by its \
             pipeline, or made from another format with `ckpt convert --to {} FILE --out {0}`",
            target.path.display(),
            TaskCheckpoint::FORMAT,
            builder_state::FORMAT,
            target.format.name,
            target.format.name
        )));
    }
    let checkpoints = target.checkpoints::<TaskCheckpoint>(global);
    let at = |error| target.error(error);
    let agent = global.agent.as_deref().unwrap_or("ckpt");
    let checkpoint = TaskCheckpoint::begin(agent, plan, super::now(global));
    match checkpoints.begin(&target.key, &checkpoint).map_err(at)? {
        Begun::Created(created) => {
            let mut outcome = Outcome::new();
            let place = match &target.slot {
                Some(slot) => format!("{}, slot {slot}", target.path.display()),
                None => target.path.display().to_string(),
            };
            let line = format!(
                "started {place} for {agent}: {}",
                match plan {
                    [] => "no plan yet".to_owned(),
                    [first, ..] => format!("{}, first: {first}", count(plan.len(), "step")),
                }
            );
            saved::report(&mut outcome, global, &created, &[line]);
            Ok(outcome)
        }
        _ => already_there(&target, global),
    }
}

/// Shows the checkpoint that is there, with its resume verdict.
fn already_there(target: &Target, global: &Global) -> Result<Outcome, Failure> {
    let view = view(target, global)?;
    let options = ResumeOptions::new(&global.root);
    let resume = super::resume::of::<TaskCheckpoint>(target, &options, global)?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&serde_json::json!({
            "outcome": "already-there",
            "checkpoint": view.shown(),
            "plan": resume.plan,
        }));
    } else {
        view.print(&mut outcome, global);
        let plan = &resume.plan;
        outcome.line(format!(
            "Resume      {} — {}",
            plan.decision.as_str(),
            plan.message
        ));
    }
    resume::explain(&mut outcome, &resume.plan);
    outcome.note(format!(
        "{}: a checkpoint is already here, and was not touched; go on from it with `ckpt resume`, \
         or put it aside first",
        target.path.display()
    ));
    outcome.found();
    Ok(outcome)
}
