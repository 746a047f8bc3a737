//! Who claimed a checkpoint.

use std::path::Path;

use super::scan::Scan;
use super::{Finding, Owner, bounded};
use crate::checkpoint::{Claim, ErrorKind, Key, Result};
use crate::store::{BuilderStateStore, CheckpointStore, FileOptions, FileStore};

pub(super) fn of_file(path: &Path, key: &Key, scan: &mut Scan<'_>) -> Option<Owner> {
    let store = FileStore::single(path, FileOptions::read_only()).ok()?;
    let store = store.with_key(key.clone());
    told(store.claimed(key), &path.display().to_string(), scan)
}

pub(super) fn of_slot(path: &Path, slot: &Key, scan: &mut Scan<'_>) -> Option<Owner> {
    let store = BuilderStateStore::with_options(path, FileOptions::read_only());
    let place = format!("{} ({slot})", path.display());
    told(store.claimed(slot), &place, scan)
}

pub(super) fn of_key(
    name: &str,
    store: &dyn CheckpointStore,
    key: &Key,
    scan: &mut Scan<'_>,
) -> Option<Owner> {
    told(store.claimed(key), &format!("{name}: {key}"), scan)
}

fn told(claimed: Result<Option<Claim>>, place: &str, scan: &mut Scan<'_>) -> Option<Owner> {
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
