//! The rules for one document under one key: a put is complete or has not happened.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;

use crate::CheckpointStoreExt;
use crate::checkpoint::{
    ClaimRequest, DropReason, Dropped, Error, ErrorKind, Expect, Limits, Revision,
};
use crate::checkpoints::Checkpoints;
use crate::formats::TaskCheckpoint;
use crate::json::{Document, MAX_DEPTH};
use crate::store::{CheckpointStore, DeleteOptions, Outcome, Put, Query};
use crate::testkit::fixture::{
    Fixture, document, is_conflict, number_of, numbered, put, put_fenced, put_over, refused,
};
use crate::testkit::{Place, Skipped};

/// A key without a put has no document, and reading does not create one.
pub fn reading_creates_nothing(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    for _ in 0..2 {
        let found = store.load(key).unwrap();
        let text = found.map(|stored| stored.document.into_text());
        assert_eq!(text, None, "nothing was put");
        let page = store.list(&Query::all()).unwrap();
        assert_eq!(page.keys().next(), None, "nothing was put");
        assert_eq!(
            store.beside().dropped(key).unwrap(),
            [],
            "nothing was dropped"
        );
    }
    let kept = store.transact(key, |_| Ok(None));
    refused("a transaction that keeps nothing", kept, |kind| {
        *kind == ErrorKind::NotFound
    });
    fixture.assert_number(None, "a refused transaction put a document");
}

/// A document comes back from a put byte for byte: unknown keys, duplicate keys, every spelling of a number and every
/// escape. Inside a larger file the line breaks and the indentation may change.
pub fn a_put_comes_back_byte_for_byte(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let is_embedded = fixture.capabilities().embedded;
    for (text, spelling) in [
        ("{\"n\": 1,\n\n   \"x\": \"ä\"}\n", "1"),
        ("{}", ""),
        ("{\r\n\t\"n\": 2\r\n}\r\n\r\n", "2"),
        ("  {\"n\":3}", "3"),
        (
            r#"{"z":1,"a":{"no":["format",{"this":null}]},"m":2}"#,
            r#"["format",{"this":null}]"#,
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
        let saved = fixture.put_text(text);
        let stored = fixture.there();
        let back = stored.document.text();
        if is_embedded {
            let without_layout: String = back.split_whitespace().collect();
            assert!(
                stored.document.same_value(&document(text)) && without_layout.contains(spelling),
                "{text:?} came back as {back:?}"
            );
        } else {
            assert_eq!(back, text, "the text came back changed");
        }
        assert_eq!(
            stored.revision, saved.revision,
            "the load gives another revision than the save of {text:?}"
        );
    }
}

/// An update through a type keeps every byte outside the values that it changed. (Source: the guide on byte-exact
/// editing.)
pub fn a_typed_update_changes_only_its_values(place: &dyn Place) {
    let fixture = Fixture::new(place);
    fixture.put_text(
        "{\n  \"mood\": {\"of\": \"the agent\"},\n  \"agentId\": \"dev\",\n  \"version\": 1.0,\n  \
         \"blockers\": [\"one\"],\n  \"pendingSteps\": [\"a\",\"b\"]\n}",
    );
    let before = fixture.there().document;
    let store: Arc<dyn CheckpointStore> = Arc::from(place.open().unwrap());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store).with_limits(Limits::unlimited());
    let update = tasks.update(&fixture.key, |task| task.blockers = vec!["two".to_owned()]);
    update.unwrap();
    let after = fixture.there().document;
    let raw = |text: &Document, pointer: &str| Some(text.get(pointer)?.raw().to_owned());
    // The type adds a stamp; all other values stay as they were.
    for pointer in ["/mood", "/agentId", "/version", "/pendingSteps"] {
        let was = raw(&before, pointer);
        assert!(was.is_some(), "{pointer} was lost with the put");
        assert_eq!(
            raw(&after, pointer),
            was,
            "{pointer} after an update of the blockers"
        );
    }
    let blockers = raw(&after, "/blockers");
    assert_eq!(blockers.as_deref(), Some("[\"two\"]"), "the updated value");
}

/// A transaction gets the present document and writes its result. No other writer comes in between.
pub fn a_transaction_reads_the_present_document_and_writes_its_result(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    for number in 0..3_u64 {
        let mut seen = None;
        let saved = store.transact(key, |stored| {
            seen = stored.and_then(number_of);
            Ok(Some(Put::new(numbered(number))))
        });
        saved.unwrap();
        assert_eq!(
            seen,
            number.checked_sub(1),
            "what the transaction was given"
        );
        fixture.assert_number(number, "after the transaction");
    }
    let kept = store.transact(key, |_| Ok(None)).unwrap();
    assert_eq!(kept.outcome, Outcome::Unchanged, "a transaction that keeps");
    fixture.assert_number(2, "after a transaction that keeps");
}

