//! How a story goes on after its worker crashed: first the same agent, which still knows its context;
//! if that fails, a new worker whose prompt has the finished work.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::operations::before_granted;
use super::{
    Counters, MAX_CRASHES, NextStep, PipelineState, StoryCheckpoint, StoryState, inputs, messages,
    pipeline_name, root,
};
use crate::checkpoint::{
    Checkpoint, Error, NewWorker, Result, ResumeDecision, ResumePlan, ResumeReason, RuleContext,
};

/// What the protocol spawns a worker with.
const MODEL: &str = "opus";
const MODE: &str = "bypassPermissions";
const SUBAGENT_TYPE: &str = "general-purpose";

pub(super) fn plan(story: &StoryCheckpoint, rule_context: &RuleContext<'_>) -> ResumePlan {
    let mut plan = ResumePlan::of(&story.handoff());
    plan.resume_agent.clone_from(&story.agent_id);
    let id = story
        .story()
        .or(rule_context.key.map(|key| key.as_str()))
        .map(str::to_owned);
    let stage = story.stage_number();
    if let (Some(id), Some(stage)) = (&id, stage) {
        let worker = NewWorker::new(messages::retry_name(id, stage));
        #[cfg(feature = "template")]
        let worker = worker.with_block(messages::block(story, rule_context.unreadable));
        plan.new_worker = Some(
            worker
                .with_input("stage", stage)
                .with_input("model", MODEL)
                .with_input("mode", MODE)
                .with_input("subagent_type", SUBAGENT_TYPE),
        );
    }
    if let Some(state) = inputs::state(story, rule_context) {
        heed_state(&mut plan, state, stage);
    }
    if let Some(counters) = inputs::counters(story, rule_context) {
        heed_counters(&mut plan, story, counters, rule_context);
    }
    if plan.new_worker.is_some() && plan.decision != ResumeDecision::Refuse {
        heed_pipeline(&mut plan, story, rule_context);
    }
    if plan.decision == ResumeDecision::Refuse {
        (plan.resume_agent, plan.new_worker) = (None, None);
    }
    plan
}

/// Gives the worker that takes the story over what its prompt takes from the pipeline's state.
fn heed_pipeline(plan: &mut ResumePlan, story: &StoryCheckpoint, context: &RuleContext<'_>) {
    let Some((pipeline, id)) = inputs::pipeline(story, context) else {
        return;
    };
    let Some(root) = &pipeline.root else { return };
    let now = context.now.unwrap_or_default();
    let worker = match story.retry_worker(id, &pipeline.state, root, now) {
        Ok(worker) => worker,
        Err(error) => return plan.refuse(error.to_string()),
    };
    let worktree = worker.worktree.as_deref().filter(|it| !it.is_empty());
    if let Some(worktree) = worktree.filter(|it| !root.join(it).is_dir()) {
        plan.ask(format!(
            "The story's worktree {worktree} is not there. Was its work merged, or is the worktree to be made anew?"
        ));
        plan.because(ResumeReason::Mismatch);
    }
    let answers: serde_json::Map<String, Value> = worker.business_answers.into_iter().collect();
    plan.new_worker = plan.new_worker.take().map(|new| {
        new.with_input("team_name", worker.team_name)
            .with_input("business_answers", answers)
            .with_input("worktree", worker.worktree)
            .with_input("project_root", worker.project_root.display().to_string())
    });
}

/// The pipeline's state of the story must fit the checkpoint.
fn heed_state(plan: &mut ResumePlan, state: &StoryState, stage: Option<u8>) {
    match state {
        StoryState::Done => {
            plan.refuse("The story is DONE; there is nothing to resume");
            plan.because(ResumeReason::Complete);
        }
        StoryState::Paused => {
            plan.ask("The pipeline has PAUSED this story. Shall it go on?");
            plan.because(ResumeReason::Waiting);
        }
        _ => {}
    }
    if let Some(stage) = stage.filter(|stage| !state.fits(*stage)) {
        plan.warn(format!(
            "The checkpoint is of stage {stage}, while the pipeline has the story as {state}."
        ));
        plan.because(ResumeReason::Mismatch);
    }
}

