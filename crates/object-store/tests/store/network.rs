//! The store over a network that fails, on an S3 server.

use std::error::Error as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Outcome, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Error, ErrorKind, Expect};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::{ObjectStore, ObjectStoreExt};
use futures_util::StreamExt;

use crate::client::{builder_at, driver_at};
use crate::memory::runtime;
use crate::proxy::{Cut, Proxy};
use crate::server::{BUCKET, ID, SECRET, fresh_root, shared};
use crate::{count, key, number_at, number_of, numbered};

fn open(port: u16, root: &str) -> ObjectCheckpointStore {
    ObjectCheckpointStore::open(driver_at(port), root).unwrap()
}

/// A store whose requests go through a proxy, and one at the same place without a proxy.
fn pair() -> (Proxy, ObjectCheckpointStore, ObjectCheckpointStore) {
    let (proxy, root) = (Proxy::start(shared().port), fresh_root());
    let through = open(proxy.port, &root);
    (proxy, through, open(shared().port, &root))
}

/// The numbers of the earlier states, newest first.
fn past(store: &ObjectCheckpointStore, name: &str) -> Vec<u64> {
    let key = key(name);
    let states = store.states(&key).unwrap();
    let past = states.iter().filter(|entry| !entry.is_current());
    past.map(|entry| number_of(&store.load_revision(&key, &entry.id).unwrap()))
        .collect()
}

const CUTS: [Cut; 3] = [Cut::Before, Cut::In, Cut::After];

/// Repeats a call and cuts one of its requests after another, in each way, until there are no more. Returns the number
/// of cuts.
fn cut_each(proxy: &Proxy, mut call: impl FnMut(&str)) -> usize {
    let mut cuts = 0;
    for later in 0.. {
        for how in CUTS {
            proxy.cut(later, how);
            call(&format!("request {later} cut: {how:?}"));
            if !proxy.has_cut() {
                return cuts;
            }
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn a_cut_connection_loses_no_save_and_makes_none_twice() {
    need_server!();
    let (proxy, _, direct) = pair();
    let root = fresh_root();
    // A driver that retries by itself must not do so unknown to the store.
    let patient = builder_at(proxy.port).build().unwrap();
    let drivers: [Arc<dyn ObjectStore>; 2] = [driver_at(proxy.port), Arc::new(patient)];
    drop(direct);
    let direct = open(shared().port, &root);
    for driver in drivers {
        let store = ObjectCheckpointStore::open(driver, &root).unwrap();
        count(&store, "one");
        let cuts = cut_each(&proxy, |what| {
            let before = number_at(&direct, "one").unwrap();
            let history = past(&direct, "one");
            count(&store, "one");
            assert_eq!(number_at(&direct, "one"), Some(before + 1), "{what}");
            let mut expected = history;
            expected.insert(0, before);
            expected.truncate(10);
            assert_eq!(past(&direct, "one"), expected, "{what}");
        });
        assert!(cuts >= 9, "only {cuts} requests were cut");
    }
}

#[test]
fn a_save_whose_answer_is_lost_is_no_conflict_with_itself() {
    need_server!();
    let (proxy, store, direct) = pair();
    let one = key("one");
    let mut number = 0;
    let cuts = cut_each(&proxy, |what| {
        let expect = match direct.load(&one).unwrap() {
            Some(stored) => Expect::Revision(stored.revision),
            None => Expect::Absent,
        };
        number += 1;
        let put = numbered(number).with_expect(expect);
        let saved = store
            .put(&one, put)
            .unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_ne!(saved.outcome, Outcome::Unchanged, "{what}");
        assert_eq!(number_at(&direct, "one"), Some(number), "{what}");
    });
    assert!(cuts >= 9, "only {cuts} requests were cut");
    let cuts = cut_each(&proxy, |what| {
        direct.put(&one, numbered(1)).unwrap();
        let deleted = store.delete(&one, &DeleteOptions::new()).unwrap();
        assert!(deleted, "{what}: a delete takes itself for another");
        assert_eq!(number_at(&direct, "one"), None, "{what}");
    });
    assert!(cuts >= 9, "only {cuts} requests were cut");
    let hour = Duration::from_secs(3600);
    let mut last = None;
    let cuts = cut_each(&proxy, |what| {
        let claim = store.claim(&one, &ClaimRequest::new(what, hour)).unwrap();
        assert!(Some(claim.fence) > last, "{what}: {claim:?}");
        let seen = direct.claimed(&one).unwrap();
        assert_eq!(seen.as_ref(), Some(&claim), "{what}");
        last = Some(claim.fence);
        direct.release(&one, claim.fence).unwrap();
    });
    assert!(cuts >= 6, "only {cuts} requests were cut");
    let cuts = cut_each(&proxy, |what| {
        let keys = store.list(&Query::all().with_documents()).unwrap().entries;
        assert!(keys.is_empty(), "{what}: {keys:?}");
    });
    assert!(cuts >= 3, "only {cuts} requests were cut");
}

#[test]
fn a_line_of_a_ledger_whose_answer_is_lost_is_added_once_and_says_so() {
    need_server!();
    let (proxy, store, direct) = pair();
    let (one, mut all) = (key("one"), Vec::new());
    let cuts = cut_each(&proxy, |what| {
        let line = format!("{{\"n\":{}}}", all.len());
        let added = store
            .beside()
            .append_to_ledger(&one, &line, all.len(), None);
        assert!(added.unwrap(), "{what}: a line takes itself for another's");
        all.push(line);
        assert_eq!(direct.beside().ledger(&one).unwrap(), all, "{what}");
    });
    assert!(cuts >= 9, "only {cuts} requests were cut");
}

#[test]
fn every_update_counts_once_while_connections_break_all_the_time() {
    need_server!();
    const WRITERS: u64 = 4;
    const UPDATES: u64 = 12;
    let (proxy, root) = (Proxy::start(shared().port), fresh_root());
    let stores: Vec<_> = (0..WRITERS).map(|_| open(proxy.port, &root)).collect();
    proxy.storm(5);
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| (0..UPDATES).for_each(|_| count(store, "one")));
        }
    });
    let direct = open(shared().port, &root);
    let all = WRITERS * UPDATES;
    assert_eq!(number_at(&direct, "one"), Some(all));
    let kept: Vec<u64> = (all - 10..all).rev().collect();
    assert_eq!(past(&direct, "one"), kept);
}

