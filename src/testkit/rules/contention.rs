//! Writers at once, in threads: one wins, nothing is lost, and nobody sees halves.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError};
use std::time::{Duration, Instant};

use crate::checkpoint::{Expect, Revision};
use crate::store::CheckpointStore;
use crate::testkit::child::count_up;
use crate::testkit::rule::{Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, is_conflict, number_of, put, put_over, there};

/// Writers of each contest.
const WRITERS: usize = 8;

/// Contests: one alone could be won by chance.
const ROUNDS: u64 = 6;

/// What each reader reads at least while another writes, and how long that may take.
const READS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// Transactions of each writer.
const COUNTS: u64 = 15;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "of_many_threads_that_expect_nothing_one_wins",
        "Of several writers that expect no document, one wins; the others get a conflict.",
        &[],
        of_many_threads_that_expect_nothing_one_wins,
    ),
    Rule::new(
        "of_many_threads_that_expect_one_revision_one_wins",
        "Of several writers that expect the same revision, one wins; the others get a conflict.",
        &[],
        of_many_threads_that_expect_one_revision_one_wins,
    ),
    Rule::new(
        "every_transaction_of_many_threads_is_there",
        "No other writer comes between what a transaction reads and what it writes.",
        &[],
        every_transaction_of_many_threads_is_there,
    ),
    Rule::new(
        "a_second_opening_sees_the_same",
        "What is put through one opening of a place is there for every other at once.",
        &[],
        a_second_opening_sees_the_same,
    ),
    Rule::new(
        "of_many_openings_that_expect_one_revision_one_wins",
        "Of several writers with openings, or connections, of their own, one wins.",
        &[],
        of_many_openings_that_expect_one_revision_one_wins,
    ),
    Rule::new(
        "every_transaction_of_many_openings_is_there",
        "Openings of one place count in turn as one does.",
        &[],
        every_transaction_of_many_openings_is_there,
    ),
    Rule::new(
        "who_reads_sees_whole_documents_that_never_go_back",
        "A put happens whole or not at all, also for those who read meanwhile.",
        &[],
        who_reads_sees_whole_documents_that_never_go_back,
    ),
];

/// Every writer puts over what all expect, at the same time: exactly one wins, and its document is there.
fn contest(scene: &Scene<'_>, stores: &[&dyn CheckpointStore], expect: &Expect) -> Ruling {
    let start = Barrier::new(stores.len());
    let answers: Vec<Result<bool, Stop>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (100..)
            .zip(stores)
            .map(|(number, store)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    match put_over(*store, &scene.key, number, expect.clone())? {
                        Ok(_) => Ok(true),
                        Err(error) if is_conflict(error.kind()) => Ok(false),
                        Err(error) => Err(error.into()),
                    }
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| joined(writer.join()))
            .collect()
    });
    let mut winners = Vec::new();
    for (number, won) in (100..).zip(answers) {
        if won? {
            winners.push(number);
        }
    }
    ensure!(
        winners.len() == 1,
        "of {} writers that expect {expect}, {} won",
        stores.len(),
        winners.len()
    );
    let found = scene.number()?;
    ensure!(
        found == winners.first().copied(),
        "writer {winners:?} won, and the document of {found:?} is there"
    );
    Ok(())
}

fn joined<T>(ended: std::thread::Result<Result<T, Stop>>) -> Result<T, Stop> {
    ended.unwrap_or_else(|panic| {
        let why = crate::testkit::conformance::message(&*panic);
        Err(Stop::failed(format!("a writer panicked: {why}")))
    })
}

fn contest_rounds(scene: &Scene<'_>, stores: &[&dyn CheckpointStore]) -> Ruling {
    for round in 0..ROUNDS {
        let revision = scene.put(round)?.revision;
        contest(scene, stores, &Expect::Revision(revision))?;
    }
    Ok(())
}

