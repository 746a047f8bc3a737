//! The store in an object store: the contract of every store, and the behaviour that only this one has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

/// Returns from a test, with a message, if no S3 server is installed. In CI it must be installed.
macro_rules! need_server {
    () => {
        if !crate::server::is_installed() {
            return;
        }
    };
}

mod client;
mod copying;
mod driver;
mod memory;
mod network;
mod opening;
mod proxy;
mod races;
mod requests;
mod s3;
mod server;
#[path = "../../../../tests/common/waiting.rs"]
mod waiting;

use std::sync::Arc;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Stored};
use agent_checkpoint::{CheckpointStoreExt, Key};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::memory::InMemory;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn numbered(number: u64) -> Put {
    Put::new(Document::from_text(format!("{{\"n\":{number}}}")).unwrap())
}

fn number_of(stored: &Stored) -> u64 {
    stored.document.get("/n").unwrap().as_u64().unwrap()
}

fn number_at(store: &ObjectCheckpointStore, name: &str) -> Option<u64> {
    store.load(&key(name)).unwrap().as_ref().map(number_of)
}

/// Increments the number in a document.
fn count(store: &ObjectCheckpointStore, name: &str) {
    let counted = store.transact(&key(name), |stored| {
        let number = stored.map_or(0, number_of);
        Ok(Some(numbered(number + 1)))
    });
    counted.unwrap();
}

fn in_memory() -> ObjectCheckpointStore {
    ObjectCheckpointStore::open(Arc::new(InMemory::new()), "").unwrap()
}
