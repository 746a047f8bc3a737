//! The rules for writers in other processes, also killed ones. `test` is the full name of the test that calls
//! [`serve`](crate::testkit::serve).

use std::thread::sleep;
use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::ClaimRequest;
use crate::testkit::fixture::{Fixture, number_of, put, put_fenced, there};
use crate::testkit::process::Process;
use crate::testkit::{Place, Skipped};

/// The number of processes in each contest.
const WRITERS: u64 = 4;

/// The number of transactions of each process.
const COUNTS: u64 = 20;

/// The number of writers that are killed, each after a different time.
const KILLS: u64 = 6;

/// When several processes expect the same revision, one wins and the others get a conflict.
pub fn one_of_many_processes_replaces_a_revision(
    place: &dyn Place,
    test: &str,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.excludes_processes()?;
    fixture.put(1);
    let mut writers = start_all(&fixture, test);
    for round in 1..=10 {
        let revision = fixture.there().revision;
        let numbers = round * 100..;
        for (number, writer) in numbers.clone().zip(&mut writers) {
            writer.send(&format!("replace {revision} {number}"));
        }
        let answers = writers.iter_mut().map(Process::next_answer);
        let winners = numbers.zip(answers).filter(|(_, answer)| answer == "won");
        let winners: Vec<u64> = winners.map(|(number, _)| number).collect();
        let [winner] = *winners else {
            panic!("of {WRITERS} processes that expect one revision, these won: {winners:?}");
        };
        fixture.assert_number(winner, "the document of the winner");
    }
    writers.into_iter().for_each(Process::finish);
    Ok(())
}

/// No writer in another process comes between what a transaction reads and what it writes.
pub fn every_transaction_of_many_processes_counts(
    place: &dyn Place,
    test: &str,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.excludes_processes()?;
    fixture.put(0);
    let mut writers = start_all(&fixture, test);
    for writer in &mut writers {
        writer.send(&format!("count {COUNTS}"));
    }
    for writer in &mut writers {
        for _ in 0..COUNTS {
            assert_eq!(writer.next_answer(), "counted");
        }
    }
    writers.into_iter().for_each(Process::finish);
    fixture.assert_number(WRITERS * COUNTS, "after transactions that each add one");
    Ok(())
}

/// A process whose claim was taken over cannot write any more.
pub fn a_process_with_an_old_fence_cannot_write(
    place: &dyn Place,
    test: &str,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let ((store, key), claims) = (fixture.parts(), fixture.claims()?);
    fixture.excludes_processes()?;
    fixture.put(1);
    let request = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(3600));
    let old = claims.claim(key, &request("old")).unwrap();
    let write = format!("put-with {}", old.fence);
    let mut child = Process::start(&fixture, test);
    child.send(&write);
    assert_eq!(
        child.next_answer(),
        "saved",
        "the process that has the claim"
    );
    let new = claims.claim(key, &request("new").taking_over()).unwrap();
    put_fenced(store, key, 2, new.fence).unwrap();
    child.send(&write);
    assert_eq!(
        child.next_answer(),
        "fenced",
        "the process whose claim was taken over"
    );
    fixture.assert_number(2, "after the attempt with the old fence");
    child.finish();
    Ok(())
}

/// A put that was acknowledged is there after its process was killed. A put that was not is complete or missing.
pub fn a_killed_writer_loses_no_acknowledged_write(
    place: &dyn Place,
    test: &str,
) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.excludes_processes()?;
    let mut last = 0;
    fixture.put(last);
    for kill in 0..KILLS {
        let mut child = Process::start(&fixture, test);
        child.send(&format!("put-from {}", last + 1));
        let first = child.next_answer();
        sleep(Duration::from_micros(kill * 1_700));
        let answers = child.kill();
        let acknowledged: u64 = answers.last().unwrap_or(&first).parse().unwrap();
        // The store is opened again, as by the program that continues.
        let store = place.open().unwrap();
        let found = there(&*store, &fixture.key);
        let number = number_of(&found).unwrap_or_default();
        // The put that was not acknowledged may be there, too.
        assert!(
            number == acknowledged || number == acknowledged + 1,
            "a killed process saved {acknowledged}, but the store has {}",
            found.document
        );
        last = number + 1;
        put(&*store, &fixture.key, last);
    }
    Ok(())
}

fn start_all(fixture: &Fixture<'_>, test: &str) -> Vec<Process> {
    let start = |_| Process::start(fixture, test);
    (0..WRITERS).map(start).collect()
}
