//! What a save takes over from the record before it, and of which files it makes a new one.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};

use super::fingerprint::{FilePrint, Fingerprint, Fingerprints};
use super::head::Head;
use super::stamp::Saved;
use super::state_of;
use super::tracking::{Found, Project, Tracking};
use crate::checkpoint::{FilesTold, Timestamp};

/// What is known of a save that follows another.
///
/// A save vouches for the files that it names for the first time, and the work that it tells for all files.
/// Any other save must not: whoever only notes something, or takes the task over, has not made the changes
/// that the next agent must be warned of.
#[derive(Debug)]
pub(crate) struct Renewal<'r> {
    /// What was recorded before; `None` when nothing was.
    pub(crate) before: Option<&'r Fingerprints>,
    /// The stamp of the state before, by which files are judged that nothing was recorded of.
    pub(crate) stamp: Option<&'r Timestamp>,
    /// The present, for that stamp.
    pub(crate) now: DateTime<Utc>,
    /// The files that this save names for the first time, or with new work.
    pub(crate) named: &'r HashSet<String>,
    /// Whether it tells of work: then all files are taken as they are now.
    pub(crate) is_progress: bool,
    /// Who answers for the record, if it is made anew.
    pub(crate) agent: Option<&'r str>,
}

impl Renewal<'_> {
    /// The record of these files after the save, and what is to be told of them.
    ///
    /// When none of them is there, nothing new is recorded: that is rather the wrong folder than a project
    /// without its files.
    pub(crate) fn of<'f>(
        &self,
        files: impl IntoIterator<Item = &'f str>,
        tracking: &Tracking,
    ) -> (Fingerprints, FilesTold) {
        let mut project = Project::new(tracking);
        let saved = Saved::new(self.stamp, Some(self.now));
        let (mut told, mut seen) = (FilesTold::default(), HashSet::new());
        let (mut kept, mut taken) = (BTreeMap::new(), BTreeMap::new());
        let mut any_there = false;
        for path in files {
            if !seen.insert(path) || !project.tracks(path) {
                continue;
            }
            let found = project.find(path);
            any_there |= !matches!(found, Found::Missing);
            let is_named = self.named.contains(path);
            if is_named {
                match found {
                    Found::Missing => told.missing.push(path.to_owned()),
                    Found::Outside(_) => told.outside.push(path.to_owned()),
                    _ => {}
                }
            } else {
                kept.insert(path.to_owned(), self.kept(path));
            }
            let print = self.print(path, found, &saved, is_named, &mut told);
            taken.insert(path.to_owned(), print);
        }
        let fresh = self.is_progress || self.before.is_none();
        let before = self.before.cloned().unwrap_or_default();
        if !any_there {
            told.taken_over.clear();
            let files = kept;
            return (Fingerprints { files, ..before }, told);
        }
        let prints = Fingerprints {
            head: match fresh {
                true => Head::of(project.root()),
                false => before.head,
            },
            agent: match fresh {
                true => self.agent.map(str::to_owned),
                false => before.agent,
            },
            files: taken,
        };
        (prints, told)
    }

    /// The record of files that nobody looks at: what was known of them still is all.
    pub(crate) fn unseen<'f>(&self, files: impl IntoIterator<Item = &'f str>) -> Fingerprints {
        let files = files.into_iter();
        Fingerprints {
            files: files
                .map(|path| (path.to_owned(), self.kept(path)))
                .collect(),
            ..self.before.cloned().unwrap_or_default()
        }
    }

    fn known(&self, path: &str) -> Option<&Fingerprint> {
        let print = self.before?.files.get(path)?;
        (*print != Fingerprint::Unknown).then_some(print)
    }

    /// What was known of a file. Where that is nothing, the stamp before tells, and must go on telling: that of
    /// this save is newer than a change that nobody has seen yet.
    fn kept(&self, path: &str) -> Fingerprint {
        let known = self.known(path).cloned();
        known.unwrap_or_else(|| Fingerprint::Since(self.stamp.cloned()))
    }

    fn print(
        &self,
        path: &str,
        found: Found,
        saved: &Saved,
        is_named: bool,
        told: &mut FilesTold,
    ) -> Fingerprint {
        let known = self.known(path);
        if is_named {
            return Fingerprint::take(found, known);
        }
        // Its marks are taken before its contents are compared: a change in between shows later.
        let marks = match &found {
            Found::File(_, found) => Some(FilePrint::of(found)),
            _ => None,
        };
        let state = state_of(&found, known, saved, Some(self.now));
        if state.is_same() {
            return match (marks, known) {
                (Some(marks), Some(Fingerprint::File(known))) => {
                    Fingerprint::File(known.renewed(marks))
                }
                _ => Fingerprint::take(found, known),
            };
        }
        if !self.is_progress {
            return self.kept(path);
        }
        if state.is_changed() {
            told.taken_over.push(path.to_owned());
        }
        Fingerprint::take(found, known)
    }
}
