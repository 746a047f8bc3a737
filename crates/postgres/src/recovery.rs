//! How one goes on from a document that cannot be read, or was deleted.

use std::time::Instant;

use agent_checkpoint::json::{Corrupt, CorruptCode, Document, salvage};
use agent_checkpoint::store::{Outcome, Recover, RecoverOptions, Recovered, Recovery, Saved};
use agent_checkpoint::{Error, ErrorKind, Key, Result, Revision};

use crate::history::id_of;
use crate::rows::{Change, KeyRow, Wanted};
use crate::store::PostgresStore;

impl Recover for PostgresStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.write(key, Wanted::Texts, false, |row| {
            let mut recovered = Recovered::healthy(options.with);
            recovered.damage = match self.stored(row) {
                Ok(Some(_)) => return Ok((None, recovered)),
                Ok(None) => None,
                Err(error) => Some(damage_in(error)?),
            };
            let until = self.check_fence(row, options.fence)?;
            let mut change = self.go_on(row, &mut recovered)?;
            change.until = until;
            // Of a key that never was, nothing is kept.
            Ok(((row.version() > 0).then_some(change), recovered))
        })?;
        if recovered.saved.is_some() || recovered.damage.is_some() {
            recovered.report(key, began);
        }
        Ok(recovered)
    }
}

impl PostgresStore {
    fn go_on(&self, row: &mut KeyRow, recovered: &mut Recovered) -> Result<Change> {
        if let Some(damaged) = row.present()
            && let Some(salvage) = salvage(&damaged.text)
        {
            recovered.salvaged = Some(salvage.document);
            recovered.left_out = salvage.left_out;
        }
        let document = match recovered.with {
            Recovery::Newest => Some(self.newest(row, recovered)?),
            Recovery::Salvage => Some(salvaged(recovered)?),
            _ => None,
        };
        let mut change = Change::default();
        if let Some(damaged) = row.present() {
            let (address, digest) = (self.address(), Revision::of(&damaged.text));
            let place =
                format!("{address}, the row of the table `quarantine` with the digest {digest}");
            recovered.put_aside = Some(place);
            change.quarantined = Some(damaged.text.clone());
        }
        let Some(document) = document else {
            begin_fresh(row, &mut change);
            return Ok(change);
        };
        let text = document.text();
        self.refuse_too_large(text)?;
        let outcome = match row.present() {
            Some(_) => Outcome::Replaced,
            None => Outcome::Created,
        };
        let now = self.now(row);
        row.replace(&mut change, text, true, &self.keep, now);
        let revision = Revision::of(text.as_bytes());
        recovered.saved = Some(Saved::new(outcome, revision, None));
        recovered.document = Some(document);
        Ok(change)
    }

    /// The newest state of the present task that can be read.
    fn newest(&self, row: &KeyRow, recovered: &mut Recovered) -> Result<Document> {
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
        Err(not_recoverable(format!("{what}; {next}")))
    }
}

/// Goes on with nothing: the next document begins a new task.
fn begin_fresh(row: &mut KeyRow, change: &mut Change) {
    let damaged = row.present().filter(|damaged| !damaged.is_pinned);
    change.removed = damaged.map(|damaged| damaged.number).into_iter().collect();
    row.end_task();
    row.set_absent();
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
