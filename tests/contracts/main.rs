//! Contracts on which other programs rely: schemas, strategies, the testkit, the pages, the examples.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/stores.rs"]
mod stores;

mod broken;
mod checkpoint_broken;
mod checkpoint_contract;
mod docs;
mod examples;
#[cfg(feature = "schema")]
mod schema;
#[cfg(feature = "schema")]
mod schema_equals_reading;
mod schema_versions;
mod strategies;
mod testkit_broken;
