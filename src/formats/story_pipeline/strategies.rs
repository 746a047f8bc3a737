//! Generates stories of a pipeline and its state for property tests.

use proptest::bool::weighted;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::{
    GitStats, InfraIssue, Number, PipelineState, StageResults, StageTimes, StorageMode,
    StoryCheckpoint, StoryState, Verdict,
};
use crate::checkpoint::{Timestamp, arbitrary};

fn story_id() -> impl Strategy<Value = String> {
    "[A-Z]{2,5}-[1-9][0-9]{0,3}"
}

fn count(most: u32) -> impl Strategy<Value = Number> {
    (0..=most).prop_map(Number::from)
}

prop_compose! {
    fn story_checkpoint()(
        stage in 0..4_u8,
        tasks in btree_set("[A-Z]{2,4}-[0-9]{1,4}", 0..9),
        done in 0..9_usize,
        story in story_id(),
        agent in "[a-z0-9]{3}-[0-9]{3}",
        action in "\\PC{1,40}",
        plan_score in Number::between(0, 4),
        readiness in Number::between(1, 10),
        quality_score in Number::between(0, 100),
        of_stage_1 in select(Verdict::of_stage(1)),
        of_stage_3 in select(Verdict::of_stage(3)),
        why in "[a-z]\\PC{0,29}",
        begun in any::<Timestamp>(),
        ended in any::<Timestamp>(),
        stamps in 0..3_u8,
        has_id in weighted(0.75),
        is_later_revision in weighted(0.25),
    ) -> StoryCheckpoint {
        let mut completed: Vec<String> = tasks.into_iter().collect();
        let remaining = match stage {
            0 => std::mem::take(&mut completed),
            1 => {
                completed.clear();
                Vec::new()
            }
            2 => completed.split_off(done.min(completed.len())),
            _ => Vec::new(),
        };
        let mut checkpoint = StoryCheckpoint {
            stage: Some(Number::from(stage)),
            ..StoryCheckpoint::default()
        };
        let plan_score = (stage == 0).then_some(plan_score);
        let quality_score = (stage == 3).then_some(quality_score);
        if is_later_revision {
            checkpoint.snake_story_id = has_id.then_some(story);
            checkpoint.snake_tasks_completed = Some(completed);
            checkpoint.snake_tasks_remaining = Some(remaining);
            checkpoint.snake_last_action = Some(action);
            checkpoint.snake_plan_score = plan_score;
            checkpoint.snake_quality_score = quality_score;
            checkpoint.started_at = (stamps != 0).then_some(begun);
            checkpoint.completed_at = (stamps != 1).then_some(ended);
        } else {
            checkpoint.story_id = Some(story);
            checkpoint.agent_id = Some(agent);
            checkpoint.tasks_completed = Some(completed);
            checkpoint.tasks_remaining = Some(remaining);
            checkpoint.last_action = Some(action);
            checkpoint.plan_score = plan_score;
            checkpoint.quality_score = quality_score;
            checkpoint.timestamp = Some(begun);
        }
        if stage == 1 {
            checkpoint.readiness = Some(readiness);
            checkpoint.reason = (of_stage_1 == Verdict::NoGo).then_some(why);
            checkpoint.verdict = Some(of_stage_1);
        } else if stage == 3 {
            checkpoint.issues = (of_stage_3 == Verdict::Fail).then_some(why);
            checkpoint.verdict = Some(of_stage_3);
        }
        checkpoint
    }
}

prop_compose! {
    fn stage_times()(
        stage_2_start in any::<Option<Timestamp>>(),
        stage_2_end in any::<Option<Timestamp>>(),
    ) -> StageTimes {
        StageTimes { stage_2_start, stage_2_end, ..StageTimes::default() }
    }
}

prop_compose! {
    fn stage_results()(stage0 in option::of("[a-z]{2,6}")) -> StageResults {
        StageResults { stage0, ..StageResults::default() }
    }
}

prop_compose! {
    fn git_stats()(lines_added in option::of(Number::between(0, 900))) -> GitStats {
        GitStats { lines_added, ..GitStats::default() }
    }
}

prop_compose! {
    fn infra_issue()(
        phase in "[a-z]{2,6}",
        kind in "[a-z]{2,6}",
        message in "\\PC{0,20}",
    ) -> InfraIssue {
        InfraIssue { phase: Some(phase.into()), kind: Some(kind), message: Some(message) }
    }
}

prop_compose! {
    fn pipeline_state()(
        complete in any::<Option<bool>>(),
        active_workers in option::of(count(8)),
        stories_remaining in option::of(count(8)),
        last_check in any::<Option<Timestamp>>(),
        pipeline_start_time in any::<Option<Timestamp>>(),
        team_name in option::of("pipeline-2026-0[1-9]-1[0-9]"),
        storage_mode in any::<Option<StorageMode>>(),
        story_state in btree_map(story_id(), any::<StoryState>(), 0..6),
        worker_map in btree_map(story_id(), "story-[A-Z]{2}-[0-9]-s[0-3]", 0..4),
        worktree_map in btree_map(story_id(), "\\.worktrees/[a-z]{2,6}", 0..4),
        depends_on in btree_map(story_id(), vec(story_id(), 0..3), 0..4),
        stage_timestamps in btree_map(story_id(), stage_times(), 0..4),
        story_results in btree_map(story_id(), stage_results(), 0..4),
        git_stats in btree_map(story_id(), git_stats(), 0..4),
        business_answers in btree_map("[A-Z][a-z ]{3,12}", "\\PC{1,12}".prop_map(Value::from), 0..3),
        quality_cycles in btree_map(story_id(), count(2), 0..4),
        validation_retries in btree_map(story_id(), count(1), 0..4),
        crash_count in btree_map(story_id(), count(1), 0..4),
        readiness_scores in btree_map(story_id(), Number::between(1, 10), 0..4),
        priority_queue_ids in vec(story_id(), 0..4),
        infra_issues in vec(infra_issue(), 0..3),
    ) -> PipelineState {
        PipelineState {
            complete,
            active_workers,
            stories_remaining,
            last_check,
            pipeline_start_time,
            team_name,
            storage_mode,
            story_state,
            worker_map,
            worktree_map,
            depends_on,
            stage_timestamps,
            story_results,
            git_stats,
            business_answers,
            quality_cycles,
            validation_retries,
            crash_count,
            readiness_scores,
            priority_queue_ids,
            infra_issues,
            ..PipelineState::default()
        }
    }
}

arbitrary! {
    /// The four stages are equally frequent; 1 of 4 has the spelling of the later revision, 1 of 4 of these without a
    /// story id. 0 to 8 tasks; in stage 2 any number of them is finished.
    StoryCheckpoint => story_checkpoint();

    /// 0 to 5 stories in any state; 0 to 3 in each other table; each single field is present 1 of 2; counters are
    /// within their limits. As in real files, the counts of workers and stories need not agree with the tables.
    PipelineState => pipeline_state();
}
