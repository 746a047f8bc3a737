//! Clocks that are wrong, and set back.

use std::time::Duration;

use crate::checkpoint::{ClaimRequest, Expect, Fence};
use crate::store::{Outcome, Put};
use crate::testkit::MovableClock;
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, document, is_claimed, put_fenced, put_over, refused, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "stamps_inside_documents_decide_nothing",
        "Which state is newer is told by the order of the writes, never by a time inside a document.",
        &[],
        stamps_inside_documents_decide_nothing,
    ),
    Rule::new(
        "a_clock_that_is_set_back_brings_no_old_state_back",
        "A clock that is set back neither hides a save nor changes the order of the history.",
        &[Need::MovableClock],
        a_clock_that_is_set_back_brings_no_old_state_back,
    ),
    Rule::new(
        "fences_grow_although_the_clock_is_set_back",
        "Fences of a key grow whatever the clock does.",
        &[Need::MovableClock, Need::Claims],
        fences_grow_although_the_clock_is_set_back,
    ),
    Rule::new(
        "a_claim_runs_out_by_the_stores_clock",
        "A claim stands for as long as it was asked for, by the store's own clock.",
        &[Need::MovableClock, Need::Claims],
        a_claim_runs_out_by_the_stores_clock,
    ),
];

fn clock(scene: &Scene<'_>) -> Result<MovableClock, Stop> {
    scene.place.clock().ok_or(Stop::missing(Need::MovableClock))
}

fn stamps_inside_documents_decide_nothing(scene: &Scene<'_>) -> Ruling {
    let stamps = [
        "2026-03-02T08:00:00Z",
        "2019-01-01T00:00:00Z",
        "2031-12-31T23:59:59Z",
        "N/A",
    ];
    let mut previous = None;
    for (number, stamp) in (1..).zip(stamps) {
        let text =
            format!("{{\"updatedAt\":\"{stamp}\",\"lastUpdated\":\"{stamp}\",\"n\":{number}}}");
        let expect = previous.map_or(Expect::Absent, Expect::Revision);
        let saved = scene
            .store
            .put(&scene.key, Put::new(document(&text)?).with_expect(expect))?;
        let stored = there(&*scene.store, &scene.key)?;
        ensure!(
            saved.outcome != Outcome::Unchanged && stored.document.same_value(&document(&text)?),
            "{text} was saved ({:?}), and {} is there",
            saved.outcome,
            stored.document
        );
        previous = Some(saved.revision);
    }
    if scene.offered.history {
        scene.has_past(&[3, 2, 1], "in the order of the writes")?;
    }
    Ok(())
}

fn a_clock_that_is_set_back_brings_no_old_state_back(scene: &Scene<'_>) -> Ruling {
    let clock = clock(scene)?;
    let mut previous = scene.put(1)?.revision;
    for (number, seconds) in (2..).zip([-3600, 7200, -86_400, 0]) {
        clock.step(seconds);
        let expect = Expect::Revision(previous);
        let saved = put_over(&*scene.store, &scene.key, number, expect)??;
        let found = scene.number()?;
        ensure!(
            saved.outcome == Outcome::Replaced && found == Some(number),
            "{seconds} seconds later {number} was saved ({:?}), and {found:?} is there",
            saved.outcome
        );
        previous = saved.revision;
    }
    if scene.offered.history {
        scene.has_past(&[4, 3, 2, 1], "in the order of the writes")?;
    }
    Ok(())
}

fn fences_grow_although_the_clock_is_set_back(scene: &Scene<'_>) -> Ruling {
    let clock = clock(scene)?;
    let mut last = Fence::new(0);
    for seconds in [0, -3600, -86_400, 60, -60] {
        clock.step(seconds);
        let request = ClaimRequest::new("one", Duration::from_secs(30)).taking_over();
        let claim = scene.store.claim(&scene.key, &request)?;
        ensure!(
            claim.fence > last,
            "the clock moved by {seconds} seconds, and the fence {} came after {last}",
            claim.fence
        );
        last = claim.fence;
        scene.store.release(&scene.key, last)?;
    }
    Ok(())
}

fn a_claim_runs_out_by_the_stores_clock(scene: &Scene<'_>) -> Ruling {
    let (store, clock) = (&*scene.store, clock(scene)?);
    let minute = Duration::from_secs(60);
    let one = store.claim(&scene.key, &ClaimRequest::new("one", minute))?;
    clock.step(59);
    put_fenced(store, &scene.key, 1, one.fence)??;
    let two = ClaimRequest::new("two", minute);
    refused(
        "a claim a second too early",
        store.claim(&scene.key, &two),
        is_claimed,
    )?;
    clock.step(1);
    let two = store.claim(&scene.key, &two)?;
    ensure!(
        two.fence > one.fence,
        "the claim of another has the fence {}, not after {}",
        two.fence,
        one.fence
    );
    put_fenced(store, &scene.key, 2, two.fence)??;
    Ok(())
}
