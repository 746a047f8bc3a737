//! Connections that break, and servers that are killed: no acknowledged save is lost, and none is made twice.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Keep};
use agent_checkpoint::{CheckpointStoreExt, Error, Expect};
use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::{Cluster, fresh_schema, need_server, shared};
use crate::proxy::{Cut, Proxy};
use crate::{count, hour, key, number_at, number_of, numbered, numbers_at};

/// Makes a call and cuts each of its requests in each way. The caller must not notice.
fn with_every_cut(what: &str, mut call: impl FnMut(&PostgresStore, u64)) -> (PostgresStore, u64) {
    let (cluster, schema) = (shared(), fresh_schema());
    let direct = PostgresStore::open_in(&cluster.address(), &schema).unwrap();
    let direct = direct.with_history(Keep::newest(1000));
    let proxy = Proxy::start(cluster);
    let store = proxy
        .open(cluster, &schema)
        .with_history(Keep::newest(1000));
    let mut calls = 0;
    for how in [Cut::Before, Cut::In, Cut::After] {
        for later in 0.. {
            proxy.cut(later, how);
            call(&store, calls);
            calls += 1;
            if !proxy.has_cut() {
                assert!(later >= 2, "{what} makes no more than {later} requests");
                break;
            }
            assert!(later < 100, "{what} never ends to make requests");
        }
    }
    (direct, calls)
}

#[test]
fn a_transaction_whose_connection_is_cut_is_made_once() {
    need_server!();
    let (direct, calls) = with_every_cut("a transaction", |store, _| count(store, "a"));
    let all: Vec<u64> = (1..=calls).collect();
    assert_eq!(numbers_at(&direct, "a"), all);
}

#[test]
fn a_put_whose_connection_is_cut_is_made_once_and_says_so() {
    need_server!();
    let mut last = Expect::Absent;
    let (direct, calls) = with_every_cut("a put", |store, number| {
        // If a put that was made were made again, it would be a conflict.
        let put = numbered(number).with_expect(last.clone());
        last = Expect::Revision(store.put(&key("a"), put).unwrap().revision);
    });
    let all: Vec<u64> = (0..calls).collect();
    assert_eq!(numbers_at(&direct, "a"), all);
}

#[test]
fn a_take_over_whose_connection_is_cut_gives_the_fence_that_counts() {
    need_server!();
    let mut last = 0;
    let (direct, calls) = with_every_cut("a claim", |store, number| {
        let claim = store.claim(&key("a"), &hour(&format!("owner {number}")).taking_over());
        let fence = claim.unwrap().fence;
        assert!(fence.number() > last);
        last = fence.number();
    });
    let claim = direct.claimed(&key("a")).unwrap().unwrap();
    assert_eq!(
        (claim.fence.number(), claim.owner),
        (last, format!("owner {}", calls - 1))
    );
}

#[test]
fn a_delete_whose_connection_is_cut_says_that_there_was_a_document() {
    need_server!();
    with_every_cut("a put and a delete", |store, number| {
        store.put(&key("a"), numbered(number)).unwrap();
        assert!(store.delete(&key("a"), &DeleteOptions::new()).unwrap());
        assert_eq!(number_at(store, "a"), None);
    });
}

#[test]
fn a_line_of_a_ledger_whose_connection_is_cut_is_added_once_and_says_so() {
    need_server!();
    let line = |number: u64| format!("{{\"n\":{number}}}");
    let (direct, calls) = with_every_cut("a line", |store, number| {
        let at = usize::try_from(number).unwrap();
        let added = store
            .beside()
            .append_to_ledger(&key("a"), &line(number), at, None);
        assert!(added.unwrap(), "line {number} takes itself for another's");
    });
    let all: Vec<String> = (0..calls).map(line).collect();
    assert_eq!(direct.beside().ledger(&key("a")).unwrap(), all);
}

/// The rule broken: a client that just retries makes the write twice.
#[test]
fn a_cut_after_the_request_is_one_after_the_write() {
    need_server!();
    let (cluster, schema) = (shared(), fresh_schema());
    let proxy = Proxy::start(cluster);
    drop(proxy.open(cluster, &schema));
    let add =
        format!("INSERT INTO {schema}.layout (number) SELECT max(number) + 1 FROM {schema}.layout");
    let mut client = cluster.client();
    let many = format!("SELECT count(*) FROM {schema}.layout");
    let before: i64 = client.query_one(&many, &[]).unwrap().get(0);
    let naive = || postgres::Client::connect(&proxy.address(cluster), postgres::NoTls).unwrap();
    let mut first = naive();
    proxy.cut(0, Cut::After);
    first.batch_execute(&add).unwrap_err();
    naive().batch_execute(&add).unwrap();
    let after: i64 = client.query_one(&many, &[]).unwrap().get(0);
    assert_eq!(after, before + 2);
}

