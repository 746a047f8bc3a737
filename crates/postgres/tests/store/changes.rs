//! Change events of keys.

use std::time::Duration;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Scoped};
use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::{fresh_schema, need_server, shared};
use crate::{hour, key, numbered};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn each_write_of_a_store_that_notifies_is_an_event_and_no_other_is() {
    need_server!();
    let (address, schema) = (shared().address(), fresh_schema());
    let silent = PostgresStore::open_in(&address, &schema).unwrap();
    let store = PostgresStore::open_in(&address, &schema).unwrap();
    let store = store.notify_changes();
    let mut changes = silent.changes().unwrap().listen().unwrap();
    silent.put(&key("silent"), numbered(1)).unwrap();
    store.put(&key("a/ä"), numbered(1)).unwrap();
    store.put(&key("a/ä"), numbered(1)).unwrap();
    store.claim(&key("b"), &hour("one")).unwrap();
    store.delete(&key("a/ä"), &DeleteOptions::new()).unwrap();
    for expected in ["a/ä", "b", "a/ä"] {
        assert_eq!(changes.next(SOON).unwrap(), Some(key(expected)));
    }
    // A listener outlives the store that made it.
    drop(silent);
    assert_eq!(changes.next(Duration::from_millis(50)).unwrap(), None);

    // A scoped store reports only its own keys.
    let scoped = Scoped::new(store.clone(), "a/").unwrap();
    let mut changes_of_scope = scoped.changes().unwrap().listen().unwrap();
    store.put(&key("b/1"), numbered(2)).unwrap();
    store.put(&key("a/1"), numbered(2)).unwrap();
    assert_eq!(changes_of_scope.next(SOON).unwrap(), Some(key("1")));
    for expected in ["b/1", "a/1"] {
        assert_eq!(changes.next(SOON).unwrap(), Some(key(expected)));
    }

    // Notifications of another program are skipped if they are no keys.
    let notify = format!("SELECT pg_notify('{schema}', ''), pg_notify('{schema}', 'd')");
    shared().client().batch_execute(&notify).unwrap();
    assert_eq!(changes.next(SOON).unwrap(), Some(key("d")));

    // Other schemas have their own events.
    let other = PostgresStore::open_in(&address, &fresh_schema()).unwrap();
    other.notify_changes().put(&key("c"), numbered(1)).unwrap();
    assert_eq!(changes.next(Duration::from_millis(50)).unwrap(), None);
}

#[test]
fn a_listener_whose_connection_broke_is_told() {
    need_server!();
    let (cluster, schema) = (shared(), fresh_schema());
    let store = PostgresStore::open_in(&cluster.address(), &schema).unwrap();
    let mut changes = store.changes().unwrap().listen().unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1";
    let listens = format!("LISTEN \"{schema}\"");
    let ended = cluster.client().query(end, &[&listens]).unwrap();
    assert_eq!(ended.len(), 1);
    assert_eq!(changes.next(SOON).unwrap_err().code(), "unreachable");
}
