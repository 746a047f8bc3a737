//! Completes a format's own plan with the state of the files, violations, the ledger, claims and damage.

use chrono::{DateTime, Utc};

use crate::checkpoint::{
    Claim, Handoff, ResumeDecision, ResumePlan, ResumeReason, UnreadableItem, stamp,
};
use crate::json::{Code, Corrupt, Violation};
use crate::ledger::{
    ApprovalStatus, Attempt, EffectRecord, EffectStatus, LedgerState, ProofStatus, Proofs,
    ProvenItem, Waiting,
};
use crate::liveness::span;
use crate::shown;
use crate::staleness::{FileState, Reason, Staleness, TrackedFile};
use crate::store::EntryId;

/// The most violations and files that a warning lists, so that they do not fill the prompt.
const MOST_LISTED: usize = 20;

/// Adds what the next agent must know about the files and the checkpoint.
pub(super) fn complete(
    plan: &mut ResumePlan,
    staleness: &Staleness,
    violations: &[Violation],
    unreadable: &[UnreadableItem],
    is_partial: bool,
) {
    let paths = |of: fn(&FileState) -> bool| {
        let files = staleness.files().iter().filter(|file| of(&file.state));
        files.map(|file| file.path.clone()).collect::<Vec<_>>()
    };
    plan.files_to_review = paths(|state| !state.is_same());
    plan.files_unchanged = paths(|state| state.is_same() && *state != FileState::Removed);
    warn_of_files(plan, staleness);
    warn_of_reasons(plan, staleness);
    match staleness {
        Staleness::Fresh(_) => {}
        Staleness::Indeterminate(_) => {
            plan.raise(ResumeDecision::Verify);
            plan.because(ResumeReason::Indeterminate {
                files: plan.files_to_review.clone(),
            });
        }
        Staleness::Stale(_) => {
            plan.raise(ResumeDecision::Verify);
            plan.because(ResumeReason::Stale {
                files: paths(FileState::is_changed),
            });
        }
    }
    warn_of_violations(plan, violations, unreadable, is_partial);
}

/// For a document that cannot be read: another state replaces it, or the work restarts from scratch.
pub(super) fn heed_damage(plan: &mut ResumePlan, damage: &Corrupt, with: Option<&EntryId>) {
    plan.because(ResumeReason::Corrupt);
    match with {
        Some(entry) => {
            plan.message = format!(
                "The checkpoint is corrupt ({damage}); recover it with its earlier state {entry}, then: {}",
                plan.message
            );
            plan.warn(format!(
                "The checkpoint cannot be read, and this is an earlier state of it ({entry}). Work done after that is not \
                 in it: compare it with the files before proceeding."
            ));
        }
        None => plan.restart(format!(
            "The checkpoint is corrupt ({damage}), and no earlier state of it can be read: start over"
        )),
    }
}

/// Adds the effects in the task's ledger.
pub(super) fn heed_ledger(plan: &mut ResumePlan, ledger: &Result<LedgerState, String>) {
    match ledger {
        Ok(ledger) => heed_effects(plan, &ledger.effects),
        Err(why) => {
            plan.ask(format!(
                "It is unknown which effects of the task took place: {}. Can you find out another way?",
                shown::line(why)
            ));
            plan.because(ResumeReason::EffectsUnknown);
        }
    }
}

