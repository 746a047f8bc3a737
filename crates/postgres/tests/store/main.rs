//! The store in PostgreSQL, against a real server: the contract of every store, and the behaviour that only this one
//! has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

#[cfg(unix)]
mod changes;
#[allow(dead_code, reason = "each suite uses what it needs")]
#[path = "../../../../tests/common/children.rs"]
#[cfg(unix)]
mod children;
#[cfg(unix)]
#[cfg_attr(
    not(feature = "tls"),
    allow(dead_code, reason = "it listens on the network for TLS")
)]
mod cluster;
#[cfg(unix)]
mod contract;
#[cfg(unix)]
mod copying;
#[cfg(all(unix, feature = "tls"))]
mod encrypted;
#[cfg(unix)]
mod lost;
#[cfg(unix)]
mod opening;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod runtimes;
#[cfg(unix)]
mod tables;
#[cfg(unix)]
#[path = "../../../../tests/common/waiting.rs"]
mod waiting;
#[cfg(unix)]
mod writers;

use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Stored};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Key};
use agent_checkpoint_postgres::PostgresStore;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn numbered(number: u64) -> Put {
    Put::new(Document::from_text(format!("{{\"n\":{number}}}")).unwrap())
}

fn number_of(stored: &Stored) -> u64 {
    stored.document.get("/n").unwrap().as_u64().unwrap()
}

fn number_at(store: &PostgresStore, name: &str) -> Option<u64> {
    store.load(&key(name)).unwrap().as_ref().map(number_of)
}

/// Increments the number in a document.
fn count(store: &PostgresStore, name: &str) {
    let counted = store.transact(&key(name), |stored| {
        let number = stored.map_or(0, number_of);
        Ok(Some(numbered(number + 1)))
    });
    counted.unwrap();
}

/// The numbers of all states of a key, oldest first.
fn numbers_at(store: &PostgresStore, name: &str) -> Vec<u64> {
    let states = store.states(&key(name)).unwrap();
    let numbers = states.iter().rev().map(|entry| {
        let stored = store.load_revision(&key(name), &entry.id).unwrap();
        number_of(&stored)
    });
    numbers.collect()
}

fn hour(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, Duration::from_secs(3600))
}
