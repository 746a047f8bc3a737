//! The requests of each call.

use std::sync::Arc;

use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Keep, ListedLedger, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, DropReason, Dropped, Revision};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::ObjectStore;
use agent_checkpoint_object_store::object_store::memory::InMemory;
use futures_util::StreamExt;

use crate::driver::Planned;
use crate::memory::{read, runtime, write};
use crate::{key, number_at, numbered};

fn open() -> (Planned, ObjectCheckpointStore) {
    let planned = Planned::new(Arc::new(InMemory::new()));
    let store = ObjectCheckpointStore::open(Arc::new(planned.clone()), "").unwrap();
    planned.requests();
    (planned, store)
}

fn names(objects: &dyn ObjectStore) -> Vec<String> {
    let all = runtime().block_on(objects.list(None).collect::<Vec<_>>());
    all.into_iter()
        .map(|object| object.unwrap().location.to_string())
        .collect()
}

#[test]
fn a_call_makes_no_more_requests_than_it_needs() {
    let (planned, store) = open();
    let one = key("US-003");
    store.put(&one, numbered(1)).unwrap();
    assert_eq!(
        planned.requests(),
        ["get documents/US-003", "create documents/US-003"]
    );
    store.put(&one, numbered(2)).unwrap();
    let digest = &Revision::of(b"{\"n\":1}").to_string()["sha256:".len()..][..8];
    let save = [
        "get documents/US-003",
        &format!("create beside/US-003/history-1-{digest}"),
        "update documents/US-003",
    ];
    assert_eq!(planned.requests(), save);
    store.put(&one, numbered(2)).unwrap();
    store.load(&one).unwrap();
    assert_eq!(planned.requests(), ["get documents/US-003"; 2]);
    let hour = std::time::Duration::from_secs(3600);
    let claim = store.claim(&one, &ClaimRequest::new("dev", hour)).unwrap();
    let written = ["get documents/US-003", "update documents/US-003"];
    assert_eq!(planned.requests(), written);
    let put = numbered(3).with_fence(claim.fence).skip_history();
    store.put(&one, put).unwrap();
    assert_eq!(planned.requests(), written);
    store.history().unwrap().states(&one).unwrap();
    store.claimed(&one).unwrap();
    assert_eq!(planned.requests(), ["get documents/US-003"; 2]);
}

#[test]
fn a_listing_reads_only_what_it_cannot_tell_and_that_once() {
    let (planned, store) = open();
    for name in ["one", "two", "three"] {
        for number in 1..4 {
            store.put(&key(name), numbered(number)).unwrap();
        }
    }
    store.delete(&key("two"), &DeleteOptions::new()).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    store
        .claim(&key("four"), &ClaimRequest::new("dev", hour))
        .unwrap();
    planned.requests();
    let keys = || -> Vec<_> { store.list(&Query::all()).unwrap().keys().cloned().collect() };
    assert_eq!(keys(), [key("one"), key("three")]);
    let first = planned.requests();
    assert_eq!(
        first,
        ["list documents", "get documents/four", "get documents/two"]
    );
    assert_eq!(keys(), [key("one"), key("three")]);
    assert_eq!(planned.requests(), ["list documents"]);
    store.put(&key("two"), numbered(9)).unwrap();
    planned.requests();
    assert_eq!(keys().len(), 3);
    assert_eq!(planned.requests(), ["list documents"]);
}

#[test]
fn a_person_can_read_an_object() {
    let (planned, store) = open();
    store.put(&key("US-003"), numbered(1)).unwrap();
    let text = read(&*planned.objects, "documents/US-003");
    let (header, document) = text.split_once('\n').unwrap();
    assert_eq!(document, "{\"n\":1}");
    assert!(
        header.starts_with("{\"layout\":1,\"revision\":\""),
        "{header}"
    );
}

