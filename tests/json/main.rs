//! JSON documents, and checkpoints of every format as text: what is read, what is written, what is preserved.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[path = "../common/mod.rs"]
mod common;

mod as_agents_write_it;
mod blank_words;
mod documents;
mod properties;
