//! What a store keeps beside documents, and what it says that it does not have.

use std::time::Duration;

use chrono::DateTime;

use crate::checkpoint::{ClaimRequest, DropReason, Dropped, ErrorKind, Expect, Fence, Revision};
use crate::store::{EntryId, Keep, Put, RecoverOptions, Recovery};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, document, is_conflict, numbered, refused, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew",
        "What was left out of a document is kept until a checkpoint is created anew under its key.",
        &[],
        what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew,
    ),
    Rule::new(
        "a_companion_belongs_to_its_revision",
        "The text beside a document is given for the revision that it was put with, whole, or not at all.",
        &[],
        a_companion_belongs_to_its_revision,
    ),
    Rule::new(
        "what_is_not_offered_is_refused_as_such",
        "What the capabilities do not promise is refused as not offered, never done by halves.",
        &[],
        what_is_not_offered_is_refused_as_such,
    ),
    Rule::new(
        "a_heartbeat_leaves_the_document",
        "A sign of life at a place of the store's own leaves the document as it is.",
        &[Need::Heartbeat],
        a_heartbeat_leaves_the_document,
    ),
];

fn what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let cut = |number: u64| Dropped::new("/x", DropReason::Elements(1), number.into());
    let put = |number: u64, cut: Vec<Dropped>| -> Result<_, Stop> {
        Ok(store.put(&scene.key, Put::new(numbered(number)?).with_dropped(cut))?)
    };
    let kept = |expected: &[u64], when: &str| {
        let pieces = store.overflow(&scene.key)?;
        let numbers: Vec<_> = pieces.iter().map(|piece| piece.value.as_u64()).collect();
        let expected: Vec<_> = expected.iter().copied().map(Some).collect();
        ensure!(
            numbers == expected,
            "{when}, {numbers:?} are kept of {expected:?}"
        );
        Ok(())
    };
    put(1, Vec::new())?;
    let saved = put(2, vec![cut(1)])?;
    ensure!(
        saved.truncation.kept_in.is_some(),
        "the save does not say where what was cut is kept"
    );
    put(3, vec![cut(1), cut(2)])?;
    kept(&[1, 2], "after three saves")?;
    if let Some(other) = &scene.other {
        ensure!(
            store.overflow(other)?.is_empty(),
            "it is kept for {other} too"
        );
    }
    let answer = store.put(
        &scene.key,
        Put::new(numbered(4)?)
            .with_expect(Expect::Absent)
            .with_dropped(vec![cut(3)]),
    );
    refused("a put with another expectation", answer, is_conflict)?;
    let present = there(store, &scene.key)?.document;
    store.put(
        &scene.key,
        Put::new(present.clone()).with_dropped(vec![cut(3)]),
    )?;
    kept(&[1, 2], "after puts that were refused or changed nothing")?;
    // Another task under the same key has cut nothing yet.
    scene.delete()?;
    put(1, Vec::new())?;
    kept(&[], "of a checkpoint that was created anew")
}

fn a_companion_belongs_to_its_revision(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let mut revisions: Vec<Revision> = Vec::new();
    for number in 1..=3 {
        let text = format!("of {number}");
        let saved = store.put(
            &scene.key,
            Put::new(numbered(number)?).with_fingerprints(Some(text.clone())),
        )?;
        let found = store.companion(&scene.key, &saved.revision)?;
        // It may be gone at any time.
        ensure!(
            found.is_none() || found.as_ref() == Some(&text),
            "{text:?} was put beside the document, and {found:?} comes back"
        );
        for old in &revisions {
            let found = store.companion(&scene.key, old)?;
            ensure!(
                found.is_none(),
                "{found:?} is given for an earlier revision"
            );
        }
        revisions.push(saved.revision);
    }
    let plain = scene.put(4)?;
    let found = store.companion(&scene.key, &plain.revision)?;
    ensure!(
        found.is_none(),
        "{found:?} is given for a document that was put without one"
    );
    Ok(())
}

fn what_is_not_offered_is_refused_as_such(scene: &Scene<'_>) -> Ruling {
    let (store, key, offered) = (&*scene.store, &scene.key, scene.offered);
    scene.put(1)?;
    let entry: EntryId = EntryId::current();
    let (fence, long) = (Fence::new(1), Duration::from_secs(60));
    let request = ClaimRequest::new("one", long);
    let mut answers = Vec::new();
    if !offered.claims {
        answers.push(("claim", store.claim(key, &request).map(drop)));
        answers.push(("renew", store.renew(key, fence, long).map(drop)));
        answers.push(("release", store.release(key, fence).map(drop)));
        answers.push(("claimed", store.claimed(key).map(drop)));
    }
    if !offered.history {
        answers.push(("history", store.history(key).map(drop)));
        answers.push(("load_revision", store.load_revision(key, &entry).map(drop)));
        answers.push(("pin", store.pin(key, &entry, true).map(drop)));
        answers.push(("prune", store.prune(key, &Keep::default()).map(drop)));
    }
    if !offered.recovery {
        let newest = RecoverOptions::new(Recovery::Newest);
        answers.push(("recover", store.recover(key, &newest).map(drop)));
    }
    if !offered.heartbeat {
        let beat = store.beat(key, DateTime::UNIX_EPOCH, None);
        answers.push(("beat", beat.map(drop)));
    }
    for (method, answer) in answers {
        refused(
            &format!("`{method}`, which is not offered,"),
            answer,
            |kind| matches!(kind, ErrorKind::NotOffered { .. }),
        )?;
    }
    ensure!(scene.number()? == Some(1), "and the document changed");
    Ok(())
}

fn a_heartbeat_leaves_the_document(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let text = "{\"n\": 1,  \"x\": [ ]}";
    store.put(&scene.key, Put::new(document(text)?))?;
    let before = there(store, &scene.key)?;
    let time = DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default();
    store.beat(&scene.key, time, None)?;
    let after = there(store, &scene.key)?;
    ensure!(
        after.document == before.document && after.revision == before.revision,
        "a heartbeat changed {} to {}",
        before.document,
        after.document
    );
    let told = after.context.heartbeat.and_then(|stamp| stamp.time());
    ensure!(
        told.is_some_and(|told| told == time),
        "the heartbeat is told as {told:?}"
    );
    scene.delete()?;
    refused(
        "a heartbeat without a document",
        store.beat(&scene.key, time, None),
        |kind| *kind == ErrorKind::NotFound,
    )?;
    Ok(())
}