/// After as many tries as the protocol allows, another one needs a decision.
///
/// A counter counts what was granted: at its limit the story may be in the one stage that the pipeline has it in.
fn heed_counters(
    plan: &mut ResumePlan,
    story: &StoryCheckpoint,
    counters: Counters,
    rule_context: &RuleContext<'_>,
) {
    let stage = story.stage_number();
    let next = match stage {
        Some(1) => before_granted(story, rule_context, 1),
        _ => before_granted(story, rule_context, 2),
    };
    if let NextStep::Pause(reason) = story.next_step(next) {
        plan.ask(format!("The story is paused: {reason}. Shall it go on?"));
        plan.because(ResumeReason::TriedEnough);
    }
    let state = inputs::state(story, rule_context);
    let is_named = stage.is_some() && state.and_then(|state| state.stage()) == stage;
    let allowed = u64::from(MAX_CRASHES) + u64::from(is_named);
    if counters.crashes >= allowed {
        plan.ask(format!(
            "Its worker was started anew after a crash as often as the protocol says \
             ({MAX_CRASHES}); a worker that crashes again pauses the story. Shall it go on?"
        ));
        plan.because(ResumeReason::TriedEnough);
    }
}

/// A worker to start: what its spawn call takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkerSpawn {
    /// Its name, such as `story-SHOP-12-s2-retry`.
    pub name: String,
    /// Its team: the state's, or `pipeline-{date}` of the pipeline's start.
    pub team_name: String,
    /// The model, `opus`.
    pub model: &'static str,
    /// The permissions, `bypassPermissions`.
    pub mode: &'static str,
    /// The kind of agent, `general-purpose`.
    pub subagent_type: &'static str,
    /// The story.
    pub story: String,
    /// The stage that its prompt is for.
    pub stage: u8,
    /// What was answered before the pipeline began, for its prompt.
    pub business_answers: std::collections::BTreeMap<String, Value>,
    /// The story's worktree, for its prompt.
    pub worktree: Option<String>,
    /// The project's root, absolute, for its prompt: there it writes its checkpoint.
    pub project_root: PathBuf,
    /// The `CHECKPOINT RESUME` block, which its prompt ends with.
    #[cfg(feature = "template")]
    pub block: String,
}

impl WorkerSpawn {
    /// The worker's whole prompt: the one for its stage, and the block after it.
    #[cfg(feature = "template")]
    #[must_use]
    pub fn prompt(&self, worker_prompt: &str) -> String {
        format!("{}\n\n{}", worker_prompt.trim_end(), self.block)
    }
}

impl StoryCheckpoint {
    /// The worker to start when the agent cannot be resumed.
    ///
    /// # Errors
    ///
    /// Refused when the root is not absolute or is a story's worktree, and when the checkpoint has no
    /// stage.
    pub fn retry_worker(
        &self,
        story: &str,
        state: &PipelineState,
        project_root: &Path,
        now: DateTime<Utc>,
    ) -> Result<WorkerSpawn> {
        root::require_absolute(project_root)?;
        state.check_root(project_root)?;
        let Some(stage) = self.stage_number() else {
            return Err(Error::refused(
                "the checkpoint has no stage to start a worker for",
            ));
        };
        let began = state.pipeline_start_time.as_ref();
        let began = began.and_then(|stamp| stamp.time());
        let day = began.map_or(now.date_naive(), |time| time.date_naive());
        let team_name = state.team_name.clone();
        Ok(WorkerSpawn {
            name: messages::retry_name(story, stage),
            team_name: team_name.unwrap_or_else(|| pipeline_name(day)),
            model: MODEL,
            mode: MODE,
            subagent_type: SUBAGENT_TYPE,
            story: story.to_owned(),
            stage,
            business_answers: state.business_answers.clone(),
            worktree: state.worktree_map.get(story).cloned(),
            project_root: project_root.to_path_buf(),
            #[cfg(feature = "template")]
            block: messages::resume_block(self),
        })
    }
}
