//! Earlier states of the documents.

use std::time::SystemTime;

use agent_checkpoint::store::{
    EntryId, History, HistoryEntry, Keep, RolledBack, Stored, check_expected, check_size,
};
use agent_checkpoint::{ErrorKind, Expect, Key, Result, Revision};
use chrono::DateTime;
use object_store::path::Path;

use crate::failure::Failure;
use crate::head::{Entry, Head};
use crate::keys::name_of;
use crate::remote::{Got, Time};
use crate::store::{Next, ObjectCheckpointStore};

impl History for ObjectCheckpointStore {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        let head = self.head(key, self.time())?;
        let of = |entry: &Entry, id, revision| {
            let mut told = HistoryEntry::new(id, revision);
            told.saved = entry.saved.map(SystemTime::from);
            told.bytes = entry.bytes;
            told.pinned = entry.pinned;
            told.tasks_since = head.tasks_since(entry);
            told
        };
        let mut all = Vec::new();
        let revision = match head.stored(self.max_bytes) {
            Ok(stored) => stored.map(|stored| Ok(stored.revision)),
            Err(error) => match error.kind() {
                ErrorKind::Corrupt(corrupt) => Some(Err(corrupt.clone())),
                _ => return Err(error.with_key(key)),
            },
        };
        if let Some(revision) = revision {
            all.push(of(&head.entry(), EntryId::current(), revision));
        }
        for entry in head.past().rev() {
            let revision = entry.revision.parse()?;
            all.push(of(entry, entry.number.into(), Ok(revision)));
        }
        Ok(all)
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        let time = self.time();
        let head = self.head(key, time)?;
        let stored = match named(&head, entry) {
            _ if entry.is_current() => head.stored(self.max_bytes),
            Some(found) => self.load_entry(key, found, time),
            None => Ok(None),
        };
        let stored = stored.and_then(|stored| stored.ok_or_else(|| entry.no_such()));
        stored.map_err(|error| error.with_key(key))
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.change(key, |head, _| {
            let mut next = Next::after(head);
            let is_present = |number: u64| head.is_there() && number == head.header.number;
            let number = match named(head, entry) {
                Some(found) => found.number,
                None if entry.is_current() && head.is_there() => head.header.number,
                None => return Err(entry.no_such()),
            };
            if is_present(number) && pinned && !head.is_kept() {
                next.keep_present()?;
                next.head.header.history.push(head.entry());
            }
            let history = &mut next.head.header.history;
            if let Some(found) = history.iter_mut().find(|entry| entry.number == number) {
                found.pinned = pinned;
            }
            // The current state is an entry only while it is pinned.
            let id = match is_present(number) && !pinned {
                true => {
                    history.retain(|entry| entry.number != number);
                    EntryId::current()
                }
                false => number.into(),
            };
            Ok((Some(next), id))
        })
    }

    /// Also removes the objects of writers that were killed or lost a race.
    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        let pruned = self.change(key, |head, time| {
            let mut spared = None;
            if !matches!(head.stored(self.max_bytes), Ok(Some(_))) {
                for entry in head.past().rev() {
                    if self
                        .load_entry(key, entry, time)
                        .is_ok_and(|found| found.is_some())
                    {
                        spared = Some(entry.number);
                        break;
                    }
                }
            }
            let mut next = Next::after(head);
            let gone = next.head.prune(keep, spared, self.now());
            Ok(((!gone.is_empty()).then_some(next), gone))
        })?;
        let swept = self.sweep(key, self.time());
        swept.map_err(|error| error.with_key(key))?;
        Ok(pruned.into_iter().map(EntryId::from).collect())
    }

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        self.change(key, |head, _| {
            let present = head.stored(self.max_bytes)?;
            check_expected(key, &Expect::Absent, present.as_ref())?;
            self.check_fence(head, None)?;
            let text = state.document.text();
            check_size(text, self.max_bytes)?;
            let modified = state.modified.map_or(self.now(), DateTime::from);
            let mut next = Next::after(head);
            let (part, bytes) = next.head.append(text, modified, tasks_ended)?;
            next.add_as(part, bytes);
            let id = next.head.header.number.into();
            Ok((Some(next), id))
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

impl ObjectCheckpointStore {
    /// The state of an entry; `None` if it was removed meanwhile.
    pub(crate) fn load_entry(
        &self,
        key: &Key,
        entry: &Entry,
        time: Time,
    ) -> Result<Option<Stored>> {
        let path = self.place.beside(&name_of(key.as_str()), &entry.name())?;
        // Leaves room for the short line at its beginning.
        let most = self.max_bytes.saturating_add(1 << 12);
        match self.remote.get(&path, most, time) {
            Ok(Got::Whole(object)) => entry.stored(&object, self.max_bytes).map(Some),
            Ok(Got::TooLarge(size)) => Err(crate::head::too_large(size, self.max_bytes)),
            Err(Failure::Absent) => Ok(None),
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// Removes history objects that are not, or no longer, entries.
    fn sweep(&self, key: &Key, time: Time) -> Result<()> {
        let head = self.head(key, time)?;
        // An object with the present number or a later one may belong to another writer that is about to finish.
        let is_over = |part: &str| {
            let number = part
                .strip_prefix("history-")
                .and_then(|it| it.split('-').next());
            let number = number.and_then(|it| it.parse().ok());
            number.is_some_and(|it: u64| it < head.header.number) && !head.may_need(part)
        };
        let over = self.beside_of(key, is_over, time)?;
        if !over.is_empty() {
            let removed = self.remote.delete_all(over, time);
            removed.map_err(Failure::into_error)?;
        }
        Ok(())
    }

    /// The objects beside the document of a key whose last name part `is_wanted`.
    pub(crate) fn beside_of(
        &self,
        key: &Key,
        is_wanted: impl Fn(&str) -> bool,
        time: Time,
    ) -> Result<Vec<Path>> {
        let folder = self.place.beside(&name_of(key.as_str()), "")?;
        let listed = self.remote.list(&folder, None, |_, _| true, time);
        let listed = listed.map_err(Failure::into_error)?;
        let all = listed.into_iter().map(|object| object.location);
        Ok(all
            .filter(|path| is_wanted(path.filename().unwrap_or_default()))
            .collect())
    }
}

fn named<'h>(head: &'h Head, entry: &EntryId) -> Option<&'h Entry> {
    head.past()
        .find(|state| EntryId::from(state.number) == *entry)
}
