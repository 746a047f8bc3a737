//! The rules for many keys, also those that only an attacker would choose.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, Key};
use crate::store::{Content, DeleteOptions, Listed, ListedLedger, Put, Query, Stored};
use crate::testkit::fixture::{
    Fixture, add_line, line_of, number_at, numbered, put, put_fenced, there,
};
use crate::testkit::{Place, Skipped};

/// A write under one key does not change the documents under other keys.
pub fn keys_are_independent(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), other) = (fixture.parts(), fixture.other()?);
    fixture.put(1);
    assert_eq!(
        number_at(store, other),
        None,
        "a put under {key} wrote {other}"
    );
    put(store, other, 2);
    fixture.assert_number(1, &format!("a put under {other} changed {key}"));
    fixture.put(3);
    fixture.delete();
    assert_eq!(
        number_at(store, other),
        Some(2),
        "{other} changed with {key}"
    );
    Ok(())
}

/// Keys are listed in order, by prefix, and in pages.
pub fn keys_are_listed_in_order_and_in_pages(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let store = &*fixture.store;
    let mut keys = [fixture.key.clone(), fixture.other()?.clone()];
    for key in &keys {
        put(store, key, 1);
    }
    keys.sort();
    let [first, second] = &keys;
    let list = |query: Query| {
        let page = store.list(&query).unwrap();
        (page.keys().cloned().collect::<Vec<Key>>(), page.next)
    };
    let all = list(Query::all());
    assert_eq!(all, (keys.to_vec(), None), "all keys");
    let page = list(Query::all().with_limit(1));
    let expected = (vec![first.clone()], Some(first.clone()));
    assert_eq!(page, expected, "the first page of one");
    let page = list(Query::all().after(first.clone()));
    assert_eq!(page, (vec![second.clone()], None), "the keys after {first}");
    let (found, _) = list(Query::all().with_prefix(second.as_str()));
    assert_eq!(
        found,
        std::slice::from_ref(second),
        "the keys with the prefix {second}"
    );
    let none = Key::new("US-900").unwrap();
    let (found, _) = list(Query::all().with_keys([second.clone(), none]));
    assert_eq!(found, std::slice::from_ref(second), "only {second}");
    Ok(())
}

/// No two keys share a document. A key that the store cannot distinguish from another is refused.
pub fn similar_keys_do_not_share_a_document(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.takes_any_key()?;
    let store = &*fixture.store;
    let taken = put_hostile(&fixture);
    for (number, key) in &taken {
        let found = number_at(store, key);
        assert_eq!(found, Some(*number), "the document under {key:?}");
    }
    for (at, (_, key)) in taken.iter().enumerate() {
        let deleted = store.delete(key, &Default::default()).unwrap();
        assert!(deleted, "{key:?} was deleted with another key");
        assert_eq!(number_at(store, key), None, "after the delete of {key:?}");
        if let Some((number, next)) = taken.get(at + 1) {
            let found = number_at(store, next);
            assert_eq!(found, Some(*number), "{next:?} after the delete of {key:?}");
        }
    }
    Ok(())
}

/// Every key with a document is listed exactly, whatever text it has.
pub fn every_key_is_listed_as_it_is(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.takes_any_key()?;
    let taken = put_hostile(&fixture).into_iter().map(|(_, key)| key);
    let expected: Vec<Key> = taken.collect::<BTreeSet<_>>().into_iter().collect();
    let list = |query: Query| -> Vec<Key> {
        let page = fixture.store.list(&query).unwrap();
        page.keys().cloned().collect()
    };
    assert_eq!(list(Query::all()), expected, "the keys");
    let is_found = |key: &Key| key.as_str().starts_with('a');
    let expected: Vec<Key> = expected.into_iter().filter(is_found).collect();
    let found = list(Query::all().with_prefix("a"));
    assert_eq!(found, expected, "the keys with the prefix `a`");
    Ok(())
}

