//! The rules of a pipeline's state. At least one of its variables is required; counts are not compared.

use std::collections::BTreeMap;

use super::{PipelineState, StageTimes};
use crate::checkpoint::Inspection;
use crate::formats::story_pipeline::guards::{
    MAX_CRASHES, MAX_QUALITY_CYCLES, MAX_VALIDATION_RETRIES,
};
use crate::formats::story_pipeline::{layout, no_story_id};
use crate::json::{Code, pointer};

pub(super) fn inspect(state: &PipelineState, inspection: &mut Inspection<'_>) {
    if !layout::variables().any(|name| inspection.is_present(name)) {
        let message = "the object has no variable of a pipeline's state";
        inspection.report("", Code::MISSING, message);
    }
    inspection.timestamp("/last_check", state.last_check.as_ref());
    inspection.timestamp("/pipeline_start_time", state.pipeline_start_time.as_ref());
    inspection.known("/storage_mode", state.storage_mode.as_ref());
    inspection.within("story_state", |inspection| {
        for (story, state) in &state.story_state {
            inspection.known(&pointer::join("", story), Some(state));
        }
    });
    for (name, counts, least, most) in [
        (
            "quality_cycles",
            &state.quality_cycles,
            0,
            MAX_QUALITY_CYCLES,
        ),
        (
            "validation_retries",
            &state.validation_retries,
            0,
            MAX_VALIDATION_RETRIES,
        ),
        ("crash_count", &state.crash_count, 0, MAX_CRASHES),
        ("readiness_scores", &state.readiness_scores, 1, 10),
    ] {
        inspection.within(name, |inspection| {
            for (story, count) in counts {
                if let Some(message) = count.outside(least, most) {
                    inspection.report(&pointer::join("", story), Code::OUT_OF_RANGE, message);
                }
            }
        });
    }
    inspection.within("stage_timestamps", |inspection| {
        for (story, times) in &state.stage_timestamps {
            inspection.within(story, |inspection| stage_times(times, inspection));
        }
    });
    story_ids(state, inspection);
}

fn stage_times(times: &StageTimes, inspection: &mut Inspection<'_>) {
    for stage in 0..=3 {
        let start = format!("/stage_{stage}_start");
        inspection.timestamp(&start, times.start(stage));
        let end = format!("/stage_{stage}_end");
        inspection.timestamp(&end, times.end(stage));
    }
}

fn story_ids(state: &PipelineState, inspection: &mut Inspection<'_>) {
    names("story_state", &state.story_state, inspection);
    names("worker_map", &state.worker_map, inspection);
    names("quality_cycles", &state.quality_cycles, inspection);
    names("validation_retries", &state.validation_retries, inspection);
    names("crash_count", &state.crash_count, inspection);
    names("story_results", &state.story_results, inspection);
    names("worktree_map", &state.worktree_map, inspection);
    names("depends_on", &state.depends_on, inspection);
    names("stage_timestamps", &state.stage_timestamps, inspection);
    names("git_stats", &state.git_stats, inspection);
    names("readiness_scores", &state.readiness_scores, inspection);
    names("story_briefs", &state.story_briefs, inspection);
    inspection.within("depends_on", |inspection| {
        for (story, needed) in &state.depends_on {
            inspection.each(story, needed, |id, inspection| story_id("", id, inspection));
        }
    });
    inspection.each(
        "priority_queue_ids",
        &state.priority_queue_ids,
        |id, inspection| {
            story_id("", id, inspection);
        },
    );
}

fn names<T>(member: &str, map: &BTreeMap<String, T>, inspection: &mut Inspection<'_>) {
    inspection.within(member, |inspection| {
        for story in map.keys() {
            story_id(&pointer::join("", story), story, inspection);
        }
    });
}

fn story_id(member: &str, id: &str, inspection: &mut Inspection<'_>) {
    if let Some(message) = no_story_id(id) {
        inspection.report(member, Code::BAD_ID, message);
    }
}
