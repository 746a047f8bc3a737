//! A task has one owner at a time.

use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Owner, Ran, Recorder, RecorderOptions};
use agent_checkpoint::store::{FileStore, Outcome};
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, ClaimRequest, ErrorKind};
use agent_checkpoint::{Operation, OperationContext, StepDone};

use crate::common::children::{Given, Running, say};
use crate::common::key;
use crate::common::only_swaps::OnlySwaps;
use crate::scenes::{Scene, begun};

#[test]
fn once_another_owner_has_the_task_every_call_is_refused_also_one_that_changes_nothing() {
    let scene = Scene::new();
    let old = scene.task(&["a", "b"]);
    old.step_started("a").unwrap();
    scene.watch.pass(16);
    // The claim was not renewed, so another agent may take the task.
    let new = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), "other")
        .unwrap()
        .carry_on()
        .unwrap();
    new.step_done(&StepDone::current()).unwrap();
    let before = new.checkpoint().unwrap();
    for refused in [
        old.step_done(&StepDone::new("b")),
        old.decide("late", None),
        old.failed("late"),
        old.batch([Operation::Complete]),
        old.update(|_| Ok(())),
        old.heartbeat(),
    ] {
        let refused = refused.unwrap_err();
        assert!(refused.is_taken_over() || matches!(refused.kind(), ErrorKind::Unsupported { .. }));
    }
    assert!(old.context_used(0.8).unwrap_err().is_taken_over());
    assert!(old.reassign("third").unwrap_err().is_taken_over());
    assert!(old.leave().unwrap_err().is_taken_over());
    assert_eq!(new.checkpoint().unwrap(), before);
    new.step_done(&StepDone::new("b")).unwrap();
}

#[test]
fn a_claim_is_renewed_by_the_calls_and_keeps_others_out() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b", "c", "d", "e"]);
    let fence = recorder.fence();
    for step in ["a", "b", "c", "d", "e"] {
        scene.watch.pass(8);
        recorder.step_done(&StepDone::new(step)).unwrap();
        let there =
            Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), "other").unwrap();
        if step != "e" {
            let refused = there.carry_on().unwrap_err();
            assert!(
                matches!(refused.kind(), ErrorKind::Claimed { .. }),
                "{refused}"
            );
        }
    }
    assert_eq!(recorder.fence(), fence, "the same claim all along");
    // A call within the first half of the claim's time writes no claim.
    let before = recorder.claim().unwrap().expires;
    scene.watch.pass(3);
    recorder.decide("x", None).unwrap();
    assert_eq!(recorder.claim().unwrap().expires, before);
}

#[test]
fn whoever_was_away_for_longer_than_the_claim_goes_on_if_nobody_took_the_task() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    scene.watch.pass(300);
    recorder.step_done(&StepDone::new("a")).unwrap();
    let claim = recorder.claim().unwrap();
    assert!(claim.stands(scene.view::<TaskCheckpoint>().now()));
}

#[test]
fn a_task_that_was_given_back_is_free_at_once() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.leave().unwrap();
    let other = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), "other").unwrap();
    other.carry_on().unwrap().step_started("a").unwrap();
}

#[test]
fn where_a_store_has_no_claims_the_checkpoint_tells_whose_it_is() {
    let scene = Scene::new();
    let plain = OnlySwaps::default();
    let view = Checkpoints::<TaskCheckpoint>::new(plain.clone());
    let old = begun(&view, "x", "dev", &scene.first(&["a"]));
    assert_eq!(old.fence(), None);
    old.step_started("a").unwrap();
    let new = Recorder::resume(&view, &key("x"), "other")
        .unwrap()
        .carry_on()
        .unwrap();
    let refused = old.step_done(&StepDone::current()).unwrap_err();
    let taken = ErrorKind::TakenOver {
        by: Some("other".to_owned()),
    };
    assert_eq!(*refused.kind(), taken);
    assert!(
        refused.to_string().contains("other has the task now"),
        "{refused}"
    );
    // A report that would change nothing is refused as well.
    assert!(old.step_started("a").unwrap_err().is_taken_over());
    new.step_done(&StepDone::current()).unwrap();
    // A change by a supervisor without a name is no take-over.
    view.update(&key("x"), |task| task.blockers.push("wait".to_owned()))
        .unwrap();
    new.unblock().unwrap();
}

