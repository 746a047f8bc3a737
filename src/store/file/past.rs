//! Listing the history of files, and going on from a damaged one.

use super::{Damaged, DurableFile, Entry};
use crate::checkpoint::{Error, ErrorKind, Result, Revision};
use crate::json::{Corrupt, Document, conflict, salvage};
use crate::store::{EntryId, HistoryEntry, Outcome, Recovered, Recovery, Saved, Stored};

pub(in crate::store) fn no_history() -> Error {
    Error::new(ErrorKind::NotOffered { what: "history" })
}

pub(in crate::store) fn no_such(entry: &EntryId) -> Error {
    Error::new(ErrorKind::NoSuchRevision {
        wanted: entry.to_string(),
    })
}

pub(in crate::store) fn not_recoverable(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotRecoverable {
        detail: detail.into(),
    })
}

pub(in crate::store) fn entry_named(entries: &[Entry], wanted: &EntryId) -> Result<Entry> {
    let found = entries.iter().find(|entry| entry.id == *wanted);
    found.cloned().ok_or_else(|| no_such(wanted))
}

/// The state that is there now and the entries, each state once where it follows itself: a save that was
/// killed leaves an entry of what is still present, and of a host file another slot may have changed.
///
/// `ages` says of each entry how many tasks ended after it; where it says nothing, an entry in which nothing is
/// there ends one.
pub(in crate::store) fn listed(
    file: &DurableFile<'_>,
    current: Result<Option<Stored>>,
    entries: &[Entry],
    ages: &[usize],
    read: &dyn Fn(&Entry) -> Result<Option<Stored>>,
) -> Result<Vec<HistoryEntry>> {
    let mut all: Vec<HistoryEntry> = Vec::new();
    let (mut emptied, mut was_empty) = (0, false);
    match current {
        Ok(Some(stored)) => all.push(HistoryEntry {
            id: EntryId::current(),
            saved: stored.modified,
            bytes: stored.document.text().len() as u64,
            revision: Ok(stored.revision),
            pinned: false,
            tasks_since: 0,
        }),
        // Only deleted: the task may go on.
        Ok(None) => was_empty = true,
        Err(error) => all.push(HistoryEntry {
            id: EntryId::current(),
            revision: Err(corrupt(error)?),
            saved: None,
            bytes: file.size(),
            pinned: false,
            tasks_since: 0,
        }),
    }
    for (at, entry) in entries.iter().enumerate() {
        let (revision, bytes) = match read(entry) {
            Ok(Some(stored)) => (Ok(stored.revision), stored.document.text().len() as u64),
            // Gone meanwhile, or the slot was empty then.
            Ok(None) => {
                emptied += usize::from(ages.is_empty() && !was_empty);
                was_empty = true;
                continue;
            }
            Err(error) => (Err(corrupt(error)?), entry.bytes),
        };
        was_empty = false;
        let tasks_since = ages.get(at).copied().unwrap_or(emptied);
        let repeats = all
            .last()
            .filter(|newer| newer.tasks_since == tasks_since)
            .is_some_and(|newer| newer.revision.is_ok() && newer.revision == revision);
        if repeats && !entry.pinned {
            continue;
        }
        all.push(HistoryEntry {
            id: entry.id.clone(),
            revision,
            saved: entry.saved,
            bytes,
            pinned: entry.pinned,
            tasks_since,
        });
    }
    Ok(all)
}

/// Why a state cannot be read, if that is what the error says.
fn corrupt(error: Error) -> Result<Corrupt> {
    match error.kind() {
        ErrorKind::Corrupt(corrupt) => Ok(corrupt.clone()),
        _ => Err(error),
    }
}

/// What is said where only tasks that ended are in the history.
pub(in crate::store) fn of_earlier_tasks(ended: &EntryId, is_damaged: bool) -> String {
    let rest = match is_damaged {
        true => {
            "go on fresh, after which one of them can be restored by its name, or salvage the good part of the \
             damaged text"
        }
        false => "restore one of them by its name, or begin a new one",
    };
    format!(
        "no earlier state of this task can be read, and those from {ended} on back are of tasks that ended before \
         (archived, begun fresh, or deleted before a new one began); {rest}"
    )
}

/// Goes on from a damaged or missing file, with one of `entries` where it shall be the newest of them. `ended`
/// is the newest of an earlier task, which nobody goes on with unasked.
pub(in crate::store) fn recover(
    file: &DurableFile<'_>,
    damaged: &Damaged<'_>,
    with: Recovery,
    entries: &[Entry],
    ended: Option<&EntryId>,
    revision: &dyn Fn(&Document) -> Option<Revision>,
) -> Result<Recovered> {
    let mut recovered = Recovered::healthy(with);
    recovered.damage.clone_from(&damaged.corrupt);
    if let Some(salvage) = salvage(damaged.bytes()) {
        recovered.salvaged = Some(salvage.document);
        recovered.left_out = salvage.left_out;
    }
    let mut brought_back = None;
    let document: Option<Document> = match with {
        Recovery::Fresh => None,
        Recovery::Salvage => match (&damaged.corrupt, &recovered.salvaged) {
            (None, _) => return Err(not_recoverable("there is nothing here to salvage")),
            (Some(_), None) => {
                return Err(match conflict(damaged.bytes()) {
                    Some(conflict) => Error::refused(conflict.message),
                    None => not_recoverable(
                        "nothing of the damaged text can be read; go on with the newest earlier state, or fresh",
                    ),
                });
            }
            (Some(_), Some(salvaged)) => Some(salvaged.clone()),
        },
        Recovery::Newest => {
            let mut newest = None;
            for entry in entries {
                match file.read_entry(&entry.path) {
                    Ok(Some(stored)) => {
                        newest = Some((entry, stored));
                        break;
                    }
                    // It may be readable the next time, and then an older one would have been brought back.
                    Err(error) if matches!(error.code(), "io" | "disk-full") => {
                        return Err(error);
                    }
                    _ => recovered.passed_over.push(entry.id.clone()),
                }
            }
            let Some((entry, stored)) = newest else {
                let rest = match (&damaged.corrupt, &recovered.salvaged) {
                    (None, _) => "and no damaged text either: there is nothing to recover",
                    (_, Some(_)) => "salvage the good part of the damaged text, or go on fresh",
                    (_, None) => "and nothing of the damaged text can be read: go on fresh",
                };
                return Err(not_recoverable(match ended {
                    None => format!("there is no earlier state that can be read; {rest}"),
                    Some(ended) => of_earlier_tasks(ended, damaged.corrupt.is_some()),
                }));
            };
            brought_back = Some(&*entry.path);
            recovered.entry = Some(entry.id.clone());
            recovered.written = entry.saved;
            // A state joins the history when the next one replaces it; the damaged one had no next one.
            recovered.may_lack = true;
            Some(stored.document)
        }
    };
    let quarantined = damaged.replace(
        document
            .as_ref()
            .map(|document| (document.text(), revision(document))),
        brought_back,
    )?;
    tracing::info!(?with, entry = ?recovered.entry, "recovered");
    recovered.put_aside = quarantined.map(|path| path.display().to_string());
    recovered.saved = document.as_ref().map(|document| {
        let revision = Revision::of(document.text().as_bytes());
        Saved::new(Outcome::Replaced, revision, None)
    });
    recovered.document = document;
    Ok(recovered)
}
