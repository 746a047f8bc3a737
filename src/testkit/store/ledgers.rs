//! The rules for ledgers: lines are only added, whatever happens to the documents.

use std::cell::Cell;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{Archive, ClaimRequest, ErrorKind, Key};
use crate::store::{
    CheckpointStore, CopyOptions, DeleteOptions, LedgerMark, MemoryStore, Put, Query,
    RecoverOptions, Recovery, copy,
};
use crate::testkit::fixture::{
    Fixture, add_line, is_claimed, is_conflict, is_fenced, line_of, lines, numbered, put, refused,
};
use crate::testkit::process::Process;
use crate::testkit::store::faults::each_call_fails;
use crate::testkit::{Place, Skipped};

/// The number of writers in each contest.
const WRITERS: usize = 8;

/// The number of writers that are killed, each after a different time.
const KILLS: u64 = 4;

/// Adds the line of a number at the end.
#[track_caller]
fn add_number(store: &dyn CheckpointStore, key: &Key, number: usize) {
    let at = lines(store, key).len();
    let added = add_line(store, key, &line_of(number), at, None).unwrap();
    assert!(added, "a line was not added behind {at} others");
}

/// Adds the line of a number after this many others.
#[track_caller]
fn add_number_of(store: &dyn CheckpointStore, key: &Key, number: usize, at: usize) {
    let added = add_line(store, key, &line_of(number), at, None).unwrap();
    assert!(added, "line {number} was not added behind {at} others");
}

/// The lines of the numbers from 0 up to `count`.
fn lines_of(count: usize) -> Vec<String> {
    (0..count).map(line_of).collect()
}

/// The lines of a ledger come back exactly and in order, through each opening. A ledger needs no document and creates
/// none. A line is added only at the end, and is one JSON object without line breaks.
pub fn a_ledger_has_every_line_in_order(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    assert_eq!(
        lines(store, key),
        [""; 0],
        "the ledger of a key without one"
    );
    let long = format!("{{\"long\":\"{}\"}}", "ü\\n ".repeat(15_000));
    let added = [
        r#"{"effect":"mail-1","state":"begun"}"#,
        r#"{ "b" : 1e3,  "a": [1.10, -0, 12345678901234567890123] }"#,
        "{\"text\":\"\\u00e9 é 😀 \\\\ \\\" \\/\",\"text\":null}",
        &long,
        r#"{"effect":"mail-1","state":"begun"}"#,
        "{}",
    ];
    for (at, line) in added.into_iter().enumerate() {
        for elsewhere in [at + 1, at.wrapping_sub(1), 0, usize::MAX] {
            if elsewhere != at {
                let answer = add_line(store, key, "{\"never\":1}", elsewhere, None).unwrap();
                assert!(
                    !answer,
                    "a line was added at {elsewhere}, behind {at} others"
                );
            }
        }
        assert_eq!(lines(store, key), added[..at], "before line {at}");
        let answer = add_line(store, key, line, at, None).unwrap();
        assert!(answer, "line {at} was not added behind {at} others");
        assert_eq!(lines(store, key), added[..=at], "after line {at}");
    }
    for no_line in [
        "",
        "{}\n",
        "{\"a\":\n1}",
        "{}\r",
        "[]",
        "7",
        "{\"a\":1",
        "{} {}",
    ] {
        let answer = add_line(store, key, no_line, added.len(), None);
        refused(&format!("the line {no_line:?}"), answer, |kind| {
            matches!(kind, ErrorKind::Refused { .. })
        });
    }
    let second = place.open().unwrap();
    assert_eq!(lines(&*second, key), added, "through another opening");
    if let Some(other) = &fixture.other {
        assert_eq!(lines(store, other), [""; 0], "the ledger of another key");
        add_number(store, other, 0);
    }
    add_number(&*second, key, 7);
    let now = lines(store, key);
    assert_eq!(now[..added.len()], added, "after a line of another opening");
    assert_eq!(
        now[added.len()..],
        [line_of(7)],
        "a line of another opening"
    );
    let document = store.load(key).unwrap();
    assert!(document.is_none(), "beside a ledger there is {document:?}");
    let listed = store.list(&Query::all()).unwrap();
    assert!(
        listed.entries.is_empty() && listed.foreign.is_empty(),
        "a key without a document is listed: {listed:?}"
    );
}