#[test]
fn two_sessions_of_one_agent_are_two_owners() {
    let scene = Scene::new();
    let first = scene.first(&["a"]);
    let s1 = || Owner::new("dev").in_session("s1");
    let one = begun(&scene.view(), "x", s1(), &first);
    one.step_started("a").unwrap();
    let there =
        |owner: Owner| Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("x"), owner).unwrap();
    let refused = there(Owner::new("dev")).carry_on().unwrap_err();
    assert!(refused.to_string().contains("dev, session s1"), "{refused}");
    // The same session, as after its program was started again, has the same claim.
    let saves = scene.saves("x");
    let again = there(s1()).carry_on().unwrap();
    assert_eq!(again.fence(), one.fence());
    assert_eq!(scene.saves("x"), saves);
}

#[test]
fn who_is_known_to_be_dead_is_taken_over_at_once() {
    let scene = Scene::new();
    let old = scene.task(&["a"]);
    let options = RecorderOptions::new("other").taking_over();
    let new = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("US-003"), options).unwrap();
    let new = new.carry_on().unwrap();
    assert!(new.fence() > old.fence());
    assert!(
        old.step_done(&StepDone::new("a"))
            .unwrap_err()
            .is_taken_over()
    );
}

#[test]
fn without_a_claim_others_are_noticed_all_the_same() {
    let scene = Scene::new();
    let options = RecorderOptions::new("dev").without_claim();
    let one = begun(&scene.view(), "x", options, &scene.first(&["a"]));
    assert!(scene.store.claimed(&key("x")).unwrap().is_none());
    let options = RecorderOptions::new("other").claiming_for(Duration::from_secs(5));
    let opened = Recorder::begin(&scene.view(), &key("x"), options, &scene.first(&["a"])).unwrap();
    let Opened::Found(there) = opened else {
        panic!()
    };
    let other = there.carry_on().unwrap();
    assert!(one.step_started("a").unwrap_err().is_taken_over());
    other.step_started("a").unwrap();
}

/// A child that is killed in the middle of its first step.
#[test]
fn child_works_until_it_is_killed() {
    let Some(given) = Given::find() else { return };
    let tasks = FileStore::open(&given.folder).checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a", "b"], tasks.now());
    let _ = Recorder::run(&tasks, &key("x"), "dev", &first, |_| {
        say("ready");
        std::thread::sleep(Duration::from_secs(600));
        Ok::<_, String>(StepDone::current())
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_was_killed_goes_on_at_once_when_it_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let function = "owning::child_works_until_it_is_killed";
    let mut child = Running::start(function, folder.path(), "-");
    assert_eq!(child.hear().as_deref(), Some("ready"));
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["never"], tasks.now());
    let run = |agent: &str| {
        let mut steps = Vec::new();
        let ran = Recorder::run(&tasks, &key("x"), agent, &first, |step| {
            steps.push(step.text().to_owned());
            Ok::<_, String>(StepDone::current())
        });
        (ran.unwrap(), steps)
    };
    // While the process is running, even the same agent in another session must wait.
    assert!(matches!(run("dev").0, Ran::Left(_)));
    child.kill();
    assert!(
        matches!(run("other").0, Ran::Left(_)),
        "another agent waits as before"
    );
    let (ran, steps) = run("dev");
    assert!(matches!(ran, Ran::Finished), "{ran:?}");
    assert_eq!(steps, ["a", "b"]);
}

#[test]
fn a_task_is_taken_up_without_its_type() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.leave().unwrap();
    let formats = agent_checkpoint::formats::Formats::default();
    let view = scene.view::<TaskCheckpoint>();
    let any = formats.get("task").unwrap();
    let any = any.checkpoints(&Checkpoints::new(scene.store.clone()));
    let key = key("US-003");
    let by = |agent| OperationContext::at(view.now()).by(Some(agent), Some("s"));
    let taken_up = any.take_up(&key, &by("other")).unwrap();
    assert_eq!(taken_up.outcome, Outcome::Replaced);
    let task = view.get(&key).unwrap().checkpoint;
    assert_eq!(task.metadata.created_by.as_deref(), Some("other"));
    assert_eq!(task.metadata.previous_agents.len(), 1);
    let again = any.take_up(&key, &by("other")).unwrap();
    assert_eq!(again.outcome, Outcome::Unchanged);
    // A claimed task, by the holder of its fence.
    let request = ClaimRequest::new("third", Duration::from_secs(60));
    scene.store.claim(&key, &request).unwrap();
    let refused = any.take_up(&key, &by("fourth")).unwrap_err();
    assert_eq!(refused.code(), "claimed");
}
