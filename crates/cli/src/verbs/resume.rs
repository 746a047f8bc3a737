//! `ckpt resume`: the prompt for the agent that goes on.

use std::path::Path;

use agent_checkpoint::formats::{PipelineState, StoryCheckpoint};
use agent_checkpoint::json::Violation;
use agent_checkpoint::resume::{Prompt, PromptOptions};
use agent_checkpoint::staleness::TrackedFile;
use agent_checkpoint::{
    Checkpoint, EntryId, ErrorKind, Resume, ResumeDecision, ResumeOptions, ResumePlan,
};
use serde::Serialize;

use super::history::entries;
use super::validate::Corruption;
use crate::address::{Target, file_or_store};
use crate::args::{Global, Known};
use crate::dispatch::dispatch;
use crate::failure::Failure;
use crate::given::Given;
use crate::output::Outcome;
use crate::read;
use crate::report::resume::{goes_on, verdict};

/// How the prompt is made.
pub(super) struct How<'a> {
    pub(super) template: Option<&'a Path>,
    pub(super) budget_tokens: Option<usize>,
    pub(super) description: Option<&'a str>,
    pub(super) header: bool,
    pub(super) known: &'a Known,
}

/// What `resume --json` prints.
#[derive(Serialize)]
struct Report<'r> {
    file: String,
    task: &'r str,
    description: Option<&'r str>,
    decision: ResumeDecision,
    plan: &'r ResumePlan,
    staleness: &'r str,
    files: &'r [TrackedFile],
    prompt: Option<&'r str>,
    tokens: Option<usize>,
    omitted_steps: Option<usize>,
    over_budget: bool,
    violations: &'r [Violation],
}

/// What `resume --json` prints for a corrupt file.
#[derive(Serialize)]
struct CorruptReport {
    file: String,
    decision: ResumeDecision,
    /// The newest earlier state that can be read: `ckpt recover` goes on with it.
    recover_with: Option<EntryId>,
    error: Corruption,
}

pub(super) fn run(file: Option<&Path>, how: &How<'_>, global: &Global) -> Result<Outcome, Failure> {
    let path = file_or_store(file, global)?;
    if let Some(outcome) = corrupt(&path, file, global) {
        return Ok(outcome);
    }
    let prompt = prompt(how, global)?;
    let given = Given::read(how.known, global)?;
    let target = Target::to_read(file, global)?;
    let mut options = ResumeOptions::new(&global.root);
    if let Some(description) = how.description {
        options = options.with_description(description);
    }
    let mut outcome = Outcome::new();
    let format = target.format.name;
    given.say_unused(&target.path, format, &mut outcome);
    if let Some(document) = target.load()? {
        let knowledge = given.knowledge(&target.path, &document);
        options.story_state = knowledge.story_state.map(str::to_owned);
        options.counters = knowledge.counters;
        given.say_unknown(&target.path, &document, format, &mut outcome);
    }
    options.execution_spec = given.spec;
    let (mut resume, restarts) = dispatch!(target.format.name, &target.path, C => {
        Ok((of::<C>(&target, &options, global)?, C::OPERATIONS.contains(&"restart")))
    })?;
    if let Some(state) = &given.state {
        give_inputs(&mut resume, state, &target, global)?;
    }
    let mut render = PromptOptions::new();
    render.header = how.header;
    render.budget_tokens = how.budget_tokens;
    let rendered = goes_on(resume.plan.decision)
        .then(|| prompt.render(&resume, &render))
        .transpose()
        .map_err(|error| match how.template {
            Some(template) => error.with_path(template),
            None => error,
        })?;
    if let Some(over) = rendered.as_ref().filter(|rendered| rendered.over_budget) {
        outcome.warn(format!(
            "the prompt has about {} tokens, more than the budget, with nothing left that may be left out",
            over.tokens
        ));
        outcome.found();
    }
    if global.json {
        let Resume {
            task,
            description,
            plan,
            staleness,
            violations,
            ..
        } = &resume;
        outcome.json(&Report {
            file: target.path.display().to_string(),
            task,
            description: description.as_deref(),
            decision: plan.decision,
            plan,
            staleness: staleness.as_str(),
            files: staleness.files(),
            prompt: rendered.as_ref().map(|rendered| rendered.text.as_str()),
            tokens: rendered.as_ref().map(|rendered| rendered.tokens),
            omitted_steps: rendered.as_ref().map(|rendered| rendered.omitted_steps),
            over_budget: rendered
                .as_ref()
                .is_some_and(|rendered| rendered.over_budget),
            violations,
        });
    } else if let Some(rendered) = rendered {
        outcome.out.push_str(&rendered.text);
    }
    verdict(
        &mut outcome,
        &target.path.display().to_string(),
        &resume.plan,
        restarts,
    );
    Ok(outcome)
}

/// What the library knows for going on.
pub(super) fn of<C: Checkpoint>(
    target: &Target,
    options: &ResumeOptions,
    global: &Global,
) -> Result<Resume, Failure> {
    target
        .checkpoints::<C>(global)
        .resume(&target.key, options)
        .map_err(|error| target.error(error))
}

/// Gives the worker that takes a story over what its prompt takes from the pipeline's state.
fn give_inputs(
    resume: &mut Resume,
    state: &PipelineState,
    target: &Target,
    global: &Global,
) -> Result<(), Failure> {
    if target.format.name != StoryCheckpoint::FORMAT || resume.plan.new_worker.is_none() {
        return Ok(());
    }
    let Some(document) = target.load()? else {
        return Ok(());
    };
    let story = document.read::<StoryCheckpoint>();
    let story = story.map_err(|error| target.error(error.into()))?.value;
    let root = std::path::absolute(&global.root)
        .map_err(|error| Failure::new(format!("{}: {error}", global.root.display())))?;
    let id = story.story().unwrap_or(target.key.as_str());
    let plan = story.resume_in(id, state, &root, super::now(global))?;
    resume.plan.new_worker = plan.new_worker;
    Ok(())
}

/// What is said of a corrupt file: that there is nothing to resume from yet, and whether to recover or to
/// begin anew.
fn corrupt(path: &Path, file: Option<&Path>, global: &Global) -> Option<Outcome> {
    let error = read::document(path, global.max_bytes).err()?;
    let corruption = Corruption::of(&error)?;
    let mut outcome = Outcome::new();
    let recover_with = match error.kind() {
        ErrorKind::Corrupt(_) => newest_good(file, global),
        _ => None,
    };
    if let Some(entry) = &recover_with {
        outcome.note(format!(
            "the earlier state {entry} can be read: go on with it with `ckpt recover`, then resume"
        ));
    }
    if global.json {
        outcome.json(&CorruptReport {
            file: path.display().to_string(),
            decision: ResumeDecision::Restart,
            recover_with,
            error: corruption,
        });
    }
    outcome.fail(&error.into());
    Some(outcome)
}

/// The newest earlier state that can be read.
fn newest_good(file: Option<&Path>, global: &Global) -> Option<EntryId> {
    let target = Target::to_look_at(file, global).ok()?;
    let entries = entries(&target).ok()?;
    let good = entries.into_iter().find(|entry| entry.revision.is_ok());
    good.map(|entry| entry.id)
}

fn prompt(how: &How<'_>, global: &Global) -> Result<Prompt, Failure> {
    let Some(template) = how.template else {
        return Ok(Prompt::default());
    };
    let source = read::text(template, global.max_bytes)?;
    Ok(Prompt::new(source).map_err(|error| error.with_path(template))?)
}
