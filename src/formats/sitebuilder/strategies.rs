//! Generates sitebuilder checkpoints for property tests.

use chrono::TimeDelta;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{SitebuilderCheckpoint, Subtask, SubtaskStatus, TaskError, TaskStatus};
use crate::checkpoint::{Checkpoint, Operation, OperationContext, Timestamp, arbitrary};
use crate::formats::steps::add_each_once;

prop_compose! {
    fn error()(
        kind in "[a-z_]{3,12}".prop_map(Some),
        message in "[A-Z][a-z ]{3,30}".prop_map(Some),
        timestamp in any::<Timestamp>().prop_map(Some),
    ) -> TaskError {
        TaskError { kind, message, timestamp, blocking: Some(true) }
    }
}

prop_compose! {
    /// A task in progress, with the errors and criteria that it would end with.
    fn sitebuilder_checkpoint()(
        agent in "[a-z]{3,9}",
        task_id in "T[0-9]{3}",
        task_title in option::of("[A-Z][a-z ]{3,20}"),
        begun in any::<Timestamp>(),
        seconds in 0..100_000_i64,
        subtasks in vec(any::<SubtaskStatus>(), 0..8),
        more in prop_oneof![2 => Just(0_u32), 1 => 1..30_u32],
        criteria in btree_map("[a-z_]{3,12}", any::<bool>(), 0..3),
        scores in btree_map("agent_[1-9]", option::of((0..=100_u8).prop_map(f64::from)), 0..3),
        files in vec("docs(/[a-z]{1,6}){1,3}\\.md", 0..3),
        errors in vec(error(), 1..3),
        notes in option::of("\\PC{1,30}"),
        beats in any::<bool>(),
        end in select(vec![
            TaskStatus::InProgress,
            TaskStatus::InProgress,
            TaskStatus::Blocked,
            TaskStatus::Complete,
        ]),
    ) -> SitebuilderCheckpoint {
        let start = begun.time().unwrap_or_default().to_utc();
        let now = start + TimeDelta::seconds(seconds);
        let complete = end == TaskStatus::Complete;
        let mut made = SitebuilderCheckpoint::begin(agent, task_id, [""; 0], start);
        made.task_title = task_title;
        made.updated_at = Some(Timestamp::like(Some(&begun), now));
        made.started_at = Some(begun);
        for (index, status) in subtasks.into_iter().enumerate() {
            let is_open = matches!(status, SubtaskStatus::Pending | SubtaskStatus::InProgress);
            let status = if complete && is_open { SubtaskStatus::Complete } else { status };
            made.subtasks.items.push(Subtask::new(format!("part-{index}"), status));
        }
        made.recount();
        if more > 0 && !complete {
            let listed = u32::try_from(made.subtasks.items.len()).unwrap_or_default();
            made = made.with_total(listed + more);
        }
        let criteria = criteria.into_iter();
        made.acceptance_criteria_met =
            criteria.map(|(name, met)| (name, Some(met || complete))).collect();
        made.review_scores = scores;
        add_each_once(&mut made.files_created, files);
        made.context.notes = notes;
        if beats {
            made.beat(now);
        }
        if end == TaskStatus::Blocked {
            made.status = Some(end);
            made.errors = errors;
        } else if complete {
            // Nothing is left open, so this cannot fail.
            let _ = made.apply(&Operation::Complete, &OperationContext::at(now));
        }
        made
    }
}

arbitrary! {
    /// As the library's operations leave it: in progress 1 of 2, blocked by 1 or 2 errors 1 of 4, complete with all
    /// criteria met 1 of 4. 0 to 7 listed subtasks in any state; 1 of 3 that are not complete has up to 29 unlisted
    /// ones more. 0 to 2 criteria, review scores and files; a heartbeat 1 of 2.
    SitebuilderCheckpoint => sitebuilder_checkpoint();
}
