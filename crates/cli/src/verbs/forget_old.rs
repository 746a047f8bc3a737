//! `ckpt forget --ended TIME …`: remove tasks that are old enough.

use std::path::Path;

use agent_checkpoint::Expect;
use agent_checkpoint::fleet::{Expired, Expiry, Fleet, Retention, RowState};
use agent_checkpoint::store::DeleteOptions;
use serde::Serialize;

use super::scan::{self, Opened};
use crate::address::Target;
use crate::args::Old;
use crate::backend::Access;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, stamp};
use crate::report::count;

#[derive(Serialize)]
struct Report {
    applied: bool,
    tasks: Vec<Task>,
}

/// A task that is old enough.
#[derive(Serialize)]
struct Task {
    place: String,
    task: Option<String>,
    why: Expiry,
    updated_at: String,
    forgotten: bool,
}

/// The ages of the command line; `None` if it has none.
pub(super) fn retention(old: &Old) -> Result<Option<Retention>, Failure> {
    let mut retention = Retention::new().keep_newest(old.keep.unwrap_or_default());
    let ages = [old.ended, old.taken_over, old.older_than];
    if ages.iter().all(Option::is_none) {
        return match old.keep {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "--keep keeps some of the old tasks; say which tasks are old with --ended, --taken-over or \
                 --older-than",
            )),
        };
    }
    if let Some(age) = old.ended {
        retention = retention.ended_after(age);
    }
    if let Some(age) = old.taken_over {
        retention = retention.taken_over_after(age);
    }
    if let Some(age) = old.older_than {
        retention = retention.idle_after(age);
    }
    Ok(Some(retention))
}

pub(super) fn run(
    folder: Option<&Path>,
    retention: Retention,
    apply: bool,
    global: &Global,
) -> Result<Outcome, Failure> {
    let place = match (folder, global.store.as_deref()) {
        _ if global.key.is_some() || global.slot.is_some() || global.fence.is_some() => {
            return Err(Failure::usage(
                "an age selects among all unclaimed tasks of a folder; omit --key, --slot and --fence",
            ));
        }
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "the folder and --store are both given; omit one",
            ));
        }
        (None, None) => {
            return Err(Failure::usage(
                "which tasks? Name a folder or a database with --store",
            ));
        }
        (Some(place), None) | (None, Some(place)) => place,
    };
    let access = if apply { Access::Change } else { Access::Read };
    let opened = Opened::new(place, access, global)?;
    let now = global.now();
    let fleet = Fleet::scan(&[opened.source()], &scan::options(global)?, now);
    let mut outcome = Outcome::new();
    scan::tell_skipped(&fleet, &mut outcome);
    for row in fleet.rows() {
        if let RowState::Corrupt { .. } | RowState::Unreadable { .. } = row.state {
            outcome.note(format!(
                "{}: cannot be read, so its age is unknown and it is kept; `ckpt validate` says what is wrong, `ckpt \
                 forget` with its name removes it",
                row.place
            ));
        }
    }
    let mut report = Report {
        applied: apply,
        tasks: Vec::new(),
    };
    for expired in retention.expired(fleet.rows(), now) {
        if expired.row.place.slot.is_some() {
            outcome.note(format!(
                "{}: {}; but a slot of a host file cannot be forgotten: `ckpt archive` ends its task",
                expired.row.place,
                why(&expired)
            ));
            continue;
        }
        let forgotten = match (apply, opened.store(), &expired.row.place.file) {
            (false, ..) => Ok(()),
            (true, Some(store), _) => expired.forget(store).map_err(Failure::from),
            (true, None, Some(file)) => forget(file, &expired, global),
            (true, None, None) => continue,
        };
        if let Err(failure) = &forgotten {
            outcome.fail(failure);
        }
        let is_gone = apply && forgotten.is_ok();
        if !global.json && (is_gone || !apply) {
            outcome.line(format!("{}: {}", expired.row.place, why(&expired)));
        }
        report.tasks.push(Task {
            place: expired.row.place.to_string(),
            task: expired.row.task.clone(),
            why: expired.why,
            updated_at: stamp(expired.updated_at),
            forgotten: is_gone,
        });
    }
    if global.json {
        outcome.json(&report);
        return Ok(outcome);
    }
    let gone = report.tasks.iter().filter(|task| task.forgotten).count();
    outcome.line(match (apply, report.tasks.len()) {
        (_, 0) => "no task is that old".to_owned(),
        (false, all) => format!(
            "{} would be removed for good, with --apply; nothing was changed",
            count(all, "task")
        ),
        (true, _) => format!("removed for good: {}", count(gone, "task")),
    });
    Ok(outcome)
}

/// Forgets the task of a file, unless it changed since the scan.
fn forget(file: &Path, expired: &Expired<'_>, global: &Global) -> Result<(), Failure> {
    let Some(revision) = &expired.row.revision else {
        return Ok(());
    };
    let alone = Global {
        store: None,
        ..global.clone()
    };
    let target = Target::to_change(Some(file), &alone)?;
    let expect = Expect::Revision(revision.clone());
    let options = DeleteOptions::new().with_expect(expect);
    let forgotten = target.store().forget(&target.key, &options);
    forgotten.map(drop).map_err(|error| target.error(error))
}

/// Why a task is old enough, in words.
fn why(expired: &Expired<'_>) -> String {
    let why = match (expired.why, &expired.row.state) {
        (_, RowState::TakenOver { by }) => format!("taken over by {by}"),
        (Expiry::Ended, _) => "complete".to_owned(),
        _ => "not complete".to_owned(),
    };
    format!("{why}, last changed {}", stamp(expired.updated_at))
}
