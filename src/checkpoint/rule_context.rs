//! What a rule of a format may take from outside the checkpoint.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Key, UnreadableItem};

/// What the rules of a format may take from outside the checkpoint. What is not given is not judged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RuleContext<'a> {
    /// The present time: judges stamps in the future.
    pub now: Option<DateTime<Utc>>,
    /// The key the checkpoint is kept under: judges the id inside.
    pub key: Option<&'a Key>,
    /// The plan of a build: judges whether its checkpoint has all workstreams and gates.
    pub execution_spec: Option<&'a ExecutionSpec>,
    /// The state of the story, from the pipeline's own state: judges the stage of its checkpoint.
    pub story_state: Option<&'a str>,
    /// How often the work was tried again, where that is counted beside the checkpoint: judges whether
    /// it is tried once more.
    pub counters: Option<Counters>,
    /// How long was worked on the task: judges whether that is worth resuming, where the protocol
    /// says so.
    pub worked: Option<TimeDelta>,
    /// The items of the checkpoint that could not be read: what they may be keeps it from being complete.
    pub unreadable: &'a [UnreadableItem],
}

impl<'a> RuleContext<'a> {
    /// Nothing is given.
    #[must_use]
    pub fn none() -> Self {
        RuleContext::default()
    }

    /// With the present time.
    #[must_use]
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.now = Some(now);
        self
    }

    /// With the key.
    #[must_use]
    pub fn with_key(mut self, key: &'a Key) -> Self {
        self.key = Some(key);
        self
    }

    /// With the plan of a build.
    #[must_use]
    pub fn with_execution_spec(mut self, spec: &'a ExecutionSpec) -> Self {
        self.execution_spec = Some(spec);
        self
    }

    /// With the state of the story.
    #[must_use]
    pub fn with_story_state(mut self, state: &'a str) -> Self {
        self.story_state = Some(state);
        self
    }

    /// With the number of times that the work was tried again.
    #[must_use]
    pub fn with_counters(mut self, counters: Counters) -> Self {
        self.counters = Some(counters);
        self
    }

    /// With the items of the checkpoint that could not be read.
    #[must_use]
    pub fn with_unreadable(mut self, unreadable: &'a [UnreadableItem]) -> Self {
        self.unreadable = unreadable;
        self
    }

    /// With the time that was worked on the task.
    #[must_use]
    pub fn with_worked(mut self, worked: TimeDelta) -> Self {
        self.worked = Some(worked);
        self
    }
}

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

/// The plan of a build: its phases in order, each with its workstreams, and its gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionSpec {
    /// The phases, in order.
    pub phases: Vec<SpecPhase>,
    /// The names of all gates.
    pub gates: Vec<String>,
}

/// A phase of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpecPhase {
    /// Its number, from 1.
    pub n: u64,
    /// Its workstreams.
    pub workstreams: Vec<SpecWorkstream>,
}

/// A workstream of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpecWorkstream {
    /// Its id, such as `WS2`.
    pub id: String,
    /// What it is called.
    pub title: String,
}

impl SpecPhase {
    /// A phase of these workstreams, each an id and a title.
    pub fn new<'w>(n: u64, workstreams: impl IntoIterator<Item = (&'w str, &'w str)>) -> Self {
        let workstream = |(id, title): (&str, &str)| SpecWorkstream {
            id: id.to_owned(),
            title: title.to_owned(),
        };
        SpecPhase {
            n,
            workstreams: workstreams.into_iter().map(workstream).collect(),
        }
    }
}

impl ExecutionSpec {
    /// A plan of these phases and gates.
    pub fn new(
        phases: impl IntoIterator<Item = SpecPhase>,
        gates: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        ExecutionSpec {
            phases: phases.into_iter().collect(),
            gates: gates.into_iter().map(Into::into).collect(),
        }
    }

    /// All workstreams, in the order of their phases.
    pub fn workstreams(&self) -> impl Iterator<Item = &SpecWorkstream> {
        self.phases.iter().flat_map(|phase| &phase.workstreams)
    }

    /// What a workstream is called.
    #[must_use]
    pub fn title(&self, id: &str) -> Option<&str> {
        self.workstreams()
            .find(|workstream| workstream.id == id)
            .map(|workstream| workstream.title.as_str())
    }
}
