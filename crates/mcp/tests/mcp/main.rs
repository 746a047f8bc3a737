//! Tests of the real program `ckpt-mcp` over its standard input and output.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod bounds;
mod catalog;
mod client;
mod day;
mod outside;
mod python;
mod refusals;
mod rust_sdk;
mod wire;
