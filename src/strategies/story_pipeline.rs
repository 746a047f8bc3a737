//! Stories of a pipeline and its state.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use super::arbitrary::arbitrary;
use crate::checkpoint::Timestamp;
use crate::formats::story_pipeline::{
    GitStats, InfraIssue, Number, PipelineState, StageResults, StageTimes, StorageMode,
    StoryCheckpoint, StoryState, Verdict,
};

fn story_id() -> impl Strategy<Value = String> {
    "[A-Z]{2,5}-[1-9][0-9]{0,3}"
}

/// Whole three times in four, else with one digit after the point.
fn number(least: u32, most: u32) -> impl Strategy<Value = Number> {
    prop_oneof![
        3 => (least..=most).prop_map(Number::from),
        1 => (least * 10..=most * 10).prop_map(|tenths| Number::from(f64::from(tenths) / 10.0)),
    ]
}

fn verdict(of: &'static [Verdict]) -> impl Strategy<Value = Verdict> {
    proptest::sample::select(of)
}

fn story_checkpoint() -> impl Strategy<Value = StoryCheckpoint> {
    let tasks = vec("[A-Z]{2,4}-[0-9]{1,4}", 0..9).prop_map(|mut tasks| {
        tasks.sort();
        tasks.dedup();
        tasks
    });
    let numbers = (number(0, 4), number(1, 10), number(0, 100));
    let verdicts = (verdict(Verdict::of_stage(1)), verdict(Verdict::of_stage(3)));
    let times = (any::<Timestamp>(), any::<Timestamp>(), 0..3_u8);
    (
        (story_id(), "[a-z0-9]{3}-[0-9]{3}", "\\PC{1,40}"),
        (0..4_u8, tasks, 0..9_usize),
        numbers,
        verdicts,
        "[a-z]\\PC{0,29}",
        times,
        (0..4_u8, 0..4_u8),
    )
        .prop_map(
            |(texts, (stage, tasks, split), numbers, verdicts, why, times, (revision, id))| {
                let (story, agent, action) = texts;
                let (completed, remaining) = match stage {
                    0 => (Vec::new(), tasks),
                    1 => (Vec::new(), Vec::new()),
                    2 => {
                        let (done, left) = tasks.split_at(split.min(tasks.len()));
                        (done.to_vec(), left.to_vec())
                    }
                    _ => (tasks, Vec::new()),
                };
                let mut checkpoint = StoryCheckpoint {
                    stage: Some(Number::from(stage)),
                    ..StoryCheckpoint::default()
                };
                let plan_score = (stage == 0).then_some(numbers.0);
                let quality_score = (stage == 3).then_some(numbers.2);
                if revision == 0 {
                    checkpoint.snake_story_id = (id > 0).then_some(story);
                    checkpoint.snake_tasks_completed = Some(completed);
                    checkpoint.snake_tasks_remaining = Some(remaining);
                    checkpoint.snake_last_action = Some(action);
                    checkpoint.snake_plan_score = plan_score;
                    checkpoint.snake_quality_score = quality_score;
                    checkpoint.started_at = (times.2 != 0).then_some(times.0);
                    checkpoint.completed_at = (times.2 != 1).then_some(times.1);
                } else {
                    checkpoint.story_id = Some(story);
                    checkpoint.agent_id = Some(agent);
                    checkpoint.tasks_completed = Some(completed);
                    checkpoint.tasks_remaining = Some(remaining);
                    checkpoint.last_action = Some(action);
                    checkpoint.plan_score = plan_score;
                    checkpoint.quality_score = quality_score;
                    checkpoint.timestamp = Some(times.0);
                }
                match stage {
                    1 => {
                        checkpoint.readiness = Some(numbers.1);
                        checkpoint.reason = (verdicts.0 == Verdict::NoGo).then_some(why);
                        checkpoint.verdict = Some(verdicts.0);
                    }
                    3 => {
                        checkpoint.issues = (verdicts.1 == Verdict::Fail).then_some(why);
                        checkpoint.verdict = Some(verdicts.1);
                    }
                    _ => {}
                }
                checkpoint
            },
        )
}

