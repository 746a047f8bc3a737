//! Recovery of a document that cannot be read or was deleted.

use std::time::Instant;

use agent_checkpoint::store::{Recover, RecoverOptions, Recovered, check_size};
use agent_checkpoint::{Key, Result, Revision};

use crate::rows::{Change, KeyRow, State, Wanted};
use crate::store::PostgresStore;

impl Recover for PostgresStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.write(key, Wanted::Texts, false, |row| {
            let text = row
                .present()
                .map(|state| state.text.as_slice())
                .unwrap_or_default();
            let past = row
                .past()
                .map(|state| (state.entry(), row.tasks_since(state), state));
            let read = |state: &State| Ok(state.stored(self.max_bytes).ok());
            let decided = Recovered::decide(options.with, self.stored(row), text, past, read)?;
            let Some(mut recovered) = decided else {
                return Ok((None, Recovered::healthy(options.with)));
            };
            let until = self.check_fence(row, options.fence)?;
            let mut change = self.go_on(row, &mut recovered)?;
            change.until = until;
            // A key that never existed keeps nothing.
            Ok(((row.version() > 0).then_some(change), recovered))
        })?;
        recovered.report(key, began);
        Ok(recovered)
    }
}

impl PostgresStore {
    fn go_on(&self, row: &mut KeyRow, recovered: &mut Recovered) -> Result<Change> {
        let mut change = Change::default();
        if let Some(damaged) = row.present() {
            let (address, digest) = (self.address(), Revision::of(&damaged.text));
            let place =
                format!("{address}, the row of the table `quarantine` with the digest {digest}");
            recovered.put_aside = Some(place);
            change.quarantined = Some(damaged.text.clone());
        }
        let Some(document) = &recovered.document else {
            begin_fresh(row, &mut change);
            return Ok(change);
        };
        check_size(document.text(), self.max_bytes)?;
        let now = self.now(row);
        row.replace(&mut change, document.text(), true, &self.keep, now);
        Ok(change)
    }
}

/// Leaves the key without a document; the next document begins a new task.
fn begin_fresh(row: &mut KeyRow, change: &mut Change) {
    let damaged = row.present().filter(|damaged| !damaged.is_pinned);
    change.removed = damaged.map(|damaged| damaged.number).into_iter().collect();
    row.end_task();
    row.set_absent();
}
