//! The usual loop in one call.

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::Interruption;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::recorder::{Opened, Owner, Ran, Recorder, RecorderOptions, RunError};
use agent_checkpoint::resume::ResumeReason;
use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::{Checkpoint, ClaimRequest, Clock, ErrorKind};

use crate::common::key;
use crate::scenes::{Scene, begun};

type Ending = Result<Ran<TaskCheckpoint>, RunError<String>>;

/// Runs the task of the scene for `agent`; `work` gets each step.
fn run(
    scene: &Scene,
    agent: impl Into<RecorderOptions>,
    mut work: impl FnMut(&str) -> Result<Option<StepDone>, String>,
) -> Ending {
    let first = scene.first(&["a", "b", "c"]);
    Recorder::run(&scene.view(), &key("US-003"), agent, &first, |step| {
        work(step.text())
    })
}

fn task(scene: &Scene) -> TaskCheckpoint {
    scene.view().get(&key("US-003")).unwrap().checkpoint
}

fn is_free(scene: &Scene) -> bool {
    let claim = scene.store.claimed(&key("US-003")).unwrap();
    claim.is_none_or(|claim| claim.released)
}

#[test]
fn a_run_does_every_step_once_and_gives_the_task_back() {
    let scene = Scene::new();
    let mut steps = Vec::new();
    let ran = run(&scene, "dev", |step| {
        steps.push((step.to_owned(), task(&scene).current_step.is_some()));
        Ok(Some(
            StepDone::new(format!("did {step}")).with_created(format!("{step}.rs")),
        ))
    });
    assert!(matches!(ran.unwrap(), Ran::Finished));
    let begun = ["a", "b", "c"].map(|step| (step.to_owned(), true));
    assert_eq!(
        steps, begun,
        "each is the current step while it is worked on"
    );
    let end = task(&scene);
    let done = end
        .completed_steps
        .iter()
        .map(|it| it.step.clone().unwrap());
    assert_eq!(done.collect::<Vec<_>>(), ["did a", "did b", "did c"]);
    assert!(end.pending_steps.is_empty() && is_free(&scene));

    // The program is started again: nothing is left, and nothing is changed.
    let before = scene.store.load(&key("US-003")).unwrap().unwrap().revision;
    let again = run(&scene, "other", |step| panic!("{step} again"));
    assert!(matches!(again.unwrap(), Ran::Finished));
    let after = scene.store.load(&key("US-003")).unwrap().unwrap().revision;
    assert_eq!(before, after);
}

#[test]
fn a_run_carries_on_with_the_step_that_was_in_progress_and_hands_over_what_was_found() {
    let scene = Scene::new();
    let dead = scene.task(&["a", "b"]);
    dead.step_done(&StepDone::new("a")).unwrap();
    dead.step_started("b").unwrap();
    // Its process was killed and released nothing.
    std::mem::forget(dead);
    scene.watch.pass(16);
    let mut seen = Vec::new();
    let first = scene.first(&["never"]);
    let ran = Recorder::run(&scene.view(), &key("US-003"), "other", &first, |step| {
        let found = step.resume().map(|resume| resume.plan.questions.len());
        seen.push((step.text().to_owned(), found, step.may_have_taken_effect()));
        if step.text() == "b" {
            step.recorder()
                .step_added("c", None)
                .map_err(|e| e.to_string())?;
        }
        Ok::<_, String>(StepDone::current())
    });
    assert!(matches!(ran.unwrap(), Ran::Finished));
    let told = [
        ("b".to_owned(), Some(1), true),
        ("c".to_owned(), None, false),
    ];
    assert_eq!(seen, told);
}

#[test]
fn a_run_leaves_what_somebody_must_answer_and_what_another_has() {
    let never = |step: &str| -> Result<Option<StepDone>, String> { panic!("{step} was worked on") };
    let is_left = |scene: &Scene, reason: &ResumeReason| {
        let before = scene.store.load(&key("US-003")).unwrap().unwrap();
        let claim = scene.store.claimed(&key("US-003")).unwrap();
        let Ran::Left(found) = run(scene, "other", never).unwrap() else {
            panic!("it ran");
        };
        let reasons = &found.resume.plan.reasons;
        assert!(reasons.contains(reason), "{reasons:?}");
        let after = scene.store.load(&key("US-003")).unwrap().unwrap();
        assert_eq!(before.revision, after.revision);
        assert_eq!(claim, scene.store.claimed(&key("US-003")).unwrap());
    };
    // A blocker, even beside a step that stopped in order and raises no question itself.
    for stopped in [false, true] {
        let scene = Scene::new();
        let recorder = scene.task(&["a"]);
        recorder.step_started("a").unwrap();
        recorder.block("no key").unwrap();
        if stopped {
            let stopped = Interruption::Stopped("told to".to_owned());
            recorder.interrupted(&stopped).unwrap();
        }
        drop(recorder);
        is_left(&scene, &ResumeReason::Blocked);
    }
    // Another agent at work.
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let claim = recorder.claim().unwrap();
    is_left(
        &scene,
        &ResumeReason::Held {
            owner: claim.owner,
            until: "2026-03-02T08:15:00Z".to_owned(),
        },
    );
}

#[test]
fn an_error_of_the_work_is_in_the_checkpoint_and_the_task_is_free() {
    let scene = Scene::new();
    let error = run(&scene, "dev", |step| match step {
        "b" => Err("no network".to_owned()),
        _ => Ok(Some(StepDone::current())),
    });
    let error = error.unwrap_err();
    assert!(matches!(&error, RunError::Work(broken) if broken.error == "no network"));
    assert_eq!(error.to_string(), "no network");
    let end = task(&scene);
    assert_eq!(end.blockers, ["no network"]);
    assert_eq!(end.current_step.unwrap().description.unwrap(), "b");
    assert!(is_free(&scene));
}

