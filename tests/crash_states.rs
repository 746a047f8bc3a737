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

use std::path::Path;

use agent_checkpoint::store::PutOptions;
use agent_checkpoint::{CheckpointStore, Document, FileOptions, FileStore, Key};
use common::{clock, key};
use crash::{Oracle, Scenario, depth};

const NOW: &str = "2026-03-02T08:00:00Z";

fn options() -> FileOptions {
    FileOptions::default().with_clock(clock(NOW)).with_holder("agent")
}

fn open(root: &Path) -> Box<dyn CheckpointStore> {
    Box::new(FileStore::with_options(root.join("store"), options()))
}

fn text(name: &str) -> String {
    format!("{{\"state\": \"{name}\", \"of\": \"{}\"}}\n", name.repeat(5))
}

fn put(store: &dyn CheckpointStore, key: &Key, name: &str) {
    let document = Document::from_text(&text(name)).unwrap();
    store.put(key, &document, &PutOptions::new()).unwrap();
}

fn nothing(_: &Path) {}

fn old(root: &Path) {
    put(&*open(root), &key("a"), "old");
}

fn save_new(root: &Path) {
    put(&*open(root), &key("a"), "new");
}

#[test]
fn the_first_save_in_a_new_folder() {
    Scenario {
        name: "first save in a new folder",
        open: &open,
        key: key("a"),
        before: &nothing,
        acts: vec![&save_new],
    }
    .survives_crashes(depth(), &Oracle::default());
}

#[test]
fn a_save_over_a_checkpoint() {
    let scenario = Scenario {
        name: "save over a checkpoint",
        open: &open,
        key: key("a"),
        before: &old,
        acts: vec![&save_new],
    };
    scenario.survives_crashes(depth(), &Oracle::default());
}
