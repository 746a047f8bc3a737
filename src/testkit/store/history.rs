//! The rules for earlier states of a document.

use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, Error, ErrorKind, Expect, Fence};
use crate::store::{
    CheckpointStore, ClaimChange, Claims, CopyOptions, DeleteOptions, EntryId, HistoryEntry, Keep,
    MemoryStore, Outcome, Put, Stored, copy,
};
use crate::testkit::fixture::{
    Fixture, is_conflict, number_of, numbered, past, put, put_fenced, put_over, refused,
};
use crate::testkit::{MovableClock, Place, Skipped};

/// A state that was replaced or deleted is in the history, and can be put back.
pub fn history_has_what_was_replaced_or_deleted(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), history) = (fixture.parts(), fixture.history()?);
    assert!(history.states(key).unwrap().is_empty(), "nothing was put");
    fixture.put_all(1..=4);
    fixture.assert_past(&[3, 2, 1], "after four puts");
    fixture.delete();
    fixture.assert_past(&[4, 3, 2, 1], "after four puts and a delete");
    if let Some(other) = &fixture.other {
        let found = history.states(other).unwrap();
        assert!(found.is_empty(), "{other} has a history too: {found:?}");
    }
    let entries = history.states(key).unwrap();
    let oldest = history
        .load_revision(key, &entries.last().unwrap().id)
        .unwrap();
    let put = Put::new(oldest.document.clone()).with_expect(Expect::Absent);
    store.put(key, put).unwrap();
    let now = fixture.there();
    assert_eq!(
        now.revision, oldest.revision,
        "after the oldest state was put back"
    );
    assert_eq!(
        number_of(&now),
        number_of(&oldest),
        "after the oldest state was put back"
    );
    Ok(())
}

/// The history begins with the present state, followed by the earlier ones in the reverse order of the writes.
pub fn history_is_newest_first(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, history) = (&fixture.key, fixture.history()?);
    // The same bytes occur twice: only the order of the writes distinguishes the states.
    fixture.put_all([1, 2, 1, 3, 2]);
    fixture.assert_past(&[3, 1, 2, 1], "after five puts");
    let entries = history.states(key).unwrap();
    let current: Vec<bool> = entries.iter().map(|entry| entry.is_current()).collect();
    let (first, rest) = current.split_first().unwrap();
    assert!(
        *first && !rest.contains(&true),
        "not only the first entry is the present state: {entries:?}"
    );
    for entry in &entries {
        let document = history.load_revision(key, &entry.id).unwrap().document;
        let bytes = document.text().len() as u64;
        // A store may omit the size.
        assert!(
            entry.bytes == 0 || entry.bytes == bytes,
            "entry {} has {bytes} bytes, and is listed with {}",
            entry.id,
            entry.bytes
        );
    }
    let current = history.load_revision(key, &entries[0].id).unwrap();
    assert_eq!(
        current.revision,
        fixture.there().revision,
        "the first entry"
    );
    assert_eq!(number_of(&current), Some(2), "the first entry");
    Ok(())
}

/// An entry that does not exist, or no longer exists, is refused, never replaced by another.
pub fn a_missing_entry_is_refused(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, history) = (&fixture.key, fixture.history()?);
    let (current, never) = (EntryId::current(), "987654".parse::<EntryId>().unwrap());
    let refuse = |what: &str, entry: &EntryId| {
        let answer = history.load_revision(key, entry);
        refused(&format!("the load of {what}"), answer, is_missing);
        let answer = history.pin(key, entry, true);
        refused(&format!("the pin of {what}"), answer, is_missing);
    };
    refuse("the present state of nothing", &current);
    fixture.put_all([1, 2]);
    refuse("an entry that never was", &never);
    fixture.delete();
    refuse("the present state of a deleted document", &current);
    Ok(())
}

fn is_missing(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::NoSuchRevision { .. })
}

