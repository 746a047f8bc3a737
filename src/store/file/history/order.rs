//! The order in which the backups of a protocol were made, and which are of which task.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::{Entry, History, Naming};
use crate::fsio::{self, Durability, FileError, Present, Replace};
use crate::json::Document;
use crate::store::file::task_boundary::{Boundary, since_epoch};
use crate::store::file::unique::in_order;

/// How many names of backups that are gone are still noted.
const MOST_NOTED: usize = 256;

impl<'o> History<'o> {
    /// Where the order is noted in which a protocol's backups were made: one name a line, the oldest first.
    fn order_note(&self) -> PathBuf {
        self.own("order")
    }

    /// The order of the backups as far as it is noted, also of some that are gone. Without the note nothing is
    /// lost but the order.
    pub(in crate::store) fn noted_order(&self) -> Vec<String> {
        if matches!(self.naming, Naming::Numbers { .. }) {
            return Vec::new();
        }
        let read = fsio::read_limited(&self.order_note(), MOST_NOTED as u64 * 512);
        let bytes = read.ok().flatten().map(|read| read.bytes);
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// These backups in the order in which they were made, the oldest first. Neither names nor the times of files
    /// tell it, since clocks are set and checkouts give new times. Those that others made join by what they
    /// say of themselves, else by their names.
    pub(super) fn in_order_made(&self, names: Vec<String>) -> Vec<String> {
        let noted = self.noted_order();
        let known: HashSet<&String> = noted.iter().collect();
        let mut others: Vec<String> = Vec::new();
        let mut present: HashSet<String> = HashSet::new();
        for name in names {
            if !known.contains(&name) {
                others.push(name.clone());
            }
            present.insert(name);
        }
        let mut ordered = noted;
        ordered.retain(|name| present.contains(name));
        if others.is_empty() {
            return ordered;
        }
        let mut stamps = HashMap::new();
        for name in &present {
            stamps.insert(name.clone(), self.written_in(name));
        }
        others.sort_by_cached_key(|name| (stamps.get(name).copied().flatten(), in_order(name)));
        for other in others {
            let is_before = |known: &String| {
                let stamp = |name| stamps.get(name).copied().flatten();
                match (stamp(known), stamp(&other)) {
                    (Some(known), Some(other)) => known <= other,
                    _ => in_order(known) <= in_order(&other),
                }
            };
            let at = ordered.iter().rposition(is_before).map_or(0, |at| at + 1);
            ordered.insert(at, other);
        }
        ordered
    }

    /// The time that a backup says it is of.
    fn written_in(&self, name: &str) -> Option<DateTime<Utc>> {
        let Naming::Protocol(backups) = &self.naming else {
            return None;
        };
        let read = |folder: PathBuf| {
            let read = fsio::read_limited(&folder.join(name), self.options.max_bytes);
            read.ok().flatten()
        };
        let read = read(self.folder()).or_else(|| read(self.pins()))?;
        (backups.stamp_in)(&Document::parse(&read.bytes).ok()?)
    }

    /// Notes that a backup is the newest, and gives what was noted before. Best effort: what is not noted joins by
    /// what it says.
    pub(super) fn note_order(
        &self,
        names: &[String],
        made: &Path,
    ) -> Option<(PathBuf, Vec<String>)> {
        let (Naming::Protocol(_), Some(made)) = (&self.naming, made.file_name()) else {
            return None;
        };
        let present = names.iter().filter(|name| self.is_ours(name));
        let present = self.in_order_made(present.cloned().collect());
        // Those that are gone stay for a while: a task may have ended with one of them.
        let before = self.noted_order();
        let mut order = before.clone();
        order.retain(|name| !present.contains(name));
        order.drain(..order.len().saturating_sub(MOST_NOTED));
        order.extend(present);
        order.push(made.to_string_lossy().into_owned());
        let note = self.order_note();
        let written = fsio::create_folder(fsio::parent_of(&note));
        if let Err(error) = written.and_then(|()| write_order(&note, &order)) {
            tracing::warn!(path = %note.display(), %error, "the order of backups is not noted");
        }
        Some((note, before))
    }

    /// Whether an entry is of the task that ended with this one, or of one before.
    /// `noted` is the [order](History::noted_order) that is noted.
    pub(in crate::store::file) fn is_up_to(
        &self,
        entry: &Entry,
        border: &Boundary,
        noted: &[String],
    ) -> bool {
        let order = |id: &str| in_order(id);
        let (entry_order, border_order) = (order(entry.id.as_str()), order(&border.entry));
        let saved = entry.saved.map(since_epoch);
        match &self.naming {
            // A number comes again only where somebody removed the history, and then with newer states.
            Naming::Numbers { .. } => {
                let is_later = saved.zip(border.saved).is_some_and(|(is, was)| is > was);
                entry_order <= border_order && !is_later
            }
            Naming::Protocol(_) => {
                let place = |id: &str| {
                    noted
                        .iter()
                        .position(|name| name.strip_suffix(".json") == Some(id))
                };
                match (place(entry.id.as_str()), place(&border.entry)) {
                    (Some(entry), Some(border)) => entry <= border,
                    _ => (saved, entry_order) <= (border.saved, border_order),
                }
            }
        }
    }
}

pub(super) fn write_order(note: &Path, order: &[String]) -> Result<(), FileError> {
    let text = format!("{}\n", order.join("\n"));
    let replace = Replace::new(note, Present::Whatever).durability(Durability::None);
    replace.write(text.as_bytes()).map(drop)
}
