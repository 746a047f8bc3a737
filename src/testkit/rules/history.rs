//! Earlier states.

use crate::CheckpointStoreExt;
use crate::checkpoint::{Error, ErrorKind, Expect};
use crate::store::{DeleteOptions, EntryId, Keep, Put};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{
    Scene, is_conflict, number_of, numbered, past, present, put_over, refused,
};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "what_a_write_replaces_or_deletes_is_in_the_history",
        "What a write replaces or deletes is in the history afterwards, and can be put in place again.",
        &[Need::History],
        what_a_write_replaces_or_deletes_is_in_the_history,
    ),
    Rule::new(
        "history_is_newest_first",
        "The history begins with the state that is there now, and goes back in the order of the writes.",
        &[Need::History],
        history_is_newest_first,
    ),
    Rule::new(
        "a_state_that_is_not_there_is_told_as_such",
        "An entry that there is not, or not any more, is refused as such, never replaced by another.",
        &[Need::History],
        a_state_that_is_not_there_is_told_as_such,
    ),
    Rule::new(
        "failed_saves_do_not_rotate_good_history_away",
        "A failed write, and one that changes nothing, leaves nothing in the history and takes nothing from it.",
        &[Need::History],
        failed_saves_do_not_rotate_good_history_away,
    ),
    Rule::new(
        "history_does_not_grow_for_ever",
        "A store keeps no more states of a key than it says, and those are the newest.",
        &[Need::History, Need::HistoryBound],
        history_does_not_grow_for_ever,
    ),
    Rule::new(
        "pruning_leaves_the_newest_and_what_is_pinned",
        "Whatever the limits, the newest entry and those that are pinned never go.",
        &[Need::History],
        pruning_leaves_the_newest_and_what_is_pinned,
    ),
    Rule::new(
        "pruning_leaves_what_was_deleted_last",
        "Also of a key that was deleted or begun anew the newest earlier state never goes.",
        &[Need::History],
        pruning_leaves_what_was_deleted_last,
    ),
    Rule::new(
        "a_mere_sign_of_life_leaves_no_state",
        "A save that shows no more than that its agent is alive leaves no state in the history.",
        &[Need::History],
        a_mere_sign_of_life_leaves_no_state,
    ),
];

fn put_all(scene: &Scene<'_>, numbers: impl IntoIterator<Item = u64>) -> Ruling {
    numbers
        .into_iter()
        .try_for_each(|number| scene.put(number).map(drop))
}

fn has_past(scene: &Scene<'_>, expected: &[u64], when: &str) -> Ruling {
    scene.has_past(expected, when)
}

fn what_a_write_replaces_or_deletes_is_in_the_history(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    ensure!(
        store.history(key)?.is_empty(),
        "nothing was put, and there is a history"
    );
    put_all(scene, 1..=4)?;
    has_past(scene, &[3, 2, 1], "after four puts")?;
    ensure!(scene.delete()?, "a delete found nothing");
    has_past(scene, &[4, 3, 2, 1], "after four puts and a delete")?;
    if let Some(other) = &scene.other {
        let found = store.history(other)?;
        ensure!(found.is_empty(), "{other} has a history too: {found:?}");
    }
    let entries = store.history(key)?;
    let oldest = entries
        .last()
        .ok_or_else(|| Stop::failed("the history is empty"))?;
    let earlier = store.load_revision(key, &oldest.id)?;
    let number = number_of(&earlier);
    store.put(
        key,
        Put::new(earlier.document.clone()).with_expect(Expect::Absent),
    )?;
    let now = present(store, key)?;
    ensure!(
        number.is_some()
            && now.as_ref().and_then(number_of) == number
            && now.is_some_and(|now| now.revision == earlier.revision),
        "the oldest state was put in place again, and another is there"
    );
    Ok(())
}

fn history_is_newest_first(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    // The same bytes come back: only the order of the writes tells the states apart.
    put_all(scene, [1, 2, 1, 3, 2])?;
    has_past(scene, &[3, 1, 2, 1], "after five puts")?;
    let entries = store.history(key)?;
    ensure!(
        entries.first().is_some_and(|entry| entry.is_current()),
        "the history does not begin with the state that is there now: {entries:?}"
    );
    ensure!(
        entries.iter().filter(|entry| entry.is_current()).count() == 1,
        "more than one entry is said to be there now"
    );
    for entry in &entries {
        let text = store.load_revision(key, &entry.id)?.document;
        // A store may leave out what it does not know.
        ensure!(
            entry.bytes == 0 || entry.bytes == text.text().len() as u64,
            "the entry {} is said to have {} bytes, and its text has {}",
            entry.id,
            entry.bytes,
            text.text().len()
        );
    }
    let current = store.load_revision(key, &entries[0].id)?;
    let now = present(store, key)?;
    ensure!(
        now.as_ref()
            .is_some_and(|now| now.revision == current.revision)
            && number_of(&current) == Some(2),
        "the first entry is {}, which is not there now",
        current.document
    );
    Ok(())
}

