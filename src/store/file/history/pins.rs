//! Pins entries and removes entries.

use std::time::SystemTime;

use super::{Entry, History, Naming, sync_down_to};
use crate::checkpoint::Result;
use crate::fsio::{self, Durability};
use crate::store::{EntryId, Keep};

impl<'o> History<'o> {
    /// Pins or unpins an entry. A pin is a copy, so that a program that has the entry's file open, or writes
    /// into it in place, does not change the pin.
    pub(in crate::store) fn pin(&self, entry: &Entry, pinned: bool) -> Result<()> {
        let Some(name) = entry.path.file_name() else {
            return Ok(());
        };
        let (loose, pin) = (self.folder().join(name), self.pins().join(name));
        let (from, to) = if pinned {
            (&loose, &pin)
        } else {
            (&pin, &loose)
        };
        if pinned == entry.pinned {
            return self.ensure_pin_synced(pinned);
        }
        fsio::create_folder_durably(fsio::parent_of(to))?;
        let linked = || !pinned && matches!(fsio::link(from, to), Ok(true));
        if fsio::look(to)?.is_none() && !linked() {
            let read = fsio::read_limited(from, self.options.max_bytes)?;
            let read = read.ok_or_else(|| entry.id.no_such())?;
            fsio::copy(from, &read.bytes, to, self.options.durability)?;
        }
        if pinned {
            return self.ensure_pin_synced(pinned);
        }
        self.ensure_synced()?;
        fsio::remove(&pin, self.options.durability)?;
        Ok(())
    }

    /// Syncs a pin, even if the process that made it died before its sync.
    fn ensure_pin_synced(&self, pinned: bool) -> Result<()> {
        if pinned && self.options.durability == Durability::Full {
            let own = fsio::parent_of(&self.target).join(fsio::OWN_FOLDER);
            let pins = self.pins();
            // The pin is already in place.
            sync_down_to(&own, &pins).map_err(|error| error.not_durable(&pins))?;
        }
        Ok(())
    }

    /// Removes the entries beyond these limits, but never the newest or `spared`, and returns them.
    pub(in crate::store) fn prune(
        &self,
        keep: &Keep,
        spared: Option<&EntryId>,
    ) -> Result<Vec<EntryId>> {
        let mut loose = self.listed(&self.folder(), false, &|name| self.is_ours(name))?;
        let pinned = fsio::names(&self.pins())?;
        loose.retain(|entry| {
            let name = entry.path.file_name();
            name.is_none_or(|name| pinned.iter().all(|pin| pin != name))
        });
        let sizes = loose.iter().map(|entry| (entry.saved, entry.bytes));
        let now = SystemTime::from(self.options.clock.now());
        let mut gone = Vec::new();
        // In the newest entry the slot of a host file may be empty, but not in the one before it as well.
        let is_slot = matches!(self.naming, Naming::Numbers { slot: Some(_) });
        let stay = 1 + usize::from(is_slot && spared.is_none());
        // Remove the oldest first: if the process is killed in between, there is no gap.
        for at in keep
            .beyond(self.usual_count(), sizes, now)
            .into_iter()
            .rev()
            .filter(|at| *at >= stay)
        {
            let entry = &loose[at];
            if spared != Some(&entry.id) && fsio::remove(&entry.path, Durability::None).is_ok() {
                gone.push(entry.id.clone());
            }
        }
        gone.reverse();
        Ok(gone)
    }
}
