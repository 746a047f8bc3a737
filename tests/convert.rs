//! The same hand-off in another format.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod common;

use agent_checkpoint::formats::convert;
use agent_checkpoint::strategies::task_checkpoint;
use agent_checkpoint::{Checkpoint, TaskCheckpoint};
use common::time;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_task_holds_what_a_task_had(mut task in task_checkpoint()) {
        // A current step that is not in the plan joins it: it is not lost when it is put aside.
        if let Some(step) = &task.current_step {
            let text = step.description.clone().unwrap();
            if !task.pending_steps.contains(&text) {
                task.pending_steps.insert(0, text);
            }
        }
        // Texts tell list elements apart.
        task.completed_steps.dedup_by(|a, b| a.step == b.step);
        let handoff = task.handoff();
        let converted = convert::<TaskCheckpoint>(&handoff, time("2026-03-02T08:00:00Z")).unwrap();
        prop_assert_eq!(converted.checkpoint.handoff().pending, handoff.pending);
        prop_assert_eq!(converted.checkpoint.completed_steps, task.completed_steps);
        prop_assert_eq!(converted.checkpoint.decisions, task.decisions);
    }
}

#[test]
fn what_the_target_cannot_hold_is_listed() {
    let mut handoff = common::task(&["one"]).handoff();
    handoff.description = Some("Do it".into());
    handoff.instructions.push("Be kind".into());
    let converted = convert::<TaskCheckpoint>(&handoff, time("2026-03-02T08:00:00Z")).unwrap();
    assert_eq!(
        converted.not_held,
        ["description: Do it", "instruction: Be kind"]
    );
}
