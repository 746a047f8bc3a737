//! What a supervisor asks of a checkpoint whose type is known only at run time.

use chrono::{DateTime, Utc};

use crate::checkpoint::{
    Checkpoint, Handoff, Judged, Notice, Progress, Pulse, Result, ResumePlan, RuleContext,
    Timestamp, judge, read,
};
use crate::json::{Document, Violation};

/// One checkpoint of any format, as a supervisor looks at it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Surveyed {
    /// What the next agent needs.
    pub handoff: Handoff,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// What it says about whether its agent is alive.
    pub pulse: Pulse,
    /// How far it is.
    pub progress: Progress,
    /// The files of which no other active checkpoint should name one.
    pub exclusive_files: Vec<String>,
    /// Whether and how to go on, by the protocol's own rules.
    pub plan: ResumePlan,
    /// What breaks the format's rules.
    pub violations: Vec<Violation>,
}

pub(super) fn survey<C: Checkpoint>(
    document: &Document,
    context: &RuleContext<'_>,
    now: DateTime<Utc>,
) -> Result<Surveyed> {
    let current = read::<C>(document)?;
    let reading = &current.reading;
    let checkpoint = &reading.value;
    let files = checkpoint.exclusive_files().into_iter();
    let Judged {
        handoff,
        plan,
        violations,
    } = judge(&current.document, reading, context);
    let mut pulse = checkpoint.pulse();
    if handoff.status != checkpoint.status() {
        pulse.activity = (&handoff.status).into();
    }
    Ok(Surveyed {
        updated_at: checkpoint.updated_at().cloned(),
        pulse,
        progress: checkpoint.progress(now).counting_unreadable(&handoff, now),
        exclusive_files: files.map(str::to_owned).collect(),
        plan,
        violations,
        handoff,
    })
}

pub(super) fn notice<C: Checkpoint>(
    document: &Document,
    notice: Notice,
    now: DateTime<Utc>,
) -> Option<String> {
    read::<C>(document).ok()?.reading.value.notice(notice, now)
}