/// When several writers add a line at the same place, one wins. The others get `false` and write nothing.
pub fn one_of_many_threads_adds_a_line_at_a_place(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let key = &fixture.key;
    let stores = [(); WRITERS].map(|()| place.open().unwrap());
    for at in 0..6 {
        let start = Barrier::new(WRITERS);
        let winners: Vec<usize> = thread::scope(|scope| {
            let writers: Vec<_> = (0..)
                .zip(&stores)
                .map(|(writer, store)| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        let added = add_line(&**store, key, &line_of(100 * at + writer), at, None);
                        added.unwrap().then_some(writer)
                    })
                })
                .collect();
            let answers = writers.into_iter().map(thread::ScopedJoinHandle::join);
            answers.filter_map(Result::unwrap).collect()
        });
        let [winner] = *winners else {
            panic!("of {WRITERS} lines at place {at}, these were added: {winners:?}");
        };
        let now = lines(&*fixture.store, key);
        assert_eq!(now.len(), at + 1, "lines after {WRITERS} at place {at}");
        assert_eq!(
            now[at],
            line_of(100 * at + winner),
            "the line of the winner"
        );
    }
}

/// While a claim is held, a line can be added only with its fence. An old fence is refused for good.
pub fn a_line_of_a_ledger_needs_the_fence(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    let hour = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(3600));
    let one = claims.claim(key, &hour("one")).unwrap();
    let answer = add_line(store, key, "{}", 0, None);
    refused("a line without the fence", answer, is_claimed);
    let added = add_line(store, key, &line_of(0), 0, Some(one.fence)).unwrap();
    assert!(added, "the owner's line was not added");
    let two = claims.claim(key, &hour("two").taking_over()).unwrap();
    let answer = add_line(store, key, "{}", 1, Some(one.fence));
    refused("a line with an old fence", answer, is_fenced);
    let added = add_line(store, key, &line_of(1), 1, Some(two.fence)).unwrap();
    assert!(added, "the next owner's line was not added");
    claims.release(key, two.fence).unwrap();
    let answer = add_line(store, key, "{}", 2, Some(two.fence));
    refused("a line with a fence that was given back", answer, is_fenced);
    assert_eq!(
        lines(store, key),
        lines_of(2),
        "after lines with old fences"
    );
    add_number(store, key, 2);
    put(store, key, 1);
    Ok(())
}

/// A ledger outlives the documents of its key: puts, an archive, deletes, a recovery and a new document leave it
/// unchanged.
pub fn a_ledger_outlives_its_documents(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let mut count = 0;
    let mut add_and_look = |when: &str| {
        assert_eq!(lines(store, key), lines_of(count), "the ledger {when}");
        add_number(store, key, count);
        count += 1;
    };
    add_and_look("of nothing");
    fixture.put(1);
    add_and_look("after a first put");
    fixture.put(2);
    add_and_look("after a second put");
    let archiving =
        Put::new(numbered(3)).with_archive(Some((Archive::Complete, chrono::Utc::now())));
    store.put(key, archiving).unwrap();
    add_and_look("after an archive");
    fixture.delete();
    add_and_look("after a delete");
    fixture.put(4);
    add_and_look("after a new document");
    if let Ok(recovery) = fixture.recovery()
        && fixture.damage().is_ok()
    {
        let with = match fixture.capabilities().embedded {
            true => Recovery::Newest,
            false => Recovery::Fresh,
        };
        recovery.recover(key, &RecoverOptions::new(with)).unwrap();
        add_and_look("after a recovery");
        fixture.put(5);
        add_and_look("after the next document");
    }
    let (store, count) = (place.open().unwrap(), count);
    assert_eq!(
        lines(&*store, key),
        lines_of(count),
        "through another opening"
    );
}

/// A copy has the ledger. An interrupted copy can be continued; a ledger with other lines is not extended.
pub fn a_copy_has_the_ledger(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    if fixture.capabilities().embedded {
        return Err(Skipped("the store keeps documents inside a larger file"));
    }
    let source = MemoryStore::new();
    put(&source, key, 1);
    for number in 0..3 {
        add_number(&source, key, number);
    }
    let options = CopyOptions::new().skip_history();
    let copied = || copy(&source, store, &options, &mut |_| {}).unwrap();
    // The state that an interrupted copy leaves.
    add_number(store, key, 0);
    for number in [1, 0] {
        let report = copied();
        assert!(report.refused.is_empty(), "the copy: {:?}", report.refused);
        assert_eq!(report.copied, number, "the number of copied keys");
        assert_eq!(lines(store, key), lines_of(3), "the ledger of the copy");
    }
    add_number(&source, key, 3);
    let refused_as = |is_right: fn(&ErrorKind) -> bool, what| {
        let mut refused_keys = copied().refused.into_iter();
        refused(what, refused_keys.next().map_or(Ok(()), Err), is_right);
    };
    refused_as(is_conflict, "a copy over one with a shorter ledger");
    assert_eq!(
        lines(store, key),
        lines_of(3),
        "after a copy that was refused"
    );
    store.forget(key, &DeleteOptions::new()).unwrap();
    add_number(store, key, 9);
    let is_refused = |kind: &ErrorKind| matches!(kind, ErrorKind::Refused { .. });
    refused_as(is_refused, "a copy to a ledger with other lines");
    assert_eq!(lines(store, key), [line_of(9)], "after the last one");
    Ok(())
}

