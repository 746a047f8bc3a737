//! The state after a program, its machine or a file-system call fails in the middle of an action.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;

mod broken_writers;
mod explorer;
mod failing_calls;
mod kills;
mod many_writers;
mod real_faults;
mod states;
