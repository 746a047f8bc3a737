//! The rules for threads that write at the same time: when several expect the same state one wins, no write is lost,
//! and readers see complete documents.

use std::io::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::checkpoint::{Expect, Key, Revision};
use crate::store::CheckpointStore;
use crate::testkit::Place;
use crate::testkit::fixture::{
    Fixture, count_up, is_conflict, number_at, number_of, put, put_over, there,
};

/// The number of writers in each contest.
const WRITERS: usize = 8;

/// The number of contests; a single one could be won by chance.
const ROUNDS: u64 = 6;

/// The number of transactions of each writer.
const COUNTS: u64 = 15;

/// The least number of reads of each reader while another thread writes, and the longest time that they may take.
const READS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// When several writers expect no document, one wins and the others get a conflict.
pub fn one_of_many_threads_creates_a_document(place: &dyn Place) {
    let fixture = Fixture::new(place);
    for _ in 0..ROUNDS {
        contest(&fixture, &[&*fixture.store; WRITERS], &Expect::Absent);
        fixture.delete();
    }
}

/// When several writers expect the same revision, one wins and the others get a conflict.
pub fn one_of_many_threads_replaces_a_revision(place: &dyn Place) {
    let fixture = Fixture::new(place);
    replace_in_rounds(&fixture, &[&*fixture.store; WRITERS]);
}

/// No other writer comes between what a transaction reads and what it writes.
pub fn every_transaction_of_many_threads_counts(place: &dyn Place) {
    let fixture = Fixture::new(place);
    count_at_once(&fixture, &[&*fixture.store; WRITERS]);
}

/// A put through one opening of a place is visible through every other opening at once.
pub fn a_second_opening_sees_every_write(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let second = place.open().unwrap();
    for number in 1..=3 {
        let saved = fixture.put(number);
        let found = there(&*second, &fixture.key);
        assert_eq!(
            number_of(&found),
            Some(number),
            "seen by the second opening"
        );
        assert_eq!(found.revision, saved.revision, "seen by the second opening");
    }
    put(&*second, &fixture.key, 4);
    fixture.assert_number(4, "seen by the first opening");
}

/// When several writers, each with its own opening or connection, expect the same revision, one wins and the others get
/// a conflict.
pub fn one_of_many_openings_replaces_a_revision(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let stores = [(); WRITERS].map(|()| place.open().unwrap());
    replace_in_rounds(&fixture, &stores.each_ref().map(|store| &**store));
}

/// No writer with another opening comes between what a transaction reads and what it writes.
pub fn every_transaction_of_many_openings_counts(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let stores = [(); WRITERS].map(|()| place.open().unwrap());
    count_at_once(&fixture, &stores.each_ref().map(|store| &**store));
}