/// Keeps effects outside of the checkpoint from being repeated blindly.
fn heed_effects(plan: &mut ResumePlan, effects: &[EffectRecord]) {
    let of =
        |status: fn(&EffectStatus) -> bool| effects.iter().filter(move |it| status(&it.status));
    for doubt in of(|status| *status == EffectStatus::InDoubt) {
        let how = doubt.how_to_check.as_deref();
        let how = how.map(|how| format!(" To find out: {}", shown::line(how)));
        plan.ask(format!(
            "{} was begun by {} at {}, and it is not recorded whether it took place: did it?{}",
            shown::line(&doubt.id),
            shown::line(&doubt.by),
            stamp(doubt.since),
            how.unwrap_or_default()
        ));
    }
    let ids = |status| of(status).map(|it| it.id.clone()).collect::<Vec<_>>();
    let doubts = ids(|status| *status == EffectStatus::InDoubt);
    if !doubts.is_empty() {
        plan.because(ResumeReason::EffectsInDoubt { effects: doubts });
    }
    let mut list = |said: &str, ids: Vec<String>| {
        if !ids.is_empty() {
            // An agent is most likely to repeat the last ones.
            let listed = ids.iter().skip(ids.len().saturating_sub(MOST_LISTED));
            let listed: Vec<String> = listed.map(|id| shown::line(id)).collect();
            let more = match ids.len().saturating_sub(MOST_LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            plan.warnings
                .push(format!("{said}: {}{more}.", listed.join(", ")));
        }
    };
    list(
        "Another agent is doing this, or was moments ago",
        ids(|status| *status == EffectStatus::InProgress),
    );
    list(
        "Already took place, so do not do it again",
        ids(|status| matches!(status, EffectStatus::Done { .. })),
    );
}

/// Warns of finished work whose proof failed or is outdated, so that it is not simply believed.
pub(super) fn heed_proofs(plan: &mut ResumePlan, proofs: &Proofs) {
    let of = |is: fn(&ProofStatus) -> bool| {
        let items = proofs.with_proof().filter(|item| item.is_finished);
        items.filter(|item| is(&item.status)).collect::<Vec<_>>()
    };
    let failed = of(|status| matches!(status, ProofStatus::Failed { .. }));
    let outdated = of(|status| matches!(status, ProofStatus::Outdated { .. }));
    for (sentence, advice, items) in [
        (
            "Recorded as finished, but its proof failed",
            "Before proceeding, fix it, or check that it is done although the proof failed.",
            &failed,
        ),
        (
            "Recorded as finished, but its files changed since it was proven",
            "Prove it again before proceeding.",
            &outdated,
        ),
    ] {
        if items.is_empty() {
            continue;
        }
        let line = |item: &&ProvenItem| format!("- {}: {item}", shown::line(&item.item));
        let listed: Vec<String> = items.iter().take(MOST_LISTED).map(line).collect();
        let more = match items.len().saturating_sub(MOST_LISTED) {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        plan.warn(format!(
            "{sentence}:\n{}{more}\n{advice}",
            listed.join("\n")
        ));
    }
    if !failed.is_empty() || !outdated.is_empty() {
        let texts = |items: &[&ProvenItem]| items.iter().map(|it| it.item.clone()).collect();
        plan.because(ResumeReason::Proofs {
            failed: texts(&failed),
            outdated: texts(&outdated),
        });
    }
}

/// Waits for pending approvals, and tells the agent what was not approved.
fn heed_approvals(plan: &mut ResumePlan, ledger: &LedgerState, now: DateTime<Utc>) {
    // A complete task needs no approval.
    if plan.reasons.contains(&ResumeReason::Complete) {
        return;
    }
    let mut pending = Vec::new();
    // An agent is most likely to do the last ones.
    let skipped = ledger.approvals.len().saturating_sub(MOST_LISTED);
    for (at, approval) in ledger.approvals.iter().enumerate() {
        let by = shown::line(&approval.by);
        let until = stamp(approval.expires);
        let in_brackets = |text: &Option<String>| {
            let text = text.as_deref();
            let text = text.map(|text| format!(" ({})", shown::quoted(text)));
            text.unwrap_or_default()
        };
        let said = match approval.status {
            ApprovalStatus::Pending if now < approval.expires => {
                pending.push(approval.id.clone());
                format!(
                    "{by} asks, until {until}{}: may this be done, once",
                    in_brackets(&approval.reason)
                )
            }
            ApprovalStatus::Approved if now < approval.expires => {
                format!("Approved by {by}, once and until {until}, and not consumed yet")
            }
            ApprovalStatus::Denied => format!(
                "Denied by {by}{}, so do not do it",
                in_brackets(&approval.because)
            ),
            // The result of the effect is listed with the other effects.
            ApprovalStatus::Consumed if approval.effect.is_some() => continue,
            ApprovalStatus::Consumed => format!(
                "Approved, and consumed by {by} at {}, so it may have been done",
                stamp(approval.since)
            ),
            ApprovalStatus::Pending | ApprovalStatus::Approved | ApprovalStatus::Expired => {
                format!("Expired at {until}, so ask again before you do it")
            }
        };
        // The action comes last, so that nothing in it can look like the end of the sentence.
        let id = shown::quoted(&approval.id);
        let said = format!("{said}: {id}: {}", shown::line(&approval.action));
        if approval.is_pending(now) {
            plan.ask(said);
        } else if at >= skipped {
            plan.warnings.push(said);
        }
    }
    if !pending.is_empty() {
        let ids = shown::quoted_all(&pending);
        plan.wait(format!("A person must first decide on {ids}"));
        plan.because(ResumeReason::AwaitsApproval { approvals: pending });
    }
}

/// Lets a task wait that waits for a person or for a time.
pub(crate) fn heed_waiting(
    plan: &mut ResumePlan,
    ledger: &LedgerState,
    handoff: &Handoff,
    now: DateTime<Utc>,
) {
    heed_approvals(plan, ledger, now);
    let waiting = ledger
        .waiting(handoff, now)
        .filter(|_| plan.decision <= ResumeDecision::Wait);
    if let (Some(Waiting::Time { until }), Some(said)) = (waiting, &ledger.not_before) {
        plan.wait(format!(
            "Not before {} ({} from now): {} by {} at {}",
            stamp(until),
            span(until - now),
            shown::line(&said.report),
            shown::line(&said.by),
            stamp(said.since),
        ));
        plan.because(ResumeReason::NotBefore {
            until: stamp(until),
        });
    }
}

/// The most errors of attempts that are listed: the newest.
const MOST_ERRORS: usize = 5;

/// Refuses a task at which attempt after attempt failed; a person has to act.
pub(super) fn heed_attempts(plan: &mut ResumePlan, failed: &[Attempt], most: usize) {
    if failed.len() < most || plan.decision >= ResumeDecision::Restart {
        return;
    }
    let mut errors: Vec<String> = Vec::new();
    for attempt in failed.iter().rev() {
        if errors.len() < MOST_ERRORS && !errors.contains(&attempt.error) {
            errors.push(attempt.error.clone());
        }
    }
    errors.reverse();
    let listed: Vec<String> = errors.iter().map(|error| shown::line(error)).collect();
    plan.refuse(format!(
        "Poisoned: {} attempts in a row ended without progress ({}). Fix the cause, then reset the count with `ckpt \
         claim --reset-attempts` or `Ledger::reset_attempts`",
        failed.len(),
        listed.join("; ")
    ));
    plan.because(ResumeReason::Poisoned {
        attempts: failed.len(),
        errors,
    });
}

/// Refuses a task that another owner has claimed.
pub(super) fn heed_holder(plan: &mut ResumePlan, held: Option<&Claim>) {
    let Some(claim) = held else {
        return;
    };
    let until = stamp(claim.expires);
    // A complete task is not resumed, whoever holds it.
    if plan.decision < ResumeDecision::Refuse {
        plan.refuse(format!(
            "{} has claimed the task until {until}; no other agent may resume it before that",
            shown::line(&claim.owner)
        ));
    }
    plan.because(ResumeReason::Held {
        owner: claim.owner.clone(),
        until,
    });
}

/// A later version of the format, which was read only in part and must not be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newer {
    /// The version of the checkpoint, if it can be read.
    pub(crate) found: Option<u64>,
    /// The latest known version.
    pub(crate) known: u64,
}

/// Refuses a checkpoint of a later version, since an agent could not save its work.
pub(super) fn heed_version(plan: &mut ResumePlan, newer: Option<Newer>) {
    let Some(Newer { found, known }) = newer else {
        return;
    };
    plan.refuse(match found {
        Some(found) => format!(
            "The checkpoint has schema version {found}, and this program knows up to {known}: continue with a newer \
             program"
        ),
        None => format!(
            "The schema version of the checkpoint cannot be read, so the checkpoint could not be saved again (this \
             program knows up to {known}): correct the version first"
        ),
    });
    plan.because(ResumeReason::NewerSchema { found, known });
}

fn warn_of_files(plan: &mut ResumePlan, staleness: &Staleness) {
    let all = staleness.files().len();
    for (sentence, advice, files) in worth_a_warning(staleness) {
        let sentence = match sentence {
            MISSING => missing(files.len(), all),
            _ => sentence.to_owned(),
        };
        let more = match files.len().saturating_sub(MOST_LISTED) {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        let files: Vec<String> = files.into_iter().take(MOST_LISTED).map(line_of).collect();
        let files = files.join("\n");
        if advice.is_empty() {
            plan.note(format!("{sentence}:\n{files}{more}"));
        } else {
            plan.warn(format!("{sentence}:\n{files}{more}\n{advice}"));
        }
    }
}

/// The files that a warning names, which a prompt need not list again.
#[cfg(feature = "template")]
pub(super) fn named_in_warnings(staleness: &Staleness) -> std::collections::HashSet<&str> {
    // Notes are not part of a prompt.
    let warnings = worth_a_warning(staleness).into_iter();
    let warnings = warnings.filter(|(_, advice, _)| !advice.is_empty());
    let named = warnings.flat_map(|(.., files)| files.into_iter().take(MOST_LISTED));
    named.map(|file| file.path.as_str()).collect()
}

/// The sentence about missing files, after their number.
const MISSING: &str = "files that the checkpoint names are missing";

/// The sentence with the numbers: one missing file need not mean that the project is elsewhere.
fn missing(files: usize, of: usize) -> String {
    match of {
        1 => "The only file that the checkpoint names is missing".to_owned(),
        _ => format!("{files} of {of} {MISSING}"),
    }
}

/// The warnings about files: a sentence, what to do, and the files, of which there is at least one.
fn worth_a_warning(staleness: &Staleness) -> Vec<(&'static str, &'static str, Vec<&TrackedFile>)> {
    let mut warnings = Vec::new();
    let mut warn = |sentence, advice, of: fn(&FileState) -> bool| {
        let files = staleness.files().iter();
        let files: Vec<&TrackedFile> = files.filter(|file| of(&file.state)).collect();
        if !files.is_empty() {
            warnings.push((sentence, advice, files));
        }
    };
    warn(
        "Checkpoint may be stale — files modified since checkpoint",
        "Read these files and reconcile them with the checkpoint before proceeding.",
        |state| {
            matches!(
                state,
                FileState::Modified { .. } | FileState::Replaced { .. } | FileState::Appeared
            )
        },
    );
    // If all files are missing, one sentence states that, and each is listed for review.
    if !staleness.reasons().contains(&Reason::NothingThere) {
        warn(
            MISSING,
            "Find out whether that work still has to be done before proceeding.",
            |state| matches!(state, FileState::Missing),
        );
    }
    warn(
        "Files whose state is unknown",
        "Read these files to verify the checkpoint before proceeding.",
        |state| {
            matches!(
                state,
                FileState::Indeterminate { .. } | FileState::Unreadable { .. }
            )
        },
    );
    warn("Files that the recorded work had removed", "", |state| {
        *state == FileState::Removed
    });
    warnings
}

/// One file on one line, whatever its name contains.
fn line_of(file: &TrackedFile) -> String {
    let state = shown::line(&file.state.to_string());
    format!("- {} ({state})", shown::path(&file.path))
}

fn warn_of_reasons(plan: &mut ResumePlan, staleness: &Staleness) {
    // A partial reading shows in the violations.
    let reasons = || {
        let reasons = staleness.reasons().iter();
        reasons.filter(|reason| **reason != Reason::ReadInPart)
    };
    if let Staleness::Fresh(_) = staleness {
        for reason in reasons() {
            plan.note(format!(
                "The files are unchanged, but the project is not: {}",
                shown::line(&reason.to_string())
            ));
        }
        return;
    }
    let mut elsewhere = Vec::new();
    let files = || staleness.files().iter();
    for reason in reasons() {
        let text = shown::line(&reason.to_string());
        match reason {
            Reason::RolledBack { .. } => plan.warn(format!(
                "An older state replaced the newest state of the checkpoint: {text}.\n\
                 Before proceeding, find out what was done since that state: those steps may be planned again below."
            )),
            Reason::NothingThere => {
                let gone = files().filter(|file| file.state != FileState::Removed).count();
                let them = match gone {
                    1 => "it in the folder that its path is relative to",
                    _ => "them in the folder that their paths are relative to",
                };
                plan.warn(format!(
                    "{}: is this the project's folder?\n\
                     Look for {them}, or find out whether that work still has to be done before proceeding.",
                    missing(gone, files().count())
                ));
            }
            _ => elsewhere.push(format!("- {text}")),
        }
    }
    if !elsewhere.is_empty() {
        plan.warn(format!(
            "The project changed since the checkpoint was saved:\n{}\n\
             Find out whether the work is there before proceeding.",
            elsewhere.join("\n")
        ));
    }
}

/// Warns of violations; those of unreadable items were listed by name.
fn warn_of_violations(
    plan: &mut ResumePlan,
    violations: &[Violation],
    unreadable: &[UnreadableItem],
    is_partial: bool,
) {
    let is_told = |violation: &Violation| {
        let mut items = unreadable.iter();
        items.any(|item| item.pointer == violation.pointer)
    };
    if violations.iter().any(is_told) {
        plan.because(ResumeReason::Violations);
    }
    let violations: Vec<&Violation> = violations.iter().filter(|it| !is_told(it)).collect();
    // A text that is too long hides nothing.
    let grave: Vec<String> = violations
        .iter()
        .filter(|violation| {
            violation.code != Code::TOO_LONG && violation.code != Code::BYTE_ORDER_MARK
        })
        .map(|violation| format!("- {}", shown::line(&violation.to_string())))
        .collect();
    if grave.is_empty() {
        return;
    }
    // Tells what the next agent cannot see below. A number that was read as an id is shown.
    let advice = if is_partial {
        "\nA value that could not be read is missing below; look it up in the checkpoint itself."
    } else {
        ""
    };
    let more = match grave.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    let listed = grave.len().min(MOST_LISTED);
    plan.because(ResumeReason::Violations);
    plan.warn(format!(
        "The checkpoint breaks rules of its format:\n{}{more}{advice}",
        grave[..listed].join("\n")
    ));
}
