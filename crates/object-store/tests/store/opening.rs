//! Which places a store opens or refuses, and with which errors.

use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, ErrorKind};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::ObjectStore;
use agent_checkpoint_object_store::object_store::memory::InMemory;

use crate::client::builder_at;
use crate::driver::{Conditions, Planned};
use crate::memory::{all, read, runtime, write};
use crate::{in_memory, key, number_at, number_of, numbered};

#[test]
fn a_back_end_without_compare_and_swap_is_refused() {
    for conditions in [Conditions::Ignored, Conditions::Refused] {
        let planned = Planned::new(Arc::new(InMemory::new()));
        // Also for a store that exists already, where nothing need be created.
        for is_laid_out in [false, true] {
            if is_laid_out {
                ObjectCheckpointStore::open(planned.objects.clone(), "").unwrap();
            }
            planned.plan.lock().unwrap().conditions = conditions;
            let error = ObjectCheckpointStore::open(Arc::new(planned.clone()), "").unwrap_err();
            assert_eq!(error.code(), "no-compare-and-swap", "{conditions:?}");
        }
    }
}

#[test]
fn a_bucket_that_lists_in_no_order_is_refused() {
    let driver = builder_at(1).with_bucket_name("a--use1-az4--x-s3").build();
    let error = ObjectCheckpointStore::open(Arc::new(driver.unwrap()), "").unwrap_err();
    assert_eq!(error.code(), "unordered-listing");
}

#[test]
fn a_store_for_reading_makes_nothing() {
    let planned = Planned::new(Arc::new(InMemory::new()));
    let store = ObjectCheckpointStore::read_only(Arc::new(planned.clone()), "a/b").unwrap();
    assert_eq!(number_at(&store, "one"), None);
    assert!(store.list(&Query::all()).unwrap().entries.is_empty());
    let error = store.put(&key("one"), numbered(1)).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::ReadOnly);
    let asked = planned.requests();
    assert!(
        asked.iter().all(|it| !it.starts_with(['p', 'c', 'u', 'd'])),
        "{asked:?}"
    );
}