/// The position of the request that replaces the document in a put.
const MOVE: usize = 2;

#[test]
fn a_save_is_known_also_where_another_came_before_its_answer_was_looked_for() {
    need_server!();
    let (proxy, store, direct) = pair();
    let one = key("one");
    for round in 0..3 {
        let first = direct.put(&one, numbered(10 * round + 1)).unwrap();
        let put = numbered(10 * round + 2).with_expect(Expect::Revision(first.revision));
        proxy.cut(MOVE, Cut::After);
        let saved = proxy.while_cut(|| store.put(&one, put), || count(&direct, "one"));
        assert_eq!(saved.unwrap().outcome, Outcome::Replaced);
        assert_eq!(number_at(&direct, "one"), Some(10 * round + 3));
        let newest = &past(&direct, "one")[..2];
        assert_eq!(newest, [10 * round + 2, 10 * round + 1], "each once");
    }
}

#[test]
fn a_save_that_did_not_come_through_gives_way_to_another() {
    need_server!();
    let (proxy, store, direct) = pair();
    let one = key("one");
    for how in [Cut::Before, Cut::In] {
        let first = direct.put(&one, numbered(1)).unwrap();
        let expect = Expect::Revision(first.revision);
        proxy.cut(MOVE, how);
        let put = || store.put(&one, numbered(9).with_expect(expect.clone()));
        let error = proxy.while_cut(put, || drop(direct.put(&one, numbered(2)).unwrap()));
        let error = error.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Conflict { .. }),
            "{error:?}"
        );
        assert_eq!(number_at(&direct, "one"), Some(2), "{how:?}");
        // A change is decided anew.
        proxy.cut(MOVE, how);
        proxy.while_cut(|| count(&store, "one"), || count(&direct, "one"));
        assert_eq!(number_at(&direct, "one"), Some(4), "{how:?}");
    }
}

#[test]
fn a_paused_owner_never_writes_after_a_take_over() {
    need_server!();
    let (proxy, store, direct) = pair();
    let one = key("one");
    let hour = Duration::from_secs(3600);
    direct.put(&one, numbered(0)).unwrap();
    // At each request of a save: the read, the entry of the history, the save itself.
    for (number, later) in (1..).zip([0, 1, MOVE, MOVE]) {
        let owner = store
            .claim(&one, &ClaimRequest::new("owner", hour).taking_over())
            .unwrap();
        let put = numbered(900 + number).with_fence(owner.fence);
        proxy.cut(later, Cut::Pause);
        let mut next = None;
        let late = proxy.while_cut(
            || store.put(&one, put),
            || {
                let request = ClaimRequest::new("next", hour).taking_over();
                let claim = direct.claim(&one, &request).unwrap();
                let put = numbered(number).with_fence(claim.fence);
                direct.put(&one, put).unwrap();
                next = Some(claim.fence);
            },
        );
        let error = late.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Fenced { .. }),
            "{error:?}"
        );
        assert_eq!(
            number_at(&direct, "one"),
            Some(number),
            "at request {later}"
        );
        assert!(!past(&direct, "one").contains(&(900 + number)));
        direct.release(&one, next.unwrap()).unwrap();
    }
}