#[test]
fn what_no_longer_counts_is_removed() {
    let (planned, store) = open();
    let one = key("one");
    for number in 0..60 {
        let item = Dropped::new("/x", DropReason::Elements(1), number.into());
        let put = numbered(number).with_dropped(vec![item]);
        store
            .put(&one, put.with_fingerprints(format!("of {number}")))
            .unwrap();
    }
    let beside = store.beside();
    assert_eq!(beside.dropped(&one).unwrap().len(), 60);
    let newest = beside.newest_dropped(&one, 2).unwrap();
    assert_eq!(
        (&newest[0].value, &newest[1].value),
        (&58.into(), &59.into())
    );
    // Ten states, the dropped items, the fingerprints, the layout, the document, and the objects that wait for removal.
    let there = names(&*planned.objects);
    assert!(there.len() <= 10 + 4 + 16, "{there:?}");
    // A prune removes the objects that a killed writer left.
    write(&*planned.objects, "beside/one/history-3", "left");
    store
        .history()
        .unwrap()
        .prune(&one, &Keep::newest(2))
        .unwrap();
    let there = names(&*planned.objects);
    let of_history = there.iter().filter(|name| name.contains("/history-"));
    assert_eq!(of_history.count(), 2, "{there:?}");
    assert_eq!(number_at(&store, "one"), Some(59));
}

#[test]
fn dropped_items_beyond_one_object_come_back_in_order() {
    let (planned, store) = open();
    let one = key("one");
    for number in 0..8 {
        let long = format!("{}{}", number + 1, "x".repeat(30_000));
        let item = Dropped::new("/x", DropReason::Elements(1), long.into());
        // The previous item is reported again, as after a save whose answer was lost.
        let before = format!("{number}{}", "x".repeat(30_000));
        let before = Dropped::new("/x", DropReason::Elements(1), before.into());
        let items = vec![before, item];
        store
            .put(&one, numbered(number).with_dropped(items))
            .unwrap();
    }
    let items = store.beside().dropped(&one).unwrap();
    let firsts: Vec<&str> = items
        .iter()
        .map(|item| &item.value.as_str().unwrap()[..2])
        .collect();
    assert_eq!(
        firsts,
        ["0x", "1x", "2x", "3x", "4x", "5x", "6x", "7x", "8x"]
    );
    let objects = names(&*planned.objects);
    let of_items = objects.iter().filter(|name| name.contains("/dropped-"));
    assert!(of_items.count() > 2, "{objects:?}");
    store.delete(&one, &DeleteOptions::new()).unwrap();
    store.put(&one, numbered(1)).unwrap();
    assert!(store.beside().dropped(&one).unwrap().is_empty());
}

#[test]
fn a_fleet_shows_what_waits() {
    let (_, store) = open();
    crate::waiting::check_fleet(store);
}

#[test]
fn which_keys_have_a_ledger_costs_one_listing() {
    let (planned, store) = open();
    for name in ["a", "a-b", "b"] {
        store.put(&key(name), numbered(1)).unwrap();
    }
    store
        .beside()
        .append_to_ledger(&key("a"), "{}", 0, None)
        .unwrap();
    planned.requests();
    let page = store.list(&Query::all().with_ledgers()).unwrap();
    assert_eq!(planned.requests(), ["list documents", "list beside/a"]);
    let ledgers: Vec<_> = page
        .entries
        .into_iter()
        .map(|listed| listed.ledger)
        .collect();
    assert!(
        matches!(
            &ledgers[..],
            [
                ListedLedger::Version(_),
                ListedLedger::Empty,
                ListedLedger::Empty
            ]
        ),
        "{ledgers:?}"
    );
}

#[test]
fn a_fleet_without_ledgers_asks_for_none() {
    let (planned, store) = open();
    for name in ["a", "b", "c"] {
        store.put(&key(name), numbered(1)).unwrap();
    }
    let asks = || {
        planned.requests();
        let source = Source::Store {
            name: "s".into(),
            store: &store,
            format: Some("task".into()),
        };
        let fleet = Fleet::scan(&[source], &FleetOptions::new(), chrono::Utc::now());
        assert_eq!(fleet.rows().len(), 3);
        planned.requests()
    };
    let is_ledger = |request: &String| request.ends_with("/ledger");
    let asked = asks();
    assert!(!asked.iter().any(is_ledger), "{asked:?}");
    store
        .beside()
        .append_to_ledger(&key("a"), "{}", 0, None)
        .unwrap();
    assert_eq!(asks().iter().filter(|it| is_ledger(it)).count(), 1);
}