#[test]
fn where_there_is_no_store_only_some_ways_to_open_make_one() {
    let planned = Planned::new(Arc::new(InMemory::new()));
    let open_existing = || ObjectCheckpointStore::open_existing(Arc::new(planned.clone()), "a/b");
    assert_eq!(open_existing().unwrap_err().code(), "no-store");
    assert_eq!(planned.requests(), ["get a/b/agent-checkpoint.json"]);
    ObjectCheckpointStore::open(planned.objects.clone(), "a/b").unwrap();
    let found = open_existing().unwrap();
    found.put(&key("one"), numbered(1)).unwrap();
    assert_eq!(number_at(&found, "one"), Some(1));
    // There is no store elsewhere.
    let elsewhere = ObjectCheckpointStore::existing_from_url("memory:///a").unwrap_err();
    assert_eq!(elsewhere.code(), "no-store");
    let reader = ObjectCheckpointStore::read_only_from_url("memory:///a").unwrap();
    let error = reader.put(&key("one"), numbered(1)).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_newer_layout_is_read_and_not_written() {
    let objects = Arc::new(InMemory::new());
    let store = ObjectCheckpointStore::open(objects.clone(), "").unwrap();
    store.put(&key("one"), numbered(1)).unwrap();
    write(&*objects, "agent-checkpoint.json", r#"{"layout":7}"#);
    let store = ObjectCheckpointStore::open(objects.clone(), "").unwrap();
    assert_eq!(number_at(&store, "one"), Some(1));
    let error = store.put(&key("one"), numbered(2)).unwrap_err();
    let newer = ErrorKind::NewerLayout { found: 7, known: 1 };
    assert_eq!(*error.kind(), newer);
    // An object of another program does not make a store.
    write(&*objects, "agent-checkpoint.json", "hello");
    let error = ObjectCheckpointStore::open(objects, "").unwrap_err();
    assert_eq!(error.code(), "not-a-store");
}

#[test]
fn stores_below_different_roots_do_not_meet() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let open = |root: &str| ObjectCheckpointStore::open(objects.clone(), root).unwrap();
    for (number, root) in (1..).zip(["", "a", "/a/b/"]) {
        open(root).put(&key("one"), numbered(number)).unwrap();
    }
    for (number, root) in (1..).zip(["", "a", "a/b"]) {
        assert_eq!(number_at(&open(root), "one"), Some(number), "{root}");
        let page = open(root).list(&Query::all()).unwrap();
        assert!(page.keys().eq([&key("one")]), "{root}");
    }
    for root in ["a//b", "..", "x\0", &"x".repeat(301)] {
        let error = ObjectCheckpointStore::open(objects.clone(), root).unwrap_err();
        assert!(
            ["invalid-place", "path-too-long"].contains(&error.code()),
            "{root:?}"
        );
    }
}

#[test]
fn what_the_memory_of_a_driver_cannot_promise_is_not_promised() {
    let offered = in_memory().capabilities();
    assert!(!offered.survives_power_loss && !offered.excludes_processes);
    let wrapped: Arc<dyn ObjectStore> = Arc::new(Planned::new(Arc::new(InMemory::new())));
    let store = ObjectCheckpointStore::open(wrapped, "").unwrap();
    assert!(!store.capabilities().excludes_machines);
}

#[test]
fn an_object_that_is_not_the_stores_is_named_and_never_written_over() {
    let objects = Arc::new(InMemory::new());
    let store = ObjectCheckpointStore::open(objects.clone(), "").unwrap();
    // An object of a key without a document, to which another program has added a text.
    let hour = ClaimRequest::new("dev", Duration::from_secs(3600));
    store.claim(&key("three"), &hour).unwrap();
    let claimed = read(&*objects, "documents/three") + "{}";
    for (name, text) in [
        ("one", "{\"n\":1}"),
        ("two", ""),
        ("three", &claimed),
        ("a%2Fb", "x"),
    ] {
        write(&*objects, &format!("documents/{name}"), text);
    }
    for name in ["one", "two", "three"] {
        let refused = |error: agent_checkpoint::Error| {
            let is_right = matches!(error.kind(), ErrorKind::Unreadable { .. });
            assert!(is_right, "{name}: {error:?}");
        };
        refused(store.load(&key(name)).unwrap_err());
        refused(store.put(&key(name), numbered(2)).unwrap_err());
        refused(store.delete(&key(name), &Default::default()).unwrap_err());
        refused(store.claimed(&key(name)).unwrap_err());
    }
    let page = store.list(&Query::all()).unwrap();
    let keys = ["one", "three", "two"].map(key);
    assert!(page.keys().eq(&keys), "{page:?}");
    assert_eq!(page.foreign.len(), 1, "{page:?}");
}

#[test]
fn what_cannot_be_read_is_forgotten_and_nothing_of_another_key_with_it() {
    let objects = Arc::new(InMemory::new());
    let store = ObjectCheckpointStore::open(objects.clone(), "").unwrap();
    let hour = ClaimRequest::new("dev", Duration::from_secs(3600));
    let gone = ["one", "two", "three", "alone"];
    for name in gone.into_iter().chain(["on", "one-2", "one/3"]) {
        for number in [1, 2] {
            store.put(&key(name), numbered(number)).unwrap();
        }
    }
    let first = store.claim(&key("two"), &hour).unwrap();
    let held = store.claim(&key("three"), &hour).unwrap();
    let all = || runtime().block_on(all(&*objects, ""));
    let of_gone = |name: &str| {
        let mut words = name.split('/');
        words.any(|word| gone.contains(&word))
    };
    let others = || {
        let all = all().into_iter();
        all.filter(|(name, _)| !of_gone(name)).collect::<Vec<_>>()
    };
    let before = others();
    assert!(before.len() >= 7, "{before:?}");
    let whole = read(&*objects, "documents/three");
    for (name, text) in [
        ("one", "{\"n\":1}".to_owned()),
        ("two", String::new()),
        // Only the claim can be read.
        (
            "three",
            whole.replace("\"number\":", "\"number\":\"x\",\"was\":"),
        ),
        ("alone", "\u{0}\u{0}".to_owned()),
    ] {
        write(&*objects, &format!("documents/{name}"), &text);
    }
    let any = DeleteOptions::new();
    let claimed = store.forget(&key("three"), &any).unwrap_err();
    assert!(
        matches!(claimed.kind(), ErrorKind::Claimed { .. }),
        "{claimed:?}"
    );
    let with_fence = DeleteOptions::new().with_fence(held.fence);
    for name in gone {
        let options = if name == "three" { &with_fence } else { &any };
        assert!(store.forget(&key(name), options).unwrap(), "{name}");
        assert!(!store.forget(&key(name), &any).unwrap(), "{name}");
        assert!(store.load(&key(name)).unwrap().is_none(), "{name}");
        assert!(store.states(&key(name)).unwrap().is_empty(), "{name}");
    }
    assert_eq!(others(), before);
    let is_left = |name: &str| name.starts_with("beside/") && of_gone(name);
    assert!(!all().iter().any(|(name, _)| is_left(name)));
    // The earlier owner never writes again, and the key accepts a new task.
    let late = numbered(3).with_fence(first.fence);
    assert!(matches!(
        store.put(&key("two"), late).unwrap_err().kind(),
        ErrorKind::Fenced { .. }
    ));
    let next = store.claim(&key("two"), &hour).unwrap();
    assert!(next.fence > first.fence);
    store
        .put(&key("two"), numbered(4).with_fence(next.fence))
        .unwrap();
    assert_eq!(number_of(&store.load(&key("two")).unwrap().unwrap()), 4);
    // An object of a newer version does not count as damaged.
    write(
        &*objects,
        "documents/one",
        "{\"layout\":99,\"claim\":7}\n{}",
    );
    store.forget(&key("one"), &any).unwrap_err();
}

#[test]
fn calls_come_from_any_thread_inside_a_runtime_or_not() {
    let store = in_memory();
    store.put(&key("one"), numbered(1)).unwrap();
    runtime().block_on(async {
        store.put(&key("one"), numbered(2)).unwrap();
        assert_eq!(number_at(&in_memory(), "one"), None);
    });
    let many = tokio::runtime::Runtime::new().unwrap();
    let saves = (0..8).map(|number| {
        let store = store.clone();
        many.spawn(async move { crate::count(&store, &format!("of-{}", number % 2)) })
    });
    let saves: Vec<_> = saves.collect();
    for save in saves {
        many.block_on(save).unwrap();
    }
    assert_eq!(number_at(&store, "of-0"), Some(4));
    // Dropping a store ends its thread. A store that was opened in a runtime may be dropped there.
    runtime().block_on(async { drop(in_memory()) });
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").ok()?;
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        Some(
            names
                .filter(|name| name.starts_with("checkpoint-obje"))
                .count(),
        )
    };
    let Some(before) = threads() else { return };
    let more: Vec<_> = (0..40).map(|_| in_memory()).collect();
    drop(more);
    // Other tests have stores, too, but not so many.
    let began = std::time::Instant::now();
    while threads().unwrap() > before + 20 {
        assert!(began.elapsed().as_secs() < 20, "threads stay");
        std::thread::yield_now();
    }
}

#[test]
fn addresses_are_taken_and_tell_no_secret() {
    let store = ObjectCheckpointStore::from_url("memory:///here").unwrap();
    store.put(&key("one"), numbered(1)).unwrap();
    for address in [
        "s3://AKIA:hush@bucket/a",
        "hush",
        "hush://bucket",
        "http://[hush",
    ] {
        let error = ObjectCheckpointStore::from_url(address).unwrap_err();
        assert_eq!(error.code(), "invalid-place", "{address}");
        let told = format!("{error} {error:?}");
        assert!(!address.contains('@') || !told.contains("hush"), "{told}");
    }
}
