//! An existing checkpoint is never overwritten: the caller gets it and decides.

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::{CheckpointStore, FileStore};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind};

use crate::common::key;
use crate::common::only_swaps::OnlySwaps;
use crate::scenes::{Scene, begun};
use agent_checkpoint::Checkpoints;

fn found(scene: &Scene, plan: &[&str]) -> agent_checkpoint::recorder::Found<TaskCheckpoint> {
    let opened = Recorder::begin(&scene.view(), &key("US-003"), "dev", &scene.first(plan));
    match opened.unwrap() {
        Opened::Found(found) | Opened::Complete(found) => *found,
        Opened::Begun(_) => panic!("the checkpoint was overwritten"),
    }
}

#[test]
fn a_checkpoint_that_is_there_is_given_back_with_its_plan_and_left() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_done(&StepDone::new("a")).unwrap();
    let before = scene.store.load(&key("US-003")).unwrap().unwrap().revision;
    let there = found(&scene, &["c"]);
    assert_eq!(there.resume.plan.start_at.as_deref(), Some("b"));
    assert_eq!(
        there.claimed.as_ref().unwrap().fence,
        recorder.fence().unwrap()
    );
    drop(there);
    assert_eq!(
        scene.store.load(&key("US-003")).unwrap().unwrap().revision,
        before
    );
    recorder.step_done(&StepDone::new("b")).unwrap();
}

#[test]
fn whoever_starts_over_keeps_what_was_there() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_done(&StepDone::new("a")).unwrap();
    recorder.leave().unwrap();
    let anew = found(&scene, &["c"])
        .start_over(&scene.first(&["c"]))
        .unwrap();
    anew.step_started("c").unwrap();
    assert!(anew.checkpoint().unwrap().completed_steps.is_empty());
    let past = scene.store.states(&key("US-003")).unwrap();
    let kept = past.iter().find(|entry| entry.pinned).unwrap();
    let kept = scene
        .view::<TaskCheckpoint>()
        .load_revision(&key("US-003"), &kept.id)
        .unwrap();
    assert_eq!(kept.checkpoint.completed_steps.len(), 1);

    // A store without history does not start over.
    let plain = OnlySwaps::default();
    let view = Checkpoints::<TaskCheckpoint>::new(plain.clone());
    begun(&view, "x", "dev", &scene.first(&["a"]));
    let opened = Recorder::begin(&view, &key("x"), "dev", &scene.first(&["b"])).unwrap();
    let Opened::Found(there) = opened else {
        panic!()
    };
    let refused = there.start_over(&scene.first(&["b"])).unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::NotOffered { .. }),
        "{refused}"
    );
    assert_eq!(view.get(&key("x")).unwrap().checkpoint.pending_steps, ["a"]);
}

#[test]
fn a_complete_task_is_not_carried_on_and_none_cannot_be_resumed() {
    let scene = Scene::new();
    let missing = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), "dev");
    assert_eq!(*missing.unwrap_err().kind(), ErrorKind::NotFound);
    let recorder = scene.task(&["a"]);
    recorder.step_done(&StepDone::new("a")).unwrap();
    recorder.leave().unwrap();
    let there = found(&scene, &["a"]);
    assert_eq!(there.resume.plan.decision, ResumeDecision::Refuse);
    let refused = there.carry_on().unwrap_err();
    assert!(refused.to_string().contains("complete"), "{refused}");
    assert!(
        found(&scene, &["a"]).claimed.is_none(),
        "and claims nothing"
    );
}

#[test]
fn an_agent_that_wrote_since_it_was_found_is_not_dead() {
    let scene = Scene::new();
    let plain = OnlySwaps::default();
    let view = Checkpoints::<TaskCheckpoint>::new(plain.clone());
    let recorder = begun(&view, "x", "dev", &scene.first(&["a", "b"]));
    let there = Recorder::resume(&view, &key("x"), "other").unwrap();
    recorder.step_done(&StepDone::new("a")).unwrap();
    let conflict = there.carry_on().unwrap_err();
    let ErrorKind::Conflict { found, .. } = conflict.kind() else {
        panic!("{conflict}");
    };
    assert_eq!(*found, Some(view.get(&key("x")).unwrap().revision));
    recorder.step_done(&StepDone::new("b")).unwrap();
}

#[test]
fn a_first_checkpoint_that_is_not_saved_leaves_no_claim() {
    let scene = Scene::new();
    let mut newer = scene.first(&["a"]);
    newer.schema_version = Some(99);
    let opened = Recorder::begin(&scene.view(), &key("x"), "dev", &newer);
    assert!(matches!(
        opened.unwrap_err().kind(),
        ErrorKind::NewerSchema { .. }
    ));
    let claim = scene.store.claimed(&key("x")).unwrap().unwrap();
    assert!(claim.released);

    // A task that another agent has claimed cannot be begun.
    let other = agent_checkpoint::ClaimRequest::new("other", std::time::Duration::from_secs(60));
    scene.store.claim(&key("x"), &other).unwrap();
    let refused = Recorder::begin(&scene.view(), &key("x"), "dev", &scene.first(&["a"]));
    assert!(matches!(
        refused.unwrap_err().kind(),
        ErrorKind::Claimed { .. }
    ));
    let options = RecorderOptions::new("dev").taking_over();
    begun(&scene.view(), "x", options, &scene.first(&["a"]));
}

/// A value that an orchestrator keeps in a struct, moves into a task, and passes to a hook that must be `'static`.
#[test]
fn a_recorder_owns_its_store_and_goes_wherever_it_is_needed() {
    struct Agent {
        recorder: Recorder<TaskCheckpoint>,
    }
    fn is_send_and_owned<T: Send + 'static>(it: T) -> T {
        it
    }
    fn is_shared<T: Clone + Send + Sync + 'static>(it: &T) -> T {
        it.clone()
    }
    let folder = tempfile::tempdir().unwrap();
    let agent = {
        let store = FileStore::open(folder.path());
        let tasks = is_shared(&store.checkpoints::<TaskCheckpoint>());
        let first = TaskCheckpoint::begin("dev", ["a"], tasks.now());
        is_send_and_owned(Agent {
            recorder: begun(&tasks, "US-003", "dev", &first),
        })
        // The store and its view end here.
    };
    let hook: Box<dyn FnOnce() -> String + Send + 'static> = Box::new(move || {
        agent.recorder.step_started("a").unwrap();
        let step = agent.recorder.checkpoint().unwrap().current_step.unwrap();
        step.description.unwrap()
    });
    assert_eq!(std::thread::spawn(hook).join().unwrap(), "a");
}
