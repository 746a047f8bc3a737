//! `ckpt resume`: the prompt for the agent that continues.

use std::path::Path;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::fleet::{Finding, Fleet, FleetOptions, Source};
use agent_checkpoint::json::{Code, Violation};
use agent_checkpoint::resume::{
    ForeignMember, PromptOptions, Prompts, Rendered, Resume, ResumeDecision, ResumeOptions,
    ResumePlan, ResumeReason,
};
use agent_checkpoint::staleness::{Reason, TrackedFile};
use agent_checkpoint::store::EntryId;
use agent_checkpoint::{Error, ErrorKind};
use serde::Serialize;

use super::validate::Corruption;
use crate::address::Target;
use crate::backend::{Access, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::inputs;
use crate::named::{Named, shell_word};
use crate::output::Outcome;
use crate::read;
use crate::report::ledger::tell_pending;
use crate::report::resume::{goes_on, verdict};
use crate::report::violation;

/// How the prompt is made.
pub(super) struct How<'a> {
    /// The message.
    pub(super) name: &'a str,
    pub(super) template: Option<&'a Path>,
    pub(super) templates: Option<&'a Path>,
    pub(super) budget_tokens: Option<usize>,
    pub(super) description: Option<&'a str>,
    pub(super) header: bool,
    /// Whether the checkpoint came from standard input, so that there is no file to inspect or to report to.
    pub(super) is_stdin: bool,
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
    /// Members that the format does not declare.
    foreign: &'r [ForeignMember],
    prompt: Option<&'r str>,
    tokens: Option<usize>,
    omitted_steps: Option<usize>,
    omitted_reasons: Option<usize>,
    over_budget: bool,
    violations: &'r [Violation],
}

/// What `resume --json` prints for a corrupt file.
#[derive(Serialize)]
struct CorruptReport {
    file: String,
    decision: ResumeDecision,
    /// The newest readable earlier state. `ckpt recover` continues from it, and the plan is for it.
    recover_with: Option<EntryId>,
    plan: Option<ResumePlan>,
    error: Corruption,
}

pub(super) fn run(file: Option<&Path>, how: &How<'_>, global: &Global) -> Result<Outcome, Failure> {
    let named = Named::new(file, Access::Read, global)?;
    if let Err(error) = named.checkpoint(global)
        && let Some(corruption) = Corruption::of(&error)
    {
        return corrupt(named.shown(), file, error, corruption, global);
    }
    let prompts = prompts(how, global)?;
    let target = Target::to_read(file, global)?;
    // An unknown message name is an error whatever the verdict is.
    prompts
        .source(how.name, target.format.name())
        .map_err(|error| at_template(error, how))?;
    let mut options = options(global);
    if !how.is_stdin && target.is_in_file() {
        options = options.with_file(&target.path);
    }
    if let Some(description) = how.description {
        options = options.with_description(description);
    }
    let mut outcome = Outcome::new();
    if !ABOUT_THE_TASK.contains(&how.name) {
        refuse_taken_over(&target, global)?;
    }
    let judged = judge(&target, options, !how.is_stdin, global, &mut outcome)?;
    let (resume, restarts) = judged;
    let mut render = PromptOptions::new().with_redaction(crate::output::redaction());
    if how.header {
        render = render.with_header();
    }
    if let Some(tokens) = how.budget_tokens {
        render = render.with_budget_tokens(tokens);
    }
    // A message about the task is always useful; a prompt is useful only if an agent may continue.
    let is_wanted = goes_on(resume.plan.decision) || ABOUT_THE_TASK.contains(&how.name);
    let rendered = is_wanted
        .then(|| prompts.render(how.name, &resume, &render))
        .transpose()
        .map_err(|error| at_template(error, how))?;
    if let Some(over) = rendered.as_ref().filter(|rendered| rendered.over_budget) {
        outcome.warn(format!(
            "the prompt has about {} tokens, more than the budget, with nothing left that may be omitted",
            over.tokens
        ));
        outcome.found();
    }
    // A violation that hides nothing from the next agent becomes a note and does not change the decision.
    let goes_on = goes_on(resume.plan.decision);
    for found in resume.violations.iter().filter(|_| goes_on) {
        if [Code::BYTE_ORDER_MARK, Code::TOO_LONG].contains(&found.code) {
            outcome.note(format!(
                "{}; nothing was omitted to get there",
                violation(found)
            ));
        }
    }
    if goes_on {
        super::stale::say_how_to_restore(&resume.staleness, &target, &mut outcome);
    }
    if goes_on && resume.staleness.reasons().contains(&Reason::NothingThere) {
        outcome.note("the project's folder is named with --root");
    }
    if global.json {
        outcome.json(&report(&target, &resume, rendered.as_ref()));
    } else if let Some(rendered) = rendered {
        outcome.out.push_str(&rendered.text);
    }
    let awaits = |reason: &ResumeReason| matches!(reason, ResumeReason::AwaitsApproval { .. });
    if resume.plan.reasons.iter().any(awaits) {
        tell_pending(&resume.ledger.approvals, &target, global, &mut outcome);
    }
    verdict(&mut outcome, &target.place(), &resume.plan, restarts);
    Ok(outcome)
}