fn no_such<T>(what: &str, answer: crate::Result<T>) -> Ruling {
    refused(what, answer, |kind| {
        matches!(kind, ErrorKind::NoSuchRevision { .. })
    })
    .map(drop)
}

fn a_state_that_is_not_there_is_told_as_such(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    no_such(
        "the present state of nothing",
        store.load_revision(key, &EntryId::current()),
    )?;
    put_all(scene, 1..=2)?;
    let never: EntryId = "987654".parse()?;
    no_such("an entry that never was", store.load_revision(key, &never))?;
    no_such(
        "the pinning of an entry that never was",
        store.pin(key, &never, true),
    )?;
    scene.delete()?;
    no_such(
        "the present state of what was deleted",
        store.load_revision(key, &EntryId::current()),
    )?;
    no_such(
        "the pinning of what was deleted",
        store.pin(key, &EntryId::current(), true),
    )
}

fn failed_saves_do_not_rotate_good_history_away(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    put_all(scene, 1..=4)?;
    for _ in 0..15 {
        let answer = put_over(store, key, 9, Expect::Absent)?;
        refused("a put with another expectation", answer, is_conflict)?;
        let refuse = &mut |_: Option<&_>| Err(Error::refused("not now"));
        ensure!(
            store.transact(key, refuse).is_err(),
            "a refusal went through"
        );
        let answer = store.delete(key, &DeleteOptions::new().with_expect(Expect::Absent));
        refused("a delete with another expectation", answer, is_conflict)?;
        // The same bytes again are no save either.
        scene.put(4)?;
    }
    has_past(
        scene,
        &[3, 2, 1],
        "after saves that failed or changed nothing",
    )
}

fn history_does_not_grow_for_ever(scene: &Scene<'_>) -> Ruling {
    let keeps = scene.keeps();
    let last = keeps as u64 + 8;
    put_all(scene, 0..=last)?;
    let found = past(&*scene.store, &scene.key)?;
    let newest: Vec<u64> = (0..last).rev().take(keeps).collect();
    ensure!(
        found == newest,
        "of {last} earlier states {keeps} are kept, and there are {found:?}"
    );
    // Also of one that is made and deleted again and again.
    for number in 100..100 + last {
        scene.put(number)?;
        scene.delete()?;
    }
    let found = past(&*scene.store, &scene.key)?;
    ensure!(
        found.len() <= keeps && found.first() == Some(&(99 + last)),
        "of what was made and deleted {last} times there are {found:?}"
    );
    Ok(())
}

fn pruning_leaves_the_newest_and_what_is_pinned(scene: &Scene<'_>) -> Ruling {
    let (store, key) = (&*scene.store, &scene.key);
    if scene.keeps() < 5 {
        return Err(Stop::Skipped("needs five earlier states".into()));
    }
    put_all(scene, 1..=6)?;
    let entries = store.history(key)?;
    ensure!(
        entries.len() >= 6,
        "after six puts there are {} states",
        entries.len()
    );
    let third = &entries[3].id;
    ensure!(
        store.pin(key, third, true)? == *third,
        "a pinned entry has another name"
    );
    let current = store.pin(key, &EntryId::current(), true)?;
    ensure!(
        !current.is_current(),
        "what is there now was pinned, and is no entry"
    );
    let pinned = store
        .history(key)?
        .into_iter()
        .filter(|entry| entry.pinned)
        .count();
    ensure!(
        pinned == 2,
        "two entries were pinned, and {pinned} are said to be"
    );
    let gone = store.prune(key, &Keep::newest(0))?;
    has_past(scene, &[6, 5, 3], "after pruning all but what is pinned")?;
    ensure!(
        gone.len() >= 3,
        "three entries went, and pruning says {gone:?}"
    );
    for id in &gone {
        no_such("an entry that was pruned", store.load_revision(key, id))?;
    }
    // What was pinned as the present state is unpinned as such, too.
    store.pin(key, &EntryId::current(), false)?;
    store.pin(key, third, false)?;
    scene.put(7)?;
    store.prune(key, &Keep::newest(1))?;
    has_past(scene, &[6], "after pruning all but one")
}

fn pruning_leaves_what_was_deleted_last(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    put_all(scene, [1, 2])?;
    scene.delete()?;
    store.prune(&scene.key, &Keep::newest(0))?;
    has_past(scene, &[2], "after pruning all of what was deleted")?;
    scene.put(3)?;
    store.prune(&scene.key, &Keep::newest(0))?;
    has_past(scene, &[2], "after pruning all of what was begun anew")
}

fn a_mere_sign_of_life_leaves_no_state(scene: &Scene<'_>) -> Ruling {
    put_all(scene, [1, 2])?;
    for number in 3..=8 {
        scene
            .store
            .put(&scene.key, Put::new(numbered(number)?).skip_history())?;
        ensure!(
            scene.number()? == Some(number),
            "a sign of life was not saved"
        );
    }
    has_past(scene, &[1], "after six signs of life")?;
    scene.put(9)?;
    has_past(scene, &[8, 1], "after a put on signs of life")
}
