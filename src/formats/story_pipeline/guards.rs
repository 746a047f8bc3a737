//! What follows for a story: the transitions of the protocol, each with its condition.

use std::fmt;

use super::{MAX_QUALITY_CYCLES, MAX_VALIDATION_RETRIES, Number, StoryCheckpoint, Verdict};

/// A story has at most this many tasks.
pub const MAX_TASKS: usize = 8;
/// A story with less is not executed, whatever its verdict.
pub const MIN_READINESS: u32 = 5;
/// A story with less does not pass its quality gate, unless that is waived.
pub const MIN_QUALITY_SCORE: u32 = 70;

/// How often work was tried again, counted by the orchestrator. All zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Times that it went back to be mended after it had failed its quality gate.
    pub quality_cycles: u64,
    /// Times that its plan was validated again after a refusal.
    pub validation_retries: u64,
    /// Times that its worker was started again after a crash.
    pub crashes: u64,
}

/// What follows for a story.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NextStep {
    /// It enters the next stage.
    Enter {
        /// That stage.
        stage: u8,
    },
    /// It is validated again: stage 1 anew.
    Retry {
        /// Which retry it is, from 1.
        attempt: u64,
        /// Why it did not pass.
        reason: Option<String>,
    },
    /// It goes back to stage 2.
    Rework {
        /// Which cycle it is, from 1.
        cycle: u64,
        /// What is to be mended.
        issues: Option<String>,
    },
    /// It is done.
    Finish,
    /// It is paused, until a decision is made.
    Pause(PauseReason),
    /// Its stage is not at an end, or something must be put right first.
    Wait(Waiting),
}

/// Why a story is paused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PauseReason {
    /// `NO-GO` again, after the one retry.
    NoGo {
        /// The reason of the last one.
        reason: Option<String>,
    },
    /// `FAIL` again, after the last cycle.
    QualityCycles {
        /// The issues of the last one.
        issues: Option<String>,
    },
}

/// What a story waits for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Waiting {
    /// The checkpoint does not say in which stage it is.
    NoStage,
    /// Stage 0 made no task.
    NoTasks,
    /// Stage 0 made more than [`MAX_TASKS`].
    TooManyTasks {
        /// So many.
        count: usize,
    },
    /// The stage has no verdict yet, or one of another stage.
    NoVerdict {
        /// The stage.
        stage: u8,
    },
    /// `GO`, with a readiness below [`MIN_READINESS`] or none.
    Readiness {
        /// The readiness.
        readiness: Option<Number>,
    },
    /// The tasks of stage 0 are no longer known, so whether all are done is unknown.
    PlanUnknown,
    /// The quality gate sent the story back, and no task was finished since.
    Rework {
        /// What is to be mended.
        issues: Option<String>,
    },
    /// Tasks remain.
    Tasks {
        /// Their ids.
        remaining: Vec<String>,
    },
    /// Nothing is known of any task: neither finished nor left.
    TasksUnknown,
    /// Passed, with a score below [`MIN_QUALITY_SCORE`] or none.
    Score {
        /// The score.
        score: Option<Number>,
    },
}

impl StoryCheckpoint {
    /// What follows for the story, by the protocol's conditions and the story's counters, which
    /// [`PipelineState::counters`](super::PipelineState::counters) gives.
    #[must_use]
    pub fn next_step(&self, counters: Counters) -> NextStep {
        match self.stage_number() {
            None => NextStep::Wait(Waiting::NoStage),
            Some(0) => after_plan(self.remaining().len()),
            Some(1) => self.after_validation(counters),
            Some(2) => self.after_execution(),
            Some(_) => self.after_gate(counters),
        }
    }

    fn after_validation(&self, counters: Counters) -> NextStep {
        let reason = self.reason.clone();
        match &self.verdict {
            Some(Verdict::Go) if at_least(self.readiness, MIN_READINESS) => {
                NextStep::Enter { stage: 2 }
            }
            Some(Verdict::Go) => NextStep::Wait(Waiting::Readiness {
                readiness: self.readiness,
            }),
            Some(Verdict::NoGo) if counters.validation_retries < MAX_VALIDATION_RETRIES.into() => {
                NextStep::Retry {
                    attempt: counters.validation_retries + 1,
                    reason,
                }
            }
            Some(Verdict::NoGo) => NextStep::Pause(PauseReason::NoGo { reason }),
            _ => NextStep::Wait(Waiting::NoVerdict { stage: 1 }),
        }
    }

    fn after_execution(&self) -> NextStep {
        if !self.remaining().is_empty() {
            return NextStep::Wait(Waiting::Tasks {
                remaining: self.remaining().to_vec(),
            });
        }
        if self.lacks_plan() {
            return NextStep::Wait(Waiting::PlanUnknown);
        }
        if self.is_to_be_mended() {
            return NextStep::Wait(Waiting::Rework {
                issues: self.issues.clone(),
            });
        }
        if self.completed().is_empty() {
            return NextStep::Wait(Waiting::TasksUnknown);
        }
        NextStep::Enter { stage: 3 }
    }

