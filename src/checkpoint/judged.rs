//! A checkpoint judged by its whole document, including the parts that could not be read.

use super::{Checkpoint, Handoff, Progress, ResumePlan, ResumeReason, RuleContext, Status};
use super::{FUTURE_TOLERANCE, unreadable_items, violations};
use crate::checkpoint::ResumeDecision;
use crate::json::{Code, Document, Reading, Violation};

/// The judgment of a checkpoint that all callers share.
pub(crate) struct Judged {
    pub(crate) handoff: Handoff,
    pub(crate) plan: ResumePlan,
    pub(crate) violations: Vec<Violation>,
    /// How far the task is; the times are `None` without a present time.
    pub(crate) progress: Progress,
    /// Whether its elapsed time keeps growing; `None` if that cannot be decided yet.
    pub(crate) goes_on: Option<bool>,
}

/// Judges what was read from a document. `resume`, `status` and `archive` all use it, so that they agree.
pub(crate) fn judge<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
    context: &RuleContext<'_>,
) -> Judged {
    let violations = violations(document, reading, context);
    let unreadable = unreadable_items(document, reading);
    let mut plan = reading
        .value
        .resume_plan(&context.with_unreadable(&unreadable));
    let mut handoff = reading.value.handoff();
    let now = context.now.unwrap_or_default();
    let progress = reading.value.progress(&handoff, now);
    let later = reading.value.progress(&handoff, now + FUTURE_TOLERANCE);
    let goes_on = match (progress.elapsed, later.elapsed) {
        (now, later) if now == later => Some(false),
        (Some(now), Some(later)) if now + FUTURE_TOLERANCE == later => Some(true),
        _ => None,
    };
    let is_complete = handoff.status == Status::Complete;
    handoff.count_in(unreadable, C::STATUS_IS_DERIVED);
    handoff.name_the_unnamed();
    let is_missing = |violation: &Violation| violation.code == Code::MISSING;
    let unsure =
        C::STATUS_IS_DERIVED && (reading.is_partial() || violations.iter().any(is_missing));
    if is_complete && (unsure || handoff.may_be_open()) {
        if plan.decision == ResumeDecision::Refuse {
            plan = ResumePlan::of(&Handoff {
                status: Status::InProgress,
                ..handoff.clone()
            });
        }
        plan.ask("Parts of the checkpoint could not be read. Is the task complete?");
        plan.because(ResumeReason::UnknownStatus);
    }
    plan.heed_unreadable(&handoff);
    plan.name_what_is_left(&handoff);
    let left = handoff.what_is_left(C::WORK_HAS_IDS);
    plan.heed_done_and_planned(&handoff, &left, C::WORK_HAS_IDS);
    plan.heed_step_in_flight(&left);
    let mut progress = progress.counting_unreadable(&handoff, now);
    if context.now.is_none() {
        (progress.elapsed, progress.rest) = (None, None);
    }
    Judged {
        handoff,
        plan,
        violations,
        progress,
        goes_on,
    }
}
