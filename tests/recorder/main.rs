//! The recorder, tested by the requirements of the documents. Tests of a document's trigger are named after its row,
//! those of an acceptance list after its story.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;

mod agent_session;
mod approvals;
mod beating;
mod beginning;
mod build_pipeline;
mod builder_state;
mod effects;
mod ending;
mod events;
mod given_up;
mod in_async;
mod interrupted;
mod later;
mod ledger_growth;
mod owning;
#[cfg(unix)]
mod proofs;
mod reporting;
mod running;
mod scenes;
mod sitebuilder;
mod stories;
mod story_pipeline;
mod writes;
