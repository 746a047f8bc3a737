//! `ckpt convert`: the same hand-off in another format.

use std::path::Path;

use agent_checkpoint::formats::members_not_held;
use agent_checkpoint::json::Violation;
use agent_checkpoint::ledger::LedgerState;
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::create_file;
use agent_checkpoint::{DoneItem, Handoff, RuleContext};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::address::Target;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::report::violation;

/// What `convert --json` prints.
#[derive(Serialize)]
struct Report<'r> {
    file: String,
    format: &'static str,
    to: &'static str,
    out: Option<String>,
    checkpoint: &'r RawValue,
    not_held: &'r [String],
    /// Values that the other format requires and this one lacks.
    made_up: &'r [String],
    /// Parts of the file that could not be read or that break its rules.
    violations: &'r [Violation],
    /// Violations of the result by the rules of its format.
    result_violations: &'r [Violation],
}

pub(super) fn run(
    file: Option<&Path>,
    to: &str,
    out: Option<&Path>,
    is_stdin: bool,
    global: &Global,
) -> Result<Outcome, Failure> {
    let to = *global.formats.get(to)?;
    let target = Target::to_read(file, global)?;
    if let Some(out) = out {
        refuse_present(out)?;
    }
    let options = ResumeOptions::new(&global.root);
    let resume = super::resume::of(&target, &options, global)?;
    let mut handoff = resume.handoff;
    // The task's name, which may come from outside of the text, is converted too.
    let is_own_name = handoff.task.is_some() || resume.task != target.key.as_str();
    if is_own_name || (target.slot.is_none() && !is_stdin) {
        handoff.task = Some(resume.task.clone());
    }
    handoff.description = resume.description;
    handoff.agent = handoff.agent.or_else(|| global.agent.clone());
    // All earlier steps; if the file cannot be read, those of the state that stands in for it.
    let all = target.any_checkpoints(global).earlier(&target.key);
    let earlier_steps = all.unwrap_or(resume.earlier);
    let earlier: Vec<_> = earlier_steps.iter().map(finished).collect();
    let listed = u64::try_from(earlier.len()).unwrap_or(u64::MAX);
    handoff.done_elsewhere = handoff.done_elsewhere.saturating_sub(listed);
    handoff.done.splice(0..0, earlier_steps);
    // A conversion is no progress, so the update time stays, and with it the verdict of `stale`.
    let time = handoff.updated_at.as_ref().and_then(|at| at.time());
    let time = time.map_or_else(|| global.now(), |time| time.to_utc());
    let source = target.load()?;
    // If the other format contains this object as a whole, nothing of it is lost.
    let whole = source
        .as_ref()
        .map(|source| to.adopt(source, &target.format));
    let whole = whole.transpose()?.flatten();
    if whole.is_some() {
        // Then only the context of the checkpoint, and what was dropped earlier, is left behind.
        let mut around = Handoff::default();
        (around.task, around.description) = (handoff.task, handoff.description);
        handoff = around;
    }
    let converted = to.convert(&handoff, time)?;
    let (mut document, mut not_held) = (converted.checkpoint, converted.not_held);
    let made_up = converted.made_up;
    if let Some(whole) = whole {
        not_held.extend(earlier);
        document = whole;
    }
    if !is_own_name {
        // A task name that is only a file name is not in the text, so no format lost it.
        let name = format!("task: {}", resume.task);
        not_held.retain(|line| *line != name);
    }
    if let Some(source) = source {
        let more = members_not_held(&source, &document, &not_held);
        not_held.extend(more);
    }
    let lacks = to.violations(&document, &RuleContext::none())?;
    if let Some(out) = out {
        let take_ledger_along = || take_ledger_along(&target, out, to.name(), global);
        // Copy the ledger first: after a kill no file is without its ledger, and the same conversion can be repeated.
        // The ledger of a slot belongs to the task in it, and is in the host file.
        if !to.is_host() {
            take_ledger_along()?;
        }
        create_file(out, document.text().as_bytes())?;
        if to.is_host() {
            take_ledger_along()?;
        }
    }
    let mut outcome = Outcome::new();
    if global.json {
        let checkpoint = serde_json::from_str(document.text());
        outcome.json_as_it_is(&Report {
            file: target.path.display().to_string(),
            format: target.format.name(),
            to: to.name(),
            out: out.map(|out| out.display().to_string()),
            checkpoint: checkpoint
                .map_err(|error| Failure::new(format!("the result is not JSON: {error}")))?,
            not_held: &not_held,
            made_up: &made_up,
            violations: &resume.violations,
            result_violations: &lacks,
        });
    } else if let Some(out) = out {
        outcome.line(crate::output::one_line(&format!(
            "made {} ({}) from {} ({}), which is unchanged",
            out.display(),
            to.name(),
            target.path.display(),
            target.format.name()
        )));
    } else {
        outcome.out.push_str(document.text());
    }
    for found in &resume.violations {
        outcome.say("violation", &violation(found));
        outcome.found();
    }
    for line in &not_held {
        outcome.say("not converted", line);
        outcome.found();
    }
    for line in &made_up {
        outcome.note(format!(
            "{line}: {} requires it and {} has none, so the value is that of the last change",
            to.name(),
            target.format.name()
        ));
    }
    for found in &lacks {
        outcome.say("new violation", &violation(found));
        outcome.found();
    }
    Ok(outcome)
}

/// Copies the ledger, with effects and proofs, so that no agent repeats them from the other file.
fn take_ledger_along(
    target: &Target,
    out: &Path,
    format: &str,
    global: &Global,
) -> Result<(), Failure> {
    let from = target.ledger(global);
    let state = from.state().map_err(|error| target.error(error))?;
    if state == LedgerState::default() {
        return Ok(());
    }
    let global = Global {
        store: None,
        key: None,
        slot: None,
        fence: None,
        format: Some(format.to_owned()),
        ..global.clone()
    };
    let converted = Target::to_claim(Some(out), &global)?;
    let to = converted.ledger(&global);
    from.copy_to(&to).map_err(|error| converted.error(error))
}

/// The text for a finished step that the format cannot hold.
fn finished(step: &DoneItem) -> String {
    format!("finished: {}", step.text)
}

/// Fails if the output file exists.
fn refuse_present(out: &Path) -> Result<(), Failure> {
    if out.as_os_str() == "-" {
        return Err(Failure::usage(
            "--out -: the result goes to standard output anyway; omit --out (write `./-` for a file of that name)",
        ));
    }
    if std::fs::symlink_metadata(out).is_ok() {
        let present = "exists, so it was not changed; name another file with --out";
        return Err(Failure::new(present).at(Some(out), None));
    }
    Ok(())
}
