//! Judgements and texts: staleness, liveness, the plan and prompt of a resume, fleets, differences.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;

mod difference;
mod fleet;
#[cfg(target_os = "linux")]
mod fleet_memory;
mod liveness;
mod prompt_structure;
mod prompts;
mod rescan;
mod resume;
mod resume_matrix;
mod retention;
mod staleness;
mod staleness_matrix;
mod staleness_pending;
mod waiting;
#[path = "../common/waiting.rs"]
mod waiting_stores;
