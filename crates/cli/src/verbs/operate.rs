//! The verbs with which an agent reports, and `ckpt batch`.

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::quoted;

use agent_checkpoint::formats::agent_session::same_agent;
use agent_checkpoint::formats::{Format, GivenValue, Inputs, SourceFiles};
use agent_checkpoint::{
    ContextLevel, ContextUse, Error, ErrorKind, Handoff, Operation, OperationContext, Report,
    ReportEffect, Reported, RuleContext, Status,
};
use chrono::{DateTime, Utc};

use crate::address::Target;
use crate::args;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::inputs;
use crate::output::{Outcome, one_line, stamp};
use crate::report::{plan, saved};
use crate::reported;

/// The answer to a report.
#[derive(Default)]
struct Answer {
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
                "{}: {} cannot record --{name}; omit --{name}",
                target.path.display(),
                target.format.name()
            )));
        }
    }
    if let args::Report::Step(args::Step::Start(start)) = verb
        && start.what.text.is_none()
    {
        return start_next(start.force, global);
    }
    let report = reported::report(verb, global.now())?;
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
    let target = Target::to_write(global)?;
    match &report.operation {
        Operation::Reassign { to } => reassign(&target, &to.clone(), report, global),
        _ => change(&target, &[report], global),
    }
}

/// Hands the task over to another agent, and releases the claim of the given fence.
pub(super) fn reassign(
    target: &Target,
    to: &str,
    report: Report,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = change(target, &[report], global)?;
    let Some(fence) = global.fence else {
        return Ok(outcome);
    };
    let held = target.store().claimed(&target.key).ok().flatten();
    let is_owner = |owner: &str| owner == to || owner.starts_with(&format!("{to}, session "));
    if held.is_some_and(|claim| claim.fence == fence && is_owner(&claim.owner)) {
        outcome.note(format!("{to} holds the claim already, and keeps it"));
        return Ok(outcome);
    }
    match target.store().release(&target.key, fence) {
        Ok(claim) => outcome.note(format!("the claim of {} was released", claim.owner)),
        // The change is saved and reported; only the claim is still held.
        Err(error) => {
            let mut failure = target.error(error);
            failure.message.push_str(
                "; the task was reassigned, but its claim was not released: run `ckpt release`",
            );
            outcome.fail(&failure);
        }
    }
    Ok(outcome)
}

/// Starts the step in progress, or else the next step of the plan, and prints only that step, for shell loops.
fn start_next(force: bool, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    target.require_file()?;
    let there = target.load()?;
    let there = there.ok_or_else(|| target.error(Error::new(ErrorKind::NotFound)))?;
    let inspected = target.format.inspect(&there, &RuleContext::none());
    let plan = inspected.map_err(|error| target.error(error))?.plan;
    let Some(text) = plan.start_at else {
        let mut outcome = Outcome::new();
        outcome.note(format!("{}: no step is left", target.place()));
        outcome.found();
        return Ok(outcome);
    };
    let operation = Operation::StepStart { text: text.clone() };
    let mut report = Report::from(operation);
    report.force = force;
    let mut outcome = change(&target, &[report], global)?;
    if !global.json {
        outcome.out.clear();
        outcome.line(one_line(&text));
    }
    Ok(outcome)
}

/// The answer to a full context if the format cannot record it: nothing is written.
fn context_without_place(used: ContextUse, global: &Global) -> Result<Option<Outcome>, Failure> {
    let target = Target::to_write(global)?;
    let format = target.format.name();
    if target.format.operations().contains(&"context") {
        return Ok(None);
    }
    target.require_file()?;
    let mut outcome = Outcome::new();
    outcome.note(format!(
        "{}: a checkpoint of {format} cannot record how full a context is; nothing was written",
        target.path.display()
    ));
    heed_context(&Operation::Context { used }, &mut outcome);
    Ok(Some(outcome))
}

