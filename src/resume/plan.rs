//! What the files and the violations add to a format's own plan.

use crate::checkpoint::ResumePlan;
use crate::json::{Code, Violation};
use crate::staleness::{FileState, Reason, Staleness};

/// The most violations and files that a warning lists: a prompt has better uses for its room.
const MOST_LISTED: usize = 20;

/// Adds what the next agent must know of the files and of the checkpoint.
pub(super) fn complete(plan: &mut ResumePlan, staleness: &Staleness, violations: &[Violation]) {
    plan.files_to_review = staleness
        .files()
        .iter()
        .map(|file| file.path.clone())
        .collect();
    warn_of_files(plan, staleness);
    warn_of_reasons(plan, staleness);
    warn_of_violations(plan, violations);
}

fn warn_of_files(plan: &mut ResumePlan, staleness: &Staleness) {
    let mut warn = |sentence: &str, advice: &str, of: fn(&FileState) -> bool| {
        let files: Vec<String> = staleness
            .files()
            .iter()
            .filter(|file| of(&file.state))
            .map(|file| format!("- {} ({})", file.path, file.state))
            .collect();
        if !files.is_empty() {
            let more = match files.len().saturating_sub(MOST_LISTED) {
                0 => String::new(),
                more => format!("\n- and {more} more"),
            };
            let files = files[..files.len().min(MOST_LISTED)].join("\n");
            plan.warn(format!("{sentence}:\n{files}{more}\n{advice}"));
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
    warn(
        "Files that the checkpoint names are missing",
        "Find out whether that work still has to be done before proceeding.",
        |state| matches!(state, FileState::Missing),
    );
    warn(
        "Files whose state cannot be told",
        "Read these files to verify the checkpoint before proceeding.",
        |state| {
            matches!(
                state,
                FileState::Indeterminate { .. } | FileState::Unreadable { .. }
            )
        },
    );
}

fn warn_of_reasons(plan: &mut ResumePlan, staleness: &Staleness) {
    // What was read in part is told with the violations.
    let reasons: Vec<String> = staleness
        .reasons()
        .iter()
        .filter(|reason| **reason != Reason::ReadInPart)
        .map(|reason| format!("- {reason}"))
        .collect();
    if !reasons.is_empty() {
        plan.warn(format!(
            "The project is not where the checkpoint was saved:\n{}\n\
             Find out whether the work is there before proceeding.",
            reasons.join("\n")
        ));
    }
}

fn warn_of_violations(plan: &mut ResumePlan, violations: &[Violation]) {
    // A text over its length tells no less than one within it.
    let grave: Vec<String> = violations
        .iter()
        .filter(|violation| {
            violation.code != Code::TOO_LONG && violation.code != Code::BYTE_ORDER_MARK
        })
        .map(|violation| format!("- {violation}"))
        .collect();
    if grave.is_empty() {
        return;
    }
    // What the next agent cannot see below, because it could not be read.
    let left_out = [
        Code::WRONG_TYPE,
        Code::LONE_SURROGATE,
        Code::UNREADABLE,
        Code::TOO_MANY,
    ];
    let advice = if violations
        .iter()
        .any(|violation| left_out.contains(&violation.code))
    {
        "\nA value that could not be read is missing below; look it up in the checkpoint itself."
    } else {
        ""
    };
    let more = match grave.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    let listed = grave.len().min(MOST_LISTED);
    plan.warn(format!(
        "The checkpoint breaks rules of its format:\n{}{more}{advice}",
        grave[..listed].join("\n")
    ));
}
