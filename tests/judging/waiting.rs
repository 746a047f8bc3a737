//! What a fleet shows of tasks that wait.

use crate::common;
use crate::waiting_stores::check_fleet;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use agent_checkpoint::fleet::{Finding, Fleet, FleetOptions, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{BuilderStateStore, FileOptions, FileStore, MemoryStore, Scoped};
use agent_checkpoint::{Checkpoints, FixedClock, Operation, OperationContext};
use chrono::{DateTime, TimeDelta, Utc};
use common::{EXAMPLE, key, task, time};
use serde_json::json;

/// Longer than a tick of the clock by which files are stamped.
const TICK: Duration = Duration::from_millis(30);

#[test]
fn a_fleet_of_a_store_shows_what_waits() {
    check_fleet(MemoryStore::new());
    check_fleet(Scoped::new(MemoryStore::new(), "team-").unwrap());
    let folder = tempfile::tempdir().unwrap();
    check_fleet(FileStore::open(folder.path()));
}

fn wait(tasks: &Checkpoints<TaskCheckpoint>, name: &str, until: DateTime<Utc>) {
    let report = [Operation::RateLimit {
        note: None,
        until: Some(until),
    }
    .into()];
    let context = OperationContext::at(tasks.now()).by(Some("dev"), None);
    tasks.report(&key(name), &report, &context, |_| ()).unwrap();
}

/// The scan after this one, which must be a whole one's equal.
fn next(before: &Fleet, folder: &Path, now: DateTime<Utc>) -> Fleet {
    let sources = [Source::folder(folder)];
    let again = before.rescan(&sources, now);
    let told = |fleet: &Fleet| serde_json::to_value(fleet).unwrap();
    assert_eq!(
        told(&again),
        told(&Fleet::scan(&sources, &FleetOptions::new(), now))
    );
    again
}

#[test]
fn a_fleet_of_a_folder_shows_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let now = time("2026-03-02T08:10:00Z");
    let view =
        |store: FileStore| Checkpoints::<TaskCheckpoint>::new(store).with_clock(FixedClock(now));
    let tasks = view(FileStore::open(folder.path().join("c")));
    for name in ["a", "b"] {
        tasks.create(&key(name), &task(&["one"])).unwrap();
    }
    let at = now + TimeDelta::hours(2);
    // Both of them stopped for a while; one says until when.
    wait(&tasks, "b", now);
    wait(&tasks, "a", now + TimeDelta::hours(3));
    let host = folder.path().join("builder-state.json");
    std::fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::with_options(&host, FileOptions::default());
    let slot = Checkpoints::<TaskCheckpoint>::new(store).with_clock(FixedClock(now));
    wait(&slot, "active", now + TimeDelta::hours(3));
    sleep(TICK);
    let first = Fleet::scan(&[Source::folder(folder.path())], &FleetOptions::new(), at);
    let rows = |fleet: &Fleet| {
        let row = |row: &agent_checkpoint::fleet::Row| {
            let value = serde_json::to_value(row).unwrap();
            (row.result(), value["waiting"].clone())
        };
        fleet.rows().iter().map(row).collect::<Vec<_>>()
    };
    let until = json!({ "for": "time", "until": "2026-03-02T11:10:00Z" });
    let waits = ("waiting", until);
    let silent = ("stalled", json!(null));
    assert_eq!(rows(&first), [waits.clone(), waits.clone(), silent.clone()]);
    assert!(first.findings().is_empty(), "{:?}", first.findings());

    // A line that was added, the documents being as they were.
    wait(&tasks, "b", now + TimeDelta::hours(3));
    let second = next(&first, folder.path(), at);
    assert_eq!(rows(&second), [waits.clone(), waits.clone(), waits.clone()]);
    sleep(TICK);
    wait(&tasks, "b", now);
    let third = next(&second, folder.path(), at);
    assert_eq!(rows(&third), [waits.clone(), waits, silent.clone()]);
    let over = next(&third, folder.path(), now + TimeDelta::hours(3));
    assert_eq!(rows(&over), [silent.clone(), silent.clone(), silent]);

    // What cannot be read is said.
    let ledger = folder
        .path()
        .join("c/.agent-checkpoint/ledger/a.json.jsonl");
    std::fs::write(&ledger, "none\n{}\n").unwrap();
    let damaged = next(&third, folder.path(), at);
    assert!(
        matches!(damaged.findings(), [Finding::LedgerUnreadable { .. }]),
        "{:?}",
        damaged.findings()
    );
}
