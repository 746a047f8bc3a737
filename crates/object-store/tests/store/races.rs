//! Writers that lose a race: no object that the key's object names is removed for them.

use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Keep, Outcome};
use agent_checkpoint::{CheckpointStoreExt, Claim, ClaimRequest, DropReason, Dropped, ErrorKind};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::ObjectStore;
use agent_checkpoint_object_store::object_store::memory::InMemory;

use crate::driver::{Cut, Planned};
use crate::memory::{read, write};
use crate::{key, number_at, number_of, numbered};

/// A store whose requests the test sees, and another one at the same place.
fn rivals() -> (Planned, ObjectCheckpointStore, ObjectCheckpointStore) {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let planned = Planned::new(objects.clone());
    let store = ObjectCheckpointStore::open(Arc::new(planned.clone()), "").unwrap();
    let rival = ObjectCheckpointStore::open(objects, "").unwrap();
    // Each save releases an object.
    let keep = || Keep::newest(1);
    (
        planned,
        store.with_history(keep()),
        rival.with_history(keep()),
    )
}

fn item(number: u64) -> Vec<Dropped> {
    let text = format!("item {number}").into();
    vec![Dropped::new("/x", DropReason::Elements(1), text)]
}

fn take(store: &ObjectCheckpointStore) -> Claim {
    let request = ClaimRequest::new("owner", Duration::from_secs(3600)).taking_over();
    store.claim(&key("one"), &request).unwrap()
}

/// Reads every state, and returns the number of dropped items.
fn dropped(store: &ObjectCheckpointStore) -> usize {
    for entry in store.states(&key("one")).unwrap() {
        store.load_revision(&key("one"), &entry.id).unwrap();
    }
    store.beside().dropped(&key("one")).unwrap().len()
}

#[test]
fn an_owner_whose_task_was_taken_over_takes_nothing_away() {
    let (planned, store, rival) = rivals();
    let one = key("one");
    store.put(&one, numbered(0)).unwrap();
    // Often enough to reach every point at which the object releases as much as it holds.
    for round in 1..40 {
        let owner = take(&store);
        let other = rival.clone();
        planned.before("update documents/one", move || drop(take(&other)));
        let put = numbered(1000)
            .with_dropped(item(1000))
            .with_fence(owner.fence);
        let error = store.put(&one, put).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Fenced { .. }),
            "{error:?}"
        );
        assert_eq!(dropped(&rival), round - 1, "in round {round}");
        let claim = take(&rival);
        let put = numbered(round as u64).with_dropped(item(round as u64));
        store.put(&one, put.with_fence(claim.fence)).unwrap();
        assert_eq!(dropped(&rival), round, "in round {round}");
    }
}

/// The claim is not in the object of the ledger. A line that was decided before a take-over counts as one from before
/// it, and the new owner finds it before it adds its own.
#[test]
fn a_line_that_comes_after_a_take_over_is_found_by_the_new_owner() {
    let (planned, store, rival) = rivals();
    let one = key("one");
    let owner = take(&store);
    let other = rival.clone();
    planned.before("create beside/one/ledger", move || drop(take(&other)));
    let add = |store: &ObjectCheckpointStore, line: &str, at, claim: &Claim| {
        let beside = store.beside();
        beside.append_to_ledger(&one, line, at, Some(claim.fence))
    };
    assert!(add(&store, "{\"by\":\"the first\"}", 0, &owner).unwrap());
    let next = rival.claimed(&one).unwrap().unwrap();
    assert!(next.fence > owner.fence);
    assert!(!add(&rival, "{\"by\":\"the next\"}", 0, &next).unwrap());
    assert!(add(&rival, "{\"by\":\"the next\"}", 1, &next).unwrap());
    let error = add(&store, "{\"by\":\"the first\"}", 2, &owner).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Fenced { .. }),
        "{error:?}"
    );
    let lines = ["the first", "the next"].map(|by| format!("{{\"by\":\"{by}\"}}"));
    assert_eq!(rival.beside().ledger(&one).unwrap(), lines);
}

