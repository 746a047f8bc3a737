//! Which save vouches for which file.
//!
//! A save that reports work records the current state of the checkpoint's files. Any other save keeps the
//! recorded state: an agent that adds a note or takes the task over has not checked the files.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};

use super::fingerprint::{FilePrint, Fingerprint, Fingerprints};
use super::head::Head;
use super::stamp::Saved;
use super::state_of;
use super::tracking::{Found, Project, Tracking};
use crate::checkpoint::{Checkpoint, DoneIndex, SavedFiles, Timestamp};

/// The work that a save reports, as the difference of two states of a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Files that the checkpoint did not name before, or that newly finished work names.
    named: HashSet<String>,
    named_before: HashSet<String>,
    finished: bool,
    begun: bool,
    agent: Option<String>,
    agent_before: Option<String>,
    stamp_before: Option<Timestamp>,
}

impl Work {
    /// The work of a first save: everything is new.
    pub(crate) fn first<C: Checkpoint>(checkpoint: &C) -> Work {
        let agent = checkpoint.handoff().agent;
        Work {
            named: owned(checkpoint.files()),
            finished: true,
            agent: agent.clone(),
            agent_before: agent,
            ..Work::default()
        }
    }

    /// The work between two states of a checkpoint.
    pub(crate) fn between<C: Checkpoint>(before: &C, after: &C) -> Work {
        let (was, is) = (before.handoff(), after.handoff());
        let named_before = owned(before.files());
        let mut named = owned(after.files());
        named.retain(|file| !named_before.contains(file));
        let known = DoneIndex::of(&was.done);
        let mut finished = false;
        for item in is.done.iter().filter(|item| !known.has(item)) {
            finished = true;
            let files = item.files_created.iter().chain(&item.files_modified);
            named.extend(files.cloned());
        }
        let begun = is.in_progress.iter().any(|item| {
            let mut before = was.in_progress.iter();
            before.all(|known| known.text != item.text)
        });
        Work {
            named,
            named_before,
            finished,
            begun,
            agent: is.agent,
            agent_before: was.agent,
            stamp_before: before.updated_at().cloned(),
        }
    }

    /// Whether the checkpoint named the file before the save.
    pub(crate) fn named_before(&self, file: &str) -> bool {
        self.named_before.contains(file)
    }

    /// Whether the save reports work: it finishes work, names a file, or begins other work by the agent that
    /// made the record. Another agent may begin work without having checked the files.
    pub(crate) fn is_reported(&self, before: Option<&Fingerprints>) -> bool {
        let recorded_by = before.and_then(|before| before.agent.as_deref());
        let begins_own =
            self.begun && recorded_by.or(self.agent_before.as_deref()) == self.agent.as_deref();
        self.finished || !self.named.is_empty() || begins_own
    }
}

fn owned(files: Vec<&str>) -> HashSet<String> {
    files.into_iter().map(str::to_owned).collect()
}

/// The fingerprints that remain after a save.
#[derive(Debug)]
pub(crate) struct Recording<'r> {
    /// The fingerprints of the previous save.
    pub(crate) before: Option<&'r Fingerprints>,
    pub(crate) work: &'r Work,
    /// Whether the save vouches for the files, because it reports work.
    pub(crate) vouches: bool,
    /// The project; `None` if the view does not track files.
    pub(crate) tracking: Option<&'r Tracking>,
    pub(crate) now: DateTime<Utc>,
}

impl Recording<'_> {
    /// The fingerprints of these files after the save, and what the caller should know about them.
    ///
    /// If none of the files exists, nothing new is recorded: this is more likely the wrong folder than a
    /// project without its files.
    pub(crate) fn of<'f>(
        &self,
        files: impl IntoIterator<Item = &'f str>,
    ) -> (Fingerprints, SavedFiles) {
        let mut project = self.tracking.map(Project::new);
        let mut report = SavedFiles::default();
        let (mut kept, mut taken) = (BTreeMap::new(), BTreeMap::new());
        let mut any_there = false;
        let mut seen = HashSet::new();
        for path in files {
            if !seen.insert(path)
                || project
                    .as_mut()
                    .is_some_and(|project| !project.tracks(path))
            {
                continue;
            }
            if !self.names(path) {
                kept.insert(path.to_owned(), self.kept(path));
            }
            let looks = self.vouches || self.known(path).is_none();
            let print = match project.as_mut().filter(|_| looks) {
                Some(project) => {
                    let found = project.find(path);
                    any_there |= !matches!(found, Found::Missing);
                    self.taken(path, found, &mut report)
                }
                None => self.kept(path),
            };
            taken.insert(path.to_owned(), print);
        }
        let before = self.before.cloned().unwrap_or_default();
        if !any_there {
            report.taken_over.clear();
            return (
                Fingerprints {
                    files: kept,
                    ..before
                },
                report,
            );
        }
        let (head, agent) = match (&project, self.vouches || self.before.is_none()) {
            (Some(project), true) => {
                let agent = if self.vouches {
                    &self.work.agent
                } else {
                    &self.work.agent_before
                };
                (Head::of(project.root()), agent.clone())
            }
            _ => (before.head, before.agent),
        };
        let files = taken;
        (Fingerprints { head, agent, files }, report)
    }

    fn names(&self, path: &str) -> bool {
        self.vouches && self.work.named.contains(path)
    }

    fn known(&self, path: &str) -> Option<&Fingerprint> {
        let print = self.before?.files.get(path)?;
        (*print != Fingerprint::Unknown).then_some(print)
    }

    /// The recorded fingerprint of a file. If there is none, the file is judged by the stamp before this save,
    /// now and later: the stamp of this save would hide a change that no agent has seen yet.
    fn kept(&self, path: &str) -> Fingerprint {
        let known = self.known(path).cloned();
        known.unwrap_or_else(|| Fingerprint::Since(self.work.stamp_before.clone()))
    }

    /// The current fingerprint of the file, if this save or the previous stamp vouches for it.
    fn taken(&self, path: &str, found: Found, report: &mut SavedFiles) -> Fingerprint {
        let known = self.known(path);
        if self.names(path) {
            match found {
                Found::Missing => report.missing.push(path.to_owned()),
                Found::Outside(_) => report.outside.push(path.to_owned()),
                _ => {}
            }
            return Fingerprint::take(found, known);
        }
        // The properties are read before the contents are compared, so that a later check finds a change made
        // in between.
        let marks = match &found {
            Found::File(_, found) => Some(FilePrint::of(found)),
            _ => None,
        };
        let saved = Saved::new(self.work.stamp_before.as_ref(), Some(self.now));
        let state = state_of(&found, known, &saved, Some(self.now));
        if !state.is_same() && !self.vouches {
            return self.kept(path);
        }
        if state.is_changed() {
            report.taken_over.push(path.to_owned());
        }
        match (marks, known) {
            // The contents were just compared, so they need not be read again.
            (Some(marks), Some(Fingerprint::File(known))) if state.is_same() => {
                Fingerprint::File(known.renewed(marks))
            }
            _ => Fingerprint::take(found, known),
        }
    }
}
