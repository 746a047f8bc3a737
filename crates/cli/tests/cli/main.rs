//! The real binary in folders of its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod addressing;
mod bad_input;
mod batching;
mod claiming;
mod converting;
mod copying;
mod databases;
mod fleet;
mod forgetting;
mod guiding;
mod handing_off;
mod mixing;
mod operating;
mod past;
mod project;
mod protocols;
mod reading;
mod readme;
mod reporting;
mod resuming;
mod schemas;
mod setting;
mod staleness;
mod usage;