/// After every error the earlier document is unchanged.
pub fn a_refused_write_changes_nothing(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.put(1);
    let never = || Expect::Revision(Revision::of(b"never there"));
    for expect in [Expect::Absent, never()] {
        let answer = put_over(store, key, 9, expect);
        refused("a put with a wrong expectation", answer, is_conflict);
        fixture.assert_number(1, "after a put that was refused");
    }
    let answer = store.delete(key, &DeleteOptions::new().with_expect(never()));
    refused("a delete with a wrong expectation", answer, is_conflict);
    fixture.assert_number(1, "after a delete that was refused");
    let answer = store.transact(key, |_| Err(Error::refused("not now")));
    refused("a transaction that refuses", answer, |kind| {
        matches!(kind, ErrorKind::Refused { .. })
    });
    fixture.assert_number(1, "after a transaction that refused");
}

/// A delete removes the document, and returns whether there was one.
pub fn a_delete_returns_whether_there_was_a_document(place: &dyn Place) {
    let fixture = Fixture::new(place);
    assert!(!fixture.delete(), "a delete of nothing returns true");
    fixture.put(1);
    assert!(fixture.delete(), "a delete of a document returns false");
    fixture.assert_number(None, "after the delete");
    let page = fixture.store.list(&Query::all()).unwrap();
    assert_eq!(page.keys().next(), None, "listed after the delete");
    assert!(!fixture.delete(), "the second delete returns true");
    let saved = fixture.put(1);
    assert_eq!(saved.outcome, Outcome::Created, "a put after the delete");
    assert_eq!(saved.previous, None, "replaced by a put after the delete");
}

/// The revision of a document depends only on its bytes, not on when or how often they were written.
pub fn a_revision_depends_on_the_bytes_alone(place: &dyn Place) {
    let fixture = Fixture::new(place);
    for number in [1, 2, 1, 3, 1] {
        let saved = fixture.put(number);
        let stored = fixture.there();
        let of_bytes = Revision::of(stored.document.text().as_bytes());
        assert_eq!(
            saved.revision, of_bytes,
            "the revision that the save returned"
        );
        assert_eq!(
            stored.revision, of_bytes,
            "the revision that the load returned"
        );
    }
}

/// A put of the present bytes writes nothing, and returns [`Outcome::Unchanged`].
pub fn a_put_of_the_same_bytes_writes_nothing(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let first = fixture.put(1);
    let before = fixture.there();
    for expect in [Expect::Any, Expect::Revision(first.revision.clone())] {
        let put = Put::new(before.document.clone()).with_expect(expect);
        let again = store.put(key, put).unwrap();
        assert_eq!(again.outcome, Outcome::Unchanged, "a put of the same bytes");
        assert_eq!(
            again.revision, first.revision,
            "after a put of the same bytes"
        );
        let after = fixture.there();
        assert!(
            after.modified == before.modified && after.document == before.document,
            "the same bytes were written again"
        );
    }
}

/// A put of any other bytes, however similar, is a write, and returns the revision that it replaced.
pub fn a_put_of_other_bytes_is_a_write(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let mut previous = None;
    // The same length, the same value, the same words: only the bytes differ.
    for text in [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":1.0}"#, r#"{"n":1.00}"#] {
        let saved = fixture.put_text(text);
        let outcome = match previous {
            None => Outcome::Created,
            Some(_) => Outcome::Replaced,
        };
        assert_eq!(saved.outcome, outcome, "the outcome of a put of {text}");
        assert_eq!(saved.previous, previous, "replaced by a put of {text}");
        let found = fixture.there().document;
        assert!(
            found.same_value(&document(text)),
            "{text} was put, but the store has {found}"
        );
        previous = Some(saved.revision);
    }
}

/// A put is done only over the expected state. Otherwise it is a conflict, with the expected and the found state.
pub fn a_put_with_a_wrong_expectation_is_a_conflict(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    #[track_caller]
    fn conflict(fixture: &Fixture<'_>, expect: Expect, found: Option<Revision>) {
        let (store, key) = fixture.parts();
        let answer = put_over(store, key, 9, expect.clone());
        let error = refused(&format!("a put that expects {expect}"), answer, is_conflict);
        assert_eq!(error.key(), Some(key), "the key in the conflict");
        let expected = ErrorKind::Conflict {
            expected: expect,
            found,
        };
        assert_eq!(*error.kind(), expected, "what the conflict reports");
    }
    let never = Expect::Revision(Revision::of(b"never there"));
    conflict(&fixture, never.clone(), None);
    let one = put_over(store, key, 1, Expect::Absent).unwrap().revision;
    conflict(&fixture, Expect::Absent, Some(one.clone()));
    conflict(&fixture, never, Some(one.clone()));
    let over_one = Expect::Revision(one.clone());
    let two = put_over(store, key, 2, over_one.clone()).unwrap().revision;
    conflict(&fixture, over_one.clone(), Some(two.clone()));
    // This holds also for a put of the present bytes: a writer that expects another state must learn that it is gone.
    let answer = store.put(key, Put::new(numbered(2)).with_expect(over_one));
    refused("a put of the same bytes over others", answer, is_conflict);
    fixture.delete();
    conflict(&fixture, Expect::Revision(two), None);
}

