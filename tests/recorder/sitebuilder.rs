//! The table "Checkpoint Frequency" of the sitebuilder document.

use agent_checkpoint::Operation;
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::sitebuilder::{SitebuilderCheckpoint, TaskStatus};
use agent_checkpoint::recorder::Recorder;
use agent_checkpoint::{Clock, ErrorKind};

use crate::common::key;
use crate::scenes::{Scene, begun};

fn site(scene: &Scene) -> Recorder<SitebuilderCheckpoint> {
    let plan = ["post-01", "post-02", "post-03"];
    let first = SitebuilderCheckpoint::begin("migration", "T060", plan, scene.watch.now())
        .with_criteria(["files_created"]);
    begun(&scene.view(), "migration-T060", "migration", &first)
}

fn started(id: &str) -> Operation {
    Operation::SubtaskStart { id: id.to_owned() }
}

fn done(id: &str, files: &[&str]) -> Operation {
    Operation::SubtaskDone {
        id: id.to_owned(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
    }
}

fn failed(id: &str, because: Option<&str>) -> Operation {
    Operation::SubtaskFail {
        id: id.to_owned(),
        because: because.map(str::to_owned),
    }
}

#[test]
fn frequency_file_created() {
    let scene = Scene::new();
    let recorder = site(&scene);
    let file = ["posts/01.md".to_owned()];
    let recorded = recorder.update(|site| {
        site.files_created.extend_from_slice(&file);
        Ok(())
    });
    assert!(recorded.unwrap().is_written());
    assert_eq!(recorder.checkpoint().unwrap().files_created, file);
}

#[test]
fn frequency_file_modified() {
    let scene = Scene::new();
    let recorder = site(&scene);
    recorder.report(started("post-01")).unwrap();
    let done = StepDone::current().with_modified("MANIFEST.json");
    recorder.step_done(&done).unwrap();
    assert_eq!(
        recorder.checkpoint().unwrap().files_modified,
        ["MANIFEST.json"]
    );
}

#[test]
fn frequency_subtask_completed() {
    let scene = Scene::new();
    let recorder = site(&scene);
    recorder.report(started("post-01")).unwrap();
    let recorded = recorder.report(done("post-01", &["posts/01.md"])).unwrap();
    let site = recorder.checkpoint().unwrap();
    assert_eq!(site.progress_percent, Some(33.0));
    assert_eq!(site.context.next_to_process.as_deref(), Some("post-02"));
    let message = recorded.message.unwrap();
    assert_eq!(message, "@orchestrator: Task T060 progress: 33%");
    let again = recorder.report(done("post-01", &["posts/01.md"])).unwrap();
    assert!(!again.is_written());
}

#[test]
fn frequency_error_encountered() {
    let scene = Scene::new();
    let recorder = site(&scene);
    recorder
        .report(failed("post-02", Some("no source")))
        .unwrap();
    assert_eq!(recorder.checkpoint().unwrap().errors.len(), 1);
    recorder.failed("the source folder is gone").unwrap();
    let site = recorder.checkpoint().unwrap();
    assert_eq!(site.status, Some(TaskStatus::Blocked));
    assert_eq!(site.errors[1].blocking, Some(true));
    recorder.unblock().unwrap();
    assert!(recorder.checkpoint().unwrap().errors.is_empty());
}

#[test]
fn frequency_5_minutes_elapsed() {
    let scene = Scene::new();
    let recorder = site(&scene);
    let due = recorder.checkpoint().unwrap().next_beat_due().unwrap();
    scene.watch.pass(5);
    assert_eq!(due, scene.watch.now());
    recorder.heartbeat().unwrap();
    let site = recorder.checkpoint().unwrap();
    let beat = site.heartbeat.clone().unwrap().last_beat.unwrap();
    assert_eq!(beat.text(), "2026-03-02T08:05:00Z");
    assert_eq!(
        site.updated_at.unwrap().text(),
        "2026-03-02T08:00:00Z",
        "no progress"
    );
}

#[test]
fn frequency_review_completed() {
    let scene = Scene::new();
    let recorder = site(&scene);
    recorder.verification("agent_4", "85").unwrap();
    let scores = recorder.checkpoint().unwrap().review_scores;
    assert_eq!(scores["agent_4"], Some(85.0));
}

#[test]
fn frequency_task_completed() {
    let scene = Scene::new();
    let recorder = site(&scene);
    let refused = recorder.complete().unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Refused { .. }),
        "{refused}"
    );
    let recorded = recorder.batch([
        done("post-01", &[]),
        done("post-02", &[]),
        done("post-03", &[]),
        Operation::Verify {
            activity: "files_created".to_owned(),
            status: "passed".to_owned(),
        },
        Operation::Complete,
    ]);
    let message = recorded.unwrap().message.unwrap();
    assert_eq!(message, "@orchestrator: Task T060 progress: 100%");
    let site = recorder.checkpoint().unwrap();
    assert_eq!(site.status, Some(TaskStatus::Complete));
    assert_eq!(scene.saves("migration-T060"), 1);
}

#[test]
fn a_dispatched_agent_of_the_type_goes_on_with_what_is_left() {
    let scene = Scene::new();
    let recorder = site(&scene);
    recorder.report(done("post-01", &[])).unwrap();
    recorder.block("a PDF is missing").unwrap();
    recorder.leave().unwrap();
    let resume = |agent: &str| {
        Recorder::resume(
            &scene.view::<SitebuilderCheckpoint>(),
            &key("migration-T060"),
            agent,
        )
    };
    let other = resume("technical").unwrap().carry_on().unwrap_err();
    assert!(
        other
            .to_string()
            .contains("named after the agent migration"),
        "{other}"
    );
    let found = resume("migration").unwrap();
    assert_eq!(
        found.resume.plan.questions.len(),
        1,
        "the error is to be looked at"
    );
    let recorder = found.carry_on().unwrap();
    let blocked = recorder.report(started("post-02")).unwrap_err();
    assert!(blocked.to_string().contains("unblock"), "{blocked}");
    recorder.unblock().unwrap();
    recorder.report(started("post-02")).unwrap();
}
