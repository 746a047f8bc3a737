//! Copies into the store, out of it, and between two places of it.

use std::time::Duration;

use agent_checkpoint::formats::Archive;
use agent_checkpoint::store::{
    CheckpointStore, CopyOptions, DeleteOptions, MemoryStore, Query, copy,
};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, DropReason, Dropped};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use chrono::DateTime;

use crate::client::driver_at;
use crate::server::{fresh_root, shared};
use crate::{in_memory, key, numbered};

/// Tasks with everything that a store can keep of one.
fn fill(store: &dyn CheckpointStore) {
    for name in ["one", "t/wo"] {
        let key = key(name);
        for number in 0..9 {
            let item = Dropped::new("/x", DropReason::Elements(1), number.into());
            let put = numbered(number).with_dropped(vec![item]);
            let ends = (number == 4).then_some((Archive::Complete, DateTime::UNIX_EPOCH));
            store.put(&key, put.with_archive(ends)).unwrap();
            if number == 6 {
                let entry = store.states(&key).unwrap()[2].id.clone();
                store.pin(&key, &entry, true).unwrap();
            }
        }
        let request = ClaimRequest::new("dev", Duration::from_secs(60));
        let claim = store.claim(&key, &request).unwrap();
        store.release(&key, claim.fence).unwrap();
    }
    store.delete(&key("one"), &DeleteOptions::new()).unwrap();
    store.put(&key("one"), numbered(10)).unwrap();
}

/// Everything that a store shows of its keys.
fn shown(store: &dyn CheckpointStore) -> Vec<String> {
    let page = store.list(&Query::all()).unwrap();
    let mut all = Vec::new();
    for key in page.keys() {
        let dropped = store.beside().dropped(key).unwrap();
        let fence = store.claimed(key).unwrap().map(|claim| claim.fence);
        all.push(format!("{key} {fence:?} {dropped:?}"));
        for entry in store.states(key).unwrap() {
            let stored = store.load_revision(key, &entry.id).unwrap();
            let text = stored.document.text();
            let (pinned, since) = (entry.pinned, entry.tasks_since);
            all.push(format!("{key} {text} {pinned} {since}"));
        }
    }
    all
}

fn copies_come_back(store: &ObjectCheckpointStore, other: &ObjectCheckpointStore) {
    let first = MemoryStore::new();
    fill(&first);
    let options = CopyOptions::default();
    copy(&first, store, &options, &mut |_| ()).unwrap();
    assert_eq!(shown(&first), shown(store), "copied into the store");
    copy(store, other, &options, &mut |_| ()).unwrap();
    assert_eq!(shown(store), shown(other), "copied to another place");
    let back = MemoryStore::new();
    copy(other, &back, &options, &mut |_| ()).unwrap();
    assert_eq!(shown(&first), shown(&back), "copied out of the store");
}

#[test]
fn copies_in_memory_come_back() {
    copies_come_back(&in_memory(), &in_memory());
}

#[test]
fn copies_on_a_server_come_back() {
    need_server!();
    let open = || ObjectCheckpointStore::open(driver_at(shared().port), &fresh_root()).unwrap();
    copies_come_back(&open(), &open());
}