/// A delete is done only over the expected state.
pub fn a_delete_with_a_wrong_expectation_is_a_conflict(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let (one, two) = (fixture.put(1).revision, fixture.put(2).revision);
    for expect in [Expect::Revision(one), Expect::Absent] {
        let answer = store.delete(key, &DeleteOptions::new().with_expect(expect.clone()));
        refused(
            &format!("a delete that expects {expect}"),
            answer,
            is_conflict,
        );
        fixture.assert_number(2, "after a delete that was refused");
    }
    let deleted = store.delete(
        key,
        &DeleteOptions::new().with_expect(Expect::Revision(two)),
    );
    assert!(
        deleted.unwrap(),
        "a delete over the expected state found nothing"
    );
}

/// Dropped items are kept, each once, until a new checkpoint is created under their key.
pub fn dropped_items_are_kept_until_a_checkpoint_is_created_anew(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let item = |number: u64| Dropped::new("/x", DropReason::Elements(1), number.into());
    let put = |number: u64, dropped: Vec<Dropped>| {
        let put = Put::new(numbered(number)).with_dropped(dropped);
        store.put(key, put).unwrap()
    };
    let kept = || -> Vec<u64> {
        let items = store.beside().dropped(key).unwrap();
        items
            .iter()
            .filter_map(|item| item.value.as_u64())
            .collect()
    };
    put(1, Vec::new());
    let saved = put(2, vec![item(1)]);
    assert!(
        saved.truncation.kept_in.is_some(),
        "the save does not say where dropped items are kept"
    );
    put(3, vec![item(1), item(2)]);
    assert_eq!(kept(), [1, 2], "kept after three saves");
    if let Some(other) = &fixture.other {
        assert_eq!(
            store.beside().dropped(other).unwrap(),
            [],
            "kept for {other}"
        );
    }
    let conflicting = Put::new(numbered(4)).with_expect(Expect::Absent);
    let answer = store.put(key, conflicting.with_dropped(vec![item(3)]));
    refused("a put with a wrong expectation", answer, is_conflict);
    let unchanged = Put::new(fixture.there().document).with_dropped(vec![item(3)]);
    store.put(key, unchanged).unwrap();
    assert_eq!(kept(), [1, 2], "kept after puts that wrote nothing");
    fixture.delete();
    put(1, Vec::new());
    assert_eq!(
        kept(),
        [0_u64; 0],
        "kept for a checkpoint that was created anew"
    );
}

/// The text beside a document is returned only for the revision that it was put with, complete or not at all.
pub fn text_beside_a_document_belongs_to_its_revision(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let beside = |revision: &Revision| store.beside().fingerprints(key, revision).unwrap();
    let mut revisions: Vec<Revision> = Vec::new();
    for number in 1..=3 {
        let text = format!("of {number}");
        let put = Put::new(numbered(number)).with_fingerprints(text.clone());
        let saved = store.put(key, put).unwrap();
        // A store may lose the text at any time.
        if let Some(found) = beside(&saved.revision) {
            assert_eq!(found, text, "beside revision {number}");
        }
        for earlier in &revisions {
            assert_eq!(beside(earlier), None, "beside an earlier revision");
        }
        revisions.push(saved.revision);
    }
    let plain = fixture.put(4);
    assert_eq!(
        beside(&plain.revision),
        None,
        "beside a document put without text"
    );
}

/// A heartbeat that the store itself keeps does not change the document.
pub fn a_heartbeat_leaves_the_document(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    if store.heartbeat().is_none() {
        return Err(Skipped("the store keeps no heartbeat of its own"));
    }
    fixture.put_text("{\"n\": 1,  \"x\": [ ]}");
    let before = fixture.there();
    let time = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    store.beat(key, time, None).unwrap();
    let after = fixture.there();
    assert_eq!(after.document, before.document, "after a heartbeat");
    assert_eq!(after.revision, before.revision, "after a heartbeat");
    let heartbeat = after.context.heartbeat.and_then(|stamp| stamp.time());
    assert!(
        heartbeat.is_some_and(|heartbeat| heartbeat == time),
        "the heartbeat of {time} is loaded as {heartbeat:?}"
    );
    fixture.delete();
    let answer = store.beat(key, time, None);
    refused("a heartbeat without a document", answer, |kind| {
        *kind == ErrorKind::NotFound
    });
    Ok(())
}