/// The pages of any size together list every key once, and come to an end.
pub fn pages_list_every_key_once(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.takes_any_key()?;
    let keys = (0..60).map(|number| Key::new(format!("key-{number}")).unwrap());
    let keys: BTreeSet<Key> = keys.collect();
    for key in &keys {
        put(&*fixture.store, key, 1);
    }
    for size in [1, 7, 59, 60, 61] {
        let mut seen = Vec::new();
        let mut query = Query::all().with_limit(size);
        loop {
            let page = fixture.store.list(&query).unwrap();
            assert!(page.entries.len() <= size, "a page of {size}: {page:?}");
            seen.extend(page.keys().cloned());
            let Some(next) = page.next else { break };
            // Each page begins after the one before, so that even a series of empty pages ends.
            assert!(
                query.after.as_ref().is_none_or(|after| next > *after),
                "pages of {size} do not end: after {:?} they continue after {next}",
                query.after
            );
            query = Query::all().with_limit(size).after(next);
        }
        assert!(seen.iter().eq(&keys), "pages of {size} list {seen:?}");
    }
    Ok(())
}

/// The content of a key in a page is the same as that of a read.
pub fn a_page_gives_what_a_read_gives(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.put(1);
    if let Some(other) = &fixture.other {
        put(store, other, 2);
    }
    if store.claims().is_some() {
        let hour = ClaimRequest::new("one", Duration::from_secs(3600));
        store.claim(key, &hour).unwrap();
    }
    let page = store.list(&Query::all().with_documents()).unwrap();
    let plain = store.list(&Query::all()).unwrap();
    assert!(page.keys().eq(plain.keys()), "{plain:?} and {page:?}");
    let mut given = 0;
    for Listed { key, content, .. } in page.entries {
        let Some(content) = content else {
            continue;
        };
        let Content { stored, claim } = *content;
        given += 1;
        let loaded = there(store, &key);
        let text = |stored: &Stored| stored.document.text().to_owned();
        let what = format!("of {key} in a page");
        assert_eq!(text(&stored), text(&loaded), "the text {what}");
        assert_eq!(stored.revision, loaded.revision, "the revision {what}");
        assert_eq!(stored.modified, loaded.modified, "the time {what}");
        assert_eq!(stored.context, loaded.context, "the task {what}");
        let claimed = store.claims().map(|claims| claims.claimed(&key).unwrap());
        assert_eq!(claim, claimed.flatten(), "the claim {what}");
    }
    if place.damage(key).unwrap() {
        let page = store.list(&Query::all().with_documents());
        // A damaged larger file has no pages.
        assert!(page.is_ok() || store.capabilities().embedded, "{page:?}");
        let entries = page.map_or_else(|_| Vec::new(), |page| page.entries);
        let mut damaged = entries.iter().filter(|listed| listed.key == *key);
        let is_given = damaged.any(|listed| listed.content.is_some());
        assert!(!is_given, "a damaged document is in a page");
    }
    match given {
        0 => Err(Skipped("the store gives no documents in a page")),
        _ => Ok(()),
    }
}

/// If keys have versions, each write of a document, its claim or the data beside it gives a new version that never
/// occurred before, and nothing else changes the version.
pub fn a_version_differs_after_each_write(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let version = |query: Query| {
        let page = store.list(&query).unwrap();
        let found = page.entries.into_iter().find(|listed| listed.key == *key);
        found.and_then(|listed| listed.version)
    };
    fixture.put(1);
    let Some(first) = version(Query::all()) else {
        return Err(Skipped("the store has no versions"));
    };
    let mut seen = vec![first];
    let mut look = |what: &str, is_write: bool| {
        let found = version(Query::all());
        let found = found.unwrap_or_else(|| panic!("there is no version after {what}"));
        let is_new = !seen.contains(&found);
        let is_last = seen.last() == Some(&found);
        assert!(
            is_new || !is_write,
            "the version after {what} is an earlier one"
        );
        assert!(
            is_last || is_write,
            "the version after {what} is another one"
        );
        let read = version(Query::all().with_documents());
        assert_eq!(read.as_ref(), Some(&found), "the version after a read");
        seen.push(found);
    };
    if let Some(other) = &fixture.other {
        put(store, other, 1);
        look("a put under another key", false);
    }
    fixture.put(2);
    look("a put", true);
    fixture.put(2);
    look("a put of the same text", false);
    fixture.put(1);
    look("a put of an earlier text", true);
    for number in 2..4 {
        let put = Put::new(numbered(number)).skip_history();
        store.put(key, put).unwrap();
        look("a heartbeat", true);
    }
    if store.claims().is_some() {
        let hour = Duration::from_secs(3600);
        let claim = store.claim(key, &ClaimRequest::new("one", hour)).unwrap();
        look("a claim", true);
        store.renew(key, claim.fence, hour * 2).unwrap();
        look("a renewal", true);
        put_fenced(store, key, 4, claim.fence).unwrap();
        look("a put with a fence", true);
        store.release(key, claim.fence).unwrap();
        look("a release", true);
    }
    fixture.delete();
    fixture.put(1);
    look("a delete and a put of an earlier text", true);
    store.forget(key, &DeleteOptions::new()).unwrap();
    if let Some(clock) = place.clock() {
        clock.step(1);
    }
    fixture.put(1);
    look("a forget and a put of an earlier text", true);
    Ok(())
}

