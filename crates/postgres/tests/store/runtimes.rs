//! The store is called from threads inside and outside of runtimes.

use std::time::Duration;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint_postgres::PostgresStore;
use tokio::runtime::Builder;

use crate::cluster::{fresh_schema, need_server, shared};
use crate::{count, hour, key, number_at, numbered};

/// Uses a store from opening to dropping.
fn work(schema: &str) {
    let store = PostgresStore::open_in(&shared().address(), schema).unwrap();
    count(&store, "a");
    store.put(&key("b"), numbered(1)).unwrap();
    store.claim(&key("c"), &hour("one")).unwrap();
    let mut changes = store.changes().unwrap().listen().unwrap();
    assert_eq!(changes.next(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn the_store_works_inside_of_every_runtime_and_outside_of_any() {
    need_server!();
    let schema = fresh_schema();
    work(&schema);
    let current_thread = Builder::new_current_thread().build().unwrap();
    // Longer than tokio lets a task run at a time.
    current_thread.block_on(async { (0..20).for_each(|_| work(&schema)) });
    let threads = Builder::new_multi_thread().worker_threads(2).build();
    let threads = threads.unwrap();
    threads.block_on(async {
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let schema = schema.clone();
                tokio::spawn(async move { work(&schema) })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let of_blocking = schema.clone();
        let blocking = tokio::task::spawn_blocking(move || work(&of_blocking));
        blocking.await.unwrap();
    });
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    assert_eq!(number_at(&store, "a"), Some(26));
}

#[test]
fn one_store_is_used_by_tasks_and_threads_at_once() {
    need_server!();
    let store = PostgresStore::open_in(&shared().address(), &fresh_schema()).unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| count(&store, "a")));
        }
        runtime.block_on(async { (0..10).for_each(|_| count(&store, "a")) });
    });
    assert_eq!(number_at(&store, "a"), Some(50));
}
