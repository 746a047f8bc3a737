//! Generates builders' host files for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{ActivePrd, ActiveWork, AdhocTask, BuilderState, TaskCheckpoint};
use crate::checkpoint::{Timestamp, arbitrary};

fn story() -> impl Strategy<Value = String> {
    "US-[0-9]{3}"
}

fn title() -> impl Strategy<Value = String> {
    "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}"
}

prop_compose! {
    fn builder_state()(
        session_id in "builder-[0-9a-f]{6}".prop_map(Some),
        last_heartbeat in option::weighted(0.75, any::<Timestamp>()),
        active_prd in option::weighted(0.75, any::<ActivePrd>()),
        active_work in option::weighted(0.25, any::<ActiveWork>()),
        mut adhoc_queue in vec(any::<AdhocTask>(), 0..3),
        checkpoint in option::weighted(0.2, any::<TaskCheckpoint>()),
    ) -> BuilderState {
        for (index, task) in adhoc_queue.iter_mut().enumerate() {
            task.id = Some(format!("adhoc-{:03}", index + 1));
        }
        BuilderState { session_id, last_heartbeat, active_prd, active_work, adhoc_queue, checkpoint }
    }
}

arbitrary! {
    /// 0 to 3 finished stories and 0 to 3 pending ones, plus a current one; a checkpoint 3 of 4.
    ActivePrd => (
        "PRD-[0-9]{3}",
        story(),
        vec(story(), 0..4),
        vec(story(), 0..4),
        option::weighted(0.75, any::<TaskCheckpoint>()),
    )
        .prop_map(|(id, current, stories_completed, stories_pending, checkpoint)| ActivePrd {
            file: Some(format!("docs/{id}.md")),
            branch: Some(format!("feature/{}", current.to_lowercase())),
            id: Some(id),
            current_story: Some(current),
            stories_completed,
            stories_pending,
            checkpoint,
        });

    /// Work with a title and, 1 of 2, a description; a checkpoint 3 of 4.
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

    /// A task of the queue; a checkpoint 1 of 2.
    AdhocTask => (
        "adhoc-[0-9]{3}",
        title(),
        select(vec!["pending", "in_progress", "complete"]),
        any::<Option<TaskCheckpoint>>(),
    )
        .prop_map(|(id, description, status, checkpoint)| AdhocTask {
            id: Some(id),
            description: Some(description),
            status: Some(status.to_owned()),
            checkpoint,
        });

    /// A host file: a requirements document 3 of 4, `activeWork` 1 of 4, 0 to 2 tasks in the queue with different ids;
    /// a checkpoint at the top level 1 of 5.
    BuilderState => builder_state();
}
