//! The rules for claims, and for the fences that exclude former owners. They are those of leases with fencing tokens.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, ErrorKind, Fence, Fenced, Key};
use crate::store::{DeleteOptions, Put};
use crate::testkit::fixture::{Fixture, is_claimed, is_fenced, numbered, put, put_fenced, refused};
use crate::testkit::{Place, Skipped};

const HOUR: Duration = Duration::from_secs(3600);

/// The number of agents that claim a key at the same time.
const AGENTS: usize = 8;

fn hour(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, HOUR)
}

/// While a claim is held, a write happens only with its fence.
pub fn while_a_claim_is_held_only_its_fence_can_write(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    assert_eq!(claims.claimed(key).unwrap(), None, "the key is unclaimed");
    // A claim needs no document.
    let one = claims.claim(key, &hour("one")).unwrap();
    let held = ErrorKind::Claimed {
        owner: one.owner.clone(),
        until: one.expires,
    };
    let is_held = |kind: &ErrorKind| *kind == held;
    let answer = store.put(key, Put::new(numbered(1)));
    refused("a first put without the fence", answer, is_held);
    put_fenced(store, key, 1, one.fence).unwrap();
    let answer = store.put(key, Put::new(numbered(2)));
    refused("a put without the fence", answer, is_held);
    let answer = store.delete(key, &DeleteOptions::new());
    refused("a delete without the fence", answer, is_held);
    let answer = store.transact(key, |_| Ok(Some(Put::new(numbered(2)))));
    refused("a transaction without the fence", answer, is_held);
    fixture.assert_number(1, "after writes without the fence");
    if let Some(other) = &fixture.other {
        put(store, other, 7);
    }
    let with = DeleteOptions::new().with_fence(one.fence);
    assert!(
        store.delete(key, &with).unwrap(),
        "the owner's delete found nothing"
    );
    let after = claims.claimed(key).unwrap().map(|claim| claim.fence);
    assert_eq!(after, Some(one.fence), "the claim after a delete");
    Ok(())
}

/// A key that is claimed and has no document is listed as claimed without a document, until the claim is released or
/// there is a document.
pub fn a_claim_without_a_document_is_listed_until_it_is_given_back(
    place: &dyn Place,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let alone = |expected: &[&Key], when: &str| {
        let found = store
            .claims()
            .map(|claims| claims.claimed_without_document());
        let found = found.unwrap().unwrap();
        assert!(
            found.iter().eq(expected.iter().copied()),
            "claimed without a document {when}: {found:?}"
        );
    };
    alone(&[], "before any claim");
    let claim = claims.claim(key, &hour("one")).unwrap();
    alone(&[key], "after a claim");
    put_fenced(store, key, 1, claim.fence).unwrap();
    if let Some(other) = &fixture.other {
        claims.claim(other, &hour("two")).unwrap();
        alone(&[other], "after the first put of the other key");
    }
    let fenced = DeleteOptions::new().with_fence(claim.fence);
    store.delete(key, &fenced).unwrap();
    claims.release(key, claim.fence).unwrap();
    alone(&fixture.other.iter().collect::<Vec<_>>(), "after a release");
    Ok(())
}

/// While a claim is held, its owner gets the same claim again, and another agent gets one only by taking over.
pub fn a_held_claim_belongs_to_its_owner(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, claims) = (&fixture.key, fixture.claims()?);
    let one = claims.claim(key, &hour("one")).unwrap();
    let again = claims.claim(key, &hour("one")).unwrap();
    assert!(
        (again.fence, again.since) == (one.fence, one.since) && again.expires >= one.expires,
        "the owner of {one:?} asked again and got {again:?}"
    );
    let answer = claims.claim(key, &hour("two"));
    refused("a claim on a claimed key", answer, is_claimed);
    let two = claims.claim(key, &hour("two").taking_over()).unwrap();
    assert_eq!(
        claims.claimed(key).unwrap(),
        Some(two),
        "the claim after it was taken over"
    );
    Ok(())
}

/// A fence of an earlier or released claim is refused for good.
pub fn an_old_fence_is_refused_for_good(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let mut fences: Vec<Fence> = Vec::new();
    // The last owner had an earlier claim, too.
    for (number, owner) in (0..).zip(["one", "two", "three", "two"]) {
        let new = claims.claim(key, &hour(owner).taking_over()).unwrap();
        put_fenced(store, key, number, new.fence).unwrap();
        for old in &fences {
            let taken_over = ErrorKind::Fenced {
                fence: old.number(),
                why: Fenced::TakenOver {
                    by: owner.to_owned(),
                },
            };
            let answer = put_fenced(store, key, 9, *old);
            refused("a put with an old fence", answer, |kind| {
                *kind == taken_over
            });
            let answer = store.delete(key, &DeleteOptions::new().with_fence(*old));
            refused("a delete with an old fence", answer, is_fenced);
            let answer = claims.renew(key, *old, HOUR);
            refused("a renewal with an old fence", answer, is_fenced);
            let answer = claims.release(key, *old);
            refused("a release with an old fence", answer, is_fenced);
        }
        fences.push(new.fence);
    }
    let last = fences[3];
    claims.release(key, last).unwrap();
    for fence in fences {
        let answer = put_fenced(store, key, 9, fence);
        refused("a put with a fence that was given back", answer, is_fenced);
    }
    let answer = put_fenced(store, key, 9, Fence::new(last.number() + 1));
    refused(
        "a put with a fence that was never granted",
        answer,
        is_fenced,
    );
    fixture.assert_number(3, "after writes with old fences");
    Ok(())
}

