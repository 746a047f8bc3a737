//! Keys as ids are in practice.

use std::collections::BTreeSet;

use crate::checkpoint::{ErrorKind, Key};
use crate::store::{Put, Query};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, number_of, numbered, present, put, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "keys_that_look_alike_are_kept_apart",
        "No two keys share a document; a key that a store cannot keep apart is refused as such.",
        &[Need::AnyKey],
        keys_that_look_alike_are_kept_apart,
    ),
    Rule::new(
        "hostile_keys_come_back_from_the_list",
        "Every key that was put under is listed as it is, whatever it is made of.",
        &[Need::AnyKey],
        hostile_keys_come_back_from_the_list,
    ),
    Rule::new(
        "pages_of_many_keys_leave_none_out",
        "Pages of any size together have every key once.",
        &[Need::AnyKey],
        pages_of_many_keys_leave_none_out,
    ),
];

/// What a naive mapping to names, paths, patterns or statements takes for one another, or for something else.
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

fn hostile() -> Result<Vec<Key>, Stop> {
    let long = [
        "x".repeat(Key::MAX_BYTES),
        "/".repeat(100),
        "ä".repeat(Key::MAX_BYTES / 2),
    ];
    let texts = HOSTILE.into_iter().map(str::to_owned).chain(long);
    Ok(texts.map(Key::new).collect::<Result<_, _>>()?)
}

/// Puts a number under each key that the store takes, and gives those.
fn put_hostile(scene: &Scene<'_>) -> Result<Vec<(u64, Key)>, Stop> {
    let mut taken = Vec::new();
    for (number, key) in (1..).zip(hostile()?) {
        match scene.store.put(&key, Put::new(numbered(number)?)) {
            Ok(_) => taken.push((number, key)),
            // A key that cannot be kept apart from another is refused, not mixed up with it.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidKey { .. } | ErrorKind::Twin { .. }
                ) => {}
            Err(error) => return Err(error.into()),
        }
    }
    ensure!(
        taken.len() * 2 > HOSTILE.len(),
        "hardly any of these keys is taken: only {taken:?}"
    );
    Ok(taken)
}

fn keys_that_look_alike_are_kept_apart(scene: &Scene<'_>) -> Ruling {
    let taken = put_hostile(scene)?;
    for (number, key) in &taken {
        let found = number_of(&there(&*scene.store, key)?);
        ensure!(
            found == Some(*number),
            "{number} was put under {key:?}, and {found:?} is there"
        );
    }
    // What is deleted is that key's alone.
    for (at, (_, key)) in taken.iter().enumerate() {
        ensure!(
            scene.store.delete(key, &Default::default())?,
            "{key:?} is gone already"
        );
        ensure!(
            present(&*scene.store, key)?.is_none(),
            "{key:?} is still there"
        );
        if let Some((_, next)) = taken.get(at + 1) {
            ensure!(
                present(&*scene.store, next)?.is_some(),
                "with {key:?} went {next:?}"
            );
        }
    }
    Ok(())
}

fn hostile_keys_come_back_from_the_list(scene: &Scene<'_>) -> Ruling {
    let taken = put_hostile(scene)?;
    let put: BTreeSet<Key> = taken.into_iter().map(|(_, key)| key).collect();
    let page = scene.store.list(&Query::all())?;
    let listed: BTreeSet<Key> = page.keys.iter().cloned().collect();
    let missing: Vec<&Key> = put.difference(&listed).collect();
    let foreign: Vec<&Key> = listed.difference(&put).collect();
    ensure!(
        missing.is_empty() && foreign.is_empty(),
        "the list lacks {missing:?}, and has {foreign:?} that were not put"
    );
    ensure!(
        page.keys.is_sorted(),
        "the keys are not in order: {:?}",
        page.keys
    );
    ensure!(
        page.keys.len() == put.len(),
        "a key is listed twice: {:?}",
        page.keys
    );
    let dotted = scene.store.list(&Query::all().with_prefix("a"))?.keys;
    let expected: Vec<&Key> = put
        .iter()
        .filter(|key| key.as_str().starts_with('a'))
        .collect();
    ensure!(
        dotted.iter().collect::<Vec<_>>() == expected,
        "with the prefix `a` there are {expected:?}, and listed are {dotted:?}"
    );
    Ok(())
}

fn pages_of_many_keys_leave_none_out(scene: &Scene<'_>) -> Ruling {
    let keys: Result<Vec<Key>, _> = (0..60).map(|n| Key::new(format!("key-{n}"))).collect();
    let mut keys = keys?;
    for key in &keys {
        put(&*scene.store, key, 1)?;
    }
    keys.sort();
    for size in [1, 7, 59, 60, 61] {
        let mut seen = Vec::new();
        let mut pages = 0;
        let mut query = Query::all().with_limit(size);
        loop {
            let page = scene.store.list(&query)?;
            pages += 1;
            ensure!(
                page.keys.len() <= size,
                "a page of {size} has {} keys",
                page.keys.len()
            );
            seen.extend(page.keys);
            // Also pages with nothing on them come to an end: none but the last need be without a key.
            ensure!(
                seen.len() <= keys.len() && pages <= keys.len() + 1,
                "pages of {size} come to no end"
            );
            let Some(next) = page.next else { break };
            ensure!(
                query.after.as_ref().is_none_or(|after| next > *after),
                "pages of {size} come to no end: after {:?} they go on after {next}",
                query.after
            );
            query = Query::all().with_limit(size).after(next);
        }
        ensure!(
            seen == keys,
            "in pages of {size} there are {} of {} keys",
            seen.len(),
            keys.len()
        );
    }
    Ok(())
}
