//! `ckpt status`: all checkpoints of some folders in one table.

mod planned;
pub(super) mod tables;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::Error;
use agent_checkpoint::fleet::{Fleet, FleetOptions, Row, RowState, Source};
use agent_checkpoint::formats::Format;
use agent_checkpoint::liveness::{Liveness, Notice, Thresholds};
use agent_checkpoint::resume::Resume;
use chrono::TimeDelta;

use super::busy::Busy;
use super::scan::{self, Opened};
use super::{now, resume};
use crate::address::Target;
use crate::args::{Global, Scope, Status};
use crate::backend::Access;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Outcome, one_line};

pub(super) fn run(how: &Status, global: &Global) -> Result<Outcome, Failure> {
    let mut opened = opened(&how.scope, global)?;
    let mut outcome = Outcome::new();
    if !how.watch {
        let begun = opened
            .into_iter()
            .map(|it| it.or_not_begun(global, &mut outcome));
        opened = begun.collect();
    }
    let sources: Vec<Source<'_>> = opened.iter().map(Opened::source).collect();
    let options = options(&how.scope, global)?;
    if how.watch {
        let stores = opened.iter().filter_map(Opened::store);
        return watch::run(&sources, stores, &options, how, global);
    }
    let fleet = scan(&sources, &options, global, &mut outcome);
    judge(&fleet, &mut outcome);
    print(fleet, how, global, &mut outcome);
    Ok(outcome)
}

