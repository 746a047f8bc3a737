//! Sitebuilder checkpoints.

use chrono::{TimeDelta, Utc};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::arbitrary::arbitrary;
use crate::checkpoint::{OperationContext, Timestamp};
use crate::formats::sitebuilder::{SitebuilderCheckpoint, Subtask, SubtaskStatus, TaskError};

fn subtask() -> impl Strategy<Value = SubtaskStatus> {
    proptest::sample::select(vec![
        SubtaskStatus::Pending,
        SubtaskStatus::InProgress,
        SubtaskStatus::Complete,
        SubtaskStatus::Failed,
    ])
}

/// What becomes of a task: how often each is in `any::<SitebuilderCheckpoint>()`.
#[derive(Clone, Copy, Debug)]
enum End {
    Open,
    Blocked,
    Complete,
}

fn sitebuilder_checkpoint() -> impl Strategy<Value = SitebuilderCheckpoint> {
    let end = proptest::sample::select(vec![End::Open, End::Open, End::Blocked, End::Complete]);
    let names = ("[a-z]{3,9}", "T[0-9]{3}", option::of("[A-Z][a-z ]{3,20}"));
    let error = ("[a-z_]{3,12}", "[A-Z][a-z ]{3,30}", any::<Timestamp>()).prop_map(
        |(kind, message, at)| TaskError {
            kind: Some(kind),
            message: Some(message),
            timestamp: Some(at),
            blocking: Some(true),
        },
    );
    (
        names,
        any::<Timestamp>(),
        vec(subtask(), 0..8),
        prop_oneof![2 => Just(0_u32), 1 => 1..30_u32],
        btree_map("[a-z_]{3,12}", any::<bool>(), 0..3),
        btree_map("agent_[1-9]", option::of(0..=100_u8), 0..3),
        vec("docs(/[a-z]{1,6}){1,3}\\.md", 0..3),
        vec(error, 1..3),
        end,
        (any::<bool>(), 0..100_000_i64, option::of("\\PC{1,30}")),
    )
        .prop_map(
            |(names, begun, states, more, criteria, scores, files, errors, end, rest)| {
                let (agent, task_id, title) = names;
                let (beats, seconds, notes) = rest;
                let start = begun
                    .time()
                    .map_or_else(chrono::DateTime::<Utc>::default, |time| time.to_utc());
                let now = start + TimeDelta::seconds(seconds);
                let mut made = SitebuilderCheckpoint::begin(agent, task_id, [""; 0], start);
                made.task_title = title;
                made.updated_at = Some(Timestamp::like(Some(&begun), now));
                made.started_at = Some(begun);
                let complete = matches!(end, End::Complete);
                let items = states.into_iter().enumerate().map(|(at, status)| {
                    let left = [SubtaskStatus::Pending, SubtaskStatus::InProgress];
                    let status = if complete && left.contains(&status) {
                        SubtaskStatus::Complete
                    } else {
                        status
                    };
                    Subtask::new(format!("part-{at}"), status)
                });
                made.subtasks.items = items.collect();
                made.recount();
                if more > 0 && !complete {
                    let listed = u32::try_from(made.subtasks.items.len()).unwrap_or_default();
                    made = made.with_total(listed + more);
                }
                made.acceptance_criteria_met = criteria
                    .into_iter()
                    .map(|(name, met)| (name, Some(met || complete)))
                    .collect();
                made.review_scores = scores
                    .into_iter()
                    .map(|(agent, score)| (agent, score.map(f64::from)))
                    .collect();
                made.add_files(&files, &[]);
                made.context.notes = notes;
                if beats {
                    made.beat(now);
                }
                match end {
                    End::Open => {}
                    End::Blocked => {
                        made.status = Some(crate::formats::sitebuilder::TaskStatus::Blocked);
                        made.errors = errors;
                    }
                    // Nothing is open that could keep it from being complete.
                    End::Complete => {
                        let _ = made.complete(&OperationContext::at(now));
                    }
                }
                made
            },
        )
}

arbitrary! {
    /// As the library's operations leave it: in progress 1 of 2, blocked by 1 or 2 errors 1 of 4, complete
    /// with all criteria met 1 of 4; 0 to 7 listed subtasks in any state and, 1 of 3 that is not complete,
    /// up to 29 more that are not listed; 0 to 2 criteria, review scores and files; a heartbeat 1 of 2.
    SitebuilderCheckpoint => sitebuilder_checkpoint();
}