#[test]
fn what_another_wrote_after_a_lost_answer_is_not_taken_for_the_own_write() {
    need_server!();
    let (cluster, schema) = (shared(), fresh_schema());
    let proxy = Proxy::start(cluster);
    let store = proxy.open(cluster, &schema);
    let direct = PostgresStore::open_in(&cluster.address(), &schema).unwrap();
    direct.put(&key("a"), numbered(1)).unwrap();
    let expected = direct.load(&key("a")).unwrap().unwrap().revision;
    count(&store, "b");
    let mut decisions = 0;
    // The writing request never arrives, and then another writer is faster than the next one.
    let refused = store.transact(&key("a"), |stored| {
        decisions += 1;
        match decisions {
            1 => proxy.cut(0, Cut::Before),
            2 => drop(direct.put(&key("a"), numbered(7)).unwrap()),
            _ => assert_eq!(stored.map(number_of), Some(7)),
        }
        let put = numbered(2).with_expect(Expect::Revision(expected.clone()));
        Ok(Some(put))
    });
    assert_eq!(decisions, 3);
    assert_eq!(refused.unwrap_err().code(), "conflict");
    assert_eq!(numbers_at(&direct, "a"), [1, 7]);
}

#[test]
fn a_lost_answer_is_found_until_more_others_wrote_than_are_remembered() {
    need_server!();
    let (cluster, schema) = (shared(), fresh_schema());
    let proxy = Proxy::start(cluster);
    let store = proxy.open(cluster, &schema);
    let open = |_| PostgresStore::open_in(&cluster.address(), &schema).unwrap();
    let many: Vec<PostgresStore> = (0..64).map(open).collect();
    for (others, is_known) in [(63, true), (64, false)] {
        // First prepare everything that the connection needs.
        (0..2).for_each(|number| drop(store.put(&key("b"), numbered(others + number)).unwrap()));
        proxy.cut(1, Cut::After);
        let answer = proxy.while_cut(
            || store.put(&key("a"), numbered(1000 + others)),
            || {
                for (number, other) in (0..others).zip(&many) {
                    // Any number of writes by one store takes one place.
                    other.put(&key("a"), numbered(10)).unwrap();
                    other.put(&key("a"), numbered(11 + number)).unwrap();
                }
            },
        );
        match is_known {
            true => drop(answer.unwrap()),
            false => assert_eq!(answer.unwrap_err().code(), "outcome-unknown"),
        }
    }
}

/// The server is killed, as in a crash, twenty times while writers never pause.
#[test]
fn of_a_server_that_is_killed_no_acknowledged_save_is_lost_and_none_is_made_twice() {
    need_server!();
    let mut cluster = Cluster::start();
    let open = |_| {
        let store = PostgresStore::open_in(&cluster.address(), "killed").unwrap();
        let store = store.with_history(Keep::newest(100_000));
        store.with_lock_timeout(Duration::from_secs(60))
    };
    let stores: Vec<PostgresStore> = (0..2).map(open).collect();
    let is_done = AtomicBool::new(false);
    let saves = [const { AtomicU64::new(0) }; 4];
    let name = |at: usize| format!("k{at}");
    thread::scope(|scope| {
        for writer in 0..8 {
            let (store, is_done, saves) = (&stores[writer % 2], &is_done, &saves);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    count(store, &name(writer / 2));
                    saves[writer / 2].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let sum = || {
            saves
                .iter()
                .map(|saves| saves.load(Ordering::Relaxed))
                .sum::<u64>()
        };
        for kill in 0..20 {
            let (before, began) = (sum(), Instant::now());
            while sum() < before + 8 + kill {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "no saves after a kill"
                );
                thread::sleep(Duration::from_millis(1));
            }
            cluster.kill_and_restart();
        }
        cluster.wait_until_ready();
        is_done.store(true, Ordering::Relaxed);
    });
    for (at, saves) in saves.iter().enumerate() {
        let all: Vec<u64> = (1..=saves.load(Ordering::Relaxed)).collect();
        assert_eq!(numbers_at(&stores[0], &name(at)), all, "{}", name(at));
    }
}

#[test]
fn a_server_that_fails_for_a_while_to_serialize_is_asked_again() {
    need_server!();
    let (cluster, schema) = (shared(), fresh_schema());
    let store = PostgresStore::open_in(&cluster.address(), &schema).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    let mut client = cluster.client();
    for code in ["40001", "40P01"] {
        // A sequence counts rolled-back attempts, too.
        let trap = format!(
            "CREATE SEQUENCE {schema}.tries_{code};
            CREATE FUNCTION {schema}.fail_{code}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('{schema}.tries_{code}') < 4 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'; END IF;
                RETURN new;
            END $$;
            CREATE TRIGGER fail_{code} BEFORE UPDATE ON {schema}.checkpoints
                FOR EACH ROW EXECUTE FUNCTION {schema}.fail_{code}()"
        );
        client.batch_execute(&trap).unwrap();
        count(&store, "a");
        store.put(&key("b"), numbered(1)).unwrap();
        store.put(&key("b"), numbered(2)).unwrap();
    }
    assert_eq!(numbers_at(&store, "a"), [1, 2, 3]);
    let fails = format!(
        "CREATE OR REPLACE FUNCTION {schema}.fail_40001() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'never' USING ERRCODE = '40001'; END $$"
    );
    client.batch_execute(&fails).unwrap();
    let store = store.with_lock_timeout(Duration::from_millis(300));
    let error: Error = store.put(&key("a"), numbered(9)).unwrap_err();
    assert!(format!("{error:?}").contains("never"), "{error:?}");
    assert_eq!(number_at(&store, "a"), Some(3));
}
