//! Documents under keys: what is put is there, whole and to the byte, and what is refused changes nothing.

use crate::CheckpointStoreExt;
use std::sync::Arc;

use crate::checkpoint::{Error, ErrorKind, Expect, Limits, Revision};
use crate::checkpoints::Checkpoints;
use crate::formats::TaskCheckpoint;
use crate::store::{DeleteOptions, Outcome, Put, Query};
use crate::testkit::rule::{Need, Rule, Ruling, ensure};
use crate::testkit::scene::{
    Scene, document, is_conflict, number_of, numbered, present, put, put_over, refused, there,
};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "reading_makes_nothing",
        "A key that nothing was put under has no document, and reading does not make one.",
        &[],
        reading_makes_nothing,
    ),
    Rule::new(
        "what_is_put_comes_back_to_the_byte",
        "A document that was put is given back to the byte.",
        &[],
        what_is_put_comes_back_to_the_byte,
    ),
    Rule::new(
        "every_spelling_and_unknown_field_stays",
        "Keys that nobody declared, names given twice, spellings of numbers and escapes stay as they were.",
        &[],
        every_spelling_and_unknown_field_stays,
    ),
    Rule::new(
        "a_typed_update_changes_only_its_values",
        "An update through a type keeps every byte outside the values that it changed.",
        &[],
        a_typed_update_changes_only_its_values,
    ),
    Rule::new(
        "a_transaction_sees_what_is_there_and_writes_what_it_decides",
        "A transaction is given what is there, and what it decides is what is there after it.",
        &[],
        a_transaction_sees_what_is_there_and_writes_what_it_decides,
    ),
    Rule::new(
        "what_is_refused_leaves_what_was_there",
        "After every error what was there is still there.",
        &[],
        what_is_refused_leaves_what_was_there,
    ),
    Rule::new(
        "a_delete_says_whether_there_was_one",
        "A delete takes the document away, and says whether there was one.",
        &[],
        a_delete_says_whether_there_was_one,
    ),
    Rule::new(
        "one_key_does_not_touch_another",
        "What is done to one key leaves the documents of the others.",
        &[Need::TwoKeys],
        one_key_does_not_touch_another,
    ),
    Rule::new(
        "keys_are_listed_in_order_a_page_at_a_time",
        "The keys there are come in order, by prefix, and a page at a time.",
        &[Need::TwoKeys],
        keys_are_listed_in_order_a_page_at_a_time,
    ),
];

fn reading_makes_nothing(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    for _ in 0..2 {
        let found = present(store, &scene.key)?;
        ensure!(
            found.is_none(),
            "nothing was put, and a load gave {:?}",
            found.map(|stored| stored.document.into_text())
        );
        let keys = store.list(&Query::all())?.keys;
        ensure!(keys.is_empty(), "nothing was put, and {keys:?} are listed");
        ensure!(
            store.overflow(&scene.key)?.is_empty(),
            "something was cut from nothing"
        );
    }
    let keep = &mut |_: Option<&_>| Ok(None);
    refused(
        "a transaction that keeps nothing",
        store.transact(&scene.key, keep),
        |kind| *kind == ErrorKind::NotFound,
    )?;
    ensure!(
        scene.number()?.is_none(),
        "a transaction that kept nothing made a document"
    );
    Ok(())
}

fn what_is_put_comes_back_to_the_byte(scene: &Scene<'_>) -> Ruling {
    for text in [
        "{\"n\": 1,\n\n   \"x\": \"ä\"}\n",
        "{}",
        "{\r\n\t\"n\": 2\r\n}\r\n\r\n",
        "  {\"n\":3}",
    ] {
        let saved = scene.store.put(&scene.key, Put::new(document(text)?))?;
        let stored = there(&*scene.store, &scene.key)?;
        if scene.offered.embedded {
            // The lines of a text from elsewhere may move inside a larger file.
            ensure!(
                stored.document.same_value(&document(text)?),
                "{text:?} came back as another value: {:?}",
                stored.document.text()
            );
        } else {
            ensure!(
                stored.document.text() == text,
                "{text:?} came back as {:?}",
                stored.document.text()
            );
        }
        ensure!(
            stored.revision == saved.revision,
            "the save told another revision than the load"
        );
    }
    Ok(())
}

