//! Many threads and processes at one database.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, ErrorKind, Fence, Key};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::tempdir;

use crate::children::{Given, Running, open_gate, say, wait_at_gate};
use crate::{count, key, number_at, numbered};

#[test]
fn readers_wait_for_no_decision() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
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
fn a_writer_that_waits_too_long_gets_the_store_s_own_error() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    let patience = Duration::from_millis(60);
    let same = store.clone().with_lock_timeout(patience);
    let other = SqliteStore::open(&path)
        .unwrap()
        .with_lock_timeout(patience);
    let saved = store.transact(&key("a"), |_| {
        for waiting in [&same, &other] {
            let began = Instant::now();
            let error = waiting.put(&key("b"), numbered(1)).unwrap_err();
            let waited = began.elapsed();
            assert!(matches!(error.kind(), ErrorKind::Locked { .. }), "{error}");
            assert!(waited >= patience && waited < 10 * patience, "{waited:?}");
        }
        Ok(Some(numbered(1)))
    });
    saved.unwrap();
    other.put(&key("b"), numbered(1)).unwrap();
}

/// While there is always some reader, SQLite by itself only appends to the log.
#[test]
fn the_log_stays_small_also_while_there_are_always_readers() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    let is_done = AtomicBool::new(false);
    let begun = Barrier::new(5);
    let text = format!("{{\"n\":1,\"x\":\"{}\"}}", "x".repeat(400_000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut reader = Connection::open(&path).unwrap();
                begun.wait();
                while !is_done.load(Ordering::Relaxed) {
                    let reading = reader.transaction().unwrap();
                    let count = "SELECT count(*) FROM keys";
                    reading.query_row(count, [], |_| Ok(())).unwrap();
                    std::thread::sleep(Duration::from_millis(6));
                }
            });
        }
        begun.wait();
        for number in 0..120 {
            let document = Document::from_text(text.replace('1', &number.to_string()));
            store.put(&key("a"), Put::new(document.unwrap())).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // Without restarts it would be over 90 MB. On a busy machine a sleeping reader may make one attempt in 16 MB fail.
    let log = folder.path().join("a.db-wal").metadata().unwrap().len();
    assert!(log < 40 << 20, "{log} bytes");
}

const PROCESSES: usize = 6;

#[test]
fn child_counts() {
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
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
    let folder = tempdir().unwrap();
    let start = |_| Running::start("processes::child_counts", folder.path(), "");
    let mut children: Vec<Running> = (0..PROCESSES).map(start).collect();
    for child in &mut children {
        assert_eq!(child.hear().as_deref(), Some("ready"));
    }
    open_gate(folder.path());
    for child in children {
        let longest: u64 = child.finish()[0].parse().unwrap();
        assert!(longest < 5000, "a writer waited {longest} ms for one save");
    }
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    assert_eq!(number_at(&store, "a"), Some(30 * PROCESSES as u64));
}

#[test]
fn child_writes_with_a_fence() {
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
    let fence = Fence::new(given.number(0));
    for number in 1..2000 {
        match store.put(&key("a"), numbered(number).with_fence(fence)) {
            Ok(_) => {
                say(&number.to_string());
                std::thread::sleep(Duration::from_millis(4));
            }
            Err(error) => {
                say(error.code());
                return;
            }
        }
    }
}

/// The owner is stopped at any point, even in the middle of a save, and continues after another agent has its task.
#[cfg(unix)]
#[test]
fn an_owner_that_was_stopped_never_writes_after_a_take_over() {
    let signal = |child: &Running, name: &str| {
        let id = child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &id])
            .status();
        assert!(sent.unwrap().success());
    };
    let request = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(3600));
    for round in 0..6 {
        let folder = tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
        let store = store.with_lock_timeout(Duration::from_millis(30));
        let old = store.claim(&key("a"), &request("old")).unwrap();
        let test = "processes::child_writes_with_a_fence";
        let mut child = Running::start(test, folder.path(), &old.fence.to_string());
        child.hear().unwrap();
        std::thread::sleep(Duration::from_micros(1700 * round));
        signal(&child, "-STOP");
        let new = loop {
            match store.claim(&key("a"), &request("new").taking_over()) {
                // It was stopped in a save and holds the lock until it continues or is killed.
                Err(error) if matches!(error.kind(), ErrorKind::Locked { .. }) => {
                    signal(&child, "-CONT");
                    std::thread::sleep(Duration::from_millis(2));
                    signal(&child, "-STOP");
                }
                claim => break claim.unwrap(),
            }
        };
        let mine = numbered(1_000_000).with_fence(new.fence);
        store.put(&key("a"), mine).unwrap();
        signal(&child, "-CONT");
        let said = child.finish();
        assert_eq!(said.last().map(String::as_str), Some("fenced"));
        assert_eq!(number_at(&store, "a"), Some(1_000_000));
        let past = store.states(&key("a")).unwrap();
        let before = store.load_revision(&key("a"), &past[1].id).unwrap();
        assert!(
            before.document.text().len() < 12,
            "what was there at the take-over"
        );
    }
}

#[test]
fn child_writes_until_killed() {
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
    for number in given.number(0).. {
        for name in ["a", "b"] {
            store.put(&key(name), numbered(number)).unwrap();
            say(&format!("{name} {number}"));
        }
    }
}

#[cfg(unix)]
#[test]
fn of_writers_that_are_killed_no_acknowledged_save_is_lost_and_no_history_has_a_hole() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let keys = ["a", "b"].map(key);
    let mut next = 1;
    for kill in 0..20 {
        let test = "processes::child_writes_until_killed";
        let mut child = Running::start(test, folder.path(), &next.to_string());
        let mut said = vec![child.hear().unwrap(), child.hear().unwrap()];
        std::thread::sleep(Duration::from_micros(370 * kill));
        said.extend(child.kill());
        let store = SqliteStore::open(&path).unwrap();
        for key in &keys {
            let of_key =
                |line: &String| Some(line.strip_prefix(key.as_str())?.trim().parse().unwrap());
            let acknowledged: u64 = said.iter().filter_map(of_key).next_back().unwrap();
            let found = number_at(&store, key.as_str()).unwrap();
            // A save that was not acknowledged may be there, too.
            assert!(
                found == acknowledged || found == acknowledged + 1,
                "{key}: {acknowledged} was acknowledged, and {found} is there"
            );
            assert_whole(&store, key, found, kill + 1);
            next = next.max(found + 1);
        }
    }
}

/// Asserts that the history reaches back from the present state without a gap.
fn assert_whole(store: &SqliteStore, key: &Key, present: u64, saves: u64) {
    let states = store.states(key).unwrap();
    let numbers: BTreeSet<u64> = states
        .iter()
        .map(|entry| crate::number_of(&store.load_revision(key, &entry.id).unwrap()))
        .collect();
    assert_eq!(numbers.len(), states.len(), "{states:?}");
    assert!(
        numbers.len() as u64 >= saves.min(11),
        "of {saves} saves or more: {numbers:?}"
    );
    assert_eq!(numbers.last(), Some(&present));
}
