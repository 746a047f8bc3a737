//! Reads what a store keeps beside a checkpoint: its claim, its last saved state, and its dropped items.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use chrono::TimeDelta;

use super::scan::Scan;
use super::{ClaimHolder, Finding, Place, Row, RowState, bounded};
use crate::CheckpointStoreExt;
use crate::checkpoint::{
    Claim, Dropped, ErrorKind, Handoff, Key, Layout, Result, Revision, RuleContext, Timestamp,
};
use crate::checkpoints::{NEWEST, came_back, count_cut};
use crate::fsio;
use crate::json::Document;
use crate::registry::Format;
use crate::staleness::Reason;
use crate::store::{CheckpointStore, FileOptions, FileStore};

/// What a store keeps beside a checkpoint, as far as a row needs it.
pub(super) struct Beside {
    /// The last claim, or why the claims cannot be read.
    pub(super) claim: std::result::Result<Option<Claim>, String>,
    /// The reason if an older state came back.
    pub(super) rolled_back: Option<Reason>,
    /// How many dropped steps are not where the checkpoint states that they are.
    pub(super) elsewhere_missing: u64,
    /// Whether the checkpoint is the state that its store saved last. Then a change of the files beside it changes no
    /// verdict.
    pub(super) is_as_saved: bool,
}

impl Beside {
    /// For a checkpoint without a store.
    pub(super) fn without_store(handoff: &Handoff) -> Beside {
        Beside {
            claim: Ok(None),
            rolled_back: None,
            elsewhere_missing: handoff.done_elsewhere,
            is_as_saved: true,
        }
    }

    /// For the state with this hand-off under a key.
    pub(super) fn of(
        store: &dyn CheckpointStore,
        key: &Key,
        format: &Format,
        revision: &Revision,
        updated_at: Option<&Timestamp>,
        handoff: &Handoff,
        claim: Option<Option<Claim>>,
    ) -> Beside {
        let open = |document: &Document| format.inspect(document, &RuleContext::none()).ok();
        let stamp_of = |document: &Document| open(document)?.updated_at;
        let changed = store.history().map(|it| it.changed_without(key, revision));
        let is_as_saved = matches!(changed, None | Some(Ok(None)));
        let rolled_back = match is_as_saved {
            true => Ok(None),
            false => came_back(store, key, revision, || updated_at.cloned(), &stamp_of),
        };
        let handoff_of = |document: &Document| Some(open(document)?.handoff);
        Beside {
            claim: claim.map_or_else(|| claim_of(store.claimed(key)), Ok),
            // `ckpt history` reports a history that cannot be listed; the row is shown without it.
            rolled_back: rolled_back.ok().flatten(),
            elsewhere_missing: missing(store, key, handoff, &handoff_of),
            is_as_saved,
        }
    }
}

fn claim_of(claimed: Result<Option<Claim>>) -> std::result::Result<Option<Claim>, String> {
    match claimed {
        Ok(claim) => Ok(claim),
        // A store without claims has no holders.
        Err(error) if matches!(error.kind(), ErrorKind::NotOffered { .. }) => Ok(None),
        Err(error) => Err(bounded::text(&error.to_string())),
    }
}

/// How many dropped steps are missing from the dropped log, counted as in `resume` of
/// [`Checkpoints`](crate::Checkpoints).
fn missing(
    store: &dyn CheckpointStore,
    key: &Key,
    handoff: &Handoff,
    handoff_of: &dyn Fn(&Document) -> Option<Handoff>,
) -> u64 {
    if handoff.done_elsewhere == 0 {
        return 0;
    }
    let count = |dropped: &[Dropped]| {
        count_cut(dropped, handoff, |value| {
            let document = Document::parse(value.to_string().as_bytes()).ok()?;
            handoff_of(&document)
        })
    };
    let beside = store.beside();
    let newest = beside.newest_dropped(key, NEWEST).unwrap_or_default();
    let mut found = count(&newest);
    if found < handoff.done_elsewhere && newest.len() >= NEWEST {
        found = count(&beside.dropped(key).unwrap_or_default());
    }
    handoff.done_elsewhere.saturating_sub(found)
}

impl Scan<'_> {
    /// Adds the tasks of a folder that are claimed and have no checkpoint: their agents may have died before the first
    /// save.
    pub(super) fn claims_alone(&mut self, folder: &Path, records: &BTreeSet<OsString>) {
        for record in records {
            let name = record.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.filter(|name| name.ends_with(".json")) else {
                continue;
            };
            let path = folder.join(name);
            // A file that exists is reported with the files of the folder, readable or not.
            if matches!(fsio::look(&path), Ok(None)) {
                self.claim_alone(&path);
            }
        }
    }

    fn claim_alone(&mut self, path: &Path) {
        let format = self.format_of(path, None).ok();
        let layout = format.map_or_else(Layout::default, |format| format.layout());
        let Ok(store) = FileStore::single(path, FileOptions::read_only()) else {
            return;
        };
        let store = store.with_layout(layout);
        let Some(key) = store.key().cloned() else {
            return;
        };
        let was_archived = |since| was_archived(path, &layout, since);
        let place = Place::file(path);
        self.claim_of_key(place, (&store, &key), None, format.as_ref(), &was_archived);
    }

    /// Adds the task of a key that is claimed and has no checkpoint. `task` is its name if that is not the key.
    pub(super) fn claim_of_key(
        &mut self,
        at: Place,
        (store, key): (&dyn CheckpointStore, &Key),
        task: Option<&str>,
        format: Option<&Format>,
        was_archived: &dyn Fn(SystemTime) -> bool,
    ) {
        let place = at.to_string();
        let claim = match claim_of(store.claimed(key)) {
            Ok(Some(claim)) => claim,
            Ok(None) => return,
            Err(reason) => {
                let finding = Finding::ClaimsUnreadable { place, reason };
                return self.findings.push(finding);
            }
        };
        // If a checkpoint was archived or deleted since the claim, the task was begun. The second allows for coarse
        // file times.
        let since = SystemTime::from(claim.since - TimeDelta::seconds(1));
        let entries = store.states(key).unwrap_or_default();
        let mut entries = entries.iter();
        let was_deleted = entries.any(|entry| entry.saved.is_none_or(|saved| saved >= since));
        if claim.released || was_deleted || was_archived(since) {
            return;
        }
        let owner = ClaimHolder::of(&claim, self.now);
        let task = task.unwrap_or(key.as_str()).to_owned();
        let mut row = Row::new(at, RowState::Claimed);
        row.set_format(format);
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

/// Whether the checkpoint of a file was archived, in a state saved since this time.
fn was_archived(path: &Path, layout: &Layout, since: SystemTime) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let stem = stem.unwrap_or_default();
    let names = fsio::names(fsio::parent_of(path)).unwrap_or_default();
    names.iter().any(|name| {
        let is_archive = layout.is_archive_of(&name.to_string_lossy(), stem);
        let found = || std::fs::metadata(path.with_file_name(name));
        let saved = || found().and_then(|found| found.modified());
        is_archive && saved().is_ok_and(|saved| saved >= since)
    })
}
