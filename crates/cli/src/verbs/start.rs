//! `ckpt start`: a checkpoint for a task that begins.

use std::path::Path;

use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{FileRole, builder_state};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::read_document;
use agent_checkpoint::{Begun, Checkpoint, Error};

use super::show::view;
use crate::address::Target;
use crate::args::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::given::spec_of;
use crate::output::Outcome;
use crate::report::{count, plan, resume, saved};

/// What is begun.
pub(super) struct What<'a> {
    pub(super) plan: &'a [String],
    pub(super) task: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) spec: Option<&'a Path>,
    /// The revision of the protocol.
    pub(super) revision: u8,
    pub(super) agent_name: Option<&'a str>,
    pub(super) criteria: &'a [String],
    pub(super) total: Option<u32>,
    pub(super) contract: Option<&'a str>,
}

pub(super) fn run(what: &What<'_>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    let now = super::now(global);
    let agent = global.agent.as_deref();
    let format = target.format.name();
    let place = target.path.display();
    let missing =
        |what: &str| Failure::new(format!("{place}: a checkpoint of {format} needs {what}"));
    refuse_unused(&target, what)?;
    let What { plan, task, .. } = *what;
    match format {
        TaskCheckpoint::FORMAT | builder_state::FORMAT => {
            let agent = agent.unwrap_or("ckpt");
            let mut checkpoint = TaskCheckpoint::begin(agent, plan, now);
            if let Some(contract) = what.contract {
                checkpoint = checkpoint.with_contract(contract);
            }
            begin(&target, &checkpoint, agent, plan, global)
        }
        AgentCheckpoint::FORMAT => {
            let key = target.key.as_str();
            let agent = agent.or(global.key.as_ref().map(|_| key));
            let agent = agent.ok_or_else(|| missing("the agent's id: name it with --agent"))?;
            let session = global.session.as_deref();
            let session = session.ok_or_else(|| missing("a session: name it with --session"))?;
            let feature = task.ok_or_else(|| missing("a feature: name it with --task"))?;
            let checkpoint = AgentCheckpoint::begin(agent, session, feature, plan, now);
            begin(&target, &checkpoint, agent, plan, global)
        }
        SitebuilderCheckpoint::FORMAT => {
            let agent = agent.ok_or_else(|| missing("an agent: name it with --agent"))?;
            let task = task.ok_or_else(|| missing("a task id: name it with --task"))?;
            let mut checkpoint =
                SitebuilderCheckpoint::begin(agent, task, plan, now).with_criteria(what.criteria);
            if let Some(name) = what.agent_name {
                checkpoint = checkpoint.with_agent_name(name);
            }
            if let Some(total) = what.total {
                checkpoint = checkpoint.with_total(total);
            }
            if let Some(title) = what.title {
                checkpoint = checkpoint.with_title(title);
            }
            begin(&target, &checkpoint, agent, plan, global)
        }
        BuildCheckpoint::FORMAT => {
            let spec = what
                .spec
                .ok_or_else(|| missing("its plan: name the file with --spec"))?;
            let spec = spec_of(spec, global)?;
            let id = task.unwrap_or(target.key.as_str());
            let title = what.title.unwrap_or_default();
            let mut checkpoint = BuildCheckpoint::initialize(id, title, &spec, now)
                .map_err(|error| target.error(error))?;
            checkpoint.prd_title = what.title.map(str::to_owned);
            if what.revision == 2 {
                checkpoint = checkpoint.in_later_revision();
            }
            let plan = checkpoint.pending_workstreams.clone();
            begin(&target, &checkpoint, id, &plan, global)
        }
        StoryCheckpoint::FORMAT => {
            let agent = agent.ok_or_else(|| missing("the worker's id: name it with --agent"))?;
            let checkpoint = StoryCheckpoint::begin(target.key.as_str(), agent, plan, now)
                .map_err(|error| target.error(error))?;
            begin(&target, &checkpoint, agent, plan, global)
        }
        PipelineState::FORMAT => {
            let checkpoint =
                PipelineState::begin(plan, now).map_err(|error| target.error(error))?;
            begin(
                &target,
                &checkpoint,
                agent.unwrap_or("the lead"),
                plan,
                global,
            )
        }
        other => Err(Failure::new(format!(
            "{place}: `start` cannot begin a checkpoint of {other}: the first is written by its pipeline, or made \
             from another format with `ckpt convert FILE --to {other} --out {place}`"
        ))),
    }
}

