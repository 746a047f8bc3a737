//! The verbs with which an agent reports, and `ckpt batch`.

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::quoted;

use agent_checkpoint::formats::{Format, GivenValue, Inputs, SourceFiles};
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::Saved;
use agent_checkpoint::{
    ContextLevel, ContextUse, ErrorKind, Handoff, Operation, OperationContext, Report, RuleContext,
};

use crate::address::Target;
use crate::args::{self, Global};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::inputs;
use crate::output::Outcome;
use crate::report::{plan, saved};
use crate::reported;

/// What a report did.
#[derive(Default)]
struct Told {
    line: String,
    notes: Vec<String>,
    /// The texts that are no longer planned or in progress.
    left_plan: Vec<String>,
}

/// One report.
pub(super) fn run(verb: &args::Report, global: &Global) -> Result<Outcome, Failure> {
    if let args::Report::Reassign(reassigned) = verb {
        let target = Target::to_write(global)?;
        let mut verbs = target.format.verbs().iter();
        if let Some(own) = verbs.find(|own| own.name == "reassign") {
            let mut given = global.given.clone();
            given.set("to", GivenValue::Text(reassigned.what.to.clone()));
            return super::own::run_on(&target, own, &given, global);
        }
        if let Some(name) = global.given.names().next() {
            return Err(Failure::new(format!(
                "{}: {} has no place for --{name}; leave --{name} out",
                target.path.display(),
                target.format.name()
            )));
        }
    }
    let report = reported::report(verb)?;
    if report.operation == Operation::Heartbeat {
        let target = Target::to_write(global)?;
        if target.format.is_host() {
            return beat(&target, global);
        }
    }
    if let Operation::Context { used } = report.operation
        && let Some(outcome) = context_without_place(used, global)?
    {
        return Ok(outcome);
    }
    let given_to = match &report.operation {
        Operation::Reassign { to } => Some(to.clone()),
        _ => None,
    };
    let mut outcome = change(vec![(None, report)], global)?;
    if let Some((fence, to)) = global.fence.zip(given_to) {
        let target = Target::to_write(global)?;
        let held = target.store().claimed(&target.key).ok().flatten();
        let is_owner = |owner: &str| owner == to || owner.starts_with(&format!("{to}, session "));
        if held.is_some_and(|claim| claim.fence == fence && is_owner(&claim.owner)) {
            outcome.note(format!("{to} holds the claim already, and keeps it"));
            return Ok(outcome);
        }
        let claim = target.store().release(&target.key, fence);
        match claim {
            Ok(claim) => outcome.note(format!("the claim of {} was given back", claim.owner)),
            // The change is made and told; only the claim stands still.
            Err(error) => {
                let mut failure = target.error(error);
                failure.message.push_str(
                    "; the task was reassigned, and its claim was not given back: `ckpt release`",
                );
                outcome.fail(&failure);
            }
        }
    }
    Ok(outcome)
}

/// What a full context asks for, where the format has no place for how full it is: nothing is written.
fn context_without_place(used: ContextUse, global: &Global) -> Result<Option<Outcome>, Failure> {
    let target = Target::to_write(global)?;
    let format = target.format.name();
    if target.format.operations().contains(&"context") {
        return Ok(None);
    }
    target.require_file()?;
    let mut outcome = Outcome::new();
    outcome.note(format!(
        "{}: a checkpoint of {format} has no place for how full a context is; nothing was written",
        target.path.display()
    ));
    heed_context(&Operation::Context { used }, &mut outcome);
    Ok(Some(outcome))
}

/// The sign of life of a builder's session, which its host file has: the checkpoint stays as it is.
fn beat(target: &Target, global: &Global) -> Result<Outcome, Failure> {
    target.require_file()?;
    let now = super::now(global);
    let saved = target.store().beat(&target.key, now, global.fence);
    let saved = saved.map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    saved::report(
        &mut outcome,
        target,
        global,
        &saved,
        &["heartbeat".to_owned()],
    );
    Ok(outcome)
}

