//! Decides what follows for a story: the transitions of the protocol, each with its condition.

use std::fmt;

use super::{Number, StoryCheckpoint, Verdict};

/// A story has at most this many tasks.
const MAX_TASKS: usize = 8;
/// A story with a lower readiness does not enter stage 2, whatever its verdict.
const MIN_READINESS: u32 = 5;
/// A story with a lower score does not pass its quality gate, unless that is waived.
const MIN_QUALITY_SCORE: u32 = 70;
/// How often a story goes from `FAIL` back to stage 2.
pub(super) const MAX_QUALITY_CYCLES: u32 = 2;
/// How often a story is validated again after `NO-GO`.
pub(super) const MAX_VALIDATION_RETRIES: u32 = 1;
/// How often a worker is restarted after a crash.
pub(super) const MAX_CRASHES: u32 = 1;

/// How often work was retried, counted by the orchestrator. All zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// How often the story went back to stage 2 after it failed its quality gate.
    pub quality_cycles: u64,
    /// How often its plan was validated again after `NO-GO`.
    pub validation_retries: u64,
    /// How often its worker was restarted after a crash.
    pub crashes: u64,
}

/// The next step of a story.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NextStep {
    /// The story enters the next stage.
    Enter {
        /// The number of the stage.
        stage: u8,
    },
    /// The plan is validated again: stage 1 is repeated.
    Retry {
        /// The number of the retry, from 1.
        attempt: u64,
        /// Why the plan was refused.
        reason: Option<String>,
    },
    /// The story goes back to stage 2.
    Rework {
        /// The number of the cycle, from 1.
        cycle: u64,
        /// The issues to fix.
        issues: Option<String>,
    },
    /// The story is done.
    Finish,
    /// The story is paused until a decision is made.
    Pause {
        /// What was tried as often as the protocol allows.
        because: String,
    },
    /// The stage has not ended, or something must be corrected first.
    Wait {
        /// What the story waits for.
        because: String,
    },
}

impl StoryCheckpoint {
    /// Returns the next step of the story, by the conditions of the protocol. The counters come from
    /// [`PipelineState::counters`](super::PipelineState::counters).
    #[must_use]
    pub fn next_step(&self, counters: Counters) -> NextStep {
        match self.stage_number() {
            None => wait("the checkpoint has no stage"),
            Some(0) => self.after_plan(),
            Some(1) => self.after_validation(counters),
            Some(2) => self.after_execution(),
            Some(_) => self.after_gate(counters),
        }
    }

    fn after_plan(&self) -> NextStep {
        match self.remaining().len() {
            0 => wait("stage 0 has made no task; a story has 1 to 8"),
            1..=MAX_TASKS => NextStep::Enter { stage: 1 },
            count => wait(format!(
                "stage 0 has made {count} tasks; a story has 1 to 8"
            )),
        }
    }

    fn after_validation(&self, counters: Counters) -> NextStep {
        let reason = self.reason.clone();
        match &self.verdict {
            Some(Verdict::Go) if at_least(self.readiness, MIN_READINESS) => {
                NextStep::Enter { stage: 2 }
            }
            Some(Verdict::Go) => wait(format!(
                "GO needs a readiness of {MIN_READINESS} or more; it is {}",
                or_not_known(self.readiness)
            )),
            Some(Verdict::NoGo) if counters.validation_retries < MAX_VALIDATION_RETRIES.into() => {
                NextStep::Retry {
                    attempt: counters.validation_retries + 1,
                    reason,
                }
            }
            Some(Verdict::NoGo) => NextStep::Pause {
                because: because(
                    format!("NO-GO after {MAX_VALIDATION_RETRIES} retry"),
                    &reason,
                ),
            },
            _ => wait("the checkpoint has no verdict of stage 1"),
        }
    }

    fn after_execution(&self) -> NextStep {
        if !self.remaining().is_empty() {
            return wait(format!("tasks remain: {}", self.remaining().join(", ")));
        }
        if self.lacks_plan() {
            return wait(
                "the tasks that stage 0 planned are neither in the checkpoint nor kept beside it; plan them again \
                 first",
            );
        }
        if self.is_to_be_mended() {
            let failed = "the quality gate failed, and no task was planned and finished since";
            return wait(because(failed.to_owned(), &self.issues));
        }
        if self.completed().is_empty() {
            return wait("the checkpoint lists no task, finished or remaining");
        }
        NextStep::Enter { stage: 3 }
    }

    /// Whether stage 2 has begun without the tasks that stage 0 planned. The verdict `GO` stays until they are planned.
    pub(super) fn lacks_plan(&self) -> bool {
        self.stage_number() == Some(2)
            && self.verdict == Some(Verdict::Go)
            && self.readiness.is_none()
    }

    /// Whether the quality gate sent the story back to stage 2 and no task was finished since. The verdict `FAIL` stays
    /// until one is.
    pub(super) fn is_to_be_mended(&self) -> bool {
        self.stage_number() == Some(2)
            && self.verdict == Some(Verdict::Fail)
            && self.quality_score().is_none()
    }

    /// Whether the story is in stage 2 again, with the issues of the quality gate.
    pub(super) fn is_in_rework(&self) -> bool {
        self.stage_number() == Some(2)
            && self.issues.is_some()
            && matches!(self.verdict, None | Some(Verdict::Fail))
    }

    fn after_gate(&self, counters: Counters) -> NextStep {
        let issues = self.issues.clone();
        let score = self.quality_score();
        match &self.verdict {
            Some(Verdict::Waived) => NextStep::Finish,
            Some(Verdict::Pass | Verdict::Concerns) if at_least(score, MIN_QUALITY_SCORE) => {
                NextStep::Finish
            }
            Some(Verdict::Pass | Verdict::Concerns) => wait(format!(
                "the quality gate needs a score of {MIN_QUALITY_SCORE} or more; it is {}",
                or_not_known(score)
            )),
            Some(Verdict::Fail) if counters.quality_cycles < MAX_QUALITY_CYCLES.into() => {
                NextStep::Rework {
                    cycle: counters.quality_cycles + 1,
                    issues,
                }
            }
            Some(Verdict::Fail) => NextStep::Pause {
                because: because(format!("FAIL after {MAX_QUALITY_CYCLES} cycles"), &issues),
            },
            _ => wait("the checkpoint has no verdict of stage 3"),
        }
    }
}

fn wait(because: impl Into<String>) -> NextStep {
    NextStep::Wait {
        because: because.into(),
    }
}

fn because(what: String, why: &Option<String>) -> String {
    match why {
        Some(why) => format!("{what}: {why}"),
        None => what,
    }
}

fn at_least(number: Option<Number>, least: u32) -> bool {
    number.is_some_and(|number| number.get() >= f64::from(least))
}

fn or_not_known(number: Option<Number>) -> String {
    number.map_or_else(|| "not known".to_owned(), |number| number.to_string())
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NextStep::Enter { stage } => write!(f, "the story enters stage {stage}"),
            NextStep::Retry { attempt, reason } => {
                let retry = format!("NO-GO, retry {attempt} of {MAX_VALIDATION_RETRIES}");
                f.write_str(&because(retry, reason))
            }
            NextStep::Rework { cycle, issues } => {
                let again = format!("FAIL, cycle {cycle} of {MAX_QUALITY_CYCLES}");
                f.write_str(&because(again, issues))
            }
            NextStep::Finish => f.write_str("the story is done"),
            NextStep::Pause { because } => write!(f, "the story is paused: {because}"),
            NextStep::Wait { because } => f.write_str(because),
        }
    }
}