/// A read with a mark omits at most the lines of that mark, and only while they are there, through each opening. After
/// a forget it omits none, even if the next ledger has as many lines.
pub fn a_mark_stands_only_for_lines_that_are_there(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let second = place.open().unwrap();
    let check =
        |store: &dyn CheckpointStore, mark: Option<&LedgerMark>, most: usize, when: &str| {
            let all = lines(store, key);
            let found = store.beside().ledger_since(key, mark).unwrap();
            assert!(
                found.before <= most && found.lines == all[found.before..],
                "{when}, of {most} known and {} present lines there were {found:?}",
                all.len()
            );
            let counted = found
                .mark
                .as_ref()
                .is_none_or(|mark| mark.lines() == all.len());
            assert!(
                counted,
                "{when}, {} lines have the mark {:?}",
                all.len(),
                found.mark
            );
            found.mark
        };
    let mut marks = Vec::new();
    for count in 0..4 {
        let writer: &dyn CheckpointStore = if count % 2 == 0 { store } else { &*second };
        add_number(writer, key, count);
        for reader in [store, &*second] {
            for (known, mark) in (1..).zip(&marks) {
                check(
                    reader,
                    Option::as_ref(mark),
                    known,
                    "behind an earlier mark",
                );
            }
        }
        let last = marks.last().cloned().flatten();
        marks.push(check(store, last.as_ref(), count, "behind the last mark"));
        let last = marks.last().cloned().flatten();
        check(&*second, last.as_ref(), count + 1, "behind all lines");
    }
    if fixture.capabilities().embedded {
        return;
    }
    store.forget(key, &DeleteOptions::new()).unwrap();
    for count in 0..6 {
        let when = "behind a mark of a ledger that was forgotten";
        for mark in &marks {
            check(store, mark.as_ref(), 0, when);
            check(&*second, mark.as_ref(), 0, when);
        }
        add_number_of(store, key, 100 + count, count);
    }
}

/// If a call fails while a line is added, the line is not in the ledger, unless the error says that this is uncertain.
/// The next line can be added.
pub fn a_failed_line_is_not_in_the_ledger(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let is_uncertain =
        |kind: &ErrorKind, code: &str| *kind == ErrorKind::NotDurable || code == "outcome-unknown";
    let place_of_next = Cell::new(0);
    // The first line of a ledger needs more calls than the others.
    for is_first in [true, false] {
        each_call_fails(
            place,
            || {
                if is_first && !fixture.capabilities().embedded {
                    store.forget(key, &DeleteOptions::new()).unwrap();
                }
                place_of_next.set(lines(store, key).len());
            },
            || {
                let at = place_of_next.get();
                add_line(store, key, &line_of(at), at, None)
            },
            |call, answer| {
                let at = place_of_next.get();
                let reopened = place.open().unwrap();
                let now = lines(&*reopened, key);
                let is_there = now == lines_of(at + 1);
                let is_right = match &answer {
                    Ok(added) => *added && is_there,
                    Err(error) if is_there => is_uncertain(error.kind(), error.code()),
                    Err(_) => now == lines_of(at),
                };
                assert!(
                    is_right,
                    "call {call} of a line behind {at} others failed: it returned {answer:?}, and {now:?} is there"
                );
                add_number(store, key, now.len());
            },
        )?;
    }
    Ok(())
}

/// An acknowledged line is there after its process was killed. A line that was not acknowledged is complete or missing.
pub fn a_killed_writer_loses_no_line_of_its_ledger(
    place: &dyn Place,
    test: &str,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.excludes_processes()?;
    let key = &fixture.key;
    for kill in 0..KILLS {
        let mut child = Process::start(&fixture, test);
        child.send("add-lines");
        let first = child.next_answer();
        thread::sleep(Duration::from_micros(kill * 1_700));
        let answers = child.kill();
        let acknowledged: usize = answers.last().unwrap_or(&first).parse().unwrap();
        let store = place.open().unwrap();
        // A server may complete the last request only now.
        let added = (0..2).any(|_| {
            let now = lines(&*store, key);
            assert!(
                [acknowledged, acknowledged + 1].contains(&now.len()) && now == lines_of(now.len()),
                "a killed process added {acknowledged} lines, but the store has {now:?}"
            );
            add_line(&*store, key, &line_of(now.len()), now.len(), None).unwrap()
        });
        assert!(
            added,
            "after {acknowledged} lines the next one was not added"
        );
    }
    Ok(())
}
