//! What cannot be read, and how one goes on from it.

use crate::CheckpointStoreExt;
use std::time::Duration;

use crate::checkpoint::{ClaimRequest, DropReason, Dropped, ErrorKind, Expect, Revision};
use crate::store::{DeleteOptions, Put, RecoverOptions, Recovery};
use crate::testkit::rule::{Need, Rule, Ruling, ensure};
use crate::testkit::scene::{
    Scene, is_claimed, is_corrupt, number_of, numbered, past, put_over, refused, there,
};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "what_cannot_be_read_is_not_taken_for_nothing",
        "Only \"there is none\" is no document; what is there and corrupt is an error.",
        &[Need::Damage],
        what_cannot_be_read_is_not_taken_for_nothing,
    ),
    Rule::new(
        "a_corrupt_document_is_never_written_over",
        "A document that is corrupt is refused as such by every operation, also by a put over anything.",
        &[Need::Damage],
        a_corrupt_document_is_never_written_over,
    ),
    Rule::new(
        "what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on",
        "A recovery puts what cannot be read aside, says where, and has the newest good state in its place.",
        &[Need::Recovery, Need::History, Need::Damage],
        what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on,
    ),
    Rule::new(
        "only_who_has_the_task_recovers_it",
        "A recovery is a write: on a key that is claimed it needs the fence.",
        &[Need::Recovery, Need::Claims, Need::History, Need::Damage],
        only_who_has_the_task_recovers_it,
    ),
    Rule::new(
        "where_nothing_is_wrong_a_recovery_changes_nothing",
        "A recovery of what can be read changes nothing.",
        &[Need::Recovery],
        where_nothing_is_wrong_a_recovery_changes_nothing,
    ),
    Rule::new(
        "what_was_deleted_can_be_brought_back",
        "A recovery with the newest state brings a deleted document back, with what was cut from it.",
        &[Need::Recovery, Need::History, Need::Standalone],
        what_was_deleted_can_be_brought_back,
    ),
];

fn what_cannot_be_read_is_not_taken_for_nothing(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    scene.damage()?;
    let store = scene.place.open()?;
    for store in [&*scene.store, &*store] {
        let answer = store.load(&scene.key).map(|found| format!("{found:?}"));
        refused("the load of what is damaged", answer, is_corrupt)?;
    }
    Ok(())
}

fn a_corrupt_document_is_never_written_over(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    let first = scene.put(1)?.revision;
    scene.damage()?;
    let never = Revision::of(b"never there");
    for expect in [
        Expect::Any,
        Expect::Absent,
        Expect::Revision(first),
        Expect::Revision(never),
    ] {
        let answer = put_over(store, key, 9, expect.clone())?;
        refused(
            &format!("a put over what is damaged that expects {expect}"),
            answer,
            is_corrupt,
        )?;
        let answer = store.delete(key, &DeleteOptions::new().with_expect(expect.clone()));
        refused(
            &format!("a delete of what is damaged that expects {expect}"),
            answer,
            is_corrupt,
        )?;
    }
    let next = numbered(9)?;
    let change = &mut |_: Option<&_>| Ok(Some(Put::new(next.clone())));
    refused(
        "a transaction on what is damaged",
        store.transact(key, change),
        is_corrupt,
    )?;
    refused("the load of what is damaged", store.load(key), is_corrupt)?;
    Ok(())
}

fn what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    scene.put(1)?;
    scene.put(2)?;
    scene.damage()?;
    let entries = store.history(key)?;
    ensure!(
        entries
            .first()
            .is_some_and(|entry| entry.is_current() && entry.revision.is_err()),
        "what is damaged is not in the history as such: {entries:?}"
    );
    let recovered = store.recover(key, &RecoverOptions::new(Recovery::Newest))?;
    ensure!(
        recovered.damage.is_some(),
        "the recovery does not say what was wrong"
    );
    ensure!(
        recovered.put_aside.is_some(),
        "the recovery does not say where the damaged text is kept"
    );
    ensure!(
        recovered.entry.is_some(),
        "the recovery does not say which state it brought back"
    );
    let now = there(store, key)?;
    ensure!(
        number_of(&now) == Some(1) && recovered.document.as_ref() == Some(&now.document),
        "the newest good state is 1, and {} is there",
        now.document
    );
    let again = store.recover(key, &RecoverOptions::new(Recovery::Newest))?;
    ensure!(
        again.damage.is_none() && there(store, key)?.revision == now.revision,
        "a second recovery found {:?}",
        again.damage
    );
    scene.put(3)?;
    Ok(())
}

fn only_who_has_the_task_recovers_it(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    scene.put(1)?;
    scene.put(2)?;
    let claim = store.claim(key, &ClaimRequest::new("one", Duration::from_secs(3600)))?;
    scene.damage()?;
    let newest = RecoverOptions::new(Recovery::Newest);
    refused(
        "a recovery without the fence",
        store.recover(key, &newest),
        is_claimed,
    )?;
    refused("the load of what is damaged", store.load(key), is_corrupt)?;
    store.recover(key, &newest.with_fence(Some(claim.fence)))?;
    ensure!(
        scene.number()? == Some(1),
        "its owner recovered {:?}",
        scene.number()?
    );
    Ok(())
}

fn where_nothing_is_wrong_a_recovery_changes_nothing(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    scene.put(2)?;
    let before = there(&*scene.store, &scene.key)?;
    for with in [Recovery::Newest, Recovery::Fresh, Recovery::Salvage] {
        let recovered = scene
            .store
            .recover(&scene.key, &RecoverOptions::new(with))?;
        ensure!(
            recovered.damage.is_none() && recovered.saved.is_none(),
            "a recovery with {with:?} found {:?} and saved {:?}",
            recovered.damage,
            recovered.saved
        );
        let now = scene.store.load(&scene.key)?;
        ensure!(
            now.is_some_and(|now| now.revision == before.revision),
            "a recovery with {with:?} changed the document"
        );
    }
    if scene.offered.history {
        let found = past(&*scene.store, &scene.key)?;
        ensure!(found == [1], "and the earlier states are {found:?}");
    }
    Ok(())
}

fn what_was_deleted_can_be_brought_back(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    let newest = RecoverOptions::new(Recovery::Newest);
    refused(
        "a recovery of what never was",
        store.recover(key, &newest),
        |kind| matches!(kind, ErrorKind::NotRecoverable { .. }),
    )?;
    scene.put(1)?;
    let cut = Dropped::new("/x", DropReason::Elements(1), 7.into());
    store.put(key, Put::new(numbered(2)?).with_dropped(vec![cut]))?;
    scene.delete()?;
    let recovered = store.recover(key, &newest)?;
    ensure!(
        recovered.damage.is_none() && recovered.entry.is_some(),
        "the recovery tells of {:?} and of entry {:?}",
        recovered.damage,
        recovered.entry
    );
    ensure!(
        scene.number()? == Some(2),
        "{:?} was brought back",
        scene.number()?
    );
    ensure!(
        store.overflow(key)?.len() == 1,
        "without what was cut from it"
    );
    Ok(())
}