/// The error and all its causes, which must not have credentials in them.
fn told(error: &Error) -> String {
    let mut told = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        told += &format!(" / {error} {error:?}");
        cause = error.source();
    }
    assert!(!told.contains(SECRET) && !told.contains(ID), "{told}");
    told
}

#[test]
fn a_server_that_is_gone_is_an_error_in_time_and_never_no_document() {
    need_server!();
    let (proxy, store, direct) = pair();
    let one = key("one");
    direct.put(&one, numbered(1)).unwrap();
    let store = store.with_timeout(Duration::from_secs(1));
    let shown = format!("{store:?}");
    assert!(shown.contains(BUCKET) && !shown.contains(SECRET) && !shown.contains(ID));
    proxy.cut(MOVE, Cut::Down);
    let began = Instant::now();
    let error = store.put(&one, numbered(2)).unwrap_err();
    assert_eq!(error.code(), "outcome-unknown", "{}", told(&error));
    assert_eq!(number_at(&direct, "one"), Some(2), "it was done");
    for error in [
        store.load(&one).unwrap_err(),
        store.put(&one, numbered(3)).unwrap_err(),
        store.list(&Query::all()).unwrap_err(),
    ] {
        assert_eq!(error.code(), "unreachable", "{}", told(&error));
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(number_at(&direct, "one"), Some(2));
}

#[test]
fn a_bucket_that_is_missing_is_no_empty_store() {
    need_server!();
    let bucket = format!("gone-{}", std::process::id());
    let builder = || builder_at(shared().port).with_bucket_name(&bucket);
    let driver = Arc::new(builder().build().unwrap());
    let error = ObjectCheckpointStore::open(driver.clone(), "").unwrap_err();
    assert_eq!(error.code(), "no-bucket", "{}", told(&error));
    shared().ask("PUT", &format!("/{bucket}"));
    let store = ObjectCheckpointStore::open(Arc::new(builder().build().unwrap()), "").unwrap();
    assert_eq!(number_at(&store, "one"), None);
    store.put(&key("one"), numbered(1)).unwrap();
    runtime().block_on(async {
        let all: Vec<_> = driver.list(None).collect().await;
        for object in all {
            driver.delete(&object.unwrap().location).await.unwrap();
        }
    });
    shared().ask("DELETE", &format!("/{bucket}"));
    for error in [
        store.load(&key("one")).unwrap_err(),
        store.put(&key("one"), numbered(1)).unwrap_err(),
        store.list(&Query::all()).unwrap_err(),
    ] {
        assert_eq!(error.code(), "no-bucket", "{}", told(&error));
    }
}

#[test]
fn calls_come_from_runtimes_of_each_kind() {
    need_server!();
    let store = open(shared().port, &fresh_root());
    runtime().block_on(async {
        count(&store, "one");
        let inside = open(shared().port, &fresh_root());
        count(&inside, "one");
    });
    let many = tokio::runtime::Runtime::new().unwrap();
    let counts = (0..6).map(|_| {
        let store = store.clone();
        many.spawn(async move { count(&store, "one") })
    });
    let counts: Vec<_> = counts.collect();
    counts.into_iter().for_each(|it| many.block_on(it).unwrap());
    assert_eq!(number_at(&store, "one"), Some(7));
}

const ADDRESS: &str = "AGENT_CHECKPOINT_TEST_ADDRESS";

#[test]
fn a_store_by_its_address_takes_the_rest_from_the_environment() {
    if let Ok(address) = std::env::var(ADDRESS) {
        count(&ObjectCheckpointStore::from_url(&address).unwrap(), "one");
        return;
    }
    need_server!();
    let root = fresh_root();
    let child = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let name = "network::a_store_by_its_address_takes_the_rest_from_the_environment";
        child.args(["--exact", name, "--nocapture"]);
        child.env(ADDRESS, format!("s3://{BUCKET}/{root}"));
        child.envs(shared().environment());
        // The driver must ignore these variables of other programs.
        child
            .env("BUCKET", "another")
            .env("ENDPOINT", "http://127.0.0.1:1");
        child.output().unwrap()
    };
    let done = child();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(number_at(&open(shared().port, &root), "one"), Some(1));
}