/// Scans everything, and shows on a terminal that it does.
fn scan(
    sources: &[Source<'_>],
    options: &FleetOptions,
    global: &Global,
    outcome: &mut Outcome,
) -> Fleet {
    let mut busy = Busy::new();
    let fleet = Fleet::scan_with(sources, options, now(global), &mut |rows| busy.tell(rows));
    let fleet = fleet.judge_resumes(|row| match resume_of(row, global) {
        Ok(resume) => Some(resume.plan),
        Err(failure) => {
            if let Some(failure) = failure_of(row, failure) {
                outcome.fail(&failure);
            }
            None
        }
    });
    busy.finish();
    fleet
}

/// The checkpoints of a store, judged as by `ckpt status`, for a program that shows them itself.
pub(super) fn fleet(how: &Scope, global: &Global) -> Result<Fleet, Failure> {
    let opened = opened(how, global)?;
    let sources: Vec<Source<'_>> = opened.iter().map(Opened::source).collect();
    let fleet = Fleet::scan(&sources, &options(how, global)?, now(global));
    // A row that could not be judged gets no plan, so no agent continues from it.
    Ok(fleet.judge_resumes(|row| Some(resume_of(row, global).ok()?.plan)))
}

/// The resume of a row, as `ckpt resume` judges it.
fn resume_of(row: &Row, global: &Global) -> Result<Resume, Failure> {
    let (target, global) = target_of(row, global)?;
    let options = resume::options(&global);
    // `resume` itself prints the messages.
    let mut unsaid = Outcome::new();
    Ok(resume::judge(&target, options, false, &global, &mut unsaid)?.0)
}

/// The checkpoint of a row, and options as if the command line named it.
pub(super) fn target_of(row: &Row, global: &Global) -> Result<(Target, Global), Failure> {
    let slot = row.place.slot.as_deref();
    let global = Global {
        store: row.place.store.as_ref().map(PathBuf::from),
        key: row.place.key.clone(),
        slot: slot.map(str::parse).transpose()?,
        ..global.clone()
    };
    let target = Target::to_read(row.place.file.as_deref(), &global)?;
    Ok((target, global))
}

/// A failure of a row's checkpoint, with its place in the message; `None` if the checkpoint was archived after the
/// scan.
pub(super) fn failure_of(row: &Row, failure: Failure) -> Option<Failure> {
    if failure.code == "not-found" {
        return None;
    }
    let place = &row.place;
    let store = place.store.as_ref().map(Path::new);
    let within = place.slot.as_deref().or(place.key.as_deref());
    Some(failure.at(place.file.as_deref().or(store), within))
}

pub(super) fn opened(how: &Scope, global: &Global) -> Result<Vec<Opened>, Failure> {
    if global.key.is_some() || global.slot.is_some() {
        return Err(Failure::new(
            "all checkpoints of a folder are shown; omit --key and --slot",
        ));
    }
    match (how.places.as_slice(), &global.store) {
        ([], None) => Err(Failure::new(
            "which checkpoints? Name a folder, such as `.`",
        )),
        ([], Some(store)) => Ok(vec![Opened::new(store, Access::Read, global)?]),
        (_, Some(_)) => Err(Failure::new("DIR and --store are both given; omit one")),
        (places, None) => places
            .iter()
            .map(|it| Opened::new(it, Access::Read, global))
            .collect(),
    }
}

pub(super) fn options(how: &Scope, global: &Global) -> Result<FleetOptions, Failure> {
    // Otherwise each row would fail with it.
    if !global.root.is_dir() {
        return Err(Error::not_a_folder().with_path(&global.root).into());
    }
    let mut options = scan::options(global)?.with_depth(how.depth);
    for agent in &how.expect {
        options = options.with_expected(agent);
    }
    for task in planned::read(&how.planned, global)? {
        options = options.with_planned(task.name, task.agent.as_deref());
    }
    for format in global.formats.iter() {
        options = options.with_thresholds(format.name(), thresholds(how, format)?);
    }
    Ok(options)
}

/// The silence thresholds for agents of a format.
pub(super) fn thresholds(how: &Scope, format: &Format) -> Result<Thresholds, Failure> {
    let mut thresholds = format.thresholds();
    thresholds.late = span(how.late)?.unwrap_or(thresholds.late);
    thresholds.stalled = span(how.stalled)?.unwrap_or(thresholds.stalled);
    thresholds.stuck = span(how.stuck)?.unwrap_or(thresholds.stuck);
    Ok(thresholds)
}

fn span(duration: Option<Duration>) -> Result<Option<TimeDelta>, Failure> {
    let span = duration.map(TimeDelta::from_std).transpose();
    span.map_err(|_| Failure::new("a threshold is too long; give one such as `30m` or `2h`"))
}

/// Sets the exit code, and reports unreadable places on standard error.
pub(super) fn judge(fleet: &Fleet, outcome: &mut Outcome) {
    scan::tell_skipped(fleet, outcome);
    for row in fleet.rows() {
        if let Some(missing) = row.steps_missing() {
            outcome.note(format!("{}: {missing}", row.place));
        }
        let (exit, word, reason) = match &row.state {
            RowState::Corrupt { reason } => (Exit::Corrupt, "corrupt", reason),
            RowState::Unreadable { reason } => (Exit::Failed, "unreadable", reason),
            _ => continue,
        };
        let known = reason.starts_with(word);
        let said = if known {
            String::new()
        } else {
            format!("{word}: ")
        };
        let message = format!("{}: {said}{reason}; nothing was changed", row.place);
        outcome.fail(&Failure::exiting(exit, message));
    }
    if fleet.needs_attention() {
        outcome.found();
    }
}

/// A heading for a message: its recipient and its checkpoint. A message that names its recipient gets only the latter.
fn addressed(row: &Row, message: &str) -> String {
    let agent = row.agent.as_deref().unwrap_or("its agent");
    let of = match &row.task {
        Some(task) => format!("{agent}, {task} ({})", row.place),
        None => format!("{agent} ({})", row.place),
    };
    match row.liveness().and_then(Liveness::notice) {
        _ if message.starts_with('@') => format!("About {of}:"),
        Some(Notice::Late) => format!("To {of}:"),
        _ => format!("To the user, about {of}:"),
    }
}

/// The fleet with only the requested rows.
fn shown(fleet: Fleet, how: &Status) -> Fleet {
    let fleet = match how.resumable {
        true => fleet.only_resumable(),
        false => fleet,
    };
    match how.due {
        true => fleet.only_due(),
        false => fleet,
    }
}

fn print(fleet: Fleet, how: &Status, global: &Global, outcome: &mut Outcome) {
    let fleet = shown(fleet, how);
    if global.json {
        outcome.json(&fleet);
        return;
    }
    outcome.out = if how.markdown {
        tables::markdown(&fleet)
    } else {
        tables::table(&fleet)
    };
    if how.messages {
        let rows = fleet.rows().iter();
        for (row, message) in rows.filter_map(|row| Some((row, row.message.as_ref()?))) {
            outcome.line("");
            outcome.line(one_line(&addressed(row, message)));
            for line in message.lines() {
                outcome.line(crate::output::harmless(line));
            }
        }
    }
    if how.due && fleet.rows().is_empty() {
        outcome.note("nothing is due");
    }
    if (how.resumable || how.due) && !how.markdown {
        for row in fleet.rows() {
            if let Some(next) = &row.next {
                let text = format!(
                    "{}: {}: {}",
                    row.place,
                    next.decision.as_str(),
                    next.message
                );
                outcome.line(one_line(&text));
            }
        }
    }
}
