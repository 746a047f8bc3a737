//! What a crash may leave, tried out: a program's calls are recorded, every state that a loss of power may
//! leave after each of them is built, and what a store makes of it is judged.

pub(crate) mod broken;
mod disk;
mod explore;
pub(crate) mod faults;
mod oracle;
mod scenario;
pub(crate) mod scenarios;
mod step;
mod tree;

pub(crate) use disk::Depth;
pub(crate) use oracle::{Seen, next_save_works, observe};
pub(crate) use scenario::{Recorded, Scenario};
pub(crate) use step::Step;
pub(crate) use tree::Tree;

use std::path::Path;

/// A folder to try things out in: in memory where there is such a place, for nothing here is about the disk of
/// this machine.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.unwrap()
}

/// How deep to explore: `AGENT_CHECKPOINT_CRASH=full` for every combination.
pub(crate) fn depth() -> Depth {
    match std::env::var("AGENT_CHECKPOINT_CRASH") {
        Ok(wanted) if wanted == "full" => Depth::Full,
        _ => Depth::Part,
    }
}
