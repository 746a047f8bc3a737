//! Writers at once, in processes of their own, and writers that are killed.

use std::time::Duration;

use crate::checkpoint::ClaimRequest;
use crate::testkit::child::{Job, Running};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, number_of, put_fenced, there};

/// Processes of each contest.
const WRITERS: usize = 4;

/// Transactions of each process.
const COUNTS: u64 = 20;

/// Writers that are killed, each at another time after its first save.
const KILLS: u64 = 6;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "of_many_processes_that_expect_one_revision_one_wins",
        "Of several processes that expect the same revision, one wins; the others get a conflict.",
        &[Need::Processes],
        of_many_processes_that_expect_one_revision_one_wins,
    ),
    Rule::new(
        "every_transaction_of_many_processes_is_there",
        "No writer in another process comes between what a transaction reads and what it writes.",
        &[Need::Processes],
        every_transaction_of_many_processes_is_there,
    ),
    Rule::new(
        "a_process_with_an_old_fence_does_not_get_in",
        "A process that had the task before writes no more once another has claimed it.",
        &[Need::Processes, Need::Claims],
        a_process_with_an_old_fence_does_not_get_in,
    ),
    Rule::new(
        "a_killed_writer_loses_nothing_that_it_was_told_of",
        "A put that returned is there after its process was killed, and one that did not is whole or not there.",
        &[Need::Processes],
        a_killed_writer_loses_nothing_that_it_was_told_of,
    ),
];

fn children(scene: &Scene<'_>, job: Job) -> Result<Vec<Running>, Stop> {
    let crew = scene.crew()?;
    (0..WRITERS).map(|_| crew.start(job, &scene.key)).collect()
}

fn of_many_processes_that_expect_one_revision_one_wins(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    let mut writers = children(scene, Job::PutOver)?;
    for round in 1..=10 {
        let revision = there(&*scene.store, &scene.key)?.revision;
        for (at, writer) in (0..).zip(&mut writers) {
            writer.tell(&format!("{} {revision}", round * 100 + at))?;
        }
        let mut won = Vec::new();
        for (at, writer) in (0..).zip(&mut writers) {
            if writer.hear()?.as_deref() == Some("won") {
                won.push(round * 100 + at);
            }
        }
        ensure!(
            won.len() == 1,
            "of {WRITERS} processes that expect one revision, {} won",
            won.len()
        );
        let found = scene.number()?;
        ensure!(
            found == won.first().copied(),
            "{won:?} won, and {found:?} is there"
        );
    }
    writers.into_iter().try_for_each(Running::finish)
}

fn every_transaction_of_many_processes_is_there(scene: &Scene<'_>) -> Ruling {
    scene.put(0)?;
    let mut writers = children(scene, Job::CountUp)?;
    for writer in &mut writers {
        writer.tell(&COUNTS.to_string())?;
    }
    for writer in &mut writers {
        for count in 0..COUNTS {
            let heard = writer.hear()?;
            ensure!(
                heard.as_deref() == Some("counted"),
                "a process ended early, after {count} transactions: {heard:?}"
            );
        }
    }
    writers.into_iter().try_for_each(Running::finish)?;
    let (found, all) = (scene.number()?, WRITERS as u64 * COUNTS);
    ensure!(
        found == Some(all),
        "{all} transactions each added one, and the document counts {found:?}"
    );
    Ok(())
}

fn a_process_with_an_old_fence_does_not_get_in(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    let long = Duration::from_secs(3600);
    let old = scene
        .store
        .claim(&scene.key, &ClaimRequest::new("old", long))?;
    let mut child = scene.crew()?.start(Job::PutFenced, &scene.key)?;
    child.tell(&old.fence.to_string())?;
    let heard = child.hear()?;
    ensure!(
        heard.as_deref() == Some("in"),
        "the process that has the task cannot write: {heard:?}"
    );
    let new = ClaimRequest::new("new", long).taking_over();
    let new = scene.store.claim(&scene.key, &new)?;
    put_fenced(&*scene.store, &scene.key, 2, new.fence)??;
    child.tell(&old.fence.to_string())?;
    let heard = child.hear()?;
    ensure!(
        heard.as_deref() == Some("fenced") && scene.number()? == Some(2),
        "the process that had the task before was told {heard:?}, and {:?} is there",
        scene.number()?
    );
    child.finish()
}

fn a_killed_writer_loses_nothing_that_it_was_told_of(scene: &Scene<'_>) -> Ruling {
    let mut last = 0;
    scene.put(last)?;
    for kill in 0..KILLS {
        let mut child = scene.crew()?.start(Job::PutOn, &scene.key)?;
        child.tell(&(last + 1).to_string())?;
        let heard = child.hear()?;
        std::thread::sleep(Duration::from_micros(kill * 1_700));
        let mut said = child.kill()?;
        said.extend(heard);
        let told = said
            .iter()
            .filter_map(|line| line.parse::<u64>().ok())
            .max();
        let told =
            told.ok_or_else(|| Stop::failed("a process put nothing before it was killed"))?;
        // Opened anew, as whoever goes on does.
        let store = scene.place.open()?;
        let found = there(&*store, &scene.key)?;
        let number = number_of(&found);
        // The put that was under way may be in, too.
        ensure!(
            number == Some(told) || number == Some(told + 1),
            "a killed process was told that {told} is saved, and {} is there",
            found.document
        );
        last = number.unwrap_or_default();
        let next = last + 1;
        crate::testkit::scene::put(&*store, &scene.key, next)?;
        last = next;
    }
    Ok(())
}