/// A write that fails or changes nothing neither adds an entry to the history nor removes one.
pub fn failed_writes_leave_the_history(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.history()?;
    fixture.put_all(1..=4);
    for _ in 0..15 {
        let answer = put_over(store, key, 9, Expect::Absent);
        refused("a put with a wrong expectation", answer, is_conflict);
        let answer = store.transact(key, |_| Err(Error::refused("not now")));
        assert!(answer.is_err(), "a refused transaction was done");
        let answer = store.delete(key, &DeleteOptions::new().with_expect(Expect::Absent));
        refused("a delete with a wrong expectation", answer, is_conflict);
        let unchanged = fixture.put(4);
        assert_eq!(
            unchanged.outcome,
            Outcome::Unchanged,
            "a put of the same bytes"
        );
    }
    fixture.assert_past(&[3, 2, 1], "after writes that failed or changed nothing");
    Ok(())
}

/// A store keeps no more states of a key than its limit, and keeps the newest.
pub fn history_is_bounded(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, history) = (&fixture.key, fixture.history()?);
    let keeps = place.keeps();
    let keeps = keeps.ok_or(Skipped("the place does not say how many states are kept"))?;
    let last = keeps as u64 + 8;
    fixture.put_all(0..=last);
    let newest: Vec<u64> = (0..last).rev().take(keeps).collect();
    assert_eq!(past(history, key), newest, "kept of {last} earlier states");
    // The limit also holds for a document that is created and deleted repeatedly.
    for number in 100..100 + last {
        fixture.put(number);
        fixture.delete();
    }
    let found = past(history, key);
    assert!(
        found.len() <= keeps && found.first() == Some(&(99 + last)),
        "after {last} creations and deletes the earlier states are {found:?}"
    );
    Ok(())
}

/// The newest entry and pinned entries are never pruned, whatever the limits.
pub fn pruning_keeps_the_newest_and_pinned_entries(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, history) = (&fixture.key, fixture.history()?);
    if fixture.keeps() < 5 {
        return Err(Skipped("the store keeps fewer than five earlier states"));
    }
    fixture.put_all(1..=6);
    let third = history.states(key).unwrap()[3].id.clone();
    let pinned = history.pin(key, &third, true).unwrap();
    assert_eq!(pinned, third, "the id of an entry after it was pinned");
    let present = history.pin(key, &EntryId::current(), true).unwrap();
    assert!(
        !present.is_current(),
        "the pinned present state has no entry"
    );
    let entries = history.states(key).unwrap();
    let pinned = entries.iter().filter(|entry| entry.pinned).count();
    assert_eq!(pinned, 2, "pinned entries in the history");
    let pruned = history.prune(key, &Keep::newest(0)).unwrap();
    fixture.assert_past(&[6, 5, 3], "after pruning to what is pinned");
    assert!(pruned.len() >= 3, "pruning returns only {pruned:?}");
    for id in &pruned {
        let answer = history.load_revision(key, id);
        refused("the load of a pruned entry", answer, is_missing);
    }
    // The present state, once pinned, can be unpinned as the present state, too.
    history.pin(key, &EntryId::current(), false).unwrap();
    history.pin(key, &third, false).unwrap();
    fixture.put(7);
    history.prune(key, &Keep::newest(1)).unwrap();
    fixture.assert_past(&[6], "after pruning to one");
    Ok(())
}

/// The newest earlier state is never pruned, even if the key was deleted or created anew.
pub fn pruning_keeps_what_was_deleted_last(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, history) = (&fixture.key, fixture.history()?);
    fixture.put_all([1, 2]);
    fixture.delete();
    history.prune(key, &Keep::newest(0)).unwrap();
    fixture.assert_past(&[2], "after a delete and pruning");
    fixture.put(3);
    history.prune(key, &Keep::newest(0)).unwrap();
    fixture.assert_past(&[2], "after a new document and pruning");
    Ok(())
}

/// A save that is only a heartbeat replaces the present state without adding an entry to the history.
pub fn a_heartbeat_leaves_no_entry(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.history()?;
    fixture.put_all([1, 2]);
    for number in 3..=8 {
        let heartbeat = Put::new(numbered(number)).skip_history();
        store.put(key, heartbeat).unwrap();
        fixture.assert_number(number, "after a heartbeat");
    }
    fixture.assert_past(&[1], "after six heartbeats");
    fixture.put(9);
    fixture.assert_past(&[8, 1], "after a put over heartbeats");
    Ok(())
}

