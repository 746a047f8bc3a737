//! The order in which a protocol's backups were made, and the task that each belongs to.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Entry, History, Naming};
use crate::fsio::{self, Durability, FileError, Present};
use crate::json::Document;
use crate::store::EntryId;
use crate::store::file::own_file::{OwnFile, folders};
use crate::store::file::unique::in_order;

/// How many names of removed backups stay in the note.
const MOST_NOTED: usize = 256;

impl<'o> History<'o> {
    /// The note of the order in which a protocol's backups were made: one name per line, oldest first.
    fn order_note(&self) -> OwnFile {
        OwnFile::beside(&self.target, folders::ORDER, "")
    }

    /// The order of the backups as noted, including some that are gone. If the note is lost, only the order is lost.
    pub(in crate::store) fn noted_order(&self) -> Vec<String> {
        if matches!(self.naming, Naming::Numbers { .. }) {
            return Vec::new();
        }
        let read = self.order_note().read(MOST_NOTED as u64 * 512);
        let bytes = read.ok().flatten().map(|read| read.bytes);
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// These backups in the order in which they were made, oldest first. Neither names nor file times show that
    /// order, since clocks are set and checkouts give new times. Backups made by other programs are placed by
    /// the stamp inside them, else by their names.
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

    /// The stamp inside a backup.
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

    /// Notes that a backup is the newest, and returns the previous note. Best effort: a backup that is not
    /// noted is placed by the stamp inside it.
    pub(super) fn note_order(
        &self,
        names: &[String],
        made: &Path,
    ) -> Option<(OwnFile, Vec<String>)> {
        let (Naming::Protocol(_), Some(made)) = (&self.naming, made.file_name()) else {
            return None;
        };
        let present = names.iter().filter(|name| self.is_ours(name));
        let present = self.in_order_made(present.cloned().collect());
        // Removed backups stay in the note for a while, because a task may have ended with one of them.
        let before = self.noted_order();
        let mut order = before.clone();
        order.retain(|name| !present.contains(name));
        order.drain(..order.len().saturating_sub(MOST_NOTED));
        order.extend(present);
        order.push(made.to_string_lossy().into_owned());
        let note = self.order_note();
        if let Err(error) = write_order(&note, &order) {
            tracing::warn!(path = %note.path().display(), %error, "the order of backups is not noted");
        }
        Some((note, before))
    }

    /// Whether an entry belongs to the task that ended at this boundary, or to an earlier one. `noted` is the
    /// [noted order](History::noted_order).
    pub(in crate::store::file) fn is_up_to(
        &self,
        entry: &Entry,
        boundary: &Boundary,
        noted: &[String],
    ) -> bool {
        let order = |id: &str| in_order(id);
        let (entry_order, boundary_order) = (order(entry.id.as_str()), order(&boundary.entry));
        let saved = entry.saved.map(since_epoch);
        match &self.naming {
            // A number occurs again only if the history was removed; the new entry is then later.
            Naming::Numbers { .. } => {
                let is_later = saved.zip(boundary.saved).is_some_and(|(is, was)| is > was);
                entry_order <= boundary_order && !is_later
            }
            Naming::Protocol(_) => {
                let place = |id: &str| {
                    noted
                        .iter()
                        .position(|name| name.strip_suffix(".json") == Some(id))
                };
                match (place(entry.id.as_str()), place(&boundary.entry)) {
                    (Some(entry), Some(boundary)) => entry <= boundary,
                    _ => (saved, entry_order) <= (boundary.saved, boundary_order),
                }
            }
        }
    }
}

/// The newest entry of a task that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::file) struct Boundary {
    entry: String,
    /// When that state was written, in seconds since 1970 and nanoseconds. It distinguishes entries whose
    /// number occurs again because the history was removed.
    saved: Option<(u64, u32)>,
}

impl Boundary {
    pub(in crate::store::file) fn after(entry: &Entry) -> Boundary {
        Boundary {
            entry: entry.id.to_string(),
            saved: entry.saved.map(since_epoch),
        }
    }

    pub(in crate::store::file) fn is_of(&self, entry: &EntryId) -> bool {
        self.entry == entry.as_str()
    }
}

fn since_epoch(time: SystemTime) -> (u64, u32) {
    let span = time.duration_since(UNIX_EPOCH);
    span.map_or((0, 0), |span| (span.as_secs(), span.subsec_nanos()))
}

pub(super) fn write_order(note: &OwnFile, order: &[String]) -> Result<(), FileError> {
    let text = format!("{}\n", order.join("\n"));
    note.write(text.as_bytes(), Present::Whatever, Durability::None)
}
