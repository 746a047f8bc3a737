//! The events that a program can watch with `tracing`. All events have the same fields.

use std::time::Instant;

use crate::checkpoint::{Key, Revision};

/// The `tracing` target of all events.
const TARGET: &str = "agent_checkpoint::event";

/// Whether a subscriber is interested in these events.
pub(crate) fn is_watched() -> bool {
    tracing::event_enabled!(target: TARGET, tracing::Level::INFO)
}

/// Emits an event; its duration is counted from `began`.
pub(crate) fn happened(
    event: &'static str,
    key: &Key,
    revision: Option<&Revision>,
    agent: Option<&str>,
    began: Instant,
) {
    let duration_ms = began.elapsed().as_secs_f64() * 1000.0;
    let revision = revision.map(tracing::field::display);
    tracing::info!(target: TARGET, event, %key, revision, agent, duration_ms);
}
