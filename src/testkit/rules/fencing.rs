//! Claims, and the fences that keep old owners out.

use crate::CheckpointStoreExt;
use std::sync::Barrier;
use std::time::Duration;

use crate::checkpoint::{Claim, ClaimRequest, ErrorKind, Fence, Fenced};
use crate::store::{DeleteOptions, Put};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, is_claimed, is_fenced, numbered, put, put_fenced, refused};

const HOUR: Duration = Duration::from_secs(3600);

/// Those that claim a key at once.
const ASKERS: usize = 8;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "while_a_claim_stands_only_its_fence_writes",
        "While a claim on a key stands, a write goes through only with its fence.",
        &[Need::Claims],
        while_a_claim_stands_only_its_fence_writes,
    ),
    Rule::new(
        "a_claim_that_stands_is_its_owners_alone",
        "While a claim stands its owner gets the same one again, and nobody else gets one without taking over.",
        &[Need::Claims],
        a_claim_that_stands_is_its_owners_alone,
    ),
    Rule::new(
        "an_old_fence_never_opens_again",
        "A fence of an earlier claim, or of one that was given back, is refused for good.",
        &[Need::Claims],
        an_old_fence_never_opens_again,
    ),
    Rule::new(
        "a_fence_only_ever_grows",
        "Fences of a key only grow, also over reopenings, releases and deletes.",
        &[Need::Claims],
        a_fence_only_ever_grows,
    ),
    Rule::new(
        "a_claim_that_ran_out_can_be_renewed_until_another_has_it",
        "A claim that ran out keeps nobody out and opens nothing, until it is renewed or another has it.",
        &[Need::Claims],
        a_claim_that_ran_out_can_be_renewed_until_another_has_it,
    ),
    Rule::new(
        "a_claim_that_was_given_back_is_over",
        "A claim that was given back cannot be renewed; giving it back again changes nothing.",
        &[Need::Claims],
        a_claim_that_was_given_back_is_over,
    ),
    Rule::new(
        "a_key_that_many_claim_at_once_is_given_to_one",
        "Of several that claim a key at once, one gets it.",
        &[Need::Claims],
        a_key_that_many_claim_at_once_is_given_to_one,
    ),
];

fn hour(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, HOUR)
}

fn claim(scene: &Scene<'_>, request: &ClaimRequest) -> Result<Claim, Stop> {
    Ok(scene.store.claim(&scene.key, request)?)
}

fn while_a_claim_stands_only_its_fence_writes(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    let none = store.claimed(key)?;
    ensure!(
        none.is_none(),
        "nobody claimed the key, and {none:?} has it"
    );
    // There need be no document yet.
    let one = claim(scene, &hour("one"))?;
    let kept_out = |what: &str, answer: crate::Result<()>| {
        let error = refused(what, answer, is_claimed)?;
        let told = ErrorKind::Claimed {
            owner: one.owner.clone(),
            until: one.expires,
        };
        ensure!(
            *error.kind() == told,
            "it tells {:?}, not {told:?}",
            error.kind()
        );
        Ok(())
    };
    let first = numbered(1)?;
    kept_out(
        "a put without the fence",
        store.put(key, Put::new(first.clone())).map(drop),
    )?;
    put_fenced(store, key, 1, one.fence)??;
    let second = numbered(2)?;
    kept_out(
        "a put without the fence",
        store.put(key, Put::new(second.clone())).map(drop),
    )?;
    let delete = store.delete(key, &DeleteOptions::new());
    kept_out("a delete without the fence", delete.map(drop))?;
    let change = &mut |_: Option<&_>| Ok(Some(Put::new(second.clone())));
    kept_out(
        "a transaction without the fence",
        store.transact(key, change).map(drop),
    )?;
    ensure!(
        scene.number()? == Some(1),
        "and {:?} is there",
        scene.number()?
    );
    if let Some(other) = &scene.other {
        put(store, other, 7)?;
    }
    let own = DeleteOptions::new().with_fence(Some(one.fence));
    ensure!(store.delete(key, &own)?, "the owner's delete found nothing");
    let last = store.claimed(key)?;
    ensure!(
        last.as_ref().is_some_and(|last| last.fence == one.fence),
        "after a delete the claim is {last:?}"
    );
    Ok(())
}

fn a_claim_that_stands_is_its_owners_alone(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let one = claim(scene, &hour("one"))?;
    let again = claim(scene, &hour("one"))?;
    ensure!(
        (again.fence, again.since) == (one.fence, one.since) && again.expires >= one.expires,
        "the owner asked again and got {again:?} for {one:?}"
    );
    let answer = store.claim(&scene.key, &hour("two"));
    refused("a claim on what another has", answer, is_claimed)?;
    let two = claim(scene, &hour("two").taking_over())?;
    let told = store.claimed(&scene.key)?;
    ensure!(
        told.as_ref() == Some(&two),
        "{two:?} was granted, and {told:?} is kept"
    );
    Ok(())
}