/// The fences of a key only grow, also after reopening, releases and deletes, and when the clock is set back.
pub fn fences_only_grow(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.claims()?;
    let clock = place.clock();
    let mut last = Fence::new(0);
    for (round, seconds) in [0, -3600, -86_400, 60, -60, 0].into_iter().enumerate() {
        if let Some(clock) = &clock {
            clock.step(seconds);
        }
        let fixture = Fixture::new(place);
        let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
        let owner = ["one", "two"][round % 2];
        let new = claims.claim(key, &hour(owner).taking_over()).unwrap();
        assert!(
            new.fence > last,
            "in round {round}, with the clock moved by {seconds} seconds, fence {} follows {last}",
            new.fence
        );
        last = new.fence;
        put_fenced(store, key, round as u64, last).unwrap();
        if round % 3 == 0 {
            let fenced = DeleteOptions::new().with_fence(last);
            store.delete(key, &fenced).unwrap();
        }
        if round % 3 != 1 {
            claims.release(key, last).unwrap();
        }
    }
    Ok(())
}

/// An expired claim neither excludes other writers nor allows a write, until it is renewed. After another agent has
/// claimed the key, it cannot be renewed.
pub fn an_expired_claim_can_be_renewed_until_another_claims(
    place: &dyn Place,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let (clock, resolution) = (place.clock(), place.claim_resolution());
    let short = match clock {
        Some(_) => Duration::from_secs(1),
        None => resolution.max(Duration::from_millis(20)),
    };
    let one = claims.claim(key, &ClaimRequest::new("one", short)).unwrap();
    match clock {
        Some(clock) => clock.step(2),
        // The beginning and end of the claim and the present time may each be rounded.
        None => thread::sleep(2 * short + 2 * resolution),
    }
    let answer = put_fenced(store, key, 9, one.fence);
    refused("a put with an expired claim", answer, |kind| {
        matches!(
            kind,
            ErrorKind::Fenced {
                why: Fenced::Expired { .. },
                ..
            }
        )
    });
    fixture.put(1);
    let renewed = claims.renew(key, one.fence, HOUR).unwrap();
    assert_eq!(
        (renewed.fence, renewed.since),
        (one.fence, one.since),
        "the claim after its renewal"
    );
    put_fenced(store, key, 2, one.fence).unwrap();
    let two = claims.claim(key, &hour("two").taking_over()).unwrap();
    let answer = claims.renew(key, one.fence, HOUR);
    refused("a renewal after another claimed", answer, is_fenced);
    assert_eq!(
        claims.claimed(key).unwrap(),
        Some(two),
        "the claim after the refusal"
    );
    Ok(())
}

/// A released claim cannot be renewed; another release changes nothing.
pub fn a_released_claim_is_over(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let one = claims.claim(key, &hour("one")).unwrap();
    for _ in 0..2 {
        let released = claims.release(key, one.fence).unwrap();
        assert!(
            released.released && released.fence == one.fence,
            "given back, {one:?} became {released:?}"
        );
    }
    let answer = claims.renew(key, one.fence, HOUR);
    refused("a renewal of a released claim", answer, is_fenced);
    fixture.put(1);
    let two = claims.claim(key, &hour("two")).unwrap();
    let answer = claims.release(key, one.fence);
    refused("a release of the claim of another", answer, is_fenced);
    put_fenced(store, key, 2, two.fence).unwrap();
    Ok(())
}

/// When several agents claim a key at the same time, one gets it.
pub fn one_of_many_claims_is_granted(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, claims) = (&fixture.key, fixture.claims()?);
    for round in 0..3 {
        let start = Barrier::new(AGENTS);
        let granted: Vec<Fence> = thread::scope(|scope| {
            let agents: Vec<_> = (0..AGENTS)
                .map(|agent| {
                    let (start, request) = (&start, hour(&format!("agent-{round}-{agent}")));
                    scope.spawn(move || {
                        start.wait();
                        match claims.claim(key, &request) {
                            Err(error) if is_claimed(error.kind()) => None,
                            claim => Some(claim.unwrap().fence),
                        }
                    })
                })
                .collect();
            let answers = agents.into_iter().map(thread::ScopedJoinHandle::join);
            answers.filter_map(Result::unwrap).collect()
        });
        let [fence] = *granted else {
            panic!("of {AGENTS} claims at the same time, these were granted: {granted:?}");
        };
        claims.release(key, fence).unwrap();
    }
    Ok(())
}

/// A claim is held for the requested time, by the clock of the store.
pub fn a_claim_expires_by_the_clock_of_the_store(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let clock = fixture.clock()?;
    let minute = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(60));
    let one = claims.claim(key, &minute("one")).unwrap();
    clock.step(59);
    put_fenced(store, key, 1, one.fence).unwrap();
    let answer = claims.claim(key, &minute("two"));
    refused("a claim a second too early", answer, is_claimed);
    clock.step(1);
    let two = claims.claim(key, &minute("two")).unwrap();
    assert!(
        two.fence > one.fence,
        "fence {} follows {}",
        two.fence,
        one.fence
    );
    put_fenced(store, key, 2, two.fence).unwrap();
    Ok(())
}