/// The plan, and whether the format has the operation `restart`. `status` uses it too.
pub(super) fn judge(
    target: &Target,
    mut options: ResumeOptions,
    is_recorded: bool,
    global: &Global,
    outcome: &mut Outcome,
) -> Result<(Resume, bool), Failure> {
    let mut inputs = inputs::of_file(
        &target.format,
        (&target.path, &target.file),
        global,
        outcome,
    )?;
    if inputs.is_empty() {
        match target.inputs_beside(None, global) {
            Ok(beside) => inputs = beside,
            Err(failure) => {
                outcome.warn(format!("{}; its members are not used", failure.message));
                outcome.found();
            }
        }
    }
    options = options.with_inputs(inputs);
    let operations = target.format.operations();
    if is_recorded {
        options = options.with_recording(recording(target, operations, global));
    }
    let resume = of(target, &options, global)?;
    Ok((resume, operations.contains(&"restart")))
}

/// Refuses a checkpoint whose work another agent took over into its own checkpoint, by the rules of `status`: otherwise
/// two agents would do the same work.
pub(super) fn refuse_taken_over(target: &Target, global: &Global) -> Result<(), Failure> {
    // Another agent's file can replace this one only if each file is named after its agent.
    if target.format.layout().key_in.is_none() {
        return Ok(());
    }
    let folder = target
        .path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let options = FleetOptions::new()
        .with_formats(global.formats.clone())
        .with_depth(0)
        .with_format(target.format.name());
    let source = match target.is_in_file() {
        true => Source::folder(folder),
        false => Source::store(target.path.display().to_string(), target.store()),
    };
    let fleet = Fleet::scan(&[source], &options, global.now());
    let is_this = |place: &String| match target.is_in_file() {
        true => Path::new(place).file_name() == target.path.file_name(),
        false => *place == format!("{}: {}", target.path.display(), target.key),
    };
    let newer = fleet.findings().iter().find_map(|finding| match finding {
        Finding::TakenOver {
            place, by, now_in, ..
        } if is_this(place) => Some((by, now_in)),
        _ => None,
    });
    match newer {
        Some((by, now_in)) => Err(Failure::exiting(
            Exit::Refused,
            format!(
                "{}: {by} took over the work in {now_in}; resume that checkpoint, and archive this one with `ckpt \
                 archive {} --as crashed`",
                target.place(),
                target.words()
            ),
        )),
        None => Ok(()),
    }
}

/// The messages about a task that are no prompts to continue it.
const ABOUT_THE_TASK: [&str; 3] = ["status-check", "escalation", "progress"];

/// The resume options from the options of all verbs.
pub(super) fn options(global: &Global) -> ResumeOptions {
    let options = ResumeOptions::new(&global.root);
    match global.owner() {
        Some(owner) => options.with_asker(owner),
        None => options,
    }
}

fn report<'r>(target: &Target, resume: &'r Resume, rendered: Option<&'r Rendered>) -> Report<'r> {
    Report {
        file: target.path.display().to_string(),
        task: &resume.task,
        description: resume.description.as_deref(),
        decision: resume.plan.decision,
        plan: &resume.plan,
        staleness: resume.staleness.as_str(),
        files: resume.staleness.files(),
        foreign: &resume.foreign,
        prompt: rendered.map(|rendered| rendered.text.as_str()),
        tokens: rendered.map(|rendered| rendered.tokens),
        omitted_steps: rendered.map(|rendered| rendered.omitted_steps),
        omitted_reasons: rendered.map(|rendered| rendered.omitted_reasons),
        over_budget: rendered.is_some_and(|rendered| rendered.over_budget),
        violations: &resume.violations,
    }
}

