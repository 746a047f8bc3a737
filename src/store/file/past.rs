//! Lists the history of a file, and recovers a damaged file.

use std::time::Instant;

use super::checkpoint_file::CheckpointFile;
use super::durable_file::Damaged;
use super::history::{Entry, History, entry_named};
use super::task_boundary::EndedTask;
use crate::checkpoint::{Error, ErrorKind, Expect, Result, Revision};
use crate::json::{Corrupt, Document};
use crate::store::recovery::not_recoverable;
use crate::store::{
    EntryId, HistoryEntry, Keep, Outcome, RecoverOptions, Recovered, Recovery, RolledBack, Saved,
    Stored, check_expected,
};

impl CheckpointFile<'_> {
    fn history(&self) -> Result<History<'_>> {
        self.file.listed_history()?.ok_or_else(no_history)
    }

    /// The checkpoint in a history entry.
    fn read_entry(&self, entry: &Entry) -> Result<Option<Stored>> {
        self.part_of(self.file.read_entry(&entry.path)?)
    }

    /// The present state and the history entries. A state that follows itself is listed once: a killed save leaves an
    /// entry of the present state, and in a host file another slot may have changed. If the host is damaged or gone,
    /// the newest state of a slot may be in an entry of another slot, which is the one that is recovered.
    pub(super) fn states(&self) -> Result<Vec<HistoryEntry>> {
        let history = self.history()?;
        let file = readable(self.file.load())?;
        let entries = match &file {
            Ok(Some(_)) => history.entries()?,
            _ => history.entries_of_file()?,
        };
        let current = match file {
            Ok(file) => readable(self.part_of(file))?,
            Err(corrupt) => Err(corrupt),
        };
        // For a slot, the hosts show where a task ended: the slot was empty.
        let ages = match self.slot {
            Some(_) => Vec::new(),
            None => self.file.tasks_since(&history, &entries)?,
        };
        let mut all: Vec<HistoryEntry> = Vec::new();
        let (mut emptied, mut was_empty) = (0, false);
        match current {
            Ok(Some(stored)) => all.push(HistoryEntry::of(EntryId::current(), Ok(stored))?),
            // The checkpoint was only deleted, so the task may go on.
            Ok(None) => was_empty = true,
            Err(corrupt) => all.push(HistoryEntry {
                bytes: self.file.size(),
                ..HistoryEntry::new(EntryId::current(), Err(corrupt))
            }),
        }
        for (at, entry) in entries.iter().enumerate() {
            let (revision, bytes) = match readable(self.read_entry(entry))? {
                Ok(Some(stored)) => (Ok(stored.revision), stored.document.text().len() as u64),
                // The entry is gone, or the slot was empty then.
                Ok(None) => {
                    emptied += usize::from(ages.is_empty() && !was_empty);
                    was_empty = true;
                    continue;
                }
                Err(corrupt) => (Err(corrupt), entry.bytes),
            };
            was_empty = false;
            let tasks_since = ages.get(at).copied().unwrap_or(emptied);
            let repeats = all
                .last()
                .filter(|newer| newer.tasks_since == tasks_since)
                .is_some_and(|newer| newer.revision.is_ok() && newer.revision == revision);
            if repeats && !entry.pinned {
                continue;
            }
            all.push(HistoryEntry {
                id: entry.id.clone(),
                revision,
                saved: entry.saved,
                bytes,
                pinned: entry.pinned,
                tasks_since,
            });
        }
        Ok(all)
    }

    pub(super) fn load_revision(&self, entry: &EntryId) -> Result<Stored> {
        let history = self.history()?;
        let state = if entry.is_current() {
            self.part_of(self.file.load()?)?
        } else {
            self.read_entry(&entry_named(&history.entries_of_file()?, entry)?)?
        };
        state.ok_or_else(|| entry.no_such())
    }

    pub(super) fn pin(&self, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        let history = self.history()?;
        if entry.is_current() && self.part_of(self.file.load()?)?.is_none() {
            return Err(entry.no_such());
        }
        self.file.pin(&history, entry, pinned)
    }

    pub(super) fn prune(&self, keep: &Keep) -> Result<Vec<EntryId>> {
        let history = self.history()?;
        let has_slot = |entry: &Entry| matches!(self.read_entry(entry), Ok(Some(_)));
        let has_slot = self
            .slot
            .as_ref()
            .map(|_| &has_slot as &dyn Fn(&Entry) -> bool);
        self.file.prune(&history, keep, has_slot)
    }

    pub(super) fn append(&self, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        if self.slot.is_some() {
            let what = "adding to the history of a slot, because each entry is a whole host file";
            return Err(Error::new(ErrorKind::NotOffered { what }));
        }
        let history = self.history()?;
        let check =
            &mut |present: Option<&Stored>| check_expected(&self.key, &Expect::Absent, present);
        self.file.append(&history, state, tasks_ended, check)
    }

    pub(super) fn rolled_back(&self, present: &Revision) -> Result<Option<RolledBack>> {
        self.file
            .rolled_back(present, &|entry| self.read_entry(entry))
    }

    /// A damaged host is replaced as a whole by the newest host that a save of any slot replaced. What the
    /// builder wrote since is in the quarantined text. A host cannot start fresh, because the builder's whole
    /// state would be lost with the checkpoint.
    pub(super) fn recover(&self, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let Some(damaged) = self.file.damaged(options.fence)? else {
            return Ok(Recovered::healthy(options.with));
        };
        if self.slot.is_some() && options.with == Recovery::Fresh {
            return Err(not_recoverable(
                "a host file cannot start fresh, because it also has the builder's own state; recover its newest \
                 earlier state, or salvage the good part",
            ));
        }
        let mut past = Vec::new();
        if options.with == Recovery::Newest
            && let Some(history) = self.file.history()?
        {
            let entries = history.entries_of_file()?;
            let ages = match self.slot {
                None => self.file.tasks_since(&history, &entries)?,
                Some(_) => vec![0; entries.len()],
            };
            past = entries.into_iter().zip(ages).collect();
        }
        let ended = match options.with {
            Recovery::Fresh => self.file.end_task()?,
            _ => EndedTask::default(),
        };
        let recovered = self.go_on(&damaged, options.with, &past);
        if matches!(&recovered, Err(error) if *error.kind() != ErrorKind::NotDurable) {
            ended.undo();
        }
        recovered.inspect(|recovered| recovered.report(&self.key, began))
    }

    /// Recovers a damaged or missing file. For [`Recovery::Newest`], `past` has the entries, each with how many
    /// tasks ended after it.
    fn go_on(
        &self,
        damaged: &Damaged<'_>,
        with: Recovery,
        past: &[(Entry, usize)],
    ) -> Result<Recovered> {
        let mut recovered = Recovered::healthy(with);
        recovered.damage.clone_from(&damaged.corrupt);
        let last_way = match self.slot {
            None => "start fresh",
            Some(_) => "bring the host file back from another place, such as git",
        };
        let states = past
            .iter()
            .map(|(entry, age)| (entry.id.clone(), *age, entry));
        let read = |entry: &Entry| match self.file.read_entry(&entry.path) {
            // This entry may be readable the next time, so do not bring back an older one.
            Err(error) if matches!(error.code(), "io" | "disk-full") => Err(error),
            read => Ok(read.ok().flatten()),
        };
        recovered.go_on(damaged.bytes(), states, read, last_way)?;
        let mut entries = past.iter().map(|(entry, _)| entry);
        let entry = entries.find(|entry| recovered.entry.as_ref() == Some(&entry.id));
        if let Some(entry) = entry {
            recovered.written = entry.saved;
            // This also applies if the file was removed: the state of its last save is then in no entry.
            recovered.may_lack = true;
        }
        let brought_back = entry.map(|entry| &*entry.path);
        let document = recovered.document.take();
        let of_part = |document: Option<Document>| {
            let part = self.part_of(document.map(Stored::new));
            part.ok().flatten()
        };
        let part = of_part(document.clone());
        let revision = part.as_ref().map(|part| part.revision.clone());
        let text = document.as_ref().map(Document::text);
        let text = text.map(|text| (text, revision.clone()));
        let quarantined = damaged.replace(text, brought_back)?;
        tracing::info!(?with, entry = ?recovered.entry, "recovered");
        recovered.put_aside = quarantined.map(|path| path.display().to_string());
        recovered.saved = revision.map(|revision| Saved::new(Outcome::Replaced, revision, None));
        recovered.document = part.map(|part| part.document);
        let salvaged = of_part(recovered.salvaged.take());
        recovered.salvaged = salvaged.map(|part| part.document);
        Ok(recovered)
    }
}

pub(super) fn no_history() -> Error {
    Error::new(ErrorKind::NotOffered { what: "history" })
}

/// The result of a read; the inner error is the damage, if that is the cause.
fn readable<T>(read: Result<T>) -> Result<std::result::Result<T, Corrupt>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) => match error.kind() {
            ErrorKind::Corrupt(corrupt) => Ok(Err(corrupt.clone())),
            _ => Err(error),
        },
    }
}
