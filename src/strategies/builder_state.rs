//! Host files of builders.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::arbitrary::arbitrary;
use crate::checkpoint::Timestamp;
use crate::formats::TaskCheckpoint;
use crate::formats::builder_state::{ActivePrd, ActiveWork, AdhocTask, BuilderState};

fn story() -> impl Strategy<Value = String> {
    "US-[0-9]{3}"
}

fn title() -> impl Strategy<Value = String> {
    "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}"
}

/// The builder's part, without the ids that make two tasks differ.
fn adhoc() -> impl Strategy<Value = AdhocTask> {
    let status = select(vec!["pending", "in_progress", "complete"]);
    (title(), status, option::of(any::<TaskCheckpoint>())).prop_map(
        |(description, status, checkpoint)| AdhocTask {
            id: None,
            description: Some(description),
            status: Some(status.to_owned()),
            checkpoint,
        },
    )
}

arbitrary! {
    /// 0 to 3 finished and as many pending stories, one of them current; a checkpoint 3 times of 4.
    ActivePrd => (
        "PRD-[0-9]{3}",
        story(),
        vec(story(), 0..4),
        vec(story(), 0..4),
        option::weighted(0.75, any::<TaskCheckpoint>()),
    )
        .prop_map(|(id, current, completed, pending, checkpoint)| ActivePrd {
            file: Some(format!("docs/{id}.md")),
            branch: Some(format!("feature/{}", current.to_lowercase())),
            id: Some(id),
            current_story: Some(current),
            stories_completed: completed,
            stories_pending: pending,
            checkpoint,
        });

    /// A work with its title and, every other time, a description; a checkpoint 3 times of 4.
    ActiveWork => (
        story(),
        title(),
        option::of(title()),
        option::weighted(0.75, any::<TaskCheckpoint>()),
    )
        .prop_map(|(id, title, description, checkpoint)| ActiveWork {
            id: Some(id),
            title: Some(title),
            description,
            checkpoint,
        });

    /// A task of the queue; a checkpoint every other time.
    AdhocTask => ("adhoc-[0-9]{3}", adhoc()).prop_map(|(id, task)| AdhocTask {
        id: Some(id),
        ..task
    });

    /// A host file: a requirements document in work 3 times of 4, work in the later place 1 of 4, 0 to 2
    /// tasks in the queue, all with different ids; a checkpoint at the top level 1 of 5.
    BuilderState => (
        "builder-[0-9a-f]{6}",
        option::weighted(0.75, any::<Timestamp>()),
        option::weighted(0.75, any::<ActivePrd>()),
        option::weighted(0.25, any::<ActiveWork>()),
        vec(adhoc(), 0..3),
        option::weighted(0.2, any::<TaskCheckpoint>()),
    )
        .prop_map(|(session, last_heartbeat, active_prd, active_work, queue, checkpoint)| {
            let queue = queue.into_iter().enumerate().map(|(index, task)| AdhocTask {
                id: Some(format!("adhoc-{:03}", index + 1)),
                ..task
            });
            BuilderState {
                session_id: Some(session),
                last_heartbeat,
                active_prd,
                active_work,
                adhoc_queue: queue.collect(),
                checkpoint,
            }
        });
}