/// The order of the writes determines which state is newer, never a time inside a document.
pub fn stamps_inside_documents_decide_nothing(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let mut expect = Expect::Absent;
    for (number, stamp) in (1..).zip([
        "2026-03-02T08:00:00Z",
        "2019-01-01T00:00:00Z",
        "2031-12-31T23:59:59Z",
        "N/A",
    ]) {
        let text =
            format!("{{\"updatedAt\":\"{stamp}\",\"lastUpdated\":\"{stamp}\",\"n\":{number}}}");
        let put = Put::new(document(&text)).with_expect(expect);
        let saved = store.put(key, put).unwrap();
        assert_ne!(saved.outcome, Outcome::Unchanged, "a put of {text}");
        fixture.assert_number(number, &format!("after a put of {text}"));
        expect = Expect::Revision(saved.revision);
    }
    if fixture.history().is_ok() {
        fixture.assert_past(&[3, 2, 1], "are in the order of the writes");
    }
}

/// A document of any size and depth is kept complete or refused, but never cut.
pub fn a_large_or_deep_document_comes_back_complete_or_is_refused(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.put(1);
    let large = [3, 70, 1100, 5000]
        .map(|kilobytes| (format!("of {kilobytes} KB"), of_size(kilobytes * 1024)));
    let deep = [30, 60, 100, MAX_DEPTH - 1].map(|depth| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text = format!("{{\"n\":1,\"deep\":{open}7{close}}}");
        (format!("{depth} deep"), document(&text))
    });
    for (what, document) in large.into_iter().chain(deep) {
        let before = fixture.there().revision;
        let answer = store.put(key, Put::new(document.clone()));
        let found = fixture.there();
        match answer {
            Ok(_) => assert!(
                found.document.same_value(&document),
                "a document {what} was accepted, but the store has {} bytes",
                found.document.text().len()
            ),
            Err(error) => assert_eq!(
                found.revision, before,
                "a document {what} was refused ({error}), but the present one changed"
            ),
        }
    }
}

/// A document over the size limit is refused with its size and not written, since it could not be read again.
pub fn a_document_over_the_size_limit_is_refused(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let limit = place.max_bytes();
    let limit = limit.ok_or(Skipped("the place has no size limit"))?;
    let first = fixture.put(1);
    let large = of_size(usize::try_from(limit).unwrap());
    let answer = store.put(key, Put::new(large.clone()));
    let bytes = large.text().len();
    refused(
        &format!("a document of {bytes} bytes where {limit} is the limit"),
        answer,
        |kind| matches!(kind, ErrorKind::TooLarge { limit: most, is_new: true, .. } if *most == limit),
    );
    assert_eq!(
        fixture.there().revision,
        first.revision,
        "after the refusal"
    );
    fixture.put(2);
    Ok(())
}

/// A document of a little more than this many bytes.
fn of_size(bytes: usize) -> Document {
    let text = format!("\"{}\"", "lorem ipsum ".repeat(20));
    let texts = vec![text; bytes / 240].join(",");
    let end = "x".repeat(500);
    document(&format!(
        "{{\"n\":1,\"texts\":[{texts}],\"end\":\"{end}\"}}"
    ))
}

/// A put is complete when it returns: a store that is opened later finds the document, the dropped items, the claim and
/// the history.
pub fn a_reopened_store_has_every_acknowledged_write(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.put(1);
    let item = Dropped::new("/x", DropReason::Elements(1), 7.into());
    let put = Put::new(numbered(2)).with_dropped(vec![item]);
    let saved = store.put(key, put).unwrap();
    let claim = fixture.claims().ok().map(|claims| {
        let request = ClaimRequest::new("one", Duration::from_secs(3600));
        claims.claim(key, &request).unwrap()
    });
    drop(fixture);

    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    assert_eq!(fixture.there().revision, saved.revision, "the document");
    let dropped = store.beside().dropped(key).unwrap().len();
    assert_eq!(dropped, 1, "the number of dropped items");
    if fixture.history().is_ok() {
        fixture.assert_past(&[1], "when opened again");
    }
    if let (Ok(claims), Some(claim)) = (fixture.claims(), claim) {
        let found = claims.claimed(key).unwrap();
        assert_eq!(found.as_ref(), Some(&claim), "the claim");
        put_fenced(store, key, 3, claim.fence).unwrap();
    }
}

/// No part of a put waits for another call or for the store to be dropped.
pub fn a_put_is_finished_when_it_returns(place: &dyn Place) {
    let fixture = Fixture::new(place);
    for number in 1..=3 {
        let writer = place.open().unwrap();
        put(&*writer, &fixture.key, number);
        // Never dropped, like a store in a process that is killed.
        std::mem::forget(writer);
        fixture.assert_number(number, "after the put");
    }
}
