//! How another agent goes on from a checkpoint: the plan, and the prompt that carries it.

mod plan;
#[cfg(feature = "template")]
mod prompt;
mod take_over;

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

#[cfg(feature = "template")]
pub use prompt::{Prompt, PromptOptions, Rendered};

pub use take_over::{TakeOver, TakenOver, take_over};

pub use crate::checkpoint::{NewWorker, ResumeDecision, ResumePlan};

use crate::checkpoint::{Counters, DoneItem, ExecutionSpec, Handoff, Key, Knowledge};
use crate::json::Violation;
use crate::staleness::Staleness;
use crate::store::TaskContext;

/// What a resume takes from outside the checkpoint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// The project's folder, which the checkpoint's files are relative to.
    pub root: PathBuf,
    /// What the task is called; what the store knows, else the key, when `None`.
    pub task: Option<String>,
    /// What is to be done; what the store knows when `None`.
    pub description: Option<String>,
    /// The plan of a build, for the `build-pipeline` protocol.
    pub execution_spec: Option<ExecutionSpec>,
    /// The state of the story in its pipeline, for the `story-pipeline` protocol.
    pub story_state: Option<String>,
    /// How often the story was tried again, by its pipeline, for the `story-pipeline` protocol.
    pub counters: Option<Counters>,
    /// How long was worked on the task, for protocols that restart when it was little.
    pub worked: Option<TimeDelta>,
}

impl ResumeOptions {
    /// A resume in the project at `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        ResumeOptions {
            root: root.as_ref().to_path_buf(),
            ..ResumeOptions::default()
        }
    }

    /// Names the task.
    #[must_use]
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Gives the plan of a build.
    #[must_use]
    pub fn with_execution_spec(mut self, spec: ExecutionSpec) -> Self {
        self.execution_spec = Some(spec);
        self
    }

    /// Gives the state of the story in its pipeline.
    #[must_use]
    pub fn with_story_state(mut self, state: impl Into<String>) -> Self {
        self.story_state = Some(state.into());
        self
    }

    /// Says how often the story was tried again.
    #[must_use]
    pub fn with_counters(mut self, counters: Counters) -> Self {
        self.counters = Some(counters);
        self
    }

    /// Says how long was worked on the task.
    #[must_use]
    pub fn with_worked(mut self, worked: TimeDelta) -> Self {
        self.worked = Some(worked);
        self
    }

    pub(crate) fn knowledge<'k>(
        &'k self,
        now: DateTime<Utc>,
        key: Option<&'k Key>,
    ) -> Knowledge<'k> {
        Knowledge {
            now: Some(now),
            key,
            execution_spec: self.execution_spec.as_ref(),
            story_state: self.story_state.as_deref(),
            counters: self.counters,
            worked: self.worked,
        }
    }

    /// Says what is to be done.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// What was found beside the checkpoint.
pub(crate) struct Found<'l> {
    pub(crate) context: &'l TaskContext,
    pub(crate) violations: &'l [Violation],
}

/// All that is known for going on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Resume {
    /// What the task is called.
    pub task: String,
    /// What is to be done, where somebody said so.
    pub description: Option<String>,
    /// Whether and how to go on.
    pub plan: ResumePlan,
    /// Whether the files are as they were.
    pub staleness: Staleness,
    /// What the agent before left.
    pub handoff: Handoff,
    /// Finished work that was cut from the checkpoint to keep within its limits, oldest first.
    pub earlier: Vec<DoneItem>,
    /// What is wrong with the checkpoint.
    pub violations: Vec<Violation>,
}

impl Resume {
    /// Completes a format's own plan with what the files and the violations tell.
    pub(crate) fn new(
        key: &Key,
        mut plan: ResumePlan,
        handoff: Handoff,
        earlier: Vec<DoneItem>,
        found: Found<'_>,
        staleness: Staleness,
        options: &ResumeOptions,
    ) -> Resume {
        plan::complete(&mut plan, &staleness, found.violations);
        let first = |choices: [&Option<String>; 3]| choices.into_iter().flatten().next().cloned();
        let task = first([&options.task, &found.context.task, &handoff.task]);
        Resume {
            task: task.unwrap_or_else(|| key.to_string()),
            description: first([
                &options.description,
                &found.context.description,
                &handoff.description,
            ]),
            plan,
            staleness,
            handoff,
            earlier,
            violations: found.violations.to_vec(),
        }
    }

    /// Who worked on the task, for a sentence: the agents before, else the checkpoint's maker.
    #[must_use]
    pub fn worked_on_by(&self) -> String {
        let previous = &self.handoff.previous_agents;
        if previous.is_empty() {
            let maker = self.handoff.agent.clone();
            maker.unwrap_or_else(|| "another agent".to_owned())
        } else {
            previous.join(", ")
        }
    }

    /// The prompt for the next agent, from the built-in template.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`](crate::ErrorKind::Template), should the template not render.
    #[cfg(feature = "template")]
    pub fn prompt(&self) -> crate::Result<String> {
        Ok(Prompt::default()
            .render(self, &PromptOptions::default())?
            .text)
    }
}
