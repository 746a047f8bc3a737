//! Earlier states of the documents.

use std::time::SystemTime;

use agent_checkpoint::store::{
    EntryId, History, HistoryEntry, Keep, RolledBack, Stored, check_expected, check_size,
};
use agent_checkpoint::{Expect, Key, Result, Revision};
use chrono::DateTime;

use crate::rows::{Change, KeyRow, State, Wanted, id_of};
use crate::store::PostgresStore;

impl History for PostgresStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.find(key, Wanted::Texts, |row| {
            let mut all = Vec::new();
            if let Some(present) = row.present() {
                all.push(self.entry(EntryId::current(), present, &row)?);
            }
            for state in row.past() {
                let mut entry = self.entry(state.entry(), state, &row)?;
                entry.pinned = state.is_pinned;
                all.push(entry);
            }
            Ok(all)
        })
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let number = entry.as_str().parse();
        let wanted = number.map_or(Wanted::Present, Wanted::Numbered);
        let found = self.find(key, wanted, |row| {
            named(&row, entry)
                .map(|state| state.stored(self.max_bytes))
                .transpose()
        });
        found?.ok_or_else(|| entry.no_such().with_key(key))
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.write(key, Wanted::States, false, |row| {
            let state = named(row, entry).ok_or_else(|| entry.no_such())?;
            let change = Change {
                pinned: Some((state.number, pinned)),
                ..Change::default()
            };
            // The current state is an entry only while it is pinned.
            let is_present = row
                .present()
                .is_some_and(|present| present.number == state.number);
            let id = match pinned || !is_present {
                true => state.entry(),
                false => EntryId::current(),
            };
            Ok((Some(change), id))
        })
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.write(key, Wanted::Texts, false, |row| {
            let is_good = |state: &&State| state.stored(self.max_bytes).is_ok();
            let mut spared = None;
            if row.present().filter(is_good).is_none() {
                spared = row.past().find(is_good).map(|good| good.number);
            }
            let removed = row.too_old(spared, keep, self.now(row));
            let ids = removed.iter().map(|number| id_of(*number)).collect();
            let change = Change {
                removed,
                ..Change::default()
            };
            Ok(((!change.removed.is_empty()).then_some(change), ids))
        })
    }

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        self.write(key, Wanted::States, false, |row| {
            check_expected(key, &Expect::Absent, self.stored(row)?.as_ref())?;
            self.check_fence(row, None)?;
            let text = state.document.text();
            check_size(text, self.max_bytes)?;
            let modified = state.modified.map_or(self.now(row), DateTime::from);
            let mut change = Change::default();
            let number = row.append(&mut change, text, modified, tasks_ended);
            Ok((Some(change), id_of(number)))
        })
    }

    /// An edit by another program cannot be told from a save, so there is none to report.
    fn changed_without(&self, _: &Key, _: &Revision) -> Result<Option<SystemTime>> {
        Ok(None)
    }

    fn rolled_back(&self, _: &Key, _: &Revision) -> Result<Option<RolledBack>> {
        Ok(None)
    }
}

impl PostgresStore {
    fn entry(&self, id: EntryId, state: &State, row: &KeyRow) -> Result<HistoryEntry> {
        let mut entry = HistoryEntry::of(id, state.stored(self.max_bytes))?;
        entry.saved = Some(state.modified);
        entry.bytes = state.bytes;
        entry.tasks_since = row.tasks_since(state);
        Ok(entry)
    }
}

fn named<'r>(row: &'r KeyRow, entry: &EntryId) -> Option<&'r State> {
    if entry.is_current() {
        return row.present();
    }
    row.past().find(|state| state.entry() == *entry)
}
