//! Copies from other stores and into them.

use agent_checkpoint::formats::Archive;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, CopyOptions, DeleteOptions, EntryId, MemoryStore, Put, copy,
};
use agent_checkpoint::{CheckpointStoreExt, DropReason, Dropped, ErrorKind};
use agent_checkpoint_postgres::PostgresStore;
use chrono::DateTime;

use crate::cluster::{fresh_schema, need_server, shared};
use crate::{hour, key, numbered};

/// Everything of a key that a copy must preserve. Entry ids are not: each store has its own.
fn view(store: &dyn CheckpointStore, name: &str) -> String {
    let key = &key(name);
    let stored = store.load(key).unwrap();
    let text = stored.as_ref().map(|stored| stored.document.text());
    let states = store.states(key).unwrap();
    let states = states.iter().map(|state| {
        let micros = state
            .saved
            .map(|saved| DateTime::<chrono::Utc>::from(saved).timestamp_micros());
        (
            &state.revision,
            micros.filter(|_| !state.is_current()),
            state.pinned,
            state.tasks_since,
        )
    });
    let states: Vec<_> = states.collect();
    let beside = store.beside();
    let revision = stored.as_ref().map(|stored| &stored.revision);
    let prints = revision.map(|revision| beside.fingerprints(key, revision).unwrap());
    let fence = store.claimed(key).unwrap().map(|claim| claim.fence);
    let dropped = beside.dropped(key).unwrap();
    format!("{text:?} {states:#?} {prints:?} {fence:?} {dropped:?}")
}

#[test]
fn a_copy_through_postgres_keeps_everything_and_one_that_is_repeated_changes_nothing() {
    need_server!();
    let source = MemoryStore::new();
    let odd = "{\"n\": 1.0,\r\n\t\"unknown\": [1e3, \"\\u0000\\u00e4\"]}\n";
    let odd = Put::new(Document::from_text(odd).unwrap());
    let item = Dropped::new("/x", DropReason::Elements(1), 7.into());
    for name in ["a", "B/2"] {
        let key = &key(name);
        source.put(key, odd.clone()).unwrap();
        source.pin(key, &EntryId::current(), true).unwrap();
        let end = Some((Archive::Complete, DateTime::UNIX_EPOCH));
        source.put(key, numbered(2).with_archive(end)).unwrap();
        source.put(key, numbered(3)).unwrap();
        source.delete(key, &DeleteOptions::new()).unwrap();
        source.put(key, numbered(4)).unwrap();
        let last = odd.clone().with_dropped(vec![item.clone()]);
        source
            .put(key, last.with_fingerprints("prints".to_owned()))
            .unwrap();
        let claim = source.claim(key, &hour("one")).unwrap();
        source.release(key, claim.fence).unwrap();
    }
    let store = PostgresStore::open_in(&shared().address(), &fresh_schema()).unwrap();
    let back = MemoryStore::new();
    let stores: [&dyn CheckpointStore; 3] = [&source, &store, &back];
    for pair in stores.windows(2) {
        for round in 0..2 {
            let report = copy(pair[0], pair[1], &CopyOptions::new(), &mut |_| {}).unwrap();
            assert!(report.refused.is_empty(), "{:?}", report.refused);
            assert_eq!(report.copied, [2, 0][round]);
            for name in ["a", "B/2"] {
                assert_eq!(view(pair[1], name), view(&source, name));
            }
        }
    }
    let claim = store.claim(&key("a"), &hour("two")).unwrap();
    assert!(claim.fence > source.claimed(&key("a")).unwrap().unwrap().fence);
    let error = store
        .history()
        .unwrap()
        .append(&key("a"), &source.load(&key("a")).unwrap().unwrap(), 0)
        .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Conflict { .. }),
        "{error}"
    );
}
