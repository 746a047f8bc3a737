//! What is there when a place is opened again.

use std::time::Duration;

use crate::checkpoint::{ClaimRequest, DropReason, Dropped};
use crate::store::Put;
use crate::testkit::rule::{Rule, Ruling, ensure};
use crate::testkit::scene::{Scene, number_of, numbered, past, put, put_fenced, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "a_reopened_store_has_all_that_was_saved",
        "What a save returned for is there when the place is opened again: document, cuts, claims, history.",
        &[],
        a_reopened_store_has_all_that_was_saved,
    ),
    Rule::new(
        "a_dropped_store_has_nothing_left_to_write",
        "A save is done when it returns: nothing of it waits for another call or for the end of the store.",
        &[],
        a_dropped_store_has_nothing_left_to_write,
    ),
];

fn a_reopened_store_has_all_that_was_saved(scene: &Scene<'_>) -> Ruling {
    let key = &scene.key;
    let first = scene.place.open()?;
    put(&*first, key, 1)?;
    let cut = Dropped::new("/x", DropReason::Elements(1), 7.into());
    let saved = first.put(key, Put::new(numbered(2)?).with_dropped(vec![cut]))?;
    let claim = match scene.offered.claims {
        true => Some(first.claim(key, &ClaimRequest::new("one", Duration::from_secs(3600)))?),
        false => None,
    };
    drop(first);

    let again = scene.place.open()?;
    let stored = there(&*again, key)?;
    ensure!(
        stored.revision == saved.revision,
        "2 was saved, and {} is there when the place is opened again",
        stored.document
    );
    ensure!(again.overflow(key)?.len() == 1, "what was cut is gone");
    if scene.offered.history {
        let found = past(&*again, key)?;
        ensure!(found == [1], "the earlier states are {found:?}");
    }
    if let Some(claim) = claim {
        let found = again.claimed(key)?;
        ensure!(
            found.as_ref() == Some(&claim),
            "{claim:?} was granted, and is {found:?} when the place is opened again"
        );
        put_fenced(&*again, key, 3, claim.fence)??;
    }
    Ok(())
}

fn a_dropped_store_has_nothing_left_to_write(scene: &Scene<'_>) -> Ruling {
    let reader = scene.place.open()?;
    for number in 1..=3 {
        let writer = scene.place.open()?;
        put(&*writer, &scene.key, number)?;
        // Never ended, as a process that is killed does not end its stores.
        std::mem::forget(writer);
        let found = number_of(&there(&*reader, &scene.key)?);
        ensure!(
            found == Some(number),
            "{number} was saved, and {found:?} is there"
        );
    }
    Ok(())
}
