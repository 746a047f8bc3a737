//! Tests all states that a crash may leave: a program's calls are recorded, every state that a power loss may leave
//! after each of them is built, and the store's handling of it is judged.

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

/// A folder for experiments: in memory if possible, because these tests do not depend on this machine's disk.
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
