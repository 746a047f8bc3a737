//! What a store keeps beside a checkpoint: who claimed it, and whether an older state came back.

use std::path::Path;
use std::time::SystemTime;

use chrono::TimeDelta;

use super::scan::Scan;
use super::{Finding, Owner, Place, Row, RowState, bounded};
use crate::checkpoint::{
    Claim, ErrorKind, Handoff, Key, Layout, Result, Revision, RuleContext, Timestamp,
};
use crate::checkpoints::{NEWEST, came_back, count_cut};
use crate::formats::Format;
use crate::fsio;
use crate::json::Document;
use crate::staleness::Reason;
use crate::store::{BuilderStateStore, CheckpointStore, FileOptions, FileStore};

/// What a store keeps beside a checkpoint.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) owner: Option<Owner>,
    pub(super) rolled_back: Option<Reason>,
    /// How many finished steps are not where the checkpoint says they are.
    pub(super) elsewhere_missing: u64,
    /// The task it was made for, and that which its place is for by now.
    pub(super) former_task: Option<(String, String)>,
}

/// The state that is there now.
pub(super) struct Present<'p> {
    pub(super) revision: &'p Revision,
    pub(super) updated_at: Option<&'p Timestamp>,
    pub(super) format: &'p Format,
    pub(super) handoff: &'p Handoff,
}

impl Present<'_> {
    /// A history that cannot be listed is told by `ckpt history`; it hides no row.
    fn came_back(&self, store: &dyn CheckpointStore, key: &Key) -> Option<Reason> {
        let stamp_of = |document: &Document| {
            let examined = (self.format.open)(document, &RuleContext::none()).ok();
            examined.and_then(|examined| examined.updated_at)
        };
        came_back(store, key, self.revision, self.updated_at, &stamp_of)
            .ok()
            .flatten()
    }

    /// What is beside a checkpoint in whose folder no store keeps anything.
    pub(super) fn without_store(&self) -> Beside {
        Beside {
            elsewhere_missing: self.handoff.done_elsewhere,
            ..Beside::default()
        }
    }

    /// As [`Checkpoints`](crate::Checkpoints) count it for `resume`, of any format.
    fn missing_elsewhere(&self, store: &dyn CheckpointStore, key: &Key) -> u64 {
        let said = self.handoff.done_elsewhere;
        if said == 0 {
            return 0;
        }
        let dropped = store.newest_overflow(key, NEWEST).unwrap_or_default();
        // A longer log was read in part.
        if dropped.len() >= NEWEST {
            return 0;
        }
        let found = count_cut(&dropped, self.handoff, |value| {
            let document = Document::parse(value.to_string().as_bytes()).ok()?;
            Some(
                (self.format.open)(&document, &RuleContext::none())
                    .ok()?
                    .handoff,
            )
        });
        said.saturating_sub(found)
    }
}

pub(super) fn of_file(
    path: &Path,
    layout: Layout,
    key: &Key,
    present: &Present<'_>,
    scan: &mut Scan<'_>,
) -> Beside {
    let Ok(store) = FileStore::single(path, FileOptions::read_only()) else {
        return present.without_store();
    };
    let store = store.with_layout(layout).with_key(key.clone());
    told(&store, key, present, &path.display().to_string(), scan)
}

pub(super) fn of_slot(
    path: &Path,
    slot: &Key,
    present: &Present<'_>,
    scan: &mut Scan<'_>,
) -> Beside {
    let store = BuilderStateStore::with_options(path, FileOptions::read_only());
    let place = format!("{} ({slot})", path.display());
    let mut beside = told(&store, slot, present, &place, scan);
    let context = store.load(slot).ok().flatten().map(|stored| stored.context);
    beside.former_task = context.and_then(|context| context.task.zip(context.place_is_for));
    beside
}

pub(super) fn of_key(
    name: &str,
    store: &dyn CheckpointStore,
    key: &Key,
    present: &Present<'_>,
    scan: &mut Scan<'_>,
) -> Beside {
    told(store, key, present, &format!("{name}: {key}"), scan)
}

