//! Listing the history of files, and going on from a damaged one.

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

    /// The checkpoint in an entry of the history.
    fn read_entry(&self, entry: &Entry) -> Result<Option<Stored>> {
        self.part_of(self.file.read_entry(&entry.path)?)
    }

    /// The state that is there now and the entries, each state once where it follows itself: a save that was
    /// killed leaves an entry of what is still present, and of a host file another slot may have changed. Of a host
    /// that is damaged or gone the newest state of a slot may be in the entry of another, and that is recovered.
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
        // Of a slot the hosts tell: one in which it was empty ended a task.
        let ages = match self.slot {
            Some(_) => Vec::new(),
            None => self.file.tasks_since(&history, &entries)?,
        };
        let mut all: Vec<HistoryEntry> = Vec::new();
        let (mut emptied, mut was_empty) = (0, false);
        match current {
            Ok(Some(stored)) => all.push(HistoryEntry::of(EntryId::current(), Ok(stored))?),
            // Only deleted: the task may go on.
            Ok(None) => was_empty = true,
            Err(corrupt) => all.push(HistoryEntry {
                bytes: self.file.size(),
                ..HistoryEntry::new(EntryId::current(), Err(corrupt))
            }),
        }
        for (at, entry) in entries.iter().enumerate() {
            let (revision, bytes) = match readable(self.read_entry(entry))? {
                Ok(Some(stored)) => (Ok(stored.revision), stored.document.text().len() as u64),
                // Gone meanwhile, or the slot was empty then.
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
            let what =
                "way to add to the history of a slot, of which each entry is a whole host file";
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

    /// A damaged host is mended as a whole, with the newest host that a save of any slot replaced. What the builder
    /// wrote since is in the quarantined text. There is no fresh host: a builder's whole state would go with the
    /// checkpoint.
    pub(super) fn recover(&self, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let Some(damaged) = self.file.damaged(options.fence)? else {
            return Ok(Recovered::healthy(options.with));
        };
        if self.slot.is_some() && options.with == Recovery::Fresh {
            return Err(not_recoverable(
                "a host file cannot begin fresh, for the builder's own state is in it; go on with the newest earlier \
                 state, or salvage the good part",
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

    /// Goes on from a damaged or missing file, with one of the entries of `past` where it shall be the newest of them. Each
    /// comes with how many tasks ended after it.
    fn go_on(
        &self,
        damaged: &Damaged<'_>,
        with: Recovery,
        past: &[(Entry, usize)],
    ) -> Result<Recovered> {
        let mut recovered = Recovered::healthy(with);
        recovered.damage.clone_from(&damaged.corrupt);
        let last_way = match self.slot {
            None => "go on fresh",
            Some(_) => "bring the host file back from elsewhere, such as git",
        };
        let states = past
            .iter()
            .map(|(entry, age)| (entry.id.clone(), *age, entry));
        let read = |entry: &Entry| match self.file.read_entry(&entry.path) {
            // It may be readable the next time, and then an older one would have been brought back.
            Err(error) if matches!(error.code(), "io" | "disk-full") => Err(error),
            read => Ok(read.ok().flatten()),
        };
        recovered.go_on(damaged.bytes(), states, read, last_way)?;
        let mut entries = past.iter().map(|(entry, _)| entry);
        let entry = entries.find(|entry| recovered.entry.as_ref() == Some(&entry.id));
        if let Some(entry) = entry {
            recovered.written = entry.saved;
            // Also where somebody removed the file: what its last save wrote is in no state.
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

/// What was read, or why it cannot be read, if that is what the error says.
fn readable<T>(read: Result<T>) -> Result<std::result::Result<T, Corrupt>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) => match error.kind() {
            ErrorKind::Corrupt(corrupt) => Ok(Err(corrupt.clone())),
            _ => Err(error),
        },
    }
}
