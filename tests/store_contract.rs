//! The contract of `CheckpointStore`, as the testkit has it, on every store of the library.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;
mod stores;

use std::time::Duration;

use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::store::{Change, PutOptions};
use agent_checkpoint::{
    BuilderStateStore, Checkpoint, CheckpointStore, ClaimRequest, Document, ErrorKind, FileStore,
    MemoryStore, RecoverOptions, Recovery, Stored, store_conformance,
};
use agent_checkpoint::json::CorruptCode;
use common::key;
use stores::{Files, HostFile, InMemory, Plain};

store_conformance!(in_memory, InMemory);
store_conformance!(only_compare_and_swap, Plain);
store_conformance!(a_folder_of_files, Files::in_a_folder());
store_conformance!(
    a_folder_with_backups_of_the_protocol,
    Files::in_a_folder().named(AgentCheckpoint::layout())
);
store_conformance!(
    a_folder_with_ids_in_its_files,
    Files::in_a_folder().named(SitebuilderCheckpoint::layout())
);
store_conformance!(one_file, Files::of_one_file());
store_conformance!(without_history, Files::in_a_folder().without_history());
store_conformance!(a_host_file, HostFile);