/// A copy from another store keeps the states as they are: their order and times, which are pinned, and to which task
/// each belongs. Later fences are greater than those of the other store. A key with a document takes no states.
pub fn a_history_can_come_from_another_store(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), history) = (fixture.parts(), fixture.history()?);
    if fixture.capabilities().embedded {
        let none = history
            .history()
            .unwrap()
            .append(key, &Stored::new(numbered(1)), 0);
        refused("a state of a larger file", none, |kind| {
            matches!(kind, ErrorKind::NotOffered { .. })
        });
        return Err(Skipped("the store keeps documents inside a larger file"));
    }
    if fixture.keeps() < 3 {
        return Err(Skipped("the store keeps fewer than three earlier states"));
    }
    let clock = MovableClock::new();
    let source = MemoryStore::new().with_clock(clock.clone());
    clock.step(-86_400);
    put(&source, key, 1);
    put(&source, key, 2);
    source.pin(key, &EntryId::current(), true).unwrap();
    source.delete(key, &DeleteOptions::new()).unwrap();
    put(&source, key, 3);
    put(&source, key, 4);
    let claim = store.claims().map(|_| {
        let request = ClaimRequest::new("one", Duration::from_secs(60));
        let claim = source.claim(key, &request).unwrap();
        source.release(key, claim.fence).unwrap();
        // Greater than any fence that is derived from the time.
        let fence = Fence::new(claim.fence.number() + 1_000_000_000);
        let change = ClaimChange::AtLeast { fence };
        source.change_claim(key, &change).unwrap().fence
    });
    for copied in [1, 0] {
        let report = copy(&source, store, &CopyOptions::new(), &mut |_| {}).unwrap();
        let (refused, number) = (&report.refused, report.copied);
        assert!(
            refused.is_empty(),
            "what comes from another store was refused: {refused:?}"
        );
        assert_eq!(number, copied, "the number of copied keys");
    }
    let wanted = source.states(key).unwrap();
    let found = history.states(key).unwrap();
    let seen = |entries: &[HistoryEntry]| -> Vec<_> {
        let entries = entries.iter();
        entries
            .map(|entry| (entry.revision.clone(), entry.pinned, entry.tasks_since))
            .collect()
    };
    assert_eq!(
        seen(&found),
        seen(&wanted),
        "the states that came from another store"
    );
    for (wanted, found) in wanted.iter().zip(&found).skip(1) {
        let (Some(wanted), Some(saved)) = (wanted.saved, found.saved) else {
            continue;
        };
        let apart = wanted
            .duration_since(saved)
            .or_else(|_| saved.duration_since(wanted));
        assert!(
            apart.unwrap() < Duration::from_secs(2),
            "entry {} was written at {saved:?}, in the other store at {wanted:?}",
            found.id
        );
    }
    let over = history
        .history()
        .unwrap()
        .append(key, &Stored::new(numbered(9)), 0);
    refused("a state behind a document", over, is_conflict);
    if let Some(fence) = claim {
        let next = store
            .claim(key, &ClaimRequest::new("next", Duration::from_secs(60)))
            .unwrap();
        assert!(
            next.fence > fence,
            "fence {} follows {fence} of the other store",
            next.fence
        );
        put_fenced(store, key, 5, next.fence).unwrap();
    } else {
        fixture.put(5);
    }
    let newest = past(history, key);
    assert_eq!(newest[..2], [4, 3], "the earlier states after the next put");
    Ok(())
}

/// Setting the clock back neither hides a write nor changes the order of the history.
pub fn a_clock_set_back_hides_no_write(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let clock = fixture.clock()?;
    let mut previous = fixture.put(1).revision;
    for (number, seconds) in (2..).zip([-3600, 7200, -86_400, 0]) {
        clock.step(seconds);
        let saved = put_over(store, key, number, Expect::Revision(previous)).unwrap();
        let after = format!("after a put with the clock moved by {seconds} seconds");
        assert_eq!(saved.outcome, Outcome::Replaced, "{after}");
        fixture.assert_number(number, &after);
        previous = saved.revision;
    }
    if fixture.history().is_ok() {
        fixture.assert_past(&[4, 3, 2, 1], "are in the order of the writes");
    }
    Ok(())
}