/// Several reports as one change, from standard input.
pub(super) fn batch(global: &Global) -> Result<Outcome, Failure> {
    let bytes = crate::stdin::read(global.max_bytes)?;
    if bytes.len() as u64 > global.max_bytes {
        return Err(Failure::new(format!(
            "standard input has more than {} bytes; send fewer lines or raise --max-bytes",
            global.max_bytes
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("standard input is no UTF-8 text; nothing was written"))?;
    let mut reports = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let report: Report = line.parse().map_err(|wrong| {
            Failure::new(format!(
                "line {number} of standard input: {wrong}; nothing was written"
            ))
        })?;
        reports.push((Some(number), report));
    }
    if reports.is_empty() {
        return Err(Failure::new(
            "standard input has no line; write one JSON object a line, such as {\"op\": \"step done\"}",
        ));
    }
    change(reports, global)
}

/// Makes one change of all reports; the number is that of a line.
fn change(mut reports: Vec<(Option<usize>, Report)>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    let mut outcome = Outcome::new();
    let mut taken = inputs::of_file(&target.format, &target.path, global, &mut outcome)?;
    for (_, report) in &reports {
        if taken.is_empty() {
            taken = inputs::beside(&target, Some(report), global)?;
        }
    }
    if target.format.names_sources_only() {
        for (_, reported) in &mut reports {
            sort_files(&mut reported.operation, global, &mut outcome);
        }
    }
    let (saved, told) = apply(&target, &reports, &taken, global)?;
    let mut lines = Vec::new();
    let mut left = Vec::new();
    for Told {
        line,
        notes,
        left_plan,
    } in told
    {
        lines.push(line);
        left.extend(left_plan);
        for note in notes {
            outcome.note(note);
        }
    }
    saved::report_of_plan(&mut outcome, &target, global, &saved, &lines, &left);
    for (_, reported) in &reports {
        heed_context(&reported.operation, &mut outcome);
    }
    Ok(outcome)
}

/// Says what a full context asks for: it was recorded, and the exit code tells the agent to stop.
fn heed_context(operation: &Operation, outcome: &mut Outcome) {
    if let Operation::Context { used } = operation
        && let Some(message) = used.level().message()
    {
        outcome.warn(message);
        outcome.exit = outcome.exit.and(match used.level() {
            ContextLevel::Reached => Exit::Refused,
            _ => Exit::Findings,
        });
    }
}

/// Keeps the source files among those of a step; the others are named.
fn sort_files(operation: &mut Operation, global: &Global, outcome: &mut Outcome) {
    let Operation::StepDone(done) = operation else {
        return;
    };
    let project = Tracking::new(&global.root).with_sources(SourceFiles::default());
    for file in done.leave_out(|files| project.sort(files.iter().map(String::as_str))) {
        outcome.note(format!(
            "{file} is no source file (made by a tool, by its folder or ending, or ignored by git); it is not recorded"
        ));
    }
}

fn apply(
    target: &Target,
    reports: &[(Option<usize>, Report)],
    inputs: &Inputs,
    global: &Global,
) -> Result<(Saved, Vec<Told>), Failure> {
    target.require_file()?;
    let context = OperationContext::at(super::now(global))
        .by(global.agent.as_deref(), global.session.as_deref());
    let mut told = Vec::new();
    let mut at_line = None;
    let mut at_operation = None;
    let archive = reports
        .iter()
        .find_map(|(_, reported)| reported.operation.archives());
    let view = target.checkpoints(global).archiving(archive);
    let saved = target
        .format
        .checkpoints(view)
        .try_update(&target.key, |checkpoint| {
            // It may run again, on what a faster writer left.
            told.clear();
            for (line, reported) in reports {
                let operation = &reported.operation;
                at_line = *line;
                at_operation = Some(operation);
                // In the words of `status` and `resume`: what could not be read counts.
                let before = checkpoint.handoff();
                let rule_context = RuleContext::none()
                    .with_inputs(inputs)
                    .with_key(&target.key);
                let context = context.with_force(reported.force).with_rules(rule_context);
                let is_changed = checkpoint.apply(operation, &context)?;
                let after = checkpoint.handoff();
                let mut this = tell(operation, is_changed, &before, &after);
                this.notes
                    .extend(phase_stays(operation, inputs, is_changed, &before, &after));
                let said = context.agent;
                this.notes
                    .extend(who_has_it(operation, said, &before, &after));
                told.push(this);
            }
            at_line = None;
            Ok(())
        })
        .map_err(|error| {
            let lacks = matches!(error.kind(), ErrorKind::Unsupported { .. });
            let is_refused = matches!(error.kind(), ErrorKind::Refused { .. });
            let mut failure = target.error(error);
            let operation = at_operation.filter(|_| lacks).map(Operation::name);
            let other = operation.and_then(|name| instead_of(name, &target.format));
            failure.message.extend(other);
            failure.message.extend(
                at_operation
                    .filter(|_| is_refused)
                    .and_then(of_unclear_step),
            );
            failure
        });
    match (saved, at_line) {
        (Ok(saved), _) => Ok((saved, told)),
        (Err(failure), None) => Err(failure),
        (Err(failure), Some(line)) => {
            // The file comes first, as in every other message.
            let place = failure
                .file
                .as_ref()
                .map(|file| format!("{}: ", file.display()));
            let place = place.filter(|place| failure.message.starts_with(place.as_str()));
            let place = place.unwrap_or_default();
            let why = &failure.message[place.len()..];
            Err(Failure {
                message: format!(
                    "{place}line {line} of standard input: {why}; nothing was written"
                ),
                ..failure
            })
        }
    }
}

/// How to say which step is finished.
fn of_unclear_step(operation: &Operation) -> Option<&'static str> {
    let Operation::StepDone(done) = operation else {
        return None;
    };
    let names_none = done.pending().is_none() && !done.finishes_current();
    (names_none && done.text().is_some())
        .then_some(" with --pending TEXT, or that it is the current one with --current")
}

/// How a format comes to what an operation does that it lacks.
fn instead_of(operation: &str, format: &Format) -> Option<&'static str> {
    match operation {
        "heartbeat" => Some("; each report of it shows that its agent is alive"),
        "pause" if format.operations().contains(&"block") => {
            Some("; what is in the way is reported with `ckpt block`")
        }
        "restart" if format.is_task() => Some(
            "; put the checkpoint aside with `ckpt archive --as aborted` and begin anew with `ckpt start`",
        ),
        _ => None,
    }
}