/// Fails when something is given that a format has no place for.
fn refuse_unused(target: &Target, what: &What<'_>) -> Result<(), Failure> {
    let format = target.format.name();
    let has = |formats: &[&str]| formats.contains(&format);
    let (site, build) = (SitebuilderCheckpoint::FORMAT, BuildCheckpoint::FORMAT);
    let unused = [
        ("--plan", !what.plan.is_empty() && has(&[build])),
        (
            "--task",
            what.task.is_some()
                && has(&[
                    TaskCheckpoint::FORMAT,
                    builder_state::FORMAT,
                    StoryCheckpoint::FORMAT,
                    PipelineState::FORMAT,
                ]),
        ),
        ("--revision 2", what.revision != 1 && !has(&[build])),
        ("--title", what.title.is_some() && !has(&[site, build])),
        ("--spec", what.spec.is_some() && !has(&[build])),
        ("--agent-name", what.agent_name.is_some() && !has(&[site])),
        ("--criteria", !what.criteria.is_empty() && !has(&[site])),
        ("--total", what.total.is_some() && !has(&[site])),
        (
            "--contract",
            what.contract.is_some() && !has(&[TaskCheckpoint::FORMAT, builder_state::FORMAT]),
        ),
    ];
    match unused.into_iter().find(|(_, is_unused)| *is_unused) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(format!(
            "{}: a first checkpoint of {format} has no place for {option}; leave {option} out",
            target.path.display()
        ))),
    }
}

fn begin<C: Checkpoint>(
    target: &Target,
    checkpoint: &C,
    agent: &str,
    plan: &[String],
    global: &Global,
) -> Result<Outcome, Failure> {
    let at = |error| target.error(error);
    refuse_other_name(target, checkpoint, global)?;
    refuse_second_file::<C>(target)?;
    let checkpoints = target.checkpoints::<C>(global);
    match checkpoints.begin(&target.key, checkpoint).map_err(at)? {
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
            saved::report(&mut outcome, target, global, &created, &[line]);
            for note in plan::twice(plan) {
                outcome.note(note);
            }
            Ok(outcome)
        }
        _ => already_there(target, global),
    }
}

/// Fails when another file of the folder holds the checkpoint of this key, under another name.
fn refuse_second_file<C: Checkpoint>(target: &Target) -> Result<(), Failure> {
    let layout = C::layout();
    let (Some(key_in), Some(_)) = (layout.key_in, target.files()) else {
        return Ok(());
    };
    let (Some(folder), Some(own)) = (target.path.parent(), target.path.file_name()) else {
        return Ok(());
    };
    // Only a name that begins alike is worth a look: a folder may have thousands of files.
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
            && C::recognise(&path, Some(&document)).is_some();
        if is_ours {
            let path = path.display();
            return Err(Failure::exiting(
                Exit::Refused,
                format!(
                    "{}: the checkpoint of {} is in {path} already, and a second file would make two of it; go on with that \
                     one (--store {path}), or rename it first",
                    target.path.display(),
                    target.key
                ),
            ));
        }
    }
    Ok(())
}

/// The most bytes that are read of another file to see whose it is.
const MOST_OF_OTHER: u64 = 1 << 20;

/// Fails when the key in a folder is not the one that the checkpoint itself has.
fn refuse_other_name<C: Checkpoint>(
    target: &Target,
    checkpoint: &C,
    global: &Global,
) -> Result<(), Failure> {
    let layout = C::layout();
    let (Some(key), Some(key_in)) = (&global.key, layout.key_in) else {
        return Ok(());
    };
    let document = Document::new(checkpoint).map_err(Error::from)?;
    let Some(own) = key_in(&document) else {
        return Ok(());
    };
    let name = (layout.file_name)(&own)?;
    if target
        .path
        .file_name()
        .is_some_and(|path| path == name.as_str())
    {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: the checkpoint would have the key {own}, and --key says {key}; make them agree",
        target.path.display()
    )))
}

/// Shows the checkpoint that is there, with its resume verdict.
fn already_there(target: &Target, global: &Global) -> Result<Outcome, Failure> {
    let view = view(target, global)?;
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
        "{}: a checkpoint is already here, and was not touched; go on from it with `ckpt resume`, \
         or archive it first: `ckpt archive`, with `--as aborted` where it is not finished",
        target.path.display()
    ));
    outcome.found();
    Ok(outcome)
}
