//! The rule for forgetting a task.

use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, DropReason, Dropped, ErrorKind, Expect, Key, Revision};
use crate::store::{CheckpointStore, DeleteOptions, Outcome, Put, RecoverOptions, Recovery};
use crate::testkit::fixture::{
    Fixture, add_line, document, is_claimed, is_conflict, is_fenced, lines, put_fenced, refused,
};
use crate::testkit::{Place, Skipped};

/// The beginning of all texts of the forgotten task, wherever they are kept.
const MARK: &str = "forget-this-";

/// A text that is kept. It shows that a search of the bytes finds what is there.
const STAYS: &str = "keep-this-of-another-task";

fn marked(what: &str) -> Put {
    Put::new(document(&format!("{{\"text\":\"{MARK}{what}\"}}")))
}

/// Puts texts of a task in every place where a store can keep them, and returns the last revision.
fn spread(fixture: &Fixture<'_>) -> Revision {
    let (store, key) = fixture.parts();
    store.put(key, marked("first")).unwrap();
    let line = format!("{{\"line\":\"{MARK}ledger\"}}");
    assert!(add_line(store, key, &line, 0, None).unwrap());
    if let Ok(history) = fixture.history() {
        let entry = history.states(key).unwrap()[0].id.clone();
        history.pin(key, &entry, true).unwrap();
    }
    let item = Dropped::new("/x", DropReason::Elements(1), format!("{MARK}item").into());
    store
        .put(key, marked("second").with_dropped(vec![item]))
        .unwrap();
    if fixture.damage().is_ok() && fixture.recovery().is_ok() {
        let fresh = RecoverOptions::new(Recovery::Fresh);
        store.recover(key, &fresh).unwrap();
    }
    let item = Dropped::new("/x", DropReason::Elements(1), format!("{MARK}later").into());
    store
        .put(key, marked("third").with_dropped(vec![item]))
        .unwrap();
    let last = marked("last").with_fingerprints(format!("{MARK}fingerprints"));
    store.put(key, last).unwrap().revision
}

/// Checks that the store shows nothing of a key.
fn assert_nothing(store: &dyn CheckpointStore, key: &Key, last: &Revision) {
    let when = "of a task that was forgotten";
    assert!(store.load(key).unwrap().is_none(), "the document {when}");
    let beside = store.beside();
    assert_eq!(beside.dropped(key).unwrap(), [], "dropped items {when}");
    let fingerprints = beside.fingerprints(key, last).unwrap();
    assert_eq!(fingerprints, None, "fingerprints {when}");
    assert_eq!(lines(store, key), [""; 0], "the ledger {when}");
    if store.history().is_some() {
        assert_eq!(store.states(key).unwrap(), [], "the states {when}");
    }
    if store.recovery().is_some() {
        let answer = store.recover(key, &RecoverOptions::new(Recovery::Newest));
        refused("a recovery of a task that was forgotten", answer, |kind| {
            matches!(kind, ErrorKind::NotRecoverable { .. })
        });
    }
}

/// A forgotten task is removed everywhere: its document and history, pinned and quarantined states, dropped items, the
/// ledger, and the name of its owner. No byte of it remains anywhere in the store. Only the fence is kept.
pub fn a_forgotten_task_leaves_only_its_fence(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let options = DeleteOptions::new();
    if fixture.capabilities().embedded {
        let answer = store.forget(key, &options);
        refused("a forget inside a larger file", answer, |kind| {
            matches!(kind, ErrorKind::NotOffered { .. })
        });
        return Err(Skipped("the store keeps documents inside a larger file"));
    }
    assert!(
        !store.forget(key, &options).unwrap(),
        "forget returned true for a key without anything to forget"
    );
    let stays = document(&format!("{{\"text\":\"{STAYS}\"}}"));
    if let Some(other) = &fixture.other {
        store.put(other, Put::new(stays.clone())).unwrap();
    }
    let last = spread(&fixture);
    let other_revision = Expect::Revision(Revision::of(b"never there"));
    for expect in [Expect::Absent, other_revision] {
        let answer = store.forget(key, &DeleteOptions::new().with_expect(expect));
        refused("a forget with a wrong expectation", answer, is_conflict);
    }
    let owner = format!("{MARK}owner");
    let request = ClaimRequest::new(&owner, Duration::from_secs(3600)).of_agent(&owner);
    let claim = fixture
        .claims()
        .ok()
        .map(|claims| claims.claim(key, &request).unwrap());
    if claim.is_some() {
        let answer = store.forget(key, &options);
        refused("a forget without the fence", answer, is_claimed);
    }
    let there = store.load(key).unwrap().map(|stored| stored.revision);
    assert_eq!(
        there.as_ref(),
        Some(&last),
        "after a forget that was refused"
    );
    let before = place.raw();
    let fence = claim.as_ref().map(|claim| claim.fence);
    let options = options
        .with_expect(Expect::Revision(last.clone()))
        .with_fence(fence);
    assert!(
        store.forget(key, &options).unwrap(),
        "a forget found nothing"
    );
    let raw = place.raw();

    let again = DeleteOptions::new().with_fence(fence);
    assert!(
        !store.forget(key, &again).unwrap(),
        "a second forget found something"
    );
    for store in [&*fixture.store, &*place.open().unwrap()] {
        assert_nothing(store, key, &last);
    }
    if let Some(fence) = fence {
        let left = store.claimed(key).unwrap();
        let gone = || panic!("the fence of a task that was forgotten is gone");
        let left = left.unwrap_or_else(gone);
        assert!(
            left.is_only_fence() && left.fence == fence && left.agent.is_none(),
            "of {claim:?} there is left {left:?}"
        );
        let answer = put_fenced(store, key, 9, fence);
        refused("a put with a forgotten fence", answer, is_fenced);
        let next = store.claim(key, &ClaimRequest::new("next", Duration::from_secs(1)));
        let next = next.unwrap();
        assert!(next.fence > fence, "fence {} follows {fence}", next.fence);
        store.release(key, next.fence).unwrap();
    }
    assert_eq!(fixture.put(1).outcome, Outcome::Created, "the next task");
    if fixture.history().is_ok() {
        fixture.assert_past(&[], "of the next task");
    }
    if let Some(other) = &fixture.other {
        let left = store.load(other).unwrap().map(|stored| stored.document);
        assert_eq!(left, Some(stays), "another task after a forget");
    }
    let (Some(before), Some(raw)) = (before, raw) else {
        return Err(Skipped("the place cannot show the bytes that it keeps"));
    };
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
    assert!(has(&before, MARK), "the place does not show what it keeps");
    assert!(
        fixture.other.is_none() || has(&raw, STAYS),
        "bytes of another task are gone"
    );
    if let Some(at) = raw.windows(MARK.len()).position(|at| at == MARK.as_bytes()) {
        let end = raw.len().min(at + 40);
        let found = String::from_utf8_lossy(&raw[at..end]);
        panic!("after a forget the place still has {found:?}");
    }
    Ok(())
}
