//! Decides how a story continues after its worker crashed: first the same agent, which still has its context; if that
//! fails, a new worker whose prompt lists the finished work.

use serde_json::Value;

use super::guards::{Counters, MAX_CRASHES, NextStep};
use super::{StoryCheckpoint, StoryState, inputs, messages};
use crate::checkpoint::{
    Checkpoint, NewWorker, ResumeDecision, ResumePlan, ResumeReason, RuleContext,
};

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
        // The parameters with which the protocol starts a worker.
        plan.new_worker = Some(
            worker
                .with_input("stage", stage)
                .with_input("model", "opus")
                .with_input("mode", "bypassPermissions")
                .with_input("subagent_type", "general-purpose"),
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

/// Adds what the new worker's prompt takes from the pipeline's state.
fn heed_pipeline(plan: &mut ResumePlan, story: &StoryCheckpoint, context: &RuleContext<'_>) {
    let Some((pipeline, id)) = inputs::pipeline(story, context) else {
        return;
    };
    let Some(root) = &pipeline.root else { return };
    let state = &pipeline.state;
    if let Err(error) = state.check_root(root) {
        return plan.refuse(error.to_string());
    }
    let worktree = state.worktree_map.get(id);
    if let Some(worktree) = worktree.filter(|it| !it.is_empty() && !root.join(it).is_dir()) {
        plan.ask(format!(
            "The story's worktree {worktree} does not exist. Was its work merged, or must the worktree be created \
             again?"
        ));
        plan.because(ResumeReason::Mismatch);
    }
    let began = state.pipeline_start_time.as_ref();
    let began = began.and_then(|stamp| stamp.time().map(|time| time.date_naive()));
    let day = began.unwrap_or_else(|| context.now.unwrap_or_default().date_naive());
    let team = state.team_name.clone();
    let answers: serde_json::Map<String, Value> =
        state.business_answers.clone().into_iter().collect();
    plan.new_worker = plan.new_worker.take().map(|new| {
        new.with_input(
            "team_name",
            team.unwrap_or_else(|| messages::pipeline_name(day)),
        )
        .with_input("business_answers", answers)
        .with_input("worktree", worktree.cloned())
        .with_input("project_root", root.display().to_string())
    });
}

/// Compares the story's state in the pipeline with the checkpoint.
fn heed_state(plan: &mut ResumePlan, state: &StoryState, stage: Option<u8>) {
    match state {
        StoryState::Done => {
            plan.refuse("The story is DONE; there is nothing to resume");
            plan.because(ResumeReason::Complete);
        }
        StoryState::Paused => {
            plan.ask("The pipeline has PAUSED this story. Should it continue?");
            plan.because(ResumeReason::Waiting);
        }
        _ => {}
    }
    if let Some(stage) = stage.filter(|stage| !state.fits(*stage)) {
        plan.warn(format!(
            "The checkpoint is of the stage is {stage}, but the pipeline has the story as {state}."
        ));
        plan.because(ResumeReason::Mismatch);
    }
}

/// Asks for a decision once the story was retried as often as the protocol allows.
///
/// A counter counts grants: at its limit the story may still be in the one stage that the pipeline has it in.
fn heed_counters(
    plan: &mut ResumePlan,
    story: &StoryCheckpoint,
    counters: Counters,
    rule_context: &RuleContext<'_>,
) {
    let stage = story.stage_number();
    let again = if stage == Some(1) { 1 } else { 2 };
    let granted = inputs::before_granted(story, rule_context, again);
    if let NextStep::Pause { because } = story.next_step(granted) {
        plan.ask(format!(
            "The story is paused: {because}. Should it continue?"
        ));
        plan.because(ResumeReason::TriedEnough);
    }
    let state = inputs::state(story, rule_context);
    let is_named = stage.is_some() && state.and_then(|state| state.stage()) == stage;
    let allowed = u64::from(MAX_CRASHES) + u64::from(is_named);
    if counters.crashes >= allowed {
        plan.ask(format!(
            "Its worker was restarted after a crash as often as the protocol allows ({MAX_CRASHES}); another crash \
             pauses the story. Should it continue?"
        ));
        plan.because(ResumeReason::TriedEnough);
    }
}
