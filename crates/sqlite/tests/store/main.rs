//! The store in a SQLite database: the contract of every store, and the behaviour that only this one has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

#[allow(dead_code, reason = "each suite uses what it needs")]
#[path = "../../../../tests/common/children.rs"]
mod children;
mod contract;
mod copying;
mod faults;
mod forgetting;
mod log;
mod opening;
mod processes;
mod syncs;
mod tables;
#[path = "../../../../tests/common/waiting.rs"]
mod waiting;

use std::path::Path;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Stored};
use agent_checkpoint::{CheckpointStoreExt, Key};
use agent_checkpoint_sqlite::SqliteStore;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn numbered(number: u64) -> Put {
    Put::new(Document::from_text(format!("{{\"n\":{number}}}")).unwrap())
}

fn number_of(stored: &Stored) -> u64 {
    stored.document.get("/n").unwrap().as_u64().unwrap()
}

fn number_at(store: &SqliteStore, name: &str) -> Option<u64> {
    store.load(&key(name)).unwrap().as_ref().map(number_of)
}

/// Increments the number in a document.
fn count(store: &SqliteStore, name: &str) {
    let counted = store.transact(&key(name), |stored| {
        let number = stored.map_or(0, number_of);
        Ok(Some(numbered(number + 1)))
    });
    counted.unwrap();
}

/// The names of the files in a folder.
fn files_in(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