/// What a report did, in a line.
fn tell(operation: &Operation, is_changed: bool, before: &Handoff, after: &Handoff) -> Told {
    let mut told = Told::default();
    if !matches!(operation, Operation::StepEdit { .. }) {
        told.left_plan = plan::left_plan(before, after);
    }
    told.line = match operation {
        Operation::StepStart { text } if is_changed => {
            told.notes.extend(put_aside(before, after));
            format!("started: {text}")
        }
        Operation::StepStart { text } => format!("already in progress: {text}"),
        Operation::StepDone(step) => {
            let last = after.done.last().map(|item| item.text.as_str());
            let done = step.text().or(last).unwrap_or("step");
            let left = told.left_plan.iter().map(String::as_str);
            let left: Vec<&str> = left.filter(|step| *step != done).collect();
            let left = match left.is_empty() {
                true => String::new(),
                false => format!(" (left the plan: {})", left.join(", ")),
            };
            let already = if is_changed || step.text().is_none() {
                ""
            } else {
                " already"
            };
            format!("done{already}: {done}{left}; {}", what_is_left(after))
        }
        Operation::StepAdd { text, .. } if is_changed => {
            format!("added: {text}; {}", what_is_left(after))
        }
        Operation::StepAdd { text, .. } => format!("planned already: {text}"),
        Operation::Decide { text, .. } if is_changed => match after.decisions.len() {
            0 => format!("decided: {text}"),
            number => format!("decided: {text} (decision {number})"),
        },
        Operation::Decide { text, .. } => format!("decided already: {text}"),
        operation => {
            let line = words(operation, after);
            if !is_changed {
                format!("nothing changed: {line}")
            } else if before.status != after.status && !names_status(operation) {
                format!("{line}; the task is now {}", after.status)
            } else {
                line
            }
        }
    };
    told.notes.extend(plan::of_step(operation, before, after));
    if let Operation::Complete = operation {
        // What a format has to be done once a task is complete.
        let known = |text: &&String| !before.instructions.contains(text);
        told.notes
            .extend(after.instructions.iter().filter(known).cloned());
    }
    if let (Operation::RateLimit { note: None }, Some(step)) =
        (operation, after.in_progress.first())
        && step.note.is_none()
    {
        told.notes.push(format!(
            "nothing tells how far {} is; note it with: ckpt note TEXT",
            quoted(&step.text)
        ));
    }
    if let (Operation::StepDrop { text, .. }, Some(step)) = (operation, before.in_progress.first())
        && step.text == *text
        && after.in_progress.is_empty()
        && let Some(note) = &step.note
    {
        told.notes.push(format!("its partial work was: {note}"));
    }
    if let Operation::StepDrop { .. } = operation
        && before.decisions.len() == after.decisions.len()
    {
        told.notes
            .push("this format has no place for the reason".to_owned());
    }
    told
}

