//! The formats, each tested by its own document, and the conversions between them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;

mod agent_session;
mod build_pipeline;
mod cases;
mod convert;
mod rules;
mod sitebuilder;
mod story_pipeline;
mod task;
