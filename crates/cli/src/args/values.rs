//! The values of arguments.

use std::time::Duration;

use agent_checkpoint::ContextUse;
use chrono::Utc;

use crate::global::{after, span, time_from};

/// An id that a caller makes up. It is told from an option that is misspelled.
pub(super) fn id(text: &str) -> Result<String, String> {
    if text.starts_with('-') {
        return Err(
            "this is no option here, and no ID begins with `-`; write another ID".to_owned(),
        );
    }
    Ok(text.to_owned())
}

pub(super) fn used(text: &str) -> Result<ContextUse, String> {
    let used = text.trim().parse().ok().and_then(ContextUse::new);
    used.ok_or_else(|| "a part of the context is a fraction, such as 0.78 for 78 %".to_owned())
}

/// How long a claim or an approval lasts.
pub(super) fn lasting(text: &str) -> Result<Duration, String> {
    let span = some_span(text)?;
    after(span, Utc::now()).map(|_| span)
}

/// A span that is not zero.
pub(super) fn some_span(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    match span.is_zero() {
        true => Err("it is longer than no time, such as 2s or 15m".to_owned()),
        false => Ok(span),
    }
}

/// The text of a time or a span from now. It becomes a time later, since `--now` may come after it.
pub(super) fn until(text: &str) -> Result<String, String> {
    time_from(text, Utc::now()).map(|_| text.to_owned())
}