/// That a gate was passed and nobody said whether its phase is finished.
fn phase_stays(
    operation: &Operation,
    inputs: &Inputs,
    is_changed: bool,
    before: &Handoff,
    after: &Handoff,
) -> Option<String> {
    let silent = matches!(operation, Operation::GatePass { phase: None, .. });
    let stays = silent && is_changed && inputs.is_empty() && before.phase == after.phase;
    stays.then(|| {
        let phase = after.phase.as_deref().unwrap_or("unknown");
        format!(
            "the phase stays {phase}: name the one that this gate ends with --phase N, or the plan with --spec FILE"
        )
    })
}

/// What is to be known of a task that another agent has than the one that reports.
fn who_has_it(
    operation: &Operation,
    reporter: Option<&str>,
    before: &Handoff,
    after: &Handoff,
) -> Option<String> {
    let (was, is) = (before.agent.as_deref(), after.agent.as_deref()?);
    if was != Some(is) {
        let was = was?;
        return Some(format!("{is} has the task now; {was} had it before"));
    }
    // Ids are written in more than one way: `Secondary-A` is `secondary_a`.
    let plain = |id: &str| id.to_ascii_lowercase().replace('-', "_");
    let reporter = reporter.filter(|reporter| plain(reporter) != plain(is))?;
    operation
        .is_work()
        .then(|| format!("{reporter} reports, and the checkpoint stays that of {is}"))
}

