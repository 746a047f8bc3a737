//! `ckpt history` and `ckpt prune`: the earlier states of a checkpoint.

use std::path::Path;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::store::{EntryId, HistoryEntry, Keep};
use agent_checkpoint::{Error, ErrorKind, Timestamp};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::address::Target;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, stamp};
use crate::report::{Style, age, count, lines};

#[derive(Serialize)]
struct Row {
    entry: EntryId,
    /// Null if it cannot be read.
    revision: Option<String>,
    damage: Option<String>,
    saved: Option<String>,
    bytes: u64,
    pinned: bool,
    /// How many tasks ended after it.
    tasks_since: usize,
}

pub(super) fn run(
    file: Option<&Path>,
    pin: Option<(String, bool)>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    if let Some((entry, pinned)) = pin {
        let target = Target::to_change(file, global)?;
        let entry = find(&target, &entry)?;
        let entry = target.store().pin(&target.key, &entry, pinned);
        let entry = entry.map_err(|error| target.error(error))?;
        outcome.line(match pinned {
            true => format!("{entry} is pinned, so it is never removed"),
            false => format!("{entry} is no longer pinned, so a later prune or save may remove it"),
        });
        return Ok(outcome);
    }
    let target = Target::to_look_at(file, global)?;
    let rows: Vec<Row> = entries(&target)?.iter().map(row).collect();
    if let (Some(slot), None) = (&target.slot, &global.slot) {
        outcome.note(format!(
            "these are the states of the slot {slot}; those of another are listed with --slot"
        ));
    }
    if global.json {
        outcome.json(&rows);
        return Ok(outcome);
    }
    if rows.is_empty() {
        outcome.note(format!("{}: no state is known", target.place()));
        return Ok(outcome);
    }
    let mut table = Style::of_output().table(&["entry", "saved", "bytes", "revision", ""]);
    for row in &rows {
        let saved = row.saved.as_deref().map(Timestamp::parse);
        let revision = row
            .revision
            .as_deref()
            .map(|text| &text[..text.len().min(19)]);
        let damage = row.damage.as_ref();
        let marks = [
            damage.map(|damage| format!("corrupt: {damage}")),
            (row.pinned && damage.is_none()).then(|| "pinned".to_owned()),
            (row.tasks_since > 0).then(|| of_which_task(row.tasks_since)),
        ];
        let marks: Vec<String> = marks.into_iter().flatten().collect();
        table.add_row([
            row.entry.to_string(),
            age(saved.as_ref(), global.now()),
            row.bytes.to_string(),
            revision.unwrap_or("-").to_owned(),
            marks.join(", "),
        ]);
    }
    for line in lines(&table) {
        outcome.line(line);
    }
    Ok(outcome)
}

pub(super) fn prune(
    file: Option<&Path>,
    limits: &Keep,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = Target::to_change(file, global)?;
    if entries(&target)?.is_empty() {
        target.require_file()?;
    }
    let (log, bytes) = dropped_log(&target);
    let gone = target.store().prune(&target.key, limits);
    let gone = gone.map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    let shorter = bytes.saturating_sub(dropped_log(&target).1);
    if shorter > 0 {
        outcome.note(format!(
            "{log}: {} of dropped items were removed",
            count(shorter, "byte")
        ));
    }
    if global.json {
        outcome.json(&gone);
    } else if gone.is_empty() && shorter > 0 {
        outcome.line("no entry exceeds these limits");
    } else if gone.is_empty() {
        outcome.line("nothing exceeds these limits");
    } else {
        let names: Vec<String> = gone.iter().map(ToString::to_string).collect();
        outcome.line(format!("removed {}", names.join(", ")));
    }
    Ok(outcome)
}

/// The dropped log and its length; empty in a store without files.
fn dropped_log(target: &Target) -> (String, u64) {
    let place = target
        .store()
        .beside()
        .dropped_log(&target.key)
        .ok()
        .flatten();
    let path = place.and_then(|place| Some(target.path.parent()?.join(place)));
    path.map_or_else(Default::default, |path| {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        (path.display().to_string(), bytes)
    })
}

/// The states of a checkpoint, newest first.
pub(super) fn entries(target: &Target) -> Result<Vec<HistoryEntry>, Failure> {
    let entries = target.store().states(&target.key);
    entries.map_err(|error| target.error(error))
}

/// The entry that a user names by its id, or by its revision or a prefix of that.
pub(super) fn find(target: &Target, wanted: &str) -> Result<EntryId, Failure> {
    let entries = entries(target)?;
    let named = entries.iter().find(|entry| entry.id.as_str() == wanted);
    let hash = wanted.strip_prefix("sha256:");
    let of_revision = || {
        let hash = hash.filter(|hash| hash.len() >= 6)?;
        entries.iter().find(|entry| {
            let revision = entry.revision.as_ref().map(ToString::to_string);
            revision.is_ok_and(|text| text["sha256:".len()..].starts_with(hash))
        })
    };
    let found = named.or_else(of_revision).map(|entry| entry.id.clone());
    found.ok_or_else(|| {
        let wanted = wanted.to_owned();
        target.error(Error::new(ErrorKind::NoSuchRevision { wanted }))
    })
}

/// The words for the task of a state that does not belong to the present one.
pub(super) fn of_which_task(tasks_since: usize) -> String {
    match tasks_since {
        1 => "of the previous task".to_owned(),
        many => format!("of the task {many} before"),
    }
}

fn row(entry: &HistoryEntry) -> Row {
    let saved = entry.saved.map(DateTime::<Utc>::from);
    Row {
        entry: entry.id.clone(),
        revision: entry.revision.as_ref().ok().map(ToString::to_string),
        damage: entry
            .revision
            .as_ref()
            .err()
            .map(|corrupt| corrupt.code.to_string()),
        saved: saved.map(stamp),
        bytes: entry.bytes,
        pinned: entry.pinned,
        tasks_since: entry.tasks_since,
    }
}
