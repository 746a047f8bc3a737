//! Tests of the real binary in temporary folders.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod addressing;
mod approving;
mod bad_input;
mod batching;
mod claiming;
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the tests of the store use more"
)]
#[path = "../../../postgres/tests/store/cluster.rs"]
#[cfg(unix)]
mod cluster;
mod converting;
mod copying;
mod databases;
mod doctoring;
mod fleet;
mod forgetting;
mod guiding;
mod handing_off;
mod hooks;
mod html;
#[cfg(unix)]
mod in_a_browser;
mod installing;
mod later;
mod listing;
mod mixing;
mod once;
mod operating;
mod past;
mod project;
mod protocols;
mod proving;
mod reading;
mod readme;
mod recipes;
mod reporting;
mod reporting_html;
mod resuming;
mod schemas;
#[allow(dead_code, reason = "the tests of the store use more")]
#[path = "../../../object-store/tests/store/server.rs"]
mod server;
mod setting;
mod setting_up;
mod settings;
mod staleness;
mod usage;