fn words(operation: &Operation, after: &Handoff) -> String {
    let item = |id: &str, what: &str| {
        let kind = operation.name().split(' ').next().unwrap_or_default();
        format!("{kind} {id} {what}; {}", what_is_left(after))
    };
    match operation {
        Operation::StepDrop { text, .. } => format!("dropped: {text}; {}", what_is_left(after)),
        Operation::StepEdit { text, to } => format!("{text} is now: {to}"),
        Operation::StepMove { text, before } => format!("{text} comes before {before} now"),
        Operation::Note { text } => format!("noted: {text}"),
        Operation::Block { text, kind: None } => format!("blocked: {text}"),
        Operation::Block {
            text,
            kind: Some(kind),
        } => format!("blocked: {kind}: {text}"),
        Operation::Detail(detail) => {
            let given: Vec<&str> = detail.given().collect();
            format!("recorded: {}", given.join(", "))
        }
        Operation::Unblock => format!("unblocked; the task is {}", after.status),
        Operation::Heartbeat => "heartbeat".to_owned(),
        Operation::Fail { text } => format!("failed: {text}"),
        Operation::RateLimit { note: Some(note) } => format!("rate limit: {note}"),
        Operation::RateLimit { .. } => "rate limit".to_owned(),
        Operation::Context { used } => {
            format!("context used: {} %", (used.fraction() * 100.0).floor())
        }
        Operation::Reassign { to } => format!("reassigned to {to}; {}", what_is_left(after)),
        Operation::Pause => "paused".to_owned(),
        Operation::Complete => "complete".to_owned(),
        Operation::Restart { because } => format!("begun anew: {because}"),
        Operation::SubtaskStart { id }
        | Operation::WorkstreamStart { id }
        | Operation::TaskStart { id } => item(id, "begun"),
        Operation::SubtaskDone { id, .. }
        | Operation::WorkstreamDone { id, .. }
        | Operation::TaskDone { id, .. } => item(id, "done"),
        Operation::SubtaskFail { id, .. }
        | Operation::WorkstreamFail { id, .. }
        | Operation::TaskFail { id, .. } => item(id, "failed"),
        Operation::SubtaskAdd { id }
        | Operation::WorkstreamAdd { id }
        | Operation::TaskAdd { id } => item(id, "added"),
        Operation::WorkstreamDormant { id, because } => {
            format!(
                "workstream {id} left out: {because}; {}",
                what_is_left(after)
            )
        }
        Operation::GatePass { name, .. } => format!("gate passed: {name}"),
        Operation::GateFail { name, because, .. } => format!("gate failed: {name}: {because}"),
        Operation::Waive { issue, .. } => format!("waived by {issue}"),
        Operation::Review { verdict, .. } => format!("reviewed: {verdict}"),
        Operation::Phase { name } => format!("phase: {name}"),
        Operation::Stage { name } => format!("stage: {name}"),
        Operation::Sync { name } => format!("at sync point: {name}"),
        Operation::Verify { activity, status } => format!("verified: {activity} is {status}"),
        other => other.name().to_owned(),
    }
}

/// Whether the words for an operation say what state the task is in.
fn names_status(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Block { .. }
            | Operation::Unblock
            | Operation::Fail { .. }
            | Operation::GateFail { .. }
            | Operation::Pause
            | Operation::Complete
            | Operation::Restart { .. }
    )
}

/// What is left of the plan.
fn what_is_left(handoff: &Handoff) -> String {
    let open = handoff.unreadable.iter();
    let hidden = open
        .clone()
        .find(|item| item.state.is_work() && item.may_be_open());
    let left = match handoff.stated_total {
        Some(_) => handoff.count_left(),
        None => {
            let begun = handoff.in_progress.iter();
            let begun = begun.filter(|item| !handoff.pending.contains(&item.text));
            handoff.count_left() - begun.count() as u64
        }
    };
    let next = match (handoff.in_progress.first(), handoff.pending.first(), hidden) {
        (Some(current), ..) => format!("in progress: {}", current.text),
        (None, Some(next), _) if next.trim().is_empty() => "next: an empty step".to_owned(),
        (None, Some(next), _) => format!("next: {next}"),
        (None, None, Some(item)) => format!("next: {}, which could not be read", item.name()),
        (None, None, None) if left > 0 => "which the checkpoint does not list".to_owned(),
        (None, None, None) => "nothing is left".to_owned(),
    };
    format!("{left} pending, {next}")
}

/// The work that was put aside for other work, with its note.
fn put_aside(before: &Handoff, after: &Handoff) -> Option<String> {
    let aside = before.in_progress.first()?;
    // Waiting for the others is no step of the plan: it is over.
    if after.in_progress.iter().any(|item| item.text == aside.text)
        || !after.pending.contains(&aside.text)
    {
        return None;
    }
    let note = match &aside.note {
        Some(note) => format!("; its partial work was: {note}"),
        None => String::new(),
    };
    Some(format!(
        "{} was put back in the plan{note}",
        quoted(&aside.text)
    ))
}
