//! Waiting tasks in the fleet of a store.

use std::time::Duration;

use agent_checkpoint::fleet::{Fleet, FleetOptions, Row, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::Waiting;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::{
    CheckpointStoreExt, Checkpoints, ClaimRequest, FixedClock, Key, Operation, OperationContext,
};
use chrono::{DateTime, TimeDelta, Timelike, Utc};

/// A fleet of three tasks: `a` waits, `a-b` is silent, and `b` is claimed. The listing of a store and single requests
/// must give the same result.
pub(crate) fn check_fleet(store: impl CheckpointStore + Clone + 'static) {
    let now = Utc::now().with_nanosecond(0).unwrap();
    let hours = |hours| now + TimeDelta::hours(hours);
    let key = |name: &str| Key::new(name).unwrap();
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_clock(FixedClock(now));
    for name in ["a", "a-b", "b"] {
        tasks
            .create(
                &key(name),
                &TaskCheckpoint::begin("dev", ["one", "two"], now),
            )
            .unwrap();
    }
    let report = |until: Option<DateTime<Utc>>| {
        let report = [Operation::RateLimit { note: None, until }.into()];
        let context = OperationContext::at(now).by(Some("dev"), None);
        tasks
            .report(&key("a"), &report, &context, |_| ())
            .unwrap()
            .saved
            .revision
    };
    let scan = |at| {
        let source = Source::Store {
            name: "s".into(),
            store: &store,
            format: None,
        };
        Fleet::scan(&[source], &FleetOptions::new(), at)
    };
    let rescan = |before: &Fleet, at| {
        let source = Source::Store {
            name: "s".into(),
            store: &store,
            format: None,
        };
        let again = before.rescan(&[source], at);
        let told = |fleet: &Fleet| serde_json::to_value(fleet).unwrap();
        assert_eq!(told(&again), told(&scan(at)), "a later scan at {at}");
        again
    };
    let key_of = |row: &Row| row.place.key.clone().unwrap();
    let due = |fleet: &Fleet, at| fleet.due(at).map(key_of).collect::<Vec<_>>();

    // The rule broken: without a time the task is silent, and stalled.
    report(None);
    let before = scan(hours(2));
    assert_eq!(before.rows()[0].result(), "stalled");
    assert_eq!(due(&before, hours(2)), ["a", "a-b", "b"]);

    let revision = report(Some(hours(4)));
    store
        .claim(
            &key("b"),
            &ClaimRequest::new("dev", Duration::from_secs(36_000)),
        )
        .unwrap();
    let fleet = rescan(&before, hours(2));
    let row = &fleet.rows()[0];
    assert_eq!(row.waiting, Some(Waiting::Time { until: hours(4) }));
    assert_eq!(row.result(), "waiting");
    assert!(!row.needs_attention() && !row.is_resumable());
    assert_eq!(row.next.as_ref().unwrap().decision, ResumeDecision::Wait);
    assert_eq!(fleet.rows()[1].result(), "stalled");
    assert_eq!(due(&fleet, hours(2)), ["a-b"]);
    assert_eq!(due(&fleet, hours(4)), ["a", "a-b"]);
    assert_eq!(due(&fleet, hours(11)), ["a", "a-b", "b"]);
    assert_eq!(fleet.clone().only_due().rows().len(), 1);

    // A line is added to the ledger, and the document is unchanged.
    assert_eq!(report(Some(hours(6))), revision);
    let fleet = rescan(&fleet, hours(2));
    assert_eq!(
        fleet.rows()[0].waiting,
        Some(Waiting::Time { until: hours(6) })
    );
    assert_eq!(due(&fleet, hours(4)), ["a-b"]);
    // The wait ends when its time comes.
    let over = rescan(&fleet, hours(7));
    assert_eq!(
        (over.rows()[0].result(), &over.rows()[0].waiting),
        ("stalled", &None)
    );
    assert_eq!(due(&over, hours(7)), ["a", "a-b"]);
    // A report ends it, too.
    assert_eq!(report(None), revision);
    assert_eq!(rescan(&fleet, hours(2)).rows()[0].waiting, None);
}
