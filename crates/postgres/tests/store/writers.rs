//! Many threads and processes at one database.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agent_checkpoint::store::{CheckpointStore, Keep};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind, Expect, Fence};
use agent_checkpoint_postgres::PostgresStore;
use tempfile::tempdir;

use crate::children::{Given, Running, open_gate, say, wait_at_gate};
use crate::cluster::{fresh_schema, need_server, shared};
use crate::{count, hour, key, number_at, numbered, numbers_at};

fn opened() -> PostgresStore {
    PostgresStore::open_in(&shared().address(), &fresh_schema()).unwrap()
}

#[test]
fn readers_wait_for_no_decision() {
    need_server!();
    let store = opened();
    store.put(&key("k0"), numbered(40)).unwrap();
    // A decision may take a while; readers see the old state meanwhile.
    let began = Instant::now();
    let saved = store.transact(&key("k0"), |_| {
        for _ in 0..10 {
            assert_eq!(number_at(&store, "k0"), Some(40));
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        Ok(Some(numbered(0)))
    });
    saved.unwrap();
}

#[test]
fn of_two_clients_that_put_over_the_same_revision_one_wins() {
    need_server!();
    let schema = fresh_schema();
    let open = |_| PostgresStore::open_in(&shared().address(), &schema).unwrap();
    let stores: Vec<PostgresStore> = (0..2).map(open).collect();
    stores[0].put(&key("a"), numbered(0)).unwrap();
    for round in 1..=20 {
        let revision = stores[0].load(&key("a")).unwrap().unwrap().revision;
        let start = Barrier::new(2);
        let won = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (at, store) in (1..).zip(&stores) {
                let put = numbered(round * 10 + at).with_expect(Expect::Revision(revision.clone()));
                let (start, won) = (&start, &won);
                scope.spawn(move || {
                    start.wait();
                    match store.put(&key("a"), put) {
                        Ok(_) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.code(), "conflict"),
                    }
                });
            }
        });
        assert_eq!(won.into_inner(), 1);
    }
}

#[test]
fn a_writer_that_waits_too_long_gets_the_store_s_own_error() {
    need_server!();
    let schema = fresh_schema();
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    let patience = Duration::from_millis(60);
    let other = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    let other = other.with_lock_timeout(patience);
    store.put(&key("a"), numbered(0)).unwrap();
    let saved = store.transact(&key("a"), |_| {
        let began = Instant::now();
        let error = other.put(&key("a"), numbered(1)).unwrap_err();
        let waited = began.elapsed();
        assert!(matches!(error.kind(), ErrorKind::Locked { .. }), "{error}");
        assert!(waited >= patience && waited < 20 * patience, "{waited:?}");
        // Each key has its own lock.
        other.put(&key("b"), numbered(1)).unwrap();
        Ok(Some(numbered(2)))
    });
    saved.unwrap();
    other.put(&key("a"), numbered(3)).unwrap();
}

#[test]
fn more_callers_than_connections_wait_for_each_other_and_decisions_that_read_do_not() {
    need_server!();
    let store = opened().with_connections(2);
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..5 {
                    let counted = store.transact(&key("sum"), |stored| {
                        let own = number_at(store, &format!("of {thread}")).unwrap_or_default();
                        let number = stored.map_or(0, crate::number_of);
                        Ok(Some(numbered(number + 1 + own)))
                    });
                    counted.unwrap();
                }
            });
        }
    });
    assert_eq!(number_at(&store, "sum"), Some(40));

    let impatient = store.clone().with_lock_timeout(Duration::from_millis(40));
    let release = Barrier::new(3);
    std::thread::scope(|scope| {
        for name in ["x", "y"] {
            let (store, release) = (&store, &release);
            scope.spawn(move || {
                let saved = store.transact(&key(name), |_| {
                    release.wait();
                    release.wait();
                    Ok(Some(numbered(1)))
                });
                saved.unwrap();
            });
        }
        release.wait();
        let error = impatient.load(&key("z")).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Locked { .. }), "{error}");
        release.wait();
    });
    assert_eq!(number_at(&impatient, "z"), None);
}

const PROCESSES: usize = 4;

/// The store that the parent names to a child.
fn of_parent(given: &Given) -> PostgresStore {
    let store = PostgresStore::open_in(&given.words[0], &given.words[1]).unwrap();
    // Keeps the whole history, which the parent inspects.
    store.with_history(Keep::newest(10_000))
}

fn words(schema: &str) -> String {
    format!("{} {schema}", shared().address())
}