fn pipeline_state() -> impl Strategy<Value = PipelineState> {
    let states = proptest::sample::select(vec![
        StoryState::Queued,
        StoryState::Stage0,
        StoryState::Stage1,
        StoryState::Stage2,
        StoryState::Stage3,
        StoryState::Done,
        StoryState::Paused,
    ]);
    let times = (
        option::of(any::<Timestamp>()),
        option::of(any::<Timestamp>()),
    )
        .prop_map(|(start, end)| StageTimes {
            stage_2_start: start,
            stage_2_end: end,
            ..StageTimes::default()
        });
    let results = option::of("[a-z]{2,6}").prop_map(|stage0| StageResults {
        stage0,
        ..StageResults::default()
    });
    let stats = option::of(number(0, 900)).prop_map(|lines_added| GitStats {
        lines_added,
        ..GitStats::default()
    });
    let issue = ("[a-z]{2,6}", "[a-z]{2,6}", "\\PC{0,20}")
        .prop_map(|(phase, kind, message)| InfraIssue::new(phase, kind, message));
    let counters = (
        btree_map(story_id(), (0..=2_u32).prop_map(Number::from), 0..4),
        btree_map(story_id(), (0..=1_u32).prop_map(Number::from), 0..4),
        btree_map(story_id(), (0..=1_u32).prop_map(Number::from), 0..4),
        btree_map(story_id(), number(1, 10), 0..4),
    );
    let scalars = (
        option::of(any::<bool>()),
        option::of((0..9_u32).prop_map(Number::from)),
        option::of((0..9_u32).prop_map(Number::from)),
        option::of(any::<Timestamp>()),
        option::of(any::<Timestamp>()),
        option::of("pipeline-2026-0[1-9]-1[0-9]"),
        option::of(proptest::sample::select(vec![
            StorageMode::File,
            StorageMode::Linear,
        ])),
    );
    let maps = (
        btree_map(story_id(), states, 0..6),
        btree_map(story_id(), "story-[A-Z]{2}-[0-9]-s[0-3]", 0..4),
        btree_map(story_id(), "\\.worktrees/[a-z]{2,6}", 0..4),
        btree_map(story_id(), vec(story_id(), 0..3), 0..4),
        btree_map(story_id(), times, 0..4),
        btree_map(story_id(), results, 0..4),
        btree_map(story_id(), stats, 0..4),
        btree_map(
            "[A-Z][a-z ]{3,12}",
            "\\PC{1,12}".prop_map(Value::from),
            0..3,
        ),
    );
    (
        scalars,
        maps,
        counters,
        vec(story_id(), 0..4),
        vec(issue, 0..3),
    )
        .prop_map(|(scalars, maps, counters, queue, issues)| PipelineState {
            complete: scalars.0,
            active_workers: scalars.1,
            stories_remaining: scalars.2,
            last_check: scalars.3,
            pipeline_start_time: scalars.4,
            team_name: scalars.5,
            storage_mode: scalars.6,
            story_state: maps.0,
            worker_map: maps.1,
            worktree_map: maps.2,
            depends_on: maps.3,
            stage_timestamps: maps.4,
            story_results: maps.5,
            git_stats: maps.6,
            business_answers: maps.7,
            quality_cycles: counters.0,
            validation_retries: counters.1,
            crash_count: counters.2,
            readiness_scores: counters.3,
            priority_queue_ids: queue,
            infra_issues: issues,
            ..PipelineState::default()
        })
}

arbitrary! {
    /// Each of the four stages as often; in the spelling of the later revision 1 of 4 (of these 1 of 4
    /// without a story id); 0 to 8 tasks, in stage 2 at any point between all left and all finished.
    StoryCheckpoint => story_checkpoint();

    /// 0 to 5 stories in any state, 0 to 3 in each of the other tables, each single field there 1 of 2,
    /// counters within their limits. Counts of workers and stories need not agree with the tables, as in real ones.
    PipelineState => pipeline_state();
}
