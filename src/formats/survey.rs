//! What a supervisor asks of a checkpoint whose type is known only at run time.

use chrono::{DateTime, Utc};

use crate::checkpoint::{
    Checkpoint, Handoff, Knowledge, Notice, Progress, Pulse, Result, ResumePlan, Timestamp, read,
    violations,
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
    /// What it tells of whether its agent is alive.
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
    knowledge: &Knowledge<'_>,
    now: DateTime<Utc>,
) -> Result<Surveyed> {
    let current = read::<C>(document)?;
    let reading = &current.reading;
    let checkpoint = &reading.value;
    let files = checkpoint.exclusive_files().into_iter();
    Ok(Surveyed {
        handoff: checkpoint.handoff(),
        updated_at: checkpoint.updated_at().cloned(),
        pulse: checkpoint.pulse(),
        progress: checkpoint.progress(now),
        exclusive_files: files.map(str::to_owned).collect(),
        plan: checkpoint.resume_plan(knowledge),
        violations: violations(&current.document, reading, knowledge),
    })
}

pub(super) fn notice<C: Checkpoint>(
    document: &Document,
    notice: Notice,
    now: DateTime<Utc>,
) -> Option<String> {
    read::<C>(document).ok()?.reading.value.notice(notice, now)
}
