//! The rules for documents that cannot be read, and for their recovery.

use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, DropReason, Dropped, ErrorKind, Expect, Revision};
use crate::store::{DeleteOptions, Put, RecoverOptions, Recovery};
use crate::testkit::fixture::{
    Fixture, is_claimed, is_corrupt, number_of, numbered, put_over, refused,
};
use crate::testkit::{Place, Skipped};

/// A document that exists and cannot be read is an error, never "no document".
pub fn a_damaged_document_is_an_error(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.put(1);
    fixture.damage()?;
    let second = place.open().unwrap();
    for store in [&*fixture.store, &*second] {
        refused("the load of damage", store.load(&fixture.key), is_corrupt);
    }
    Ok(())
}

/// Only a recovery replaces or removes a document that cannot be read, whatever a write expects.
pub fn a_damaged_document_is_never_replaced(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let first = fixture.put(1).revision;
    fixture.damage()?;
    for expect in [
        Expect::Any,
        Expect::Absent,
        Expect::Revision(first),
        Expect::Revision(Revision::of(b"never there")),
    ] {
        let answer = put_over(store, key, 9, expect.clone());
        let what = format!("a put over damage that expects {expect}");
        refused(&what, answer, is_corrupt);
        let answer = store.delete(key, &DeleteOptions::new().with_expect(expect.clone()));
        let what = format!("a delete of damage that expects {expect}");
        refused(&what, answer, is_corrupt);
    }
    let answer = store.transact(key, |_| Ok(Some(Put::new(numbered(9)))));
    refused("a transaction over damage", answer, is_corrupt);
    refused("the load of damage", store.load(key), is_corrupt);
    Ok(())
}

/// A recovery moves a damaged document into quarantine, returns where it is, and continues with the newest good state.
pub fn recovery_continues_with_the_newest_good_state(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, recovery, history) = (&fixture.key, fixture.recovery()?, fixture.history()?);
    fixture.put_all([1, 2]);
    fixture.damage()?;
    let entries = history.states(key).unwrap();
    let first = &entries[0];
    assert!(
        first.is_current() && first.revision.is_err(),
        "the damage is not in the history as such: {entries:?}"
    );
    let newest = RecoverOptions::new(Recovery::Newest);
    let recovered = recovery.recover(key, &newest).unwrap();
    assert!(recovered.damage.is_some(), "what was wrong: {recovered:?}");
    assert!(
        recovered.put_aside.is_some(),
        "where the damage is kept: {recovered:?}"
    );
    assert!(
        recovered.entry.is_some(),
        "which state was brought back: {recovered:?}"
    );
    let now = fixture.there();
    assert_eq!(number_of(&now), Some(1), "after the recovery");
    assert_eq!(
        recovered.document.as_ref(),
        Some(&now.document),
        "after the recovery"
    );
    let again = recovery.recover(key, &newest).unwrap();
    assert_eq!(again.damage, None, "found by a second recovery");
    assert_eq!(
        fixture.there().revision,
        now.revision,
        "after a second recovery"
    );
    fixture.put(3);
    Ok(())
}

/// A recovery is a write: on a claimed key it needs the fence.
pub fn recovery_needs_the_fence(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), recovery) = (fixture.parts(), fixture.recovery()?);
    let claims = fixture.claims()?;
    fixture.history()?;
    fixture.put_all([1, 2]);
    let request = ClaimRequest::new("one", Duration::from_secs(3600));
    let claim = claims.claim(key, &request).unwrap();
    fixture.damage()?;
    let newest = RecoverOptions::new(Recovery::Newest);
    let answer = recovery.recover(key, &newest);
    refused("a recovery without the fence", answer, is_claimed);
    refused("the load of damage", store.load(key), is_corrupt);
    let fenced = newest.with_fence(claim.fence);
    recovery.recover(key, &fenced).unwrap();
    fixture.assert_number(1, "after the owner's recovery");
    Ok(())
}

/// A recovery of a document that can be read changes nothing.
pub fn recovery_of_a_good_document_changes_nothing(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, recovery) = (&fixture.key, fixture.recovery()?);
    fixture.put_all([1, 2]);
    let before = fixture.there();
    for with in [Recovery::Newest, Recovery::Fresh, Recovery::Salvage] {
        let recovered = recovery.recover(key, &RecoverOptions::new(with)).unwrap();
        assert!(
            recovered.damage.is_none() && recovered.saved.is_none(),
            "a recovery with {with:?} did {recovered:?}"
        );
        let after = fixture.there().revision;
        assert_eq!(after, before.revision, "after a recovery with {with:?}");
    }
    if fixture.history().is_ok() {
        fixture.assert_past(&[1], "after recoveries");
    }
    Ok(())
}

/// A recovery with the newest state restores a deleted document and its dropped items.
pub fn recovery_brings_a_deleted_document_back(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), recovery) = (fixture.parts(), fixture.recovery()?);
    fixture.history()?;
    if fixture.capabilities().embedded {
        return Err(Skipped("the store keeps documents inside a larger file"));
    }
    let newest = RecoverOptions::new(Recovery::Newest);
    let answer = recovery.recover(key, &newest);
    refused("a recovery of a document that never was", answer, |kind| {
        matches!(kind, ErrorKind::NotRecoverable { .. })
    });
    fixture.put(1);
    let item = Dropped::new("/x", DropReason::Elements(1), 7.into());
    let put = Put::new(numbered(2)).with_dropped(vec![item]);
    store.put(key, put).unwrap();
    fixture.delete();
    let recovered = recovery.recover(key, &newest).unwrap();
    assert_eq!(recovered.damage, None, "a deleted document is not damaged");
    assert!(
        recovered.entry.is_some(),
        "which state was brought back: {recovered:?}"
    );
    fixture.assert_number(2, "after the recovery");
    let dropped = store.beside().dropped(key).unwrap().len();
    assert_eq!(dropped, 1, "the number of dropped items after the recovery");
    Ok(())
}
