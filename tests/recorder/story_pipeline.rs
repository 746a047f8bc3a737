//! "Worker Write Protocol" of the story-pipeline document: what each stage writes, after which event.

use agent_checkpoint::Operation;
use agent_checkpoint::formats::Number;
use agent_checkpoint::formats::story_pipeline::{Counters, StoryCheckpoint, Verdict};
use agent_checkpoint::recorder::{Recorder, RecorderOptions};
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::{Checkpoint, Clock, ErrorKind};

use crate::common::key;
use crate::scenes::{Scene, begun};

fn number(n: u8) -> Number {
    Number::from(n)
}

/// A story at the end of stage 0.
fn story(scene: &Scene) -> Recorder<StoryCheckpoint> {
    let tasks = ["PROJ-101", "PROJ-102"];
    let now = scene.watch.now();
    let first = StoryCheckpoint::begin("PROJ-42", "abc-123", tasks, now).unwrap();
    let recorder = begun(&scene.view(), "PROJ-42", "abc-123", &first);
    recorder.report(measured("planScore", "4")).unwrap();
    recorder
}

fn in_stage_2(scene: &Scene) -> Recorder<StoryCheckpoint> {
    let recorder = story(scene);
    recorder.stage("1").unwrap();
    measure(&recorder, "readiness", "8", "GO");
    recorder.stage("2").unwrap();
    recorder
}

/// The score and the verdict of a stage, in one save.
fn measure(recorder: &Recorder<StoryCheckpoint>, what: &str, score: &str, verdict: &str) {
    let both = [measured(what, score), measured("verdict", verdict)];
    recorder.batch(both).unwrap();
}

fn measured(activity: &str, status: &str) -> Operation {
    Operation::Verify {
        activity: activity.to_owned(),
        status: status.to_owned(),
    }
}

fn failed(because: &str) -> Operation {
    Operation::Fail {
        text: because.to_owned(),
    }
}

fn started(id: &str) -> Operation {
    Operation::TaskStart { id: id.to_owned() }
}

fn done(id: &str, files: &[&str]) -> Operation {
    Operation::TaskDone {
        id: id.to_owned(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
    }
}

#[test]
fn write_protocol_stage_0_after_tasks_created() {
    let scene = Scene::new();
    let recorder = story(&scene);
    let story = recorder.checkpoint().unwrap();
    assert_eq!(story.agent_id.as_deref(), Some("abc-123"));
    assert_eq!(story.plan_score, Some(number(4)));
    assert!(story.completed().is_empty());
    assert_eq!(story.remaining(), ["PROJ-101", "PROJ-102"]);
    assert!(recorder.plan().unwrap().violations.is_empty());
}

#[test]
fn write_protocol_stage_1_after_validation() {
    let scene = Scene::new();
    let recorder = story(&scene);
    recorder.stage("1").unwrap();
    // NO-GO has a reason, and is retried once.
    recorder
        .batch([measured("readiness", "3"), failed("no test data")])
        .unwrap();
    let no = recorder.checkpoint().unwrap();
    assert_eq!(no.verdict, Some(Verdict::NoGo));
    assert_eq!(no.reason.as_deref(), Some("no test data"));
    assert!(no.completed().is_empty() && no.remaining().is_empty());
    recorder.stage("1").unwrap();
    measure(&recorder, "readiness", "8", "GO");
    let go = recorder.checkpoint().unwrap();
    assert_eq!(
        (go.readiness, go.verdict),
        (Some(number(8)), Some(Verdict::Go))
    );
    assert!(recorder.plan().unwrap().violations.is_empty());
}

#[test]
fn write_protocol_stage_2_after_each_task_completes() {
    let scene = Scene::new();
    let recorder = in_stage_2(&scene);
    let before = scene.saves("PROJ-42");
    recorder.report(done("PROJ-101", &[])).unwrap();
    let story = recorder.checkpoint().unwrap();
    assert_eq!(story.completed(), ["PROJ-101"]);
    assert_eq!(story.remaining(), ["PROJ-102"]);
    assert_eq!(story.action(), Some("PROJ-101 done"));
    assert_eq!(scene.saves("PROJ-42"), before + 1);
    let again = recorder.report(done("PROJ-101", &[])).unwrap_err();
    assert!(matches!(again.kind(), ErrorKind::Refused { .. }));
    assert_eq!(
        recorder.checkpoint().unwrap(),
        story,
        "and nothing was written"
    );
}

#[test]
fn write_protocol_stage_3_after_quality_gate() {
    let scene = Scene::new();
    let recorder = in_stage_2(&scene);
    for task in ["PROJ-101", "PROJ-102"] {
        recorder.report(done(task, &[])).unwrap();
    }
    recorder.stage("3").unwrap();
    recorder
        .batch([measured("qualityScore", "40"), failed("no error handling")])
        .unwrap();
    let story = recorder.checkpoint().unwrap();
    assert_eq!(story.issues.as_deref(), Some("no error handling"));
    assert_eq!(story.completed().len(), 2);
    // The number of times it goes back is counted beside the checkpoint.
    recorder.leave().unwrap();
    let counted = |cycles| {
        let mut counters = Counters::default();
        counters.quality_cycles = cycles;
        let known = ResumeOptions::default().with_input(counters);
        let options = RecorderOptions::new("abc-123").resuming_with(known);
        let found = Recorder::resume(&scene.view(), &key("PROJ-42"), options);
        found.unwrap().carry_on().unwrap()
    };
    let recorder: Recorder<StoryCheckpoint> = counted(2);
    assert!(recorder.stage("2").is_err());
    recorder.leave().unwrap();
    let recorder = counted(1);
    recorder.stage("2").unwrap();
    // Not before a fix was reported.
    assert!(recorder.stage("3").is_err());
    recorder.report(started("PROJ-103")).unwrap();
    recorder.report(done("PROJ-103", &[])).unwrap();
    recorder.stage("3").unwrap();
    measure(&recorder, "qualityScore", "92", "PASS");
    recorder.complete().unwrap();
    assert_eq!(recorder.checkpoint().unwrap().verdict, Some(Verdict::Pass));
}

#[test]
fn an_error_of_the_worker_is_no_verdict_on_the_story() {
    let scene = Scene::new();
    let recorder = story(&scene);
    recorder.stage("1").unwrap();
    measure(&recorder, "readiness", "8", "GO");
    for why in ["disk full", "out of memory"] {
        let _ = recorder.scope(|_| Err::<(), _>(why)).unwrap_err();
    }
    let story = recorder.checkpoint().unwrap();
    assert_eq!(story.verdict, Some(Verdict::Go));
    let action = story.action().unwrap();
    assert_eq!(
        action,
        "Stage 1 completed, verdict: GO; then interrupted: out of memory"
    );
}

#[test]
fn a_new_worker_is_the_one_to_resume_from_now_on() {
    let scene = Scene::new();
    let recorder = in_stage_2(&scene);
    let handed = recorder.reassign("story-PROJ-42-s2-retry").unwrap();
    let prompt = handed.resume.prompt().unwrap();
    for part in ["taking over work from abc-123", "PROJ-101", "PROJ-102"] {
        assert!(prompt.contains(part), "{part:?} in:\n{}", prompt);
    }
    let found =
        Recorder::resume(&scene.view::<StoryCheckpoint>(), &key("PROJ-42"), "other").unwrap();
    let worker = found.carry_on().unwrap();
    assert_eq!(
        worker.checkpoint().unwrap().handoff().agent.as_deref(),
        Some("other")
    );
}
