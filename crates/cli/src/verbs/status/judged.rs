//! The fleet that a command line names, judged as `ckpt status` judges it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::Error;
use agent_checkpoint::fleet::{Fleet, FleetOptions, Row, RowState, Source};
use agent_checkpoint::formats::Format;
use agent_checkpoint::liveness::Thresholds;
use agent_checkpoint::resume::Resume;
use chrono::TimeDelta;

use super::planned;
use crate::address::Target;
use crate::args::{Scope, Status};
use crate::backend::Access;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::verbs::busy::Busy;
use crate::verbs::resume;
use crate::verbs::scan::{self, Opened};

pub(in crate::verbs) fn opened(how: &Scope, global: &Global) -> Result<Vec<Opened>, Failure> {
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

pub(in crate::verbs) fn options(how: &Scope, global: &Global) -> Result<FleetOptions, Failure> {
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
pub(in crate::verbs) fn thresholds(how: &Scope, format: &Format) -> Result<Thresholds, Failure> {
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

/// Scans everything, and shows on a terminal that it does.
pub(super) fn scanned(
    sources: &[Source<'_>],
    options: &FleetOptions,
    global: &Global,
    outcome: &mut Outcome,
) -> Fleet {
    let mut busy = Busy::new();
    let fleet = Fleet::scan_with(sources, options, global.now(), &mut |rows| busy.tell(rows));
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
pub(in crate::verbs) fn fleet(how: &Scope, global: &Global) -> Result<Fleet, Failure> {
    let opened = opened(how, global)?;
    let sources: Vec<Source<'_>> = opened.iter().map(Opened::source).collect();
    let fleet = Fleet::scan(&sources, &options(how, global)?, global.now());
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
pub(in crate::verbs) fn target_of(row: &Row, global: &Global) -> Result<(Target, Global), Failure> {
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
pub(in crate::verbs) fn failure_of(row: &Row, failure: Failure) -> Option<Failure> {
    if failure.code == "not-found" {
        return None;
    }
    let place = &row.place;
    let store = place.store.as_ref().map(Path::new);
    let within = place.slot.as_deref().or(place.key.as_deref());
    Some(failure.at(place.file.as_deref().or(store), within))
}

/// Sets the exit code, and reports unreadable places on standard error.
pub(in crate::verbs) fn judge(fleet: &Fleet, outcome: &mut Outcome) {
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

/// The fleet with only the requested rows.
pub(super) fn shown(fleet: Fleet, how: &Status) -> Fleet {
    let fleet = match how.resumable {
        true => fleet.only_resumable(),
        false => fleet,
    };
    match how.due {
        true => fleet.only_due(),
        false => fleet,
    }
}
