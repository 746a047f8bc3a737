//! The events that a program can watch with `tracing`: each has a name and the same fields.

use std::time::Instant;

use crate::checkpoint::{Key, Revision};

/// The target of all of them.
const TARGET: &str = "agent_checkpoint::event";

/// Whether a program watches for these events.
pub(crate) fn is_watched() -> bool {
    tracing::event_enabled!(target: TARGET, tracing::Level::INFO)
}

/// Reports what happened, and how long it took since `began`.
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
