//! Rows of an earlier scan whose files are as they were.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use super::folder::Surroundings;
use super::kept::Elapsed;
use super::scan::Scan;
use super::{Fleet, Row, RowState};
use crate::fsio::{self, FileStamp};
use crate::liveness::Liveness;

/// The rows of an earlier scan by their files.
pub(super) struct Before<'f>(HashMap<&'f OsStr, &'f Row>);

impl<'f> Before<'f> {
    pub(super) fn of(fleet: &'f Fleet) -> Before<'f> {
        let rows = fleet.rows.iter().filter_map(|row| {
            row.kept.as_ref()?.again.as_ref()?;
            Some((row.place.file.as_ref()?.as_os_str(), row))
        });
        Before(rows.collect())
    }
}

impl Scan<'_> {
    /// The row of a file that is as it was in the earlier scan, judged at the present time.
    pub(super) fn again(&mut self, path: &Path, around: &Surroundings) -> Option<Row> {
        let row = *self.before?.0.get(path.as_os_str())?;
        let kept = row.kept.as_ref()?;
        let again = kept.again.as_ref()?;
        let format = self.options.formats.get(row.format?).ok()?;
        if kept.project != self.project
            || again.has_store != around.has_store
            || !self.inputs(around, format, path).is_empty()
            || !is(path, Some(&again.file))
        {
            return None;
        }
        match around.claims_of(path) {
            Some(record) if !is(&record, again.claims.as_ref()) => return None,
            None if again.claims.is_some() => return None,
            _ => {}
        }
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
        self.complete(&mut row);
        Some(row)
    }
}

/// Whether a file is this version.
fn is(path: &Path, version: Option<&FileStamp>) -> bool {
    let found = fsio::look(path).ok().flatten();
    found.map(|found| FileStamp::of(&found)).as_ref() == version
}