/// The heartbeat of a builder's session, which is in the host file. The checkpoint stays unchanged.
pub(super) fn beat(target: &Target, global: &Global) -> Result<Outcome, Failure> {
    target.require_file()?;
    let now = global.now();
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
    let target = Target::to_write(global)?;
    let bytes = crate::stdin::read(global.max_bytes)?;
    if bytes.len() as u64 > global.max_bytes {
        return Err(Failure::new(format!(
            "standard input has more than {} bytes; send fewer lines or raise --max-bytes",
            global.max_bytes
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let number = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        at_line(Failure::new("is not UTF-8 text"), &target, number)
    })?;
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let (lines, numbers): (Vec<&str>, Vec<usize>) = lines.unzip();
    let mut reports = Vec::with_capacity(lines.len());
    for (line, number) in lines.iter().zip(&numbers) {
        let report = line.parse::<Report>();
        reports.push(
            report.map_err(|wrong| at_line(Failure::new(wrong.to_string()), &target, *number))?,
        );
    }
    if reports.is_empty() {
        return Err(Failure::new(
            "standard input has no line; write one JSON object a line, such as {\"op\": \"step done\"}",
        ));
    }
    change(&target, &reports, global).map_err(|failure| {
        let number = failure.report.and_then(|index| numbers.get(index));
        match number {
            Some(number) => at_line(failure, &target, *number),
            None => failure,
        }
    })
}

/// The options in error messages, with the corresponding member in a line of a batch.
const OPTIONS: [(&str, &str); 3] = [
    (" (--force)", " (\"force\": true)"),
    (
        WITH_STEP,
        " with \"pending\", or set \"current\": true if it is the current one",
    ),
    (WITHOUT_CURRENT, " without \"current\""),
];

/// A failure of one line of a batch.
fn at_line(mut failure: Failure, target: &Target, number: usize) -> Failure {
    let file = target.path.display().to_string();
    let message = failure.message.as_str();
    let why = match message.strip_prefix(&file) {
        // The key may follow.
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, why)| why),
        None => message,
    };
    let of_option = OPTIONS.iter().find_map(|(option, member)| {
        let why = why.strip_suffix(option)?;
        Some(format!("{why}{member}"))
    });
    let why = of_option.as_deref().unwrap_or(why);
    failure.message = format!("{file}: line {number}: {why}; nothing was written");
    failure.file = Some(target.path.clone());
    failure
}

/// Saves all reports as one change.
pub(super) fn change(
    target: &Target,
    reports: &[Report],
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    let mut taken = inputs::of_file(
        &target.format,
        (&target.path, &target.file),
        global,
        &mut outcome,
    )?;
    for report in reports {
        if taken.is_empty() {
            taken = target.inputs_beside(Some(report), global)?;
        }
    }
    let reported = apply(target, reports, &taken, global)?;
    for file in &reported.left_out {
        outcome.note(format!(
            "{file} is not a source file (its folder or ending says that a tool made it, or git ignores it), so it is not recorded"
        ));
    }
    let mut lines = Vec::new();
    let mut left = Vec::new();
    for Answer {
        line,
        notes,
        left_plan,
    } in reported.effects
    {
        lines.push(line);
        left.extend(left_plan);
        for note in notes {
            outcome.note(note);
        }
    }
    saved::report_of_plan(&mut outcome, target, global, &reported.saved, &lines, &left);
    for report in reports {
        heed_context(&report.operation, &mut outcome);
        if let Some(until) = report.operation.until()
            && until <= global.now()
        {
            outcome.warn(format!(
                "{} is in the past, so the task does not wait",
                stamp(until)
            ));
        }
    }
    Ok(outcome)
}

/// Reports what to do about a full context. It was recorded, and the exit code tells the agent to stop.
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

/// Saves all reports as one change, and adds the result of each to the output.
fn apply(
    target: &Target,
    reports: &[Report],
    inputs: &Inputs,
    global: &Global,
) -> Result<Reported<Answer>, Failure> {
    target.require_file()?;
    let rules = RuleContext::none()
        .with_inputs(inputs)
        .with_key(&target.key);
    let mut context = OperationContext::at(global.now())
        .by(global.agent.as_deref(), global.session.as_deref())
        .with_rules(rules);
    let sources = SourceFiles::default();
    if target.format.names_sources_only() {
        context = context.with_sources(&sources);
    }
    let checkpoints = target.any_checkpoints(global);
    let reported = checkpoints.report(&target.key, reports, &context, |effect| {
        answer(effect, inputs, global.agent.as_deref())
    });
    reported.map_err(|error| {
        let operation = error.report().and_then(|index| reports.get(index));
        let operation = operation.map(|report| &report.operation);
        let more = match error.kind() {
            ErrorKind::Unsupported { .. } => {
                operation.and_then(|it| instead_of(it.name(), &target.format))
            }
            ErrorKind::Refused { detail } => operation.and_then(|it| which_step(it, detail)),
            _ => None,
        };
        let mut failure = target.error(error);
        failure.message.extend(more);
        failure
    })
}

/// The option for the advice of a library error about a finished step.
fn which_step(operation: &Operation, message: &str) -> Option<&'static str> {
    let Operation::StepDone(done) = operation else {
        return None;
    };
    if message.ends_with("name the planned step that is finished") {
        return Some(WITH_STEP);
    }
    let is_current =
        done.finishes_current() && message.ends_with("name the step that was finished");
    is_current.then_some(WITHOUT_CURRENT)
}

const WITH_STEP: &str = " with --pending TEXT, or use --current if it is the current one";
const WITHOUT_CURRENT: &str = " without --current";

/// What a format offers instead of an operation that it lacks.
fn instead_of(operation: &str, format: &Format) -> Option<&'static str> {
    match operation {
        "heartbeat" => Some("; each report of it shows that its agent is alive"),
        "pause" if format.operations().contains(&"block") => {
            Some("; report a blocker with `ckpt block`")
        }
        "restart" if format.is_task() => Some(
            "; archive the checkpoint with `ckpt archive --as aborted` and start over with `ckpt start`",
        ),
        _ => None,
    }
}

