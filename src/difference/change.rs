//! One change, as data and in words.

use std::fmt;

use serde::Serialize;

use super::words::{Json, Words, or_none};
use crate::checkpoint::{Status, Timestamp};

/// One change. Its text is one line, without the line end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The task has another name.
    Task {
        /// The name before.
        from: Option<String>,
        /// The name now.
        to: Option<String>,
    },
    /// Another description of what is to be done.
    Description {
        /// The description before.
        from: Option<String>,
        /// The description now.
        to: Option<String>,
    },
    /// Another state of the task.
    Status {
        /// The state before.
        from: Status,
        /// The state now.
        to: Status,
        /// The words that the format has for both, where they are others.
        #[serde(skip_serializing_if = "Option::is_none")]
        written: Option<(String, String)>,
    },
    /// Another phase or stage.
    Phase {
        /// The phase before.
        from: Option<String>,
        /// The phase now.
        to: Option<String>,
    },
    /// Another agent.
    Agent {
        /// The agent before.
        from: Option<String>,
        /// The agent now.
        to: Option<String>,
    },
    /// An agent that now counts among those who worked on the task before.
    AgentLeft {
        /// The agent.
        agent: String,
    },
    /// An agent that no longer counts among those who worked on the task before.
    AgentForgotten {
        /// The agent.
        agent: String,
    },
    /// Another time of the last change.
    Stamp {
        /// The time before.
        from: Option<Timestamp>,
        /// The time now.
        to: Option<Timestamp>,
    },
    /// A step is new in the plan.
    StepAdded {
        /// The step.
        step: String,
    },
    /// A step is being worked on.
    StepBegun {
        /// The step.
        step: String,
        /// When it was begun.
        at: Option<Timestamp>,
        /// How far it is.
        note: Option<String>,
    },
    /// A step in progress has another note on how far it is.
    StepNoted {
        /// The step.
        step: String,
        /// The note before.
        from: Option<String>,
        /// The note now.
        to: Option<String>,
    },
    /// A step is finished.
    StepFinished {
        /// The step.
        step: String,
        /// When it was begun, if it was in progress before.
        begun: Option<Timestamp>,
        /// When it was finished.
        at: Option<Timestamp>,
    },
    /// A step that was finished or in progress is so no more and is left to do.
    StepReturned {
        /// The step.
        step: String,
    },
    /// A finished step is in progress again.
    StepReopened {
        /// The step.
        step: String,
    },
    /// A step is in no list any more, at least not in these words: many agents report a finished step in
    /// others than they planned it in.
    StepDropped {
        /// The step.
        step: String,
        /// Where it was.
        was: StepState,
    },
    /// A decision was made.
    DecisionMade {
        /// What was decided.
        decision: String,
        /// Why.
        rationale: Option<String>,
        /// When.
        at: Option<Timestamp>,
    },
    /// A decision is gone.
    DecisionWithdrawn {
        /// What had been decided.
        decision: String,
    },
    /// Something keeps the task from going on.
    BlockerRaised {
        /// What it is.
        blocker: String,
    },
    /// Something keeps the task from going on no more.
    BlockerCleared {
        /// What it was.
        blocker: String,
    },
    /// A file is named as made for the first time.
    FileCreated {
        /// Its path.
        file: String,
    },
    /// A file is named as changed for the first time.
    FileModified {
        /// Its path.
        file: String,
    },
    /// A file is named for the first time, and not whether it was made or changed.
    FileNamed {
        /// Its path.
        file: String,
    },
    /// A file is named no more.
    FileForgotten {
        /// Its path.
        file: String,
    },
    /// The criteria of success stand elsewhere.
    Contract {
        /// Where they stood.
        from: Option<String>,
        /// Where they stand.
        to: Option<String>,
    },
    /// Something that shows success has another result.
    Verification {
        /// What is done to show it.
        activity: String,
        /// The result before.
        from: Option<String>,
        /// The result now.
        to: Option<String>,
    },
    /// The next agent is told something more.
    InstructionGiven {
        /// What.
        instruction: String,
    },
    /// The next agent is no longer told something.
    InstructionWithdrawn {
        /// What.
        instruction: String,
    },
    /// A value that the others do not tell.
    Value {
        /// Where it is in the later file; where it was in the earlier one if it is gone.
        pointer: String,
        /// Its JSON text before, as it stood in the file; none if it is new.
        before: Option<String>,
        /// Its JSON text now, as it stands in the file; none if it is gone.
        after: Option<String>,
    },
}

/// In which list a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepState {
    /// In the plan.
    Planned,
    /// Being worked on.
    InProgress,
    /// Finished.
    Finished,
}

