//! Calls after another agent got the task.

use agent_checkpoint::ErrorKind;

use crate::common::key;
use crate::scenes::Scene;
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::Recorder;

#[test]
fn a_task_that_was_given_away_is_the_others_at_once() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_done(&StepDone::new("a")).unwrap();
    recorder.reassign("other").unwrap();
    let refused = recorder.step_started("b").unwrap_err();
    let taken = ErrorKind::TakenOver {
        by: Some("other".to_owned()),
    };
    assert_eq!(*refused.kind(), taken);
    // The claim is released: the other agent need not wait, and the list of agents shows who worked before.
    let found = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), "other").unwrap();
    let other = found.carry_on().unwrap();
    other.step_done(&StepDone::new("b")).unwrap();
    let task = other.checkpoint().unwrap();
    assert_eq!(task.metadata.previous_agents, ["dev"]);
    assert_eq!(task.completed_steps.len(), 2);
}

#[test]
fn a_task_is_given_to_nobody_without_a_name() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    assert!(recorder.reassign(" ").is_err());
    recorder.step_started("a").unwrap();
}
