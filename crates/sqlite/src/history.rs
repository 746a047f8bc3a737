//! Earlier states of the documents.

use std::time::SystemTime;

use agent_checkpoint::store::{EntryId, History, HistoryEntry, Keep, RolledBack, Stored};
use agent_checkpoint::{Error, ErrorKind, Key, Result, Revision};
use rusqlite::Connection;

use crate::failure::Step;
use crate::rows::{self, KeyRow, State};
use crate::store::SqliteStore;

impl History for SqliteStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.read(key, |connection| {
            let row = self.find(connection, key)?;
            let mut all = Vec::new();
            if let Some(present) = &row.present {
                all.push(self.entry(EntryId::current(), present, &row)?);
            }
            for state in self.past(connection, &row)? {
                let mut entry = self.entry(id_of(state.number)?, &state, &row)?;
                entry.pinned = state.is_pinned;
                all.push(entry);
            }
            Ok(all)
        })
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let found = self.read(key, |connection| {
            let row = self.find(connection, key)?;
            let state = self.named(connection, row, entry)?;
            Ok(state
                .map(|state| state.stored(self.max_bytes))
                .transpose()?)
        });
        found?.ok_or_else(|| no_such(entry).with_key(key))
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.write(key, |connection| {
            let row = self.find(connection, key)?;
            let id = row.id;
            let state = self.named(connection, row, entry)?;
            let (Some(id), Some(state)) = (id, state) else {
                return Err(no_such(entry).into());
            };
            rows::pin(connection, id, state.number, pinned)?;
            Ok(id_of(state.number)?)
        })
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.write(key, |connection| {
            let row = self.find(connection, key)?;
            let Some(id) = row.id else {
                return Ok(Vec::new());
            };
            let is_good = |state: &State| state.stored(self.max_bytes).is_ok();
            let mut spared = None;
            if !row.present.as_ref().is_some_and(is_good) {
                let past = self.past(connection, &row)?;
                spared = past.into_iter().find(is_good).map(|good| good.number);
            }
            let present = row.present.as_ref().map(|present| present.number);
            let gone = rows::prune(connection, id, present, spared, keep, self.now())?;
            let gone = gone.into_iter().map(id_of);
            Ok(gone.collect::<Result<_>>()?)
        })
    }

    /// Only a store changes the database.
    fn changed_without(&self, _: &Key, _: &Revision) -> Result<Option<SystemTime>> {
        Ok(None)
    }

    fn rolled_back(&self, _: &Key, _: &Revision) -> Result<Option<RolledBack>> {
        Ok(None)
    }
}

impl SqliteStore {
    /// The states that are entries of the history, newest first: all but the present one, which is one once it is pinned.
    pub(crate) fn past(&self, connection: &Connection, row: &KeyRow) -> Step<Vec<State>> {
        let Some(id) = row.id else {
            return Ok(Vec::new());
        };
        let mut states = rows::states(connection, id, self.max_bytes)?;
        states.retain(|state| is_entry(row, state));
        Ok(states)
    }

    fn named(&self, connection: &Connection, row: KeyRow, entry: &EntryId) -> Step<Option<State>> {
        if entry.is_current() {
            return Ok(row.present);
        }
        let (Some(id), Ok(number)) = (row.id, entry.as_str().parse()) else {
            return Ok(None);
        };
        let state = rows::state(connection, id, number, self.max_bytes)?;
        Ok(state.filter(|state| is_entry(&row, state)))
    }

    fn entry(&self, id: EntryId, state: &State, row: &KeyRow) -> Result<HistoryEntry> {
        let revision = match state.stored(self.max_bytes) {
            Ok(stored) => Ok(stored.revision),
            Err(error) => match error.kind() {
                ErrorKind::Corrupt(corrupt) => Err(corrupt.clone()),
                _ => return Err(error),
            },
        };
        let mut entry = HistoryEntry::new(id, revision);
        entry.saved = Some(state.modified);
        entry.bytes = state.bytes;
        entry.tasks_since = usize::try_from(row.task - state.task).unwrap_or_default();
        Ok(entry)
    }
}

fn is_entry(row: &KeyRow, state: &State) -> bool {
    let is_present = |present: &State| present.number == state.number;
    state.is_pinned || !row.present.as_ref().is_some_and(is_present)
}

pub(crate) fn id_of(number: i64) -> Result<EntryId> {
    number.to_string().parse()
}

fn no_such(entry: &EntryId) -> Error {
    let wanted = entry.to_string();
    Error::new(ErrorKind::NoSuchRevision { wanted })
}
