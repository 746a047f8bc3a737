//! What a save tells of the work, for the record of its files.

use std::collections::{HashMap, HashSet};

use crate::checkpoint::{Checkpoint, DoneItem, Timestamp};

/// What a save tells of the work that the state before it did not.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Files that it names for the first time, or with newly finished work.
    pub(super) named: HashSet<String>,
    /// Files that the state before named.
    pub(super) named_before: HashSet<String>,
    /// Whether work is finished that was not.
    finished: bool,
    /// Whether work is begun that was not.
    begun: bool,
    /// Who has the task before and after.
    was: Option<String>,
    is: Option<String>,
    /// The stamp before.
    pub(super) stamp: Option<Timestamp>,
}

impl Work {
    /// What a first save tells: all that is in it.
    pub(super) fn first<C: Checkpoint>(checkpoint: &C) -> Work {
        let agent = checkpoint.handoff().agent;
        Work {
            named: checkpoint.files().into_iter().map(str::to_owned).collect(),
            finished: true,
            was: agent.clone(),
            is: agent,
            ..Work::default()
        }
    }

    pub(super) fn between<C: Checkpoint>(before: &C, after: &C) -> Work {
        let (was, is) = (before.handoff(), after.handoff());
        let known: HashSet<&str> = before.files().into_iter().collect();
        let files = after.files().into_iter();
        let mut named: HashSet<String> = files
            .filter(|file| !known.contains(file))
            .map(str::to_owned)
            .collect();
        let mut finished = false;
        for item in new_items(&was.done, &is.done) {
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
            named_before: known.into_iter().map(str::to_owned).collect(),
            finished,
            begun,
            was: was.agent,
            is: is.agent,
            stamp: before.updated_at().cloned(),
        }
    }

    /// Whether the save tells of work, so that it answers for the files as they are now.
    ///
    /// To begin work is such a word only of the agent that the record is of: another may begin without having
    /// looked.
    pub(super) fn is_progress(&self, recorded_by: Option<&str>) -> bool {
        let recorded_by = recorded_by.or(self.was.as_deref());
        let is_own = recorded_by == self.is.as_deref();
        self.finished || !self.named.is_empty() || (self.begun && is_own)
    }

    /// Who answers for a record that is made with this save.
    pub(super) fn agent(&self, is_progress: bool) -> Option<&str> {
        match is_progress {
            true => self.is.as_deref(),
            false => self.was.as_deref(),
        }
    }
}

/// The finished work that was not there before.
fn new_items<'i>(was: &'i [DoneItem], is: &'i [DoneItem]) -> impl Iterator<Item = &'i DoneItem> {
    let known = Known::of(was);
    is.iter().filter(move |item| !known.has(item))
}

/// Finished work, found by its text: lists may be long, and their beginnings go.
pub(super) struct Known<'i>(HashMap<&'i str, Vec<&'i DoneItem>>);

impl<'i> Known<'i> {
    pub(super) fn of(items: &'i [DoneItem]) -> Self {
        let mut known: HashMap<&str, Vec<&DoneItem>> = HashMap::new();
        for item in items {
            known.entry(&item.text).or_default().push(item);
        }
        Known(known)
    }

    pub(super) fn has(&self, item: &DoneItem) -> bool {
        let same_text = self.0.get(item.text.as_str());
        same_text.is_some_and(|same| same.contains(&item))
    }
}