#[test]
fn work_that_stops_leaves_its_step_in_progress_and_asks_nothing_of_the_next_agent() {
    let scene = Scene::new();
    let stop = |step: &str| Ok((step != "b").then(StepDone::current));
    assert!(matches!(run(&scene, "dev", stop).unwrap(), Ran::Stopped));
    assert_eq!(task(&scene).metadata.reason, Some(Reason::Manual));
    assert!(is_free(&scene));
    let finish = |_: &str| Ok(Some(StepDone::current()));
    assert!(matches!(
        run(&scene, "other", finish).unwrap(),
        Ran::Finished
    ));

    // A context that is full ends the run after the step, or within it.
    for within in [false, true] {
        let scene = Scene::new();
        let first = scene.first(&["a", "b"]);
        let ran = Recorder::run(&scene.view(), &key("US-003"), "dev", &first, |step| {
            let advice = step.recorder().context_used(0.95);
            let _ = advice.map_err(|error| error.to_string())?;
            Ok::<_, String>((!within).then(StepDone::current))
        });
        assert!(matches!(ran.unwrap(), Ran::Stopped));
        let end = task(&scene);
        assert_eq!(end.completed_steps.len(), usize::from(!within));
        if within {
            assert_eq!(end.metadata.reason, Some(Reason::ContextLimit));
        }
        assert!(is_free(&scene));
    }
}

#[test]
fn a_format_whose_plan_has_no_steps_is_refused_before_anything_is_saved() {
    let scene = Scene::new();
    let first = BuildCheckpoint::default();
    let ran = Recorder::run(&scene.view(), &key("x"), "dev", &first, |_| {
        Ok::<_, String>(StepDone::current())
    });
    let Err(RunError::Record(error)) = ran else {
        panic!("it ran");
    };
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported { .. }),
        "{error}"
    );
    assert!(scene.store.load(&key("x")).unwrap().is_none());
    assert!(scene.store.claimed(&key("x")).unwrap().is_none());
}

#[test]
fn a_recorder_that_is_dropped_gives_its_claim_back_but_none_that_it_was_given() {
    let scene = Scene::new();
    drop(scene.task(&["a"]));
    assert!(is_free(&scene));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _recorder = begun(&scene.view(), "y", "dev", &scene.first(&["a"]));
        panic!("in the middle of it");
    }));
    assert!(panicked.is_err());
    assert!(scene.store.claimed(&key("y")).unwrap().unwrap().released);

    // A supervisor claimed the task and passes on its fence: the recorder writes with it, makes no claim, and does not
    // release it.
    let request = ClaimRequest::new("supervisor", std::time::Duration::from_secs(900));
    let claim = scene.store.claim(&key("x"), &request).unwrap();
    let fenced = scene.view::<TaskCheckpoint>().fenced(claim.fence);
    for _ in 0..2 {
        let opened = Recorder::begin(&fenced, &key("x"), "dev", &scene.first(&["a"])).unwrap();
        let recorder = match opened {
            Opened::Begun(recorder) => recorder,
            Opened::Found(found) => found.carry_on().unwrap(),
            Opened::Complete(_) => panic!("nothing is left"),
        };
        assert_eq!(recorder.fence(), Some(claim.fence));
        assert!(recorder.claim().is_none());
        recorder.step_started("a").unwrap();
    }
    assert_eq!(scene.store.claimed(&key("x")).unwrap().unwrap(), claim);

    // A recorder whose task was taken over leaves the other's claim alone.
    let old = begun(&scene.view(), "z", "dev", &scene.first(&["a"]));
    let options = RecorderOptions::new(Owner::new("other")).taking_over();
    let new = Recorder::resume(&scene.view::<TaskCheckpoint>(), &key("z"), options).unwrap();
    let new = new.carry_on().unwrap();
    drop(old);
    new.step_started("a").unwrap();
}

#[test]
fn the_next_step_is_the_one_in_progress_then_the_first_of_the_plan() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    assert_eq!(recorder.next_step().unwrap().as_deref(), Some("a"));
    recorder.step_started("b").unwrap();
    assert_eq!(recorder.next_step().unwrap().as_deref(), Some("b"));
    for step in ["b", "a"] {
        recorder.step_done(&StepDone::new(step)).unwrap();
    }
    assert_eq!(recorder.next_step().unwrap(), None);
}

/// Every format with a plan of steps: each step is done once, in the order of the plan.
#[test]
fn a_run_ends_in_every_format_with_steps() {
    fn runs<C: Checkpoint>(first: impl Fn(&Scene) -> C, name: &str, owner: Owner) {
        let scene = Scene::new();
        let mut steps = Vec::new();
        let ran = Recorder::run(&scene.view(), &key(name), owner, &first(&scene), |step| {
            steps.push(step.text().to_owned());
            Ok::<_, String>(StepDone::current())
        });
        assert!(matches!(ran.unwrap(), Ran::Finished), "{}", C::FORMAT);
        assert_eq!(steps, ["one", "two"], "{}", C::FORMAT);
    }
    let plan = ["one", "two"];
    let task = |scene: &Scene| scene.first(&plan);
    runs(task, "x", Owner::new("dev"));
    let agent = |scene: &Scene| AgentCheckpoint::begin("A", "s1", "f", plan, scene.watch.now());
    runs(agent, "A", Owner::new("A").in_session("s1"));
    let site = |scene: &Scene| SitebuilderCheckpoint::begin("m", "T1", plan, scene.watch.now());
    runs(site, "m-T1", Owner::new("m"));
}
