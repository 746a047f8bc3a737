//! Which tasks of a fleet are old enough to be forgotten.

use std::time::Duration;

use agent_checkpoint::fleet::{Expiry, Fleet, FleetOptions, Retention, Source};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Put};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ClaimRequest, ErrorKind, Operation, Report, StepDone,
};
use chrono::{DateTime, Utc};

use crate::common::{Reporting, key, task, time};

const NOW: &str = "2026-06-01T00:00:00Z";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A task that was last changed this many days ago.
fn put(store: &MemoryStore, name: &str, days: u32, is_complete: bool) {
    let at: DateTime<Utc> = time(NOW) - DAY * days;
    let mut checkpoint = task(&["one"]);
    if is_complete {
        let reports: [Report; 2] = [StepDone::new("one").into(), Operation::Complete.into()];
        for report in reports {
            checkpoint.report_at(report, at).unwrap();
        }
    }
    checkpoint.stamp(at);
    let document = Document::new(&checkpoint).unwrap();
    store.put(&key(name), Put::new(document)).unwrap();
}

fn expired(store: &MemoryStore, retention: Retention) -> Vec<(String, Expiry)> {
    let fleet = Fleet::scan(
        &[Source::store("s", store)],
        &FleetOptions::new(),
        time(NOW),
    );
    let expired = retention.expired(fleet.rows(), time(NOW));
    let named = |expired: &agent_checkpoint::fleet::Expired<'_>| {
        (expired.row.place.key.clone().unwrap(), expired.why)
    };
    expired.iter().map(named).collect()
}

#[test]
fn only_what_was_kept_for_long_enough_expires_and_nothing_that_is_claimed() {
    let store = MemoryStore::new();
    for (name, days, is_complete) in [
        ("done-40", 40, true),
        ("done-90", 90, true),
        ("done-5", 5, true),
        ("open-100", 100, false),
        ("claimed-100", 100, true),
    ] {
        put(&store, name, days, is_complete);
    }
    let undated = Document::from_text(r#"{"status": "complete", "completedSteps": []}"#).unwrap();
    store.put(&key("undated"), Put::new(undated)).unwrap();
    let request = ClaimRequest::new("one", DAY * 10_000);
    store.claim(&key("claimed-100"), &request).unwrap();

    let named = |name: &str, why| (name.to_owned(), why);
    assert_eq!(expired(&store, Retention::new()), []);
    let ended = Retention::new().ended_after(DAY * 30);
    let both = [
        named("done-90", Expiry::Ended),
        named("done-40", Expiry::Ended),
    ];
    assert_eq!(expired(&store, ended), both);
    assert_eq!(expired(&store, ended.keep_newest(1)), both[..1]);
    assert_eq!(expired(&store, ended.keep_newest(9)), []);
    let idle = Retention::new().idle_after(DAY * 90).ended_after(DAY * 91);
    let idle = expired(&store, idle);
    assert_eq!(
        idle,
        [
            named("open-100", Expiry::Idle),
            named("done-90", Expiry::Idle)
        ]
    );
}

#[test]
fn what_expired_is_forgotten_as_it_was_judged_and_not_as_it_is_by_now() {
    let store = MemoryStore::new();
    put(&store, "a", 40, true);
    put(&store, "b", 50, true);
    let fleet = Fleet::scan(
        &[Source::store("s", &store)],
        &FleetOptions::new(),
        time(NOW),
    );
    let retention = Retention::new().ended_after(DAY * 30);
    let expired = retention.expired(fleet.rows(), time(NOW));
    put(&store, "a", 1, false);
    expired[0].forget(&store).unwrap();
    let changed = expired[1].forget(&store).unwrap_err();
    assert!(
        matches!(changed.kind(), ErrorKind::Conflict { .. }),
        "{changed}"
    );
    assert!(store.load(&key("a")).unwrap().is_some());
    assert!(
        store.load(&key("b")).unwrap().is_none() && store.states(&key("b")).unwrap().is_empty()
    );
}
