//! What a loss of power leaves, at every point of everything a store does: see `crash/disk.rs` for what is
//! explored and what is not.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod common;
mod crash;

use crash::{depth, scenarios};

/// One test for each scenario, named after what it does.
macro_rules! survive {
    ($($name:ident),* $(,)?) => { $(
        #[test]
        fn $name() {
            scenarios::$name().survives_crashes(depth());
        }
    )* };
}

survive!(
    first_save,
    save_over,
    updates,
    cut,
    history_beyond_its_limit,
    pruned,
    archived,
    deleted,
    restored,
    first_claim,
    claimed,
    taken_over,
    released,
    pinned_present,
    pinned_entry,
    unpinned,
    host_file,
    host_file_taken_over,
    host_file_recovered,
    own_backups,
    copies,
    lazy,
    begun_anew,
);

#[test]
fn recovered() {
    for scenario in scenarios::recovered() {
        scenario.survives_crashes(depth());
    }
}

#[test]
fn whoever_goes_on_after_a_kill_makes_the_work_of_the_killed_last() {
    for scenario in scenarios::all() {
        // Whoever archives again is told that there is nothing: that promises nothing.
        if scenario.name == scenarios::archived().name {
            continue;
        }
        scenario.survives_a_kill_and_then_a_crash(depth());
    }
}