/// The commands with which the next agent reports: those that the format supports, with the given address and the fence
/// of the caller.
fn recording(target: &Target, operations: &[&str], global: &Global) -> Vec<String> {
    let mut address = match (&target.slot, &global.store, &global.key) {
        (None, Some(store), Some(key)) => format!(
            "--store {} --key {}",
            shell_word(&shown(store).display().to_string()),
            shell_word(key)
        ),
        _ => format!("--store {}", shell_word(&target.path.display().to_string())),
    };
    if let Some(slot) = &target.slot {
        address.push_str(&format!(" --slot {}", shell_word(&slot.to_string())));
    }
    address.push_str(&format!(" --format {}", target.format.name()));
    if global.root != Path::new(".") {
        let root = shell_word(&global.root.display().to_string());
        address.push_str(&format!(" --root {root}"));
    }
    let agent = global.agent.as_deref().map_or("YOU".to_owned(), shell_word);
    address.push_str(&format!(" --agent {agent}"));
    if let Some(session) = &global.session {
        address.push_str(&format!(" --session {}", shell_word(session)));
    }
    let claim = target.store().claimed(&target.key).ok().flatten();
    let own = claim.filter(|claim| {
        claim.stands(global.now()) && global.owner().as_ref() == Some(&claim.owner)
    });
    let fence = global.fence.or(own.map(|claim| claim.fence));
    let mut lines = Vec::new();
    match fence {
        Some(fence) => address.push_str(&format!(" --fence {fence}")),
        None => lines.push(format!(
            "ckpt claim {address}   (prints a fence: add --fence N to each line below, so that no other agent writes)"
        )),
    }
    let reports = REPORTS.iter().filter(|(name, _)| operations.contains(name));
    lines.extend(reports.map(|(name, what)| format!("ckpt {name}{what} {address}")));
    lines.push(format!(
        "ckpt guide {}   (all there is to record, and when)",
        target.format.name()
    ));
    lines
}

/// The reports of an agent's day, each with its arguments.
pub(super) const REPORTS: &[(&str, &str)] = &[
    ("step start", " 'TEXT'"),
    ("step done", " 'TEXT' --modified FILE"),
    ("subtask start", " ID"),
    ("subtask done", " ID"),
    ("workstream start", " ID"),
    ("workstream done", " ID"),
    ("task done", " ID"),
    ("decide", " 'TEXT' --why 'TEXT'"),
    ("block", " 'TEXT'"),
    ("unblock", ""),
    ("fail", " 'TEXT'"),
];

/// The resume of the library.
pub(super) fn of(
    target: &Target,
    options: &ResumeOptions,
    global: &Global,
) -> Result<Resume, Failure> {
    target
        .any_checkpoints(global)
        .resume(&target.key, options)
        .map_err(|error| target.error(error))
}

/// The output for a corrupt file: there is nothing to resume from yet, and the advice to recover or to begin anew.
fn corrupt(
    path: &Path,
    file: Option<&Path>,
    error: Error,
    corruption: Corruption,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    // A file that is only too large or too deep cannot be recovered and has no plan.
    let resume = match error.kind() {
        ErrorKind::Corrupt(_) => plan_of_corrupt(file, global),
        _ => None,
    };
    let recover_with = resume
        .as_ref()
        .and_then(|resume| resume.recover_with.clone());
    let plan = resume.map(|resume| resume.plan);
    if let Some(entry) = &recover_with {
        outcome.note(format!(
            "the earlier state {entry} can be read: continue with it (`ckpt recover`), then resume"
        ));
    }
    if global.json {
        outcome.json(&CorruptReport {
            file: path.display().to_string(),
            decision: plan
                .as_ref()
                .map_or(ResumeDecision::Restart, |plan| plan.decision),
            recover_with,
            plan,
            error: corruption,
        });
    }
    outcome.fail(&error.into());
    Ok(outcome)
}

/// The plan of a damaged file whose format is known.
fn plan_of_corrupt(file: Option<&Path>, global: &Global) -> Option<Resume> {
    let target = Target::to_look_at(file, global).ok()?;
    let options = options(global);
    of(&target, &options, global).ok()
}

/// The templates: the built-in ones, those of a folder, and the user's own one for the message.
pub(super) fn prompts(how: &How<'_>, global: &Global) -> Result<Prompts, Failure> {
    let prompts = match how.templates {
        Some(folder) => Prompts::from_folder(folder)?,
        None => Prompts::default(),
    };
    let Some(template) = how.template else {
        return Ok(prompts);
    };
    let source = read::text(template, global.max_bytes)?;
    let prompts = prompts.with(how.name, source);
    Ok(prompts.map_err(|error| error.with_path(template))?)
}

/// An error of a template, with its file.
fn at_template(error: Error, how: &How<'_>) -> Error {
    match how.template.or(how.templates) {
        Some(path) => error.with_path(path),
        None => error,
    }
}
