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

use std::io::Write;

use crash::{Depth, depth, scenarios};

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
    recovered_newest,
    recovered_fresh,
    recovered_by_salvage,
);

/// Scenarios in which so much is never waited for that their states come to thousands.
const TOO_MANY: [&str; 5] = [
    "save that cuts",
    "history beyond its limit",
    "copies in the history",
    "saves that sync data only",
    "slot of a host file",
];

#[test]
fn whoever_goes_on_after_a_kill_makes_the_work_of_the_killed_last() {
    for scenario in scenarios::all() {
        // Whoever archives again is told that there is nothing: that promises nothing.
        if scenario.name == scenarios::archived().name {
            continue;
        }
        if depth() != Depth::Full && TOO_MANY.contains(&scenario.name) {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {} after a kill (scripts/crash explores it)",
                scenario.name
            );
            continue;
        }
        scenario.survives_a_kill_and_then_a_crash(depth());
    }
}