impl Change {
    /// The texts that it tells, each whole.
    pub(super) fn texts(&self) -> Vec<&str> {
        let optional: [Option<&str>; 3] = match self {
            Change::Task { from, to }
            | Change::Description { from, to }
            | Change::Phase { from, to }
            | Change::Agent { from, to }
            | Change::Contract { from, to } => [from.as_deref(), to.as_deref(), None],
            Change::Status { from, to, .. } => [Some(from.as_str()), Some(to.as_str()), None],
            Change::Stamp { from, to } => [text(from), text(to), None],
            Change::AgentLeft { agent } | Change::AgentForgotten { agent } => {
                [Some(agent), None, None]
            }
            Change::StepAdded { step }
            | Change::StepReturned { step }
            | Change::StepReopened { step }
            | Change::StepDropped { step, .. } => [Some(step), None, None],
            Change::StepBegun { step, at, note } => [Some(step), text(at), note.as_deref()],
            // The step itself did not change.
            Change::StepNoted { from, to, .. } => [from.as_deref(), to.as_deref(), None],
            Change::StepFinished { step, begun, at } => [Some(step), text(begun), text(at)],
            Change::DecisionMade {
                decision,
                rationale,
                at,
            } => [Some(decision), rationale.as_deref(), text(at)],
            Change::DecisionWithdrawn { decision } => [Some(decision), None, None],
            Change::BlockerRaised { blocker } | Change::BlockerCleared { blocker } => {
                [Some(blocker), None, None]
            }
            Change::FileCreated { file }
            | Change::FileModified { file }
            | Change::FileNamed { file }
            | Change::FileForgotten { file } => [Some(file), None, None],
            Change::Verification { activity, from, to } => {
                [Some(activity), from.as_deref(), to.as_deref()]
            }
            Change::InstructionGiven { instruction }
            | Change::InstructionWithdrawn { instruction } => [Some(instruction), None, None],
            Change::Value { .. } => [None; 3],
        };
        optional.into_iter().flatten().collect()
    }
}

fn text(stamp: &Option<Timestamp>) -> Option<&str> {
    stamp.as_ref().map(Timestamp::text)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from_to =
            |f: &mut fmt::Formatter<'_>, what: &str, from: Option<&str>, to: Option<&str>| {
                write!(f, "{what}: {} → {}", or_none(from), or_none(to))
            };
        let one = |f: &mut fmt::Formatter<'_>, what: &str, text: &str| {
            write!(f, "{what}: {}", Words(text))
        };
        match self {
            Change::Task { from, to } => from_to(f, "task", from.as_deref(), to.as_deref()),
            Change::Description { from, to } => {
                from_to(f, "description", from.as_deref(), to.as_deref())
            }
            Change::Status { from, to, .. } => {
                from_to(f, "status", Some(from.as_str()), Some(to.as_str()))
            }
            Change::Phase { from, to } => from_to(f, "phase", from.as_deref(), to.as_deref()),
            Change::Agent { from, to } => from_to(f, "agent", from.as_deref(), to.as_deref()),
            Change::AgentLeft { agent } => one(f, "worked on it before", agent),
            Change::AgentForgotten { agent } => {
                one(f, "no longer named as who worked on it before", agent)
            }
            Change::Stamp { from, to } => from_to(f, "last changed", text(from), text(to)),
            Change::StepAdded { step } => one(f, "added to the plan", step),
            Change::StepBegun { step, at, note } => {
                one(f, "begun", step)?;
                in_brackets(f, &[("at", text(at)), ("so far:", note.as_deref())])
            }
            Change::StepNoted { step, from, to } => {
                let what = format!("note on {}", Words(step));
                from_to(f, &what, from.as_deref(), to.as_deref())
            }
            Change::StepFinished { step, begun, at } => {
                one(f, "finished", step)?;
                in_brackets(f, &[("begun", text(begun)), ("at", text(at))])
            }
            Change::StepReturned { step } => one(f, "back in the plan", step),
            Change::StepReopened { step } => one(f, "in progress again", step),
            Change::StepDropped { step, was } => {
                let what = match was {
                    StepState::Planned => "no longer planned",
                    StepState::InProgress => "no longer in progress",
                    StepState::Finished => "no longer listed as finished",
                };
                one(f, what, step)
            }
            Change::DecisionMade {
                decision,
                rationale,
                at,
            } => {
                one(f, "decided", decision)?;
                in_brackets(f, &[("because", rationale.as_deref()), ("at", text(at))])
            }
            Change::DecisionWithdrawn { decision } => one(f, "decision withdrawn", decision),
            Change::BlockerRaised { blocker } => one(f, "blocker", blocker),
            Change::BlockerCleared { blocker } => one(f, "blocker cleared", blocker),
            Change::FileCreated { file } => one(f, "file created", file),
            Change::FileModified { file } => one(f, "file modified", file),
            Change::FileNamed { file } => one(f, "file named", file),
            Change::FileForgotten { file } => one(f, "file no longer named", file),
            Change::Contract { from, to } => {
                from_to(f, "criteria of success", from.as_deref(), to.as_deref())
            }
            Change::Verification { activity, from, to } => {
                let what = format!("verification {}", Words(activity));
                from_to(f, &what, from.as_deref(), to.as_deref())
            }
            Change::InstructionGiven { instruction } => one(f, "instruction", instruction),
            Change::InstructionWithdrawn { instruction } => {
                one(f, "instruction withdrawn", instruction)
            }
            Change::Value {
                pointer,
                before,
                after,
            } => {
                write!(f, "{}: ", Words(pointer))?;
                match (before, after) {
                    (Some(before), Some(after)) => write!(f, "{} → {}", Json(before), Json(after)),
                    (None, Some(after)) => write!(f, "added {}", Json(after)),
                    (Some(before), None) => write!(f, "removed {}", Json(before)),
                    (None, None) => f.write_str("nothing"),
                }
            }
        }
    }
}

/// What is known besides, in one pair of brackets.
fn in_brackets(f: &mut fmt::Formatter<'_>, facts: &[(&str, Option<&str>)]) -> fmt::Result {
    let known: Vec<String> = facts
        .iter()
        .filter_map(|(what, text)| Some(format!("{what} {}", Words((*text)?))))
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    write!(f, " ({})", known.join(", "))
}
