//! Reuses rows of an earlier scan for checkpoints that did not change.

use std::path::{Path, PathBuf};

use super::folder::Surroundings;
use super::kept::{Elapsed, Version};
use super::scan::Scan;
use super::{Row, RowState};
use crate::fsio::{self, FileStamp};
use crate::liveness::Liveness;
use crate::store::{Listed, ListedLedger};

impl Scan<'_> {
    /// The row of a file that did not change since the earlier scan, judged at the present time. The caller still has
    /// to [complete](Scan::complete) it.
    pub(super) fn file_again(&self, path: &Path, around: &Surroundings) -> Option<Row> {
        let row = *self.before?.files.get(path.as_os_str())?;
        let kept = row.kept.as_ref()?;
        let Version::File(version) = &kept.again.as_ref()?.version else {
            return None;
        };
        let format = self.options.formats.get(row.format?).ok()?;
        if kept.project != self.project
            || version.has_store != around.has_store
            || !self.inputs(around, format, path).is_empty()
            || !is(path, Some(&version.file))
        {
            return None;
        }
        let is_as_it_was = |path: Option<PathBuf>, version: Option<&FileStamp>| match path {
            Some(path) => is(&path, version),
            None => version.is_none(),
        };
        if !is_as_it_was(around.claims_of(path), version.claims.as_ref())
            || !is_as_it_was(around.ledger_of(path, None), version.ledger.as_ref())
        {
            return None;
        }
        self.again(row)
    }

    /// The row of a key in a store that did not change since the earlier scan, like [`file_again`](Scan::file_again).
    pub(super) fn key_again(&self, listed: &Listed) -> Option<Row> {
        let key = (self.project, listed.key.as_str());
        let row = *self.before?.keys.get(&key)?;
        match &row.kept.as_ref()?.again.as_ref()?.version {
            Version::Store(version, ledger)
                if listed.version.as_ref() == Some(version)
                    && listed.ledger == *ledger
                    && *ledger != ListedLedger::Unknown =>
            {
                self.again(row)
            }
            _ => None,
        }
    }

    fn again(&self, row: &Row) -> Option<Row> {
        let again = row.kept.as_ref()?.again.as_ref()?;
        // Once the wait is over, the task has another plan.
        if let Some(waiting) = &row.waiting
            && waiting.is_over(self.now)
        {
            return None;
        }
        let format = self.options.formats.get(row.format?).ok()?;
        let liveness = Liveness::judge(&again.pulse, &self.options.thresholds_of(format), self.now);
        let notice = liveness.notice().filter(|_| row.is_resumable());
        if row.message.is_some() || (notice.is_some() && notice != again.silent) {
            return None;
        }
        let mut row = row.clone();
        row.state = RowState::Checkpoint { liveness };
        row.progress.elapsed = match again.elapsed {
            Elapsed::Ended(elapsed) => elapsed,
            Elapsed::Since(begun) => Some(self.now - begun),
        };
        row.progress.rest = again.rest;
        if let Some(owner) = &mut row.owner {
            owner.stands = !owner.released && self.now < owner.until;
        }
        Some(row)
    }
}

/// Whether a file has this version.
fn is(path: &Path, version: Option<&FileStamp>) -> bool {
    let found = fsio::look(path).ok().flatten();
    found.map(|found| FileStamp::of(&found)).as_ref() == version
}