fn count_rounds(scene: &Scene<'_>, stores: &[&dyn CheckpointStore]) -> Ruling {
    scene.put(0)?;
    let counted: Vec<Ruling> = std::thread::scope(|scope| {
        let writers: Vec<_> = stores
            .iter()
            .map(|store| {
                scope.spawn(move || (0..COUNTS).try_for_each(|_| count_up(*store, &scene.key)))
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| joined(writer.join()))
            .collect()
    });
    counted.into_iter().collect::<Ruling>()?;
    let (found, all) = (scene.number()?, stores.len() as u64 * COUNTS);
    ensure!(
        found == Some(all),
        "{all} transactions each added one, and the document counts {found:?}"
    );
    Ok(())
}

fn openings(scene: &Scene<'_>) -> Result<Vec<Box<dyn CheckpointStore>>, Stop> {
    let openings: Result<Vec<_>, _> = (0..WRITERS).map(|_| scene.place.open()).collect();
    Ok(openings?)
}

fn borrowed(stores: &[Box<dyn CheckpointStore>]) -> Vec<&dyn CheckpointStore> {
    stores.iter().map(|store| &**store).collect()
}

fn of_many_threads_that_expect_nothing_one_wins(scene: &Scene<'_>) -> Ruling {
    for _ in 0..ROUNDS {
        contest(scene, &[&*scene.store; WRITERS], &Expect::Absent)?;
        scene.delete()?;
    }
    Ok(())
}

fn of_many_threads_that_expect_one_revision_one_wins(scene: &Scene<'_>) -> Ruling {
    contest_rounds(scene, &[&*scene.store; WRITERS])
}

fn every_transaction_of_many_threads_is_there(scene: &Scene<'_>) -> Ruling {
    count_rounds(scene, &[&*scene.store; WRITERS])
}

fn a_second_opening_sees_the_same(scene: &Scene<'_>) -> Ruling {
    let second = scene.place.open()?;
    for number in 1..=3 {
        let saved = scene.put(number)?;
        let found = second.load(&scene.key)?;
        ensure!(
            found.as_ref().and_then(number_of) == Some(number),
            "{number} was put, and a second opening sees {:?}",
            found.as_ref().and_then(number_of)
        );
        ensure!(
            found.is_some_and(|found| found.revision == saved.revision),
            "it sees the document, and another revision"
        );
    }
    put(&*second, &scene.key, 4)?;
    ensure!(
        scene.number()? == Some(4),
        "4 was put through the second opening, and the first sees {:?}",
        scene.number()?
    );
    Ok(())
}

fn of_many_openings_that_expect_one_revision_one_wins(scene: &Scene<'_>) -> Ruling {
    let stores = openings(scene)?;
    contest_rounds(scene, &borrowed(&stores))
}

fn every_transaction_of_many_openings_is_there(scene: &Scene<'_>) -> Ruling {
    let stores = openings(scene)?;
    count_rounds(scene, &borrowed(&stores))
}

fn who_reads_sees_whole_documents_that_never_go_back(scene: &Scene<'_>) -> Ruling {
    scene.put(0)?;
    let reader = scene.place.open()?;
    let stores = [&*scene.store, &*reader];
    let start = Barrier::new(stores.len() + 1);
    let done = AtomicBool::new(false);
    let trouble = std::sync::Mutex::new(None::<Stop>);
    // How often each reader has read while the writer was at work.
    let reads = stores.map(|_| AtomicU64::new(0));
    let read_on = |store: &dyn CheckpointStore, reads: &AtomicU64| -> Ruling {
        let mut before = 0;
        while !done.load(Ordering::Relaxed) {
            let stored = there(store, &scene.key)?;
            let now = number_of(&stored);
            ensure!(
                now.is_some_and(|now| now >= before),
                "after {before} a reader sees {}",
                stored.document
            );
            ensure!(
                stored.revision == Revision::of(stored.document.text().as_bytes()),
                "a reader sees a document with the revision of another"
            );
            before = now.unwrap_or_default();
            reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let wrote = std::thread::scope(|scope| {
        for (store, reads) in stores.into_iter().zip(&reads) {
            let (read_on, trouble, start, done) = (&read_on, &trouble, &start, &done);
            scope.spawn(move || {
                // A reader that ends keeps the writer no longer.
                let _until_done = Set(done);
                start.wait();
                if let Err(stop) = read_on(store, reads) {
                    *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
                }
            });
        }
        // Readers must not be waited for for ever, also when a writer fails.
        let _until_done = Set(&done);
        start.wait();
        write_while_they_read(scene, &reads, &done)
    });
    let trouble = trouble.into_inner().unwrap_or_else(PoisonError::into_inner);
    trouble.map_or(wrote, Err)
}

/// Puts ever greater numbers until every reader has read some of them: what is read afterwards shows nothing.
fn write_while_they_read(scene: &Scene<'_>, reads: &[AtomicU64], done: &AtomicBool) -> Ruling {
    let begun = Instant::now();
    for number in 1.. {
        scene.put(number)?;
        let all_read = reads
            .iter()
            .all(|reads| reads.load(Ordering::Relaxed) >= READS);
        if done.load(Ordering::Relaxed) || (number >= 60 && all_read) {
            break;
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "in {number} puts, a minute of them, a reader did not come to read {READS} times"
        );
    }
    Ok(())
}

/// Becomes true when this is dropped.
struct Set<'f>(&'f AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
