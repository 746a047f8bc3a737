//! The verdict of a resume as exit code and messages.

use agent_checkpoint::resume::{ResumeDecision, ResumePlan, ResumeReason};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outcome;

/// The exit code of a verdict.
pub(crate) fn exit(decision: ResumeDecision) -> Exit {
    match decision {
        ResumeDecision::Continue => Exit::Done,
        ResumeDecision::Verify | ResumeDecision::Ask => Exit::Findings,
        _ => Exit::Refused,
    }
}

/// Whether the verdict lets the next agent continue, so that a prompt is useful.
pub(crate) fn goes_on(decision: ResumeDecision) -> bool {
    decision < ResumeDecision::Wait
}

/// Prints warnings and questions on standard error.
pub(crate) fn explain(outcome: &mut Outcome, plan: &ResumePlan) {
    for warning in &plan.warnings {
        outcome.warn(warning);
    }
    for note in &plan.notes {
        outcome.note(note);
    }
    for question in &plan.questions {
        outcome.say("question", question);
    }
    if let Some(agent) = &plan.resume_agent {
        outcome.note(format!(
            "resume the agent {agent} if it is still there: it knows the work"
        ));
    }
    if let Some(worker) = &plan.new_worker {
        let begin = match plan.resume_agent {
            Some(_) => "else begin the worker",
            None => "begin the worker",
        };
        outcome.note(format!(
            "{begin} {} with this in its prompt:\n{}",
            worker.name, worker.block
        ));
    }
}

/// Prints warnings and questions on standard error, or why the task cannot be resumed.
///
/// `restarts` is whether the format has the operation `restart`.
pub(crate) fn verdict(outcome: &mut Outcome, place: &str, plan: &ResumePlan, restarts: bool) {
    // If no agent may go on, one line says so and there is nothing else to read.
    if goes_on(plan.decision) {
        explain(outcome, plan);
    }
    if plan.decision == ResumeDecision::Wait {
        for question in &plan.questions {
            outcome.say("question", question);
        }
    }
    let advice = match plan.decision {
        ResumeDecision::Refuse => instead(&plan.reasons, restarts),
        ResumeDecision::Restart if restarts => RESTART,
        ResumeDecision::Restart => BEGIN_ANEW,
        ResumeDecision::Wait => "then run `ckpt resume` again",
        _ => {
            outcome.exit = outcome.exit.and(exit(plan.decision));
            return;
        }
    };
    let message = match advice {
        "" => format!("{place}: {}", plan.message),
        advice => format!("{place}: {}; {advice}", plan.message),
    };
    outcome.fail(&Failure::exiting(exit(plan.decision), message));
}

/// The advice for a format with the operation `restart`.
const RESTART: &str = "start over with `ckpt restart --because TEXT --session ID`, which archives the checkpoint first";

/// The advice for every other format.
const BEGIN_ANEW: &str =
    "archive the checkpoint with `ckpt archive --as aborted` and start over with `ckpt start`";

/// The advice if a task cannot be resumed; empty if the message already has it.
fn instead(reasons: &[ResumeReason], restarts: bool) -> &'static str {
    let is_held = |reason: &ResumeReason| matches!(reason, ResumeReason::Held { .. });
    let is_of_another =
        |reason: &ResumeReason| matches!(reason, ResumeReason::OfAnotherTask { .. });
    let is_newer = |reason: &ResumeReason| matches!(reason, ResumeReason::NewerSchema { .. });
    let is_poisoned = |reason: &ResumeReason| matches!(reason, ResumeReason::Poisoned { .. });
    // The owner of a complete task does not matter.
    let is_over = |reason: &ResumeReason| {
        matches!(reason, ResumeReason::Complete | ResumeReason::NotResumable)
    };
    if reasons.iter().any(is_of_another) {
        "archive it (`ckpt archive --as complete`, or `--as aborted` where it is not finished) and begin with \
         `ckpt start`"
    } else if reasons.contains(&ResumeReason::NotResumable) {
        match restarts {
            true => RESTART,
            false => BEGIN_ANEW,
        }
    } else if reasons.iter().any(is_over) {
        "start another task instead"
    } else if reasons.iter().any(is_poisoned) && !reasons.iter().any(is_newer) {
        ""
    } else if reasons.iter().any(is_held) {
        "if the claim is yours, name yourself with --agent and --session, or with --fence; else start another task, or, if the owner is known to be dead, take this one over with `ckpt claim --agent A --take-over`"
    } else if reasons.iter().any(is_newer) {
        "update this program, or start another task"
    } else {
        "start another task instead"
    }
}