    /// Whether stage 2 has begun without the tasks that stage 0 planned: the verdict that let the story in stays until
    /// they are planned.
    pub(super) fn lacks_plan(&self) -> bool {
        self.stage_number() == Some(2)
            && self.verdict == Some(Verdict::Go)
            && self.readiness.is_none()
    }

    /// Whether the quality gate sent the story back to stage 2 and no task was finished since: its verdict stays until
    /// one is.
    pub(super) fn is_to_be_mended(&self) -> bool {
        self.stage_number() == Some(2)
            && self.verdict == Some(Verdict::Fail)
            && self.quality_score().is_none()
    }

    /// Whether the story is in stage 2 again, with what the quality gate found.
    pub(super) fn is_in_rework(&self) -> bool {
        self.stage_number() == Some(2)
            && self.issues.is_some()
            && matches!(self.verdict, None | Some(Verdict::Fail))
    }

    fn after_gate(&self, counters: Counters) -> NextStep {
        let issues = self.issues.clone();
        match &self.verdict {
            Some(Verdict::Waived) => NextStep::Finish,
            Some(Verdict::Pass | Verdict::Concerns) => {
                let score = self.quality_score();
                if at_least(score, MIN_QUALITY_SCORE) {
                    NextStep::Finish
                } else {
                    NextStep::Wait(Waiting::Score { score })
                }
            }
            Some(Verdict::Fail) if counters.quality_cycles < MAX_QUALITY_CYCLES.into() => {
                NextStep::Rework {
                    cycle: counters.quality_cycles + 1,
                    issues,
                }
            }
            Some(Verdict::Fail) => NextStep::Pause(PauseReason::QualityCycles { issues }),
            _ => NextStep::Wait(Waiting::NoVerdict { stage: 3 }),
        }
    }
}

fn after_plan(tasks: usize) -> NextStep {
    match tasks {
        0 => NextStep::Wait(Waiting::NoTasks),
        1..=MAX_TASKS => NextStep::Enter { stage: 1 },
        count => NextStep::Wait(Waiting::TooManyTasks { count }),
    }
}

fn at_least(number: Option<Number>, least: u32) -> bool {
    number.is_some_and(|number| number.get() >= f64::from(least))
}

fn or_none(number: Option<Number>) -> String {
    number.map_or_else(|| "not known".to_owned(), |number| number.to_string())
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NextStep::Enter { stage } => write!(f, "the story enters stage {stage}"),
            NextStep::Retry { attempt, reason } => {
                write!(f, "NO-GO, retry {attempt} of {MAX_VALIDATION_RETRIES}")?;
                because(f, reason)
            }
            NextStep::Rework { cycle, issues } => {
                write!(f, "FAIL, cycle {cycle} of {MAX_QUALITY_CYCLES}")?;
                because(f, issues)
            }
            NextStep::Finish => f.write_str("the story is done"),
            NextStep::Pause(reason) => write!(f, "the story is paused: {reason}"),
            NextStep::Wait(waiting) => waiting.fmt(f),
        }
    }
}

fn because(f: &mut fmt::Formatter<'_>, reason: &Option<String>) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, ": {reason}"),
        None => Ok(()),
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PauseReason::NoGo { reason } => {
                write!(f, "NO-GO after {MAX_VALIDATION_RETRIES} retry")?;
                because(f, reason)
            }
            PauseReason::QualityCycles { issues } => {
                write!(f, "FAIL after {MAX_QUALITY_CYCLES} cycles")?;
                because(f, issues)
            }
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::NoStage => f.write_str("the checkpoint has no stage"),
            Waiting::NoTasks => f.write_str("stage 0 has made no task; a story has 1 to 8"),
            Waiting::TooManyTasks { count } => {
                write!(f, "stage 0 has made {count} tasks; a story has 1 to 8")
            }
            Waiting::NoVerdict { stage } => write!(f, "stage {stage} has no verdict of its own"),
            Waiting::Readiness { readiness } => write!(
                f,
                "GO needs a readiness of {MIN_READINESS} or more; it is {}",
                or_none(*readiness)
            ),
            Waiting::PlanUnknown => f.write_str(
                "the tasks that stage 0 planned are neither here nor kept beside the checkpoint; plan them again first",
            ),
            Waiting::Rework { issues } => {
                f.write_str("the quality gate failed, and no task was planned and finished since")?;
                because(f, issues)
            }
            Waiting::Tasks { remaining } => write!(f, "tasks remain: {}", remaining.join(", ")),
            Waiting::TasksUnknown => f.write_str("no task is known, finished or left"),
            Waiting::Score { score } => write!(
                f,
                "the quality gate needs a score of {MIN_QUALITY_SCORE} or more; it is {}",
                or_none(*score)
            ),
        }
    }
}
