//! Whether a checkpoint can be trusted: whether its agent is alive, and whether its files are unchanged.

use std::path::Path;

use super::Checkpoints;
use super::dropped::{NEWEST, cut_from};
use crate::checkpoint::{Checkpoint, Key, Result, Revision, Timestamp, read};
use crate::json::{Document, Reading};
use crate::liveness::Liveness;
use crate::staleness::{Basis, Fingerprints, Reason, Staleness};
use crate::store::Stored;

impl<C: Checkpoint> Checkpoints<C> {
    /// Judges whether the agent of a checkpoint is alive, by its protocol's thresholds and the clock of this
    /// view. A heartbeat that the store keeps beside the checkpoint counts too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is no checkpoint, and those of
    /// [`load`](Checkpoints::load).
    pub fn liveness(&self, key: &Key) -> Result<Liveness> {
        let stored = self.stored(key)?;
        let pulse = self.current(key, &stored.document)?.reading.value.pulse();
        let pulse = pulse.with_heartbeat(stored.context.heartbeat);
        Ok(Liveness::judge(&pulse, &C::thresholds(), self.now()))
    }

    /// Judges whether the files that a checkpoint names changed since it was saved.
    ///
    /// Files of steps that were dropped from the checkpoint count as well. Paths are relative to `root`, which
    /// replaces the root of [`tracking`](Checkpoints::tracking). Files with a recorded fingerprint are judged by it.
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get); the code `not-a-folder` when `root` is not a folder.
    pub fn stale(&self, key: &Key, root: impl AsRef<Path>) -> Result<Staleness> {
        let stored = self.stored(key)?;
        let reading = self.current(key, &stored.document)?.reading;
        let dropped = self.store.beside().newest_dropped(key, NEWEST)?;
        let cut = cut_from(&dropped, &reading.value);
        let staleness = self.staleness(key, &stored.revision, &reading, &cut, root.as_ref())?;
        self.heeding_rollback(key, &stored.revision, &reading.value, staleness)
    }

    pub(super) fn staleness(
        &self,
        key: &Key,
        revision: &Revision,
        reading: &Reading<C>,
        cut: &[C],
        root: &Path,
    ) -> Result<Staleness> {
        let checkpoint = &reading.value;
        let mut files = checkpoint.files();
        files.extend(cut.iter().flat_map(Checkpoint::files));
        let tracking = self.ground(key, root)?;
        let fingerprints = self.fingerprints(key, revision)?;
        // The fingerprints include the files of all dropped items, however old.
        let recorded = fingerprints.iter().flat_map(|prints| prints.files.keys());
        files.extend(recorded.map(String::as_str));
        let basis = Basis::new(checkpoint.updated_at(), Some(self.clock.now()))
            .with_fingerprints(fingerprints.as_ref());
        let staleness = Staleness::judge(files, &basis, &tracking);
        Ok(if reading.is_partial() {
            staleness.of_a_part()
        } else {
            staleness
        })
    }

    /// The fingerprints that the save of this revision recorded.
    pub(super) fn fingerprints(
        &self,
        key: &Key,
        revision: &Revision,
    ) -> Result<Option<Fingerprints>> {
        let text = self.store.beside().fingerprints(key, revision)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Adds to the verdict if the present state was rolled back without the store.
    pub(super) fn heeding_rollback(
        &self,
        key: &Key,
        present: &Revision,
        checkpoint: &C,
        staleness: Staleness,
    ) -> Result<Staleness> {
        let back = self.came_back(key, present, || checkpoint.updated_at().cloned())?;
        Ok(match back {
            Some(back) => staleness.against(back),
            None => staleness,
        })
    }

    /// The reason, if the present state was rolled back. It only informs, so an error here must not make a save fail.
    pub(super) fn told_of_rollback(&self, key: &Key, stored: &Stored) -> Option<Reason> {
        if stored.changed_without == Some(false) {
            return None;
        }
        let own = || stamp_of::<C>(&stored.document);
        self.came_back(key, &stored.revision, own).ok()?
    }

    fn came_back(
        &self,
        key: &Key,
        present: &Revision,
        own: impl FnOnce() -> Option<Timestamp>,
    ) -> Result<Option<Reason>> {
        super::rollback::came_back(self.store(), key, present, own, &stamp_of::<C>)
    }
}

fn stamp_of<C: Checkpoint>(document: &Document) -> Option<Timestamp> {
    let current = read::<C>(document).ok()?;
    current.reading.value.updated_at().cloned()
}