/// If a listing shows which keys have a ledger, it shows each added line.
pub fn a_listing_shows_each_line_of_a_ledger(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let listed = |key: &Key| {
        let page = store.list(&Query::all().with_ledgers()).unwrap();
        let found = page.entries.into_iter().find(|listed| listed.key == *key);
        found.map(|listed| listed.ledger).unwrap_or_default()
    };
    fixture.put(1);
    let mut seen = vec![listed(key)];
    if seen == [ListedLedger::Unknown] {
        return Err(Skipped("the store does not say which keys have a ledger"));
    }
    assert_eq!(seen, [ListedLedger::Empty], "of a key without a ledger");
    for number in 0..3 {
        assert!(add_line(store, key, &line_of(number), number, None).unwrap());
        let found = listed(key);
        assert!(
            matches!(found, ListedLedger::Version(_)) && !seen.contains(&found),
            "a line was added, and the listing says {found:?} after {seen:?}"
        );
        assert_eq!(listed(key), found, "without another line");
        seen.push(found);
    }
    if let Some(other) = &fixture.other {
        put(store, other, 1);
        assert_eq!(listed(other), ListedLedger::Empty, "of another key");
    }
    store.forget(key, &DeleteOptions::new()).unwrap();
    fixture.put(1);
    assert_eq!(
        listed(key),
        ListedLedger::Empty,
        "of a key that was forgotten"
    );
    Ok(())
}

/// Keys that a naive mapping to names, paths, patterns or statements confuses.
const HOSTILE: [&str; 35] = [
    "a",
    "A",
    "a/b",
    "a_b",
    "a\\b",
    "a:b",
    "a%2Fb",
    "a%252Fb",
    "a b",
    "a+b",
    "a*",
    "a?",
    "a%",
    "a_",
    ".",
    "..",
    "../a",
    "/etc/passwd",
    ".hidden",
    "-rf",
    "~",
    "a.json",
    "a.json.json",
    "a.lock",
    "CON",
    "nul.txt",
    "a'; DROP TABLE checkpoints; --",
    "\"a\"",
    "<a>",
    "$HOME",
    "{a}",
    "#a",
    "é",
    "e\u{301}",
    "😀 \u{202e}gnp",
];

/// Puts a number under each hostile key, and returns the keys that the store took.
fn put_hostile(fixture: &Fixture<'_>) -> Vec<(u64, Key)> {
    let long = [
        "x".repeat(Key::MAX_BYTES),
        "/".repeat(100),
        "ä".repeat(Key::MAX_BYTES / 2),
    ];
    let texts = HOSTILE.into_iter().map(str::to_owned).chain(long);
    let mut taken = Vec::new();
    for (number, text) in (1..).zip(texts) {
        let key = Key::new(text).unwrap();
        let put = fixture.store.put(&key, Put::new(numbered(number)));
        match put.as_ref().map_err(crate::Error::code) {
            Err("invalid-key" | "twin") => {}
            _ => {
                put.unwrap();
                taken.push((number, key));
            }
        }
    }
    assert!(
        taken.len() * 2 > HOSTILE.len(),
        "the store takes hardly any of these keys: only {taken:?}"
    );
    taken
}