/// The first request writes the line, and the second one finds it there.
#[test]
fn a_line_that_the_driver_puts_twice_is_never_told_to_be_missing() {
    let (planned, store, rival) = rivals();
    // No time is left to read the object again.
    let hasty = store.clone().with_timeout(Duration::ZERO);
    let (one, mut all) = (key("one"), Vec::new());
    for (store, has_time) in [(&store, true), (&hasty, false), (&store, true)] {
        let line = format!("{{\"n\":{}}}", all.len());
        // After the reads of the ledger and of the claim.
        planned.plan.lock().unwrap().next = Some((2, Cut::Twice));
        let added = store
            .beside()
            .append_to_ledger(&one, &line, all.len(), None);
        match has_time {
            true => assert!(added.unwrap(), "{line} takes itself for another's"),
            false => assert_eq!(added.unwrap_err().code(), "outcome-unknown"),
        }
        assert!(planned.plan.lock().unwrap().next.is_none());
        all.push(line);
        assert_eq!(rival.beside().ledger(&one).unwrap(), all);
    }
}

#[test]
fn a_forget_that_another_is_faster_than_takes_nothing_away() {
    let (planned, store, rival) = rivals();
    let one = key("one");
    for number in 0..3 {
        store
            .put(&one, numbered(number).with_dropped(item(number)))
            .unwrap();
    }
    let other = rival.clone();
    planned.before("update documents/one", move || drop(take(&other)));
    let error = store.forget(&one, &DeleteOptions::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Claimed { .. }),
        "{error:?}"
    );
    assert_eq!(dropped(&rival), 3);
    assert_eq!(number_at(&rival, "one"), Some(2));
}

#[test]
fn a_save_that_is_under_way_while_its_task_is_forgotten_is_whole() {
    let (planned, store, rival) = rivals();
    let one = key("one");
    for round in 0..3 {
        store.put(&one, numbered(1).with_dropped(item(1))).unwrap();
        store.put(&one, numbered(2)).unwrap();
        // The objects beside the document are written, and the document is not written yet.
        let other = rival.clone();
        planned.before("update documents/one", move || {
            assert!(other.forget(&key("one"), &DeleteOptions::new()).unwrap());
        });
        let saved = store.put(&one, numbered(3).with_dropped(item(3))).unwrap();
        assert_eq!(saved.outcome, Outcome::Created, "in round {round}");
        assert_eq!(number_at(&rival, "one"), Some(3));
        assert_eq!(dropped(&rival), 1, "in round {round}");
    }
}

#[test]
fn a_save_in_the_middle_of_a_forget_is_whole() {
    let (planned, store, rival) = rivals();
    let one = key("one");
    for number in 0..3 {
        rival
            .put(&one, numbered(number).with_dropped(item(number)))
            .unwrap();
    }
    let other = rival.clone();
    planned.before("delete", move || {
        let put = numbered(9).with_dropped(item(9));
        other.put(&key("one"), put).unwrap();
        assert_eq!(dropped(&other), 1);
    });
    // The save is part of the task that is forgotten: it came while the forget was running.
    assert!(store.forget(&one, &DeleteOptions::new()).unwrap());
    assert_eq!(number_at(&rival, "one"), None);
    assert_eq!(dropped(&rival), 0);
}

#[test]
fn an_earlier_object_that_is_brought_back_takes_no_states_of_the_later_ones() {
    let (planned, store, _) = rivals();
    let one = key("one");
    for number in 0..2 {
        store.put(&one, numbered(number)).unwrap();
    }
    let earlier = read(&*planned.objects, "documents/one");
    for number in 2..5 {
        store.put(&one, numbered(number)).unwrap();
    }
    write(&*planned.objects, "documents/one", &earlier);
    for number in 7..9 {
        store.put(&one, numbered(number)).unwrap();
    }
    let newest = &store.states(&one).unwrap()[1];
    let state = store.load_revision(&one, &newest.id).unwrap();
    assert_eq!(number_of(&state), 7, "the state before");
}
