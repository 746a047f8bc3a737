//! Waiting tasks in a fleet.

use crate::common;
use crate::waiting_stores::check_fleet;

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use agent_checkpoint::fleet::{Finding, Fleet, FleetOptions, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{Approval, ApprovalDecision};
use agent_checkpoint::store::{BuilderStateStore, FileOptions, FileStore, MemoryStore, Scoped};
use agent_checkpoint::{Checkpoints, FixedClock, Operation, OperationContext};
use chrono::{DateTime, TimeDelta, Utc};
use common::{EXAMPLE, key, task, time};
use serde_json::json;

/// Longer than a tick of the clock that stamps files.
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

/// The scan after this one, which must equal a full scan.
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
    // Both stopped for a while; one says until when.
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

    // Only a ledger line was added; the documents are unchanged.
    wait(&tasks, "b", now + TimeDelta::hours(3));
    let second = next(&first, folder.path(), at);
    assert_eq!(rows(&second), [waits.clone(), waits.clone(), waits.clone()]);
    sleep(TICK);
    wait(&tasks, "b", now);
    let third = next(&second, folder.path(), at);
    assert_eq!(rows(&third), [waits.clone(), waits, silent.clone()]);
    let over = next(&third, folder.path(), now + TimeDelta::hours(3));
    // Its silence counts from the end of the wait.
    let active = ("active", json!(null));
    assert_eq!(rows(&over), [active.clone(), active, silent.clone()]);
    let later = next(&over, folder.path(), now + TimeDelta::hours(5));
    assert_eq!(rows(&later), [silent.clone(), silent.clone(), silent]);

    // An unreadable ledger is reported.
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

/// A pending approval keeps its task from being late until it is decided or expires.
#[test]
fn a_fleet_shows_what_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let now = time("2026-03-02T08:00:00Z");
    let store = FileStore::open(folder.path());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store).with_clock(FixedClock(now));
    for name in ["a", "b"] {
        tasks.create(&key(name), &task(&["one"])).unwrap();
    }
    let scan = |at| Fleet::scan(&[Source::folder(folder.path())], &FleetOptions::new(), at);
    let in_hours = |hours| now + TimeDelta::hours(hours);
    let results = |fleet: &Fleet| {
        let rows = fleet.rows().iter();
        rows.map(|row| row.result()).collect::<Vec<_>>()
    };
    sleep(TICK);
    let before = scan(in_hours(3));
    assert_eq!(results(&before), ["stalled", "stalled"]);

    let ledger = tasks
        .ledger(&key("a"), "dev")
        .with_clock(Arc::new(FixedClock(now)));
    let deploy = Approval::new("deploy", &"to production").unwrap();
    ledger.ask(&deploy).unwrap();
    let waits = next(&before, folder.path(), in_hours(3));
    assert_eq!(results(&waits), ["waiting", "stalled"]);
    let row = serde_json::to_value(&waits.rows()[0]).unwrap();
    let until = "2026-03-03T08:00:00Z";
    assert_eq!(
        row["waiting"],
        json!({ "for": "approval", "id": "deploy", "until": until })
    );
    assert_eq!(row["next"]["decision"], "wait");
    let due = |fleet: &Fleet, at| {
        let places = fleet.due(at).map(|row| row.place.to_string());
        places.collect::<Vec<_>>()
    };
    assert_eq!(due(&waits, in_hours(3)).len(), 1);
    assert_eq!(due(&waits, in_hours(25)).len(), 2);
    // There was no decision, so the task counts as silent again.
    let expired = next(&waits, folder.path(), in_hours(26));
    assert_eq!(results(&expired), ["stalled", "stalled"]);

    sleep(TICK);
    let pending = &ledger.state().unwrap().approvals[0];
    ledger
        .decide(pending, &ApprovalDecision::Approved, "ann")
        .unwrap();
    let decided = next(&waits, folder.path(), in_hours(3));
    assert_eq!(results(&decided), ["stalled", "stalled"]);
    assert_eq!(due(&decided, in_hours(3)).len(), 2);
}
