//! Whether and how to go on.

use serde::Serialize;

use crate::checkpoint::{Handoff, Status};
use crate::json::{Code, Violation};
use crate::staleness::{FileState, Staleness, TrackedFile, time_text};

/// Whether and how to go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct ResumePlan {
    /// What to do.
    pub decision: ResumeDecision,
    /// Where to begin: the work in progress, else the first that is pending.
    pub start_at: Option<String>,
    /// The agent that should go on, where the format says so.
    pub resume_agent: Option<String>,
    /// The decision in a sentence, for a person.
    pub message: String,
    /// What the next agent must know before it begins.
    pub warnings: Vec<String>,
    /// What somebody must answer before the next agent begins.
    pub questions: Vec<String>,
    /// The files to read first, to see that the checkpoint is right.
    pub files_to_review: Vec<String>,
}

/// What to do with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResumeDecision {
    /// Go on.
    Continue,
    /// Go on after the files were compared with the checkpoint.
    Verify,
    /// Go on after the questions are answered.
    Ask,
    /// Begin anew: what is there is not worth going on from.
    Restart,
    /// Do not go on.
    Refuse,
}

impl ResumeDecision {
    /// The decision in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ResumeDecision::Continue => "continue",
            ResumeDecision::Verify => "verify",
            ResumeDecision::Ask => "ask",
            ResumeDecision::Restart => "restart",
            ResumeDecision::Refuse => "refuse",
        }
    }
}

/// The plan that follows from a hand-off; the gravest reason decides.
pub(super) fn plan(
    handoff: &Handoff,
    staleness: &Staleness,
    violations: &[Violation],
) -> ResumePlan {
    let mut warnings = warn_of_files(staleness);
    warnings.extend(warn_of_violations(violations));
    let mut questions = Vec::new();
    let mut decision = if warnings.is_empty() {
        ResumeDecision::Continue
    } else {
        ResumeDecision::Verify
    };
    for blocker in &handoff.blockers {
        questions.push(format!("Is this still in the way: {blocker}"));
        decision = ResumeDecision::Ask;
    }
    if handoff.status == Status::Failed && questions.is_empty() {
        questions.push("The agent before failed and left no reason. Is it mended?".to_owned());
        decision = ResumeDecision::Ask;
    }
    if handoff.status == Status::Complete {
        decision = ResumeDecision::Refuse;
    }
    let files_to_review = staleness
        .files()
        .iter()
        .map(|file| file.path.clone())
        .collect();
    let maker = handoff.agent.as_deref().unwrap_or("another agent");
    let message = match decision {
        ResumeDecision::Refuse => "The task is complete; there is nothing to resume".to_owned(),
        _ => format!("Resuming from checkpoint (created by {maker})"),
    };
    ResumePlan {
        decision,
        start_at: handoff.start_at().map(str::to_owned),
        resume_agent: None,
        message,
        warnings,
        questions,
        files_to_review,
    }
}

fn warn_of_files(staleness: &Staleness) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |sentence: &str, advice: &str, of: fn(&FileState) -> bool| {
        let files: Vec<String> = staleness
            .files()
            .iter()
            .filter(|file| of(&file.state))
            .map(describe)
            .collect();
        if !files.is_empty() {
            warnings.push(format!("{sentence}:\n{}\n{advice}", files.join("\n")));
        }
    };
    warn(
        "Checkpoint may be stale — files modified since checkpoint",
        "Read these files and reconcile them with the checkpoint before proceeding.",
        |state| matches!(state, FileState::Modified { .. }),
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
    warnings
}

fn describe(file: &TrackedFile) -> String {
    let path = &file.path;
    match &file.state {
        FileState::Modified { modified } => match time_text(*modified) {
            Some(time) => format!("- {path} (modified {time})"),
            None => format!("- {path} (modified)"),
        },
        FileState::Unreadable { reason } | FileState::Indeterminate { reason } => {
            format!("- {path} ({reason})")
        }
        state => format!("- {path} ({})", state.as_str()),
    }
}

fn warn_of_violations(violations: &[Violation]) -> Option<String> {
    // A text over its length tells no less than one within it.
    let grave: Vec<String> = violations
        .iter()
        .filter(|violation| {
            violation.code != Code::TOO_LONG && violation.code != Code::BYTE_ORDER_MARK
        })
        .map(|violation| format!("- {violation}"))
        .collect();
    (!grave.is_empty()).then(|| {
        format!(
            "The checkpoint breaks rules of its format:\n{}\nA value that could not be read is missing below.",
            grave.join("\n")
        )
    })
}