/// No update is lost when many agents, each with its own opening, update a few keys.
///
/// There are 16 agents, and each makes 20 updates. A store that takes any key has eight keys. For a long run, set other
/// numbers with `AGENT_CHECKPOINT_AGENTS` and `AGENT_CHECKPOINT_UPDATES`; the first also prints how long the run took.
pub fn every_update_of_many_agents_counts(place: &dyn Place) {
    let agents = given("AGENT_CHECKPOINT_AGENTS").unwrap_or(16);
    let updates = given("AGENT_CHECKPOINT_UPDATES").unwrap_or(20);
    let mut keys = place.keys();
    if keys.is_empty() {
        let name = |number| Key::new(format!("agent-task-{number}"));
        keys.extend((0..8).map(|number| name(number).unwrap()));
    }
    let stores: Vec<_> = (0..agents).map(|_| place.open().unwrap()).collect();
    for key in &keys {
        put(&*stores[0], key, 0);
    }
    let start = Barrier::new(agents);
    let begun = Instant::now();
    thread::scope(|scope| {
        for (agent, store) in stores.iter().enumerate() {
            let (start, keys) = (&start, &keys);
            scope.spawn(move || {
                start.wait();
                for update in 0..updates {
                    count_up(&**store, &keys[(agent + update) % keys.len()]);
                }
            });
        }
    });
    let took = begun.elapsed();
    let counted = keys.iter().filter_map(|key| number_at(&*stores[0], key));
    assert_eq!(
        counted.sum::<u64>(),
        (agents * updates) as u64,
        "the updates of {agents} agents on {} keys",
        keys.len()
    );
    if given("AGENT_CHECKPOINT_AGENTS").is_some() {
        let test = thread::current().name().unwrap_or_default().to_owned();
        let keys = keys.len();
        let line =
            format!("{test}: {agents} agents, {updates} updates each, {keys} keys: {took:.1?}");
        // Written to the standard error directly, since the test harness would capture it. A closed standard error does
        // no harm.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// A number from the environment.
fn given(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Readers see complete documents while another thread writes, and never an older document after a newer one.
pub fn readers_see_complete_documents_in_order(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let key = &fixture.key;
    fixture.put(0);
    let second = place.open().unwrap();
    let stores = [&*fixture.store, &*second];
    let reads = stores.map(|_| AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let start = Barrier::new(stores.len() + 1);
    thread::scope(|scope| {
        // All threads stop when one of them fails.
        let _ended = SetWhenDropped(&done);
        for (store, reads) in stores.into_iter().zip(&reads) {
            let (start, done) = (&start, &done);
            scope.spawn(move || {
                let _ended = SetWhenDropped(done);
                start.wait();
                let mut before = 0;
                while !done.load(Ordering::Relaxed) {
                    let found = there(store, key);
                    let text = found.document.text();
                    let number = number_of(&found);
                    assert!(
                        number.is_some_and(|number| number >= before),
                        "after {before} a reader sees {text}"
                    );
                    let revision = Revision::of(text.as_bytes());
                    assert_eq!(found.revision, revision, "a reader sees {text}");
                    before = number.unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        start.wait();
        let begun = Instant::now();
        for number in 1.. {
            fixture.put(number);
            let all_read = reads
                .iter()
                .all(|reads| reads.load(Ordering::Relaxed) >= READS);
            if done.load(Ordering::Relaxed) || (number >= 60 && all_read) {
                break;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "in a minute and {number} puts a reader did not read {READS} times"
            );
        }
    });
}

/// Lets all writers put over the same state at the same time: exactly one wins, and its document is there.
#[track_caller]
fn contest(fixture: &Fixture<'_>, stores: &[&dyn CheckpointStore], expect: &Expect) {
    let start = Barrier::new(stores.len());
    let winners: Vec<u64> = thread::scope(|scope| {
        let writers: Vec<_> = (100..)
            .zip(stores)
            .map(|(number, store)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    match put_over(*store, &fixture.key, number, expect.clone()) {
                        Err(error) if is_conflict(error.kind()) => None,
                        saved => saved.map(|_| Some(number)).unwrap(),
                    }
                })
            })
            .collect();
        let answers = writers.into_iter().map(thread::ScopedJoinHandle::join);
        answers.filter_map(Result::unwrap).collect()
    });
    let writers = stores.len();
    let [winner] = *winners else {
        panic!("of {writers} writers that expect {expect}, these won: {winners:?}");
    };
    fixture.assert_number(winner, "the document of the winner");
}

#[track_caller]
fn replace_in_rounds(fixture: &Fixture<'_>, stores: &[&dyn CheckpointStore]) {
    for round in 0..ROUNDS {
        let expect = Expect::Revision(fixture.put(round).revision);
        contest(fixture, stores, &expect);
    }
}

#[track_caller]
fn count_at_once(fixture: &Fixture<'_>, stores: &[&dyn CheckpointStore]) {
    let key = &fixture.key;
    fixture.put(0);
    thread::scope(|scope| {
        for store in stores {
            scope.spawn(move || (0..COUNTS).for_each(|_| count_up(*store, key)));
        }
    });
    let transactions = stores.len() as u64 * COUNTS;
    fixture.assert_number(transactions, "after transactions that each add one");
}

struct SetWhenDropped<'f>(&'f AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
