//! How one goes on from a document that cannot be read, or was deleted.

use std::time::Instant;

use agent_checkpoint::json::{Corrupt, CorruptCode, Document, salvage};
use agent_checkpoint::store::{Outcome, Recover, RecoverOptions, Recovered, Recovery, Saved};
use agent_checkpoint::{Error, ErrorKind, Key, Result, Revision};
use rusqlite::Connection;

use crate::failure::Step;
use crate::history::id_of;
use crate::rows::{self, KeyRow, Wanted};
use crate::store::SqliteStore;

impl Recover for SqliteStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.write(key, |connection| {
            let mut row = self.find(connection, key, Wanted::Texts)?;
            let damage = match self.stored(&row) {
                Ok(Some(_)) => return Ok(Recovered::healthy(options.with)),
                Ok(None) => None,
                Err(error) => Some(damage_in(error)?),
            };
            self.check_fence(&row, options.fence)?;
            let mut recovered = Recovered::healthy(options.with);
            recovered.damage = damage;
            self.go_on(connection, &mut row, &mut recovered)?;
            Ok(recovered)
        })?;
        if recovered.saved.is_some() || recovered.damage.is_some() {
            recovered.report(key, began);
        }
        Ok(recovered)
    }
}

impl SqliteStore {
    fn go_on(
        &self,
        connection: &Connection,
        row: &mut KeyRow,
        recovered: &mut Recovered,
    ) -> Step<()> {
        if let Some(damaged) = row.present()
            && let Some(salvage) = salvage(damaged.text())
        {
            recovered.salvaged = Some(salvage.document);
            recovered.left_out = salvage.left_out;
        }
        let document = match recovered.with {
            Recovery::Newest => Some(self.newest(row, recovered)?),
            Recovery::Salvage => Some(salvaged(recovered)?),
            _ => None,
        };
        let Some(id) = row.id else {
            return Ok(());
        };
        if let Some(damaged) = row.present() {
            let at = rows::quarantine(connection, id, damaged.text())?;
            let path = self.path().display();
            recovered.put_aside = Some(format!("{path}, row {at} of the table `quarantine`"));
        }
        let Some(document) = document else {
            return begin_fresh(connection, row);
        };
        let text = document.text();
        self.refuse_too_large(text)?;
        let outcome = match row.present() {
            Some(_) => Outcome::Replaced,
            None => Outcome::Created,
        };
        self.replace(connection, row, id, true, text)?;
        let revision = Revision::of(text.as_bytes());
        recovered.saved = Some(Saved::new(outcome, revision, None));
        recovered.document = Some(document);
        Ok(())
    }

    /// The newest state of the present task that can be read.
    fn newest(&self, row: &KeyRow, recovered: &mut Recovered) -> Step<Document> {
        let mut earlier = None;
        for state in row.past() {
            if state.task != row.task {
                earlier = Some(state.number);
                break;
            }
            match state.stored(self.max_bytes) {
                Ok(stored) => {
                    recovered.entry = Some(id_of(state.number)?);
                    recovered.written = stored.modified;
                    // A state joins the history when the next one replaces it; the damaged one had no next one.
                    recovered.may_lack = row.present().is_some();
                    return Ok(stored.document);
                }
                Err(_) => recovered.passed_over.push(id_of(state.number)?),
            }
        }
        let what = match earlier {
            None => "there is no earlier state that can be read".to_owned(),
            Some(number) => format!(
                "no earlier state of this task can be read, and those from {number} on back are of tasks that ended before"
            ),
        };
        let next = match (row.present(), &recovered.salvaged, earlier) {
            (None, _, None) => "and no damaged text either: there is nothing to recover",
            (None, _, Some(_)) => "restore one of them by its name, or begin a new one",
            (Some(_), Some(_), _) => "salvage the good part of the damaged text, or go on fresh",
            (Some(_), None, _) => "and nothing of the damaged text can be read: go on fresh",
        };
        Err(not_recoverable(format!("{what}; {next}")).into())
    }
}

/// Goes on with nothing: the next document begins a new task.
fn begin_fresh(connection: &Connection, row: &mut KeyRow) -> Step<()> {
    if let Some(damaged) = row.present().filter(|damaged| !damaged.is_pinned) {
        rows::remove_state(connection, damaged.id)?;
    }
    row.end_task();
    row.set_absent(connection)
}

/// What is wrong with a text that a recovery replaces. One that is only beyond the limits stays.
fn damage_in(error: Error) -> Result<Corrupt> {
    match error.kind() {
        ErrorKind::Corrupt(corrupt) if corrupt.code != CorruptCode::TooDeep => Ok(corrupt.clone()),
        _ => Err(error),
    }
}

fn salvaged(recovered: &Recovered) -> Result<Document> {
    let detail = match (&recovered.damage, &recovered.salvaged) {
        (Some(_), Some(salvaged)) => return Ok(salvaged.clone()),
        (None, _) => "there is nothing here to salvage",
        (Some(_), None) => {
            "nothing of the damaged text can be read; go on with the newest earlier state, or go on fresh"
        }
    };
    Err(not_recoverable(detail))
}

fn not_recoverable(detail: impl Into<String>) -> Error {
    let detail = detail.into();
    Error::new(ErrorKind::NotRecoverable { detail })
}