/// The result of a report in a line.
fn answer(effect: &ReportEffect<'_>, inputs: &Inputs, reporter: Option<&str>) -> Answer {
    let (operation, is_changed) = (&effect.report.operation, effect.is_changed);
    let (before, after) = (effect.before, effect.after);
    let mut answer = Answer::default();
    if !matches!(operation, Operation::StepEdit { .. }) {
        answer.left_plan = plan::left_plan(before, after);
    }
    answer.line = match operation {
        Operation::StepStart { text } if is_changed => {
            answer.notes.extend(gone_back(before, after));
            format!("started: {text}")
        }
        Operation::StepStart { text } => format!("already in progress: {text}"),
        Operation::StepDone(step) => {
            let last = after.done.last().map(|item| item.text.as_str());
            let done = step.text().or(last).unwrap_or("step");
            let left = answer.left_plan.iter().map(String::as_str);
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
    answer
        .notes
        .extend(plan::of_step(effect, &answer.left_plan));
    if let Operation::Complete = operation {
        // Instructions of the format for the time after the task is complete.
        let known = |text: &&String| !before.instructions.contains(text);
        answer
            .notes
            .extend(after.instructions.iter().filter(known).cloned());
    }
    if let (Operation::RateLimit { note: None, .. }, Some(step)) =
        (operation, after.in_progress.first())
        && step.note.is_none()
    {
        answer.notes.push(format!(
            "it is not recorded how far {} is; note it with: ckpt note TEXT",
            quoted(&step.text)
        ));
    }
    if let (Operation::StepDrop { text, .. }, Some(step)) = (operation, before.in_progress.first())
        && step.text == *text
        && after.in_progress.is_empty()
        && let Some(note) = &step.note
    {
        answer.notes.push(format!("its partial work was: {note}"));
    }
    if let Operation::StepDrop { .. } = operation
        && before.decisions.len() == after.decisions.len()
    {
        answer
            .notes
            .push("this format has no place for the reason".to_owned());
    }
    answer.notes.extend(phase_stays(effect, inputs));
    answer
        .notes
        .extend(who_has_it(operation, reporter, before, after));
    answer
}

/// The note that a gate was passed but no report finished its phase.
fn phase_stays(effect: &ReportEffect<'_>, inputs: &Inputs) -> Option<String> {
    let operation = &effect.report.operation;
    let silent = matches!(operation, Operation::GatePass { phase: None, .. });
    let stays = silent && effect.is_changed && inputs.is_empty();
    (stays && effect.before.phase == effect.after.phase).then(|| {
        let phase = effect.after.phase.as_deref().unwrap_or("unknown");
        format!(
            "the phase stays {phase}: name the one that this gate ends with --phase N, or the plan with --spec FILE"
        )
    })
}

/// The note on a task that belongs to another agent than the reporting one.
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
    let reporter = reporter.filter(|reporter| !same_agent(reporter, is))?;
    operation
        .is_work()
        .then(|| format!("{reporter} reports, but the checkpoint still belongs to {is}"))
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
        Operation::RateLimit { note, until } => {
            let note = note.iter().map(|note| format!(": {note}"));
            format!(
                "rate limit{}{}",
                until_text(*until),
                note.collect::<String>()
            )
        }
        Operation::Context { used } => {
            format!("context used: {} %", (used.fraction() * 100.0).floor())
        }
        Operation::Reassign { to } => format!("reassigned to {to}; {}", what_is_left(after)),
        Operation::Pause { until } => format!("paused{}", until_text(*until)),
        Operation::Complete if after.status == Status::Complete => "complete".to_owned(),
        Operation::Complete => format!(
            "reported as complete, but its other values disagree: the task is {}",
            after.status
        ),
        Operation::Restart { because } => format!("restarted: {because}"),
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
                "workstream {id} dormant: {because}; {}",
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

/// The text for the time until which the task waits.
fn until_text(until: Option<DateTime<Utc>>) -> String {
    until.map_or_else(String::new, |until| format!(" until {}", stamp(until)))
}

/// Whether the text of an operation already states the status of the task.
fn names_status(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Block { .. }
            | Operation::Unblock
            | Operation::Fail { .. }
            | Operation::GateFail { .. }
            | Operation::Pause { .. }
            | Operation::Complete
            | Operation::Restart { .. }
    )
}

/// The rest of the plan in words.
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

/// The work that was put back into the plan for other work, with its note.
fn gone_back(before: &Handoff, after: &Handoff) -> Option<String> {
    let aside = before.in_progress.first()?;
    // Waiting for other agents is no step of the plan; it is over.
    if after.in_progress.iter().any(|item| item.text == aside.text)
        || !after.pending.contains(&aside.text)
    {
        return None;
    }
    let note = match &aside.note {
        Some(note) => format!("; its partial work was: {note}"),
        None => String::new(),
    };
    Some(format!("{} is back in the plan{note}", quoted(&aside.text)))
}
