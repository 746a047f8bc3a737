//! Stores: the rules that all of them keep, the files of the file store, and the typed view.
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

mod checkpoints;
mod contract;
mod field_reports;
mod file_store;
mod layout_safety;
mod ledger;
mod model;
mod model_of_a_store;
mod older_folder;
#[cfg(target_os = "linux")]
mod syncs;