#[test]
fn child_counts() {
    let Some(given) = Given::find() else { return };
    let store = of_parent(&given);
    say("ready");
    wait_at_gate(&given.folder);
    let mut longest = Duration::ZERO;
    for _ in 0..30 {
        let began = Instant::now();
        count(&store, "a");
        longest = longest.max(began.elapsed());
    }
    say(&format!("{}", longest.as_millis()));
}

#[test]
fn every_update_of_processes_that_never_pause_counts_and_none_waits_for_long() {
    need_server!();
    let (folder, schema) = (tempdir().unwrap(), fresh_schema());
    // They start at the same time, with a schema that does not exist yet.
    let start = |_| Running::start("writers::child_counts", folder.path(), &words(&schema));
    let mut children: Vec<Running> = (0..PROCESSES).map(start).collect();
    for child in &mut children {
        assert_eq!(child.hear().as_deref(), Some("ready"));
    }
    open_gate(folder.path());
    for child in children {
        let longest: u64 = child.finish()[0].parse().unwrap();
        assert!(longest < 5000, "a writer waited {longest} ms for one save");
    }
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    assert_eq!(number_at(&store, "a"), Some(30 * PROCESSES as u64));
}

#[test]
fn child_writes_with_a_fence() {
    let Some(given) = Given::find() else { return };
    let store = of_parent(&given).with_lock_timeout(Duration::from_millis(400));
    let fence = Fence::new(given.number(2));
    for number in 1..2000 {
        let put = numbered(number).with_fence(fence);
        // Alternate between the two ways to write.
        let saved = match number % 2 {
            0 => store.put(&key("a"), put),
            _ => store.transact(&key("a"), |_| Ok(Some(put.clone()))),
        };
        match saved {
            Ok(_) => say(&number.to_string()),
            Err(error) => return say(error.code()),
        }
    }
}

/// The owner is stopped at any point, even in the middle of a save, and continues after another agent has its task.
#[test]
fn an_owner_that_was_stopped_never_writes_after_a_take_over() {
    need_server!();
    let signal = |child: &Running, name: &str| {
        let id = child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &id])
            .status();
        assert!(sent.unwrap().success());
    };
    for round in 0..8 {
        let (folder, schema) = (tempdir().unwrap(), fresh_schema());
        let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
        let store = store.with_history(Keep::newest(10_000));
        let old = store.claim(&key("a"), &hour("old")).unwrap();
        let test = "writers::child_writes_with_a_fence";
        let given = format!("{} {}", words(&schema), old.fence);
        let mut child = Running::start(test, folder.path(), &given);
        child.hear().unwrap();
        std::thread::sleep(Duration::from_micros(1700 * round));
        signal(&child, "-STOP");
        // If it was stopped while it held a lock, the server ends its session in time.
        let new = store.claim(&key("a"), &hour("new").taking_over()).unwrap();
        let mine = numbered(1_000_000).with_fence(new.fence);
        store.put(&key("a"), mine).unwrap();
        signal(&child, "-CONT");
        let said = child.finish();
        assert_eq!(said.last().map(String::as_str), Some("fenced"));
        let numbers = numbers_at(&store, "a");
        assert_eq!(numbers.last(), Some(&1_000_000), "{numbers:?}");
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}

#[test]
fn child_writes_until_killed() {
    let Some(given) = Given::find() else { return };
    let store = of_parent(&given);
    for number in given.number(2).. {
        for name in ["a", "b"] {
            store.put(&key(name), numbered(number)).unwrap();
            say(&format!("{name} {number}"));
        }
    }
}

#[test]
fn of_writers_that_are_killed_no_acknowledged_save_is_lost_and_no_history_has_a_hole() {
    need_server!();
    let (folder, schema) = (tempdir().unwrap(), fresh_schema());
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    let mut next = 1;
    for kill in 0..10 {
        let test = "writers::child_writes_until_killed";
        let mut child = Running::start(test, folder.path(), &format!("{} {next}", words(&schema)));
        let mut said = vec![child.hear().unwrap(), child.hear().unwrap()];
        std::thread::sleep(Duration::from_micros(370 * kill));
        said.extend(child.kill());
        for name in ["a", "b"] {
            let of_key = |line: &String| Some(line.strip_prefix(name)?.trim().parse().unwrap());
            let acknowledged: u64 = said.iter().filter_map(of_key).next_back().unwrap();
            let numbers = numbers_at(&store, name);
            let found = *numbers.last().unwrap();
            // A save that was not acknowledged may be there, too.
            assert!(
                found == acknowledged || found == acknowledged + 1,
                "{name}: {acknowledged} was acknowledged, and {found} is there"
            );
            assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
            next = next.max(found + 1);
        }
    }
}
