//! `ckpt start`: the first checkpoint of a task.

use agent_checkpoint::formats::{FileRole, Start};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{Saved, read_document};
use agent_checkpoint::{ErrorKind, Handoff, RuleContext};

use super::show::view;
use crate::address::Target;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::inputs;
use crate::output::Outcome;
use crate::report::{count, plan, resume, saved};

pub(super) fn run(plan: &[String], global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_begin(global)?;
    let first = first(&target, plan, global)?;
    let Some(created) = begin(&target, &first, global)? else {
        return already_there(&target, global);
    };
    let mut outcome = Outcome::new();
    let place = match &target.slot {
        Some(slot) => format!("{}, slot {slot}", target.path.display()),
        None if target.is_in_file() => target.path.display().to_string(),
        None => format!("{}, key {}", target.path.display(), target.key),
    };
    let Handoff {
        agent,
        task,
        pending,
        ..
    } = handoff(&target, &first)?;
    let is_unnamed = global.agent.is_none() && agent.as_deref() == Some("ckpt");
    let owner = agent.or(task).or(global.agent.clone());
    let line = format!(
        "started {place}{}: {}",
        owner.map_or_else(String::new, |owner| format!(" for {owner}")),
        match pending.as_slice() {
            [] if target.format.operations().contains(&"step add") => {
                "no plan yet; `ckpt step add TEXT` adds a step".to_owned()
            }
            [] => "no plan yet".to_owned(),
            [first, ..] => format!("{}, first: {first}", count(pending.len(), "step")),
        }
    );
    saved::report(&mut outcome, &target, global, &created, &[line]);
    if is_unnamed {
        outcome
            .note("no agent was named; name yourself in each report, with --agent or CKPT_AGENT");
    }
    for note in plan::twice(&pending) {
        outcome.note(note);
    }
    Ok(outcome)
}

/// Saves a first checkpoint; `None` if there is a checkpoint already.
pub(super) fn begin(
    target: &Target,
    first: &Document,
    global: &Global,
) -> Result<Option<Saved>, Failure> {
    let checkpoints = target.any_checkpoints(global);
    checkpoints
        .begin(&target.key, first)
        .map_err(|error| target.error(error))
}

/// The hand-off of a first checkpoint.
pub(super) fn handoff(target: &Target, first: &Document) -> Result<Handoff, Failure> {
    let begun = target.format.inspect(first, &RuleContext::none());
    Ok(begun.map_err(|error| target.error(error))?.handoff)
}

/// The first checkpoint of a task with this plan. The caller may save it there, unless there is one already.
pub(super) fn first(
    target: &Target,
    plan: &[String],
    global: &Global,
) -> Result<Document, Failure> {
    refuse_unused(target, global)?;
    let at = |error| target.error(error);
    let read = inputs::reader(global);
    let file = target.as_file(&read, global);
    let mut start = Start::new(&target.key, plan, &global.given, file, global.now());
    start.key_is_named = global.key.is_some();
    start.agent = global.agent.as_deref();
    start.session = global.session.as_deref();
    // There is no state yet that could refuse it.
    let first = target
        .format
        .start(&start)
        .map_err(|error| match error.kind() {
            ErrorKind::Refused { .. } => Failure {
                exit: Exit::Failed,
                code: "usage",
                ..at(error)
            },
            _ => at(error),
        })?;
    refuse_other_name(target, &first, global)?;
    refuse_second_file(target)?;
    Ok(first)
}

/// Fails if an option is given that the format has no place for.
fn refuse_unused(target: &Target, global: &Global) -> Result<(), Failure> {
    match inputs::unused(&target.format, global).next() {
        None => Ok(()),
        Some(name) => Err(Failure::new(format!(
            "{}: a first checkpoint of {} cannot record --{name}; omit --{name}",
            target.path.display(),
            target.format.name()
        ))),
    }
}

/// Fails if another file of the folder has the checkpoint of this key under another name.
fn refuse_second_file(target: &Target) -> Result<(), Failure> {
    let layout = target.format.layout();
    let (Some(key_in), Some(_)) = (layout.key_in, target.files()) else {
        return Ok(());
    };
    let (Some(folder), Some(own)) = (target.path.parent(), target.path.file_name()) else {
        return Ok(());
    };
    // Only files with a similar name are read, because a folder may have thousands of files.
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let own_name = own.to_string_lossy();
    let stem = plain(own_name.trim_end_matches(".json"));
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    for name in names.filter(|name| *name != own_name && plain(name).starts_with(&stem)) {
        let path = folder.join(&name);
        if !name.ends_with(".json") || (layout.role)(&name) == FileRole::Archive {
            continue;
        }
        let Ok(Some(document)) = read_document(&path, MOST_OF_OTHER) else {
            continue;
        };
        let is_ours = key_in(&document)
            .and_then(|key| (layout.file_name)(&key).ok())
            .is_some_and(|usual| usual == own_name)
            && target.format.recognise(&path, Some(&document)).is_some();
        if is_ours {
            let path = path.display();
            return Err(Failure::exiting(
                Exit::Refused,
                format!(
                    "{}: the checkpoint of {} is in {path} already, and a second file would be a second checkpoint \
                     of it; continue with that one (--store {path}), or rename it first",
                    target.path.display(),
                    target.key
                ),
            ));
        }
    }
    Ok(())
}

/// How many bytes of another file are read to find its key.
const MOST_OF_OTHER: u64 = 1 << 20;

/// Fails if the key in a folder is not the key in the checkpoint itself.
fn refuse_other_name(target: &Target, first: &Document, global: &Global) -> Result<(), Failure> {
    let layout = target.format.layout();
    let (Some(key), Some(key_in)) = (&global.key, layout.key_in) else {
        return Ok(());
    };
    let Some(own) = key_in(first) else {
        return Ok(());
    };
    let name = (layout.file_name)(&own)?;
    let is_it = match target.is_in_file() {
        true => target
            .path
            .file_name()
            .is_some_and(|path| path == name.as_str()),
        false => own == target.key,
    };
    if is_it {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: the checkpoint would have the key {own}, but --key says {key}; make them agree",
        target.path.display()
    )))
}

/// Shows the existing checkpoint with its resume verdict.
fn already_there(target: &Target, global: &Global) -> Result<Outcome, Failure> {
    let ledger = target.ledger(global).state();
    let view = view(target, &ledger, global)?;
    let options = super::resume::options(global);
    let resume = super::resume::of(target, &options, global)?;
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
        "{}: a checkpoint exists here and was not changed; continue from it with `ckpt resume`, or archive it first: \
         `ckpt archive`, with `--as aborted` if it is not finished",
        target.place()
    ));
    outcome.found();
    Ok(outcome)
}
