//! Recovery of a document that cannot be read or was deleted.

use std::time::Instant;

use agent_checkpoint::store::{Recover, RecoverOptions, Recovered, check_size};
use agent_checkpoint::{Key, Result};
use rusqlite::Connection;

use crate::failure::Step;
use crate::rows::{self, KeyRow, State, Wanted};
use crate::store::SqliteStore;

impl Recover for SqliteStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.write(key, |connection| {
            let mut row = self.find(connection, key, Wanted::Texts)?;
            let text = row.present().map(State::text).unwrap_or_default();
            let past = row
                .past()
                .map(|state| (state.entry(), row.tasks_since(state), state));
            let read = |state: &State| Ok(state.stored(self.max_bytes).ok());
            let decided = Recovered::decide(options.with, self.stored(&row), text, past, read)?;
            let Some(mut recovered) = decided else {
                return Ok(Recovered::healthy(options.with));
            };
            self.check_fence(&row, options.fence)?;
            self.go_on(connection, &mut row, &mut recovered)?;
            Ok(recovered)
        })?;
        recovered.report(key, began);
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
        let Some(id) = row.id else {
            return Ok(());
        };
        if let Some(damaged) = row.present() {
            let at = rows::quarantine(connection, id, damaged.text())?;
            let path = self.path().display();
            recovered.put_aside = Some(format!("{path}, row {at} of the table `quarantine`"));
        }
        let Some(document) = &recovered.document else {
            return begin_fresh(connection, row);
        };
        check_size(document.text(), self.max_bytes)?;
        self.replace(connection, row, id, true, document.text())
    }
}

/// Leaves the key without a document; the next document begins a new task.
fn begin_fresh(connection: &Connection, row: &mut KeyRow) -> Step<()> {
    if let Some(damaged) = row.present().filter(|damaged| !damaged.is_pinned) {
        rows::remove_state(connection, damaged.id)?;
    }
    row.end_task();
    row.set_absent(connection)
}