fn every_spelling_and_unknown_field_stays(scene: &Scene<'_>) -> Ruling {
    for (text, kept) in [
        (
            r#"{"z":1,"a":{"nobody":["knows",{"this":null}]},"m":2}"#,
            r#"["knows",{"this":null}]"#,
        ),
        (
            r#"{"n":1.50,"big":12345678901234567890123}"#,
            "12345678901234567890123",
        ),
        (r#"{"n":1.50,"e":1E+2}"#, "1.50"),
        (r#"{"e":-0.0e0,"f":1e400}"#, "1e400"),
        (
            r#"{"s":"\u00e4\/\ud83d\ude00"}"#,
            r#""\u00e4\/\ud83d\ude00""#,
        ),
        (r#"{"s":"\ud800"}"#, r#""\ud800""#),
        (r#"{"status":"running","status":"done"}"#, r#""status""#),
    ] {
        scene.store.put(&scene.key, Put::new(document(text)?))?;
        let stored = there(&*scene.store, &scene.key)?;
        let back = stored.document.text();
        let without_layout: String = back.split_whitespace().collect();
        ensure!(
            stored.document.same_value(&document(text)?) && without_layout.contains(kept),
            "{text} lost its spelling: {back}"
        );
        ensure!(
            scene.offered.embedded || back == text,
            "{text} was laid out anew: {back}"
        );
    }
    Ok(())
}

fn a_typed_update_changes_only_its_values(scene: &Scene<'_>) -> Ruling {
    let text = "{\n  \"mood\": {\"of\": \"the agent\"},\n  \"agentId\": \"dev\",\n  \"version\": 1.0,\n  \
                \"blockers\": [\"one\"],\n  \"pendingSteps\": [\"a\",\"b\"]\n}";
    let first = document(text)?;
    scene.store.put(&scene.key, Put::new(first.clone()))?;
    let before = there(&*scene.store, &scene.key)?.document;
    let tasks = Checkpoints::<TaskCheckpoint>::new(Arc::clone(&scene.store))
        .with_limits(Limits::unlimited());
    tasks.update(&scene.key, |task| task.blockers = vec!["two".to_owned()])?;
    let after = there(&*scene.store, &scene.key)?.document;
    // What the type stamps comes to it; all that was there but the one value stays.
    let kept = ["/mood", "/agentId", "/version", "/pendingSteps"];
    for pointer in kept {
        let raw =
            |text: &crate::json::Document| text.get(pointer).map(|node| node.raw().to_owned());
        ensure!(
            raw(&before).is_some() && raw(&before) == raw(&after),
            "{pointer} was {:?} and is {:?} after an update of the blockers",
            raw(&before),
            raw(&after)
        );
    }
    let blockers = after.get("/blockers").map(|node| node.raw().to_owned());
    ensure!(
        blockers.as_deref() == Some("[\"two\"]"),
        "the update was not saved: {blockers:?}"
    );
    Ok(())
}

fn a_transaction_sees_what_is_there_and_writes_what_it_decides(scene: &Scene<'_>) -> Ruling {
    for number in 0..3_u64 {
        let mut seen = None;
        let next = numbered(number)?;
        scene.store.transact(&scene.key, |stored| {
            seen = stored.and_then(number_of);
            Ok(Some(Put::new(next.clone())))
        })?;
        ensure!(
            seen == number.checked_sub(1),
            "a transaction saw {seen:?} where {:?} was there",
            number.checked_sub(1)
        );
        let found = scene.number()?;
        ensure!(
            found == Some(number),
            "a transaction put {number}, and {found:?} is there"
        );
    }
    let kept = scene.store.transact(&scene.key, |_| Ok(None))?;
    ensure!(
        kept.outcome == Outcome::Unchanged && scene.number()? == Some(2),
        "a transaction that keeps what is there came to {:?}, with {:?} there",
        kept.outcome,
        scene.number()?
    );
    Ok(())
}

fn what_is_refused_leaves_what_was_there(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    scene.put(1)?;
    let never = || Expect::Revision(Revision::of(b"never there"));
    let unchanged = |what: &str| {
        let found = scene.number()?;
        ensure!(
            found == Some(1),
            "after {what} that was refused, {found:?} is there"
        );
        Ok(())
    };
    for expect in [Expect::Absent, never()] {
        let answer = put_over(store, &scene.key, 9, expect)?;
        refused("a put with another expectation", answer, is_conflict)?;
        unchanged("a put")?;
    }
    let answer = store.delete(&scene.key, &DeleteOptions::new().with_expect(never()));
    refused("a delete with another expectation", answer, is_conflict)?;
    unchanged("a delete")?;
    let refuse = &mut |_: Option<&_>| Err(Error::refused("not now"));
    let answer = store.transact(&scene.key, refuse);
    refused("a transaction that refuses", answer, |kind| {
        matches!(kind, ErrorKind::Refused { .. })
    })?;
    unchanged("a transaction")
}

fn a_delete_says_whether_there_was_one(scene: &Scene<'_>) -> Ruling {
    ensure!(
        !scene.delete()?,
        "a delete of nothing says that there was a document"
    );
    scene.put(1)?;
    ensure!(scene.delete()?, "a delete says that there was no document");
    ensure!(
        scene.number()?.is_none(),
        "a document is still there after its delete"
    );
    let keys = scene.store.list(&Query::all())?.keys;
    ensure!(keys.is_empty(), "{keys:?} are listed after the delete");
    ensure!(
        !scene.delete()?,
        "the second delete says that there was a document"
    );
    let saved = scene.put(1)?;
    ensure!(
        saved.outcome == Outcome::Created && saved.previous.is_none(),
        "a put after a delete came to {:?} of {:?}",
        saved.outcome,
        saved.previous
    );
    Ok(())
}

fn one_key_does_not_touch_another(scene: &Scene<'_>) -> Ruling {
    let other = scene.other()?;
    scene.put(1)?;
    let found = present(&*scene.store, other)?;
    ensure!(found.is_none(), "a put under {} made {other}", scene.key);
    put(&*scene.store, other, 2)?;
    ensure!(
        scene.number()? == Some(1),
        "a put under {other} changed {}",
        scene.key
    );
    scene.put(3)?;
    scene.delete()?;
    let stored = there(&*scene.store, other)?;
    ensure!(
        number_of(&stored) == Some(2),
        "{other} changed with {}",
        scene.key
    );
    Ok(())
}

fn keys_are_listed_in_order_a_page_at_a_time(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let mut keys = vec![scene.key.clone(), scene.other()?.clone()];
    for key in &keys {
        put(store, key, 1)?;
    }
    keys.sort();
    let (first, second) = (&keys[0], &keys[1]);
    let all = store.list(&Query::all())?;
    ensure!(
        all.keys == keys && all.next.is_none(),
        "{keys:?} are there, and {:?} are listed",
        all.keys
    );
    let page = store.list(&Query::all().with_limit(1))?;
    ensure!(
        page.keys == [first.clone()] && page.next.as_ref() == Some(first),
        "the first page of one is {:?}, and goes on after {:?}",
        page.keys,
        page.next
    );
    let page = store.list(&Query::all().after(first.clone()))?;
    ensure!(
        page.keys == [second.clone()] && page.next.is_none(),
        "after {first} come {:?}, and more after {:?}",
        page.keys,
        page.next
    );
    let page = store.list(&Query::all().with_prefix(second.as_str()))?;
    ensure!(
        page.keys == [second.clone()],
        "with the prefix {second} there are {:?}",
        page.keys
    );
    Ok(())
}