fn told(
    store: &dyn CheckpointStore,
    key: &Key,
    present: &Present<'_>,
    place: &str,
    scan: &mut Scan<'_>,
) -> Beside {
    Beside {
        owner: owner(store.claimed(key), place, scan),
        rolled_back: present.came_back(store, key),
        elsewhere_missing: present.missing_elsewhere(store, key),
        former_task: None,
    }
}

fn owner(claimed: Result<Option<Claim>>, place: &str, scan: &mut Scan<'_>) -> Option<Owner> {
    match claimed {
        Ok(claim) => Some(Owner::of(&claim?, scan.now)),
        // A store without claims has no owners.
        Err(error) if matches!(error.kind(), ErrorKind::NotOffered { .. }) => None,
        Err(error) => {
            scan.findings.push(Finding::ClaimsUnreadable {
                place: place.to_owned(),
                reason: bounded::text(&error.to_string()),
            });
            None
        }
    }
}

impl Scan<'_> {
    /// The tasks of a folder that were claimed and have no checkpoint: their agents may have died before their
    /// first one.
    pub(super) fn claims_alone(&mut self, folder: &Path) {
        let records = fsio::names(&folder.join(fsio::OWN_FOLDER).join("claims"));
        let mut records = records.unwrap_or_default();
        records.sort();
        for record in records {
            let name = record.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.filter(|name| name.ends_with(".json")) else {
                continue;
            };
            let path = folder.join(name);
            // What cannot be looked at is told with the files of the folder.
            if matches!(fsio::look(&path), Ok(None)) {
                self.claimed_alone(&path);
            }
        }
    }

    fn claimed_alone(&mut self, path: &Path) {
        let formats = &self.options.formats;
        let format = match &self.options.format {
            Some(name) => formats.get(name).ok().copied(),
            None => formats.detect(path, None).ok().map(|found| found.format),
        };
        let layout = format.map_or_else(Layout::default, |format| (format.layout)());
        let Ok(store) = FileStore::single(path, FileOptions::read_only()) else {
            return;
        };
        let store = store.with_layout(layout);
        let Some(key) = store.key().cloned() else {
            return;
        };
        let place = path.display().to_string();
        let claim = match store.claimed(&key) {
            Ok(Some(claim)) => claim,
            claimed => {
                owner(claimed, &place, self);
                return;
            }
        };
        // One whose task ended, and was put aside or deleted, was begun. File systems stamp coarsely.
        let since = SystemTime::from(claim.since - TimeDelta::seconds(1));
        let entries = store.history(&key).unwrap_or_default();
        let was_deleted = entries
            .iter()
            .any(|entry| entry.saved.is_none_or(|saved| saved >= since));
        if claim.released || was_deleted || was_archived(path, &layout, since) {
            return;
        }
        let owner = Owner::of(&claim, self.now);
        let task = key.to_string();
        let mut row = Row::new(Place::file(path), RowState::Claimed);
        row.format = format.map(|format| format.name);
        row.agent = bounded::said(Some(&owner.name));
        row.task = bounded::said(Some(&task));
        if !owner.stands {
            self.findings.push(Finding::NeverBegun {
                place,
                task: bounded::text(&task),
                owner: owner.name.clone(),
                at: owner.until,
            });
        }
        row.owner = Some(owner);
        self.push(row);
    }
}

/// Whether the checkpoint of a file was put aside in a state that was saved since then.
fn was_archived(path: &Path, layout: &Layout, since: SystemTime) -> bool {
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let names = fsio::names(fsio::parent_of(path)).unwrap_or_default();
    names.iter().any(|name| {
        let is_archive = layout.is_archive_of(&name.to_string_lossy(), stem);
        let saved =
            || std::fs::metadata(path.with_file_name(name)).and_then(|found| found.modified());
        is_archive && saved().is_ok_and(|saved| saved >= since)
    })
}