fn an_old_fence_never_opens_again(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let mut old: Vec<Fence> = Vec::new();
    // The last is the owner before, again.
    for owner in ["one", "two", "three", "two"] {
        let new = claim(scene, &hour(owner).taking_over())?;
        put_fenced(store, &scene.key, old.len() as u64, new.fence)??;
        for fence in &old {
            let by = ErrorKind::Fenced {
                fence: fence.number(),
                why: Fenced::TakenOver {
                    by: owner.to_owned(),
                },
            };
            let answer = put_fenced(store, &scene.key, 9, *fence)?;
            let error = refused("a put with an old fence", answer, is_fenced)?;
            ensure!(
                *error.kind() == by,
                "it tells {:?}, not {by:?}",
                error.kind()
            );
            let delete = DeleteOptions::new().with_fence(Some(*fence));
            let answer = store.delete(&scene.key, &delete);
            refused("a delete with an old fence", answer, is_fenced)?;
            let answer = store.renew(&scene.key, *fence, HOUR);
            refused("a renewal with an old fence", answer, is_fenced)?;
            let answer = store.release(&scene.key, *fence);
            refused("a release with an old fence", answer, is_fenced)?;
        }
        old.push(new.fence);
    }
    let last = old[3];
    store.release(&scene.key, last)?;
    for fence in old {
        let answer = put_fenced(store, &scene.key, 9, fence)?;
        refused("a put with a fence that was given back", answer, is_fenced)?;
    }
    let invented = Fence::new(last.number() + 1);
    let answer = put_fenced(store, &scene.key, 9, invented)?;
    refused(
        "a put with a fence that nobody was given",
        answer,
        is_fenced,
    )?;
    ensure!(
        scene.number()? == Some(3),
        "and {:?} is there",
        scene.number()?
    );
    Ok(())
}

fn a_fence_only_ever_grows(scene: &Scene<'_>) -> Ruling {
    let mut last = Fence::new(0);
    for round in 0..6 {
        let store = scene.place.open()?;
        let owner = ["one", "two"][round % 2];
        let new = store.claim(&scene.key, &hour(owner).taking_over())?;
        ensure!(
            new.fence > last,
            "in round {round} the fence {} came after {last}",
            new.fence
        );
        last = new.fence;
        put_fenced(&*store, &scene.key, round as u64, last)??;
        if round % 3 == 0 {
            let delete = DeleteOptions::new().with_fence(Some(last));
            store.delete(&scene.key, &delete)?;
        }
        if round % 3 != 1 {
            store.release(&scene.key, last)?;
        }
    }
    Ok(())
}

fn a_claim_that_ran_out_can_be_renewed_until_another_has_it(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    let clock = scene.place.clock();
    let resolution = scene.place.claim_resolution();
    let short = match clock {
        Some(_) => Duration::from_secs(1),
        None => resolution.max(Duration::from_millis(20)),
    };
    let one = claim(scene, &ClaimRequest::new("one", short))?;
    match &clock {
        Some(clock) => clock.step(2),
        // Its beginning, its end and the time now may each be rounded.
        None => std::thread::sleep(2 * short + 2 * resolution),
    }
    let answer = put_fenced(store, key, 9, one.fence)?;
    let error = refused("a put of an owner whose claim ran out", answer, is_fenced)?;
    ensure!(
        matches!(
            error.kind(),
            ErrorKind::Fenced {
                why: Fenced::Expired { .. },
                ..
            }
        ),
        "it tells {:?}, not that the claim ran out",
        error.kind()
    );
    // It keeps nobody out.
    scene.put(1)?;
    let renewed = store.renew(key, one.fence, HOUR)?;
    ensure!(
        (renewed.fence, renewed.since) == (one.fence, one.since),
        "renewed, {one:?} became {renewed:?}"
    );
    put_fenced(store, key, 2, one.fence)??;
    let two = claim(scene, &hour("two").taking_over())?;
    let answer = store.renew(key, one.fence, HOUR);
    refused("a renewal of what another has", answer, is_fenced)?;
    let told = store.claimed(key)?;
    ensure!(
        told.as_ref() == Some(&two),
        "{two:?} was granted, and {told:?} is kept"
    );
    Ok(())
}

fn a_claim_that_was_given_back_is_over(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    let one = claim(scene, &hour("one"))?;
    for _ in 0..2 {
        let released = store.release(key, one.fence)?;
        ensure!(
            released.released && released.fence == one.fence,
            "given back, {one:?} became {released:?}"
        );
    }
    refused(
        "a renewal of what was given back",
        store.renew(key, one.fence, HOUR),
        is_fenced,
    )?;
    scene.put(1)?;
    let two = claim(scene, &hour("two"))?;
    refused(
        "a release of what another has",
        store.release(key, one.fence),
        is_fenced,
    )?;
    put_fenced(store, key, 2, two.fence)??;
    Ok(())
}

fn a_key_that_many_claim_at_once_is_given_to_one(scene: &Scene<'_>) -> Ruling {
    for round in 0..3 {
        let start = Barrier::new(ASKERS);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS)
                .map(|n| {
                    let request = hour(&format!("agent-{round}-{n}"));
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        scene.store.claim(&scene.key, &request)
                    })
                })
                .collect();
            askers
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect()
        });
        let mut given = Vec::new();
        for answer in answers {
            match answer.map_err(|_| Stop::failed("a claim panicked"))? {
                Ok(claim) => given.push(claim),
                Err(error) if is_claimed(error.kind()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        ensure!(
            given.len() == 1,
            "of eight that asked for the task at once, {} got it",
            given.len()
        );
        scene.store.release(&scene.key, given[0].fence)?;
    }
    Ok(())
}
