//! The triggers of the agent-session document: heartbeat, phase completion, blocker, sync points, transition.

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::agent_session::{AgentCheckpoint, AgentStatus, messages};
use agent_checkpoint::recorder::{Opened, Owner, Recorder};
use agent_checkpoint::{ErrorKind, Timestamp};

use crate::common::key;
use crate::scenes::{Scene, begun};
use agent_checkpoint::Clock;

fn agent(scene: &Scene) -> Recorder<AgentCheckpoint> {
    let plan = ["Read S2.P1 guide", "Research"];
    let owner = Owner::new("Secondary-A").in_session("s1");
    let first = AgentCheckpoint::begin("Secondary-A", "s1", "feature_02", plan, scene.watch.now());
    begun(&scene.view(), "Secondary-A", owner, &first)
}

fn text(stamp: &Option<Timestamp>) -> &str {
    stamp.as_ref().unwrap().text()
}

#[test]
fn trigger_heartbeat_updates() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    scene.watch.pass(15);
    recorder.heartbeat().unwrap();
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(text(&agent.last_checkpoint), "2026-03-02T08:15:00Z");
    assert_eq!(
        text(&agent.next_checkpoint_expected),
        "2026-03-02T08:30:00Z"
    );
    // A timer without the agent's knowledge is refused.
    let refused = recorder.beating(std::time::Duration::from_secs(900), || ());
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Refused { .. })
            && refused.to_string().contains("a report of its agent"),
        "{refused}"
    );
}

#[test]
fn trigger_phase_completion() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    recorder.phase("Research Phase - Complete").unwrap();
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(agent.phase.as_deref(), Some("Research Phase - Complete"));
    assert!(
        !recorder
            .phase("Research Phase - Complete")
            .unwrap()
            .is_written()
    );
}

#[test]
fn trigger_blocker_occurrence() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    recorder.block("The API is not specified").unwrap();
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(agent.status, Some(AgentStatus::Blocked));
    assert_eq!(agent.blockers, ["The API is not specified"]);
    recorder.unblock().unwrap();
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(agent.status, Some(AgentStatus::InProgress));
}

#[test]
fn trigger_sync_points() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    // Before the sync the agent waits; after it, it continues.
    recorder.sync("Group 1").unwrap();
    let waiting = recorder.checkpoint().unwrap();
    assert_eq!(waiting.status, Some(AgentStatus::Waiting));
    assert_eq!(waiting.sync_point(), Some("Group 1"));
    assert!(!recorder.sync("Group 1").unwrap().is_written());
    recorder.step_done(&StepDone::current()).unwrap();
    let after = recorder.checkpoint().unwrap();
    assert_eq!(after.status, Some(AgentStatus::InProgress));
    assert_eq!(after.completed_steps, ["Sync point Group 1 passed"]);
}

#[test]
fn trigger_phase_transition() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    recorder.stage("S2.P2").unwrap();
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(agent.stage.as_deref(), Some("S2.P2"));
    assert_eq!(agent.phase.as_deref(), Some("Specification - Starting"));
    assert_eq!(agent.completed_steps, ["S2.P1 complete"]);
    let next = recorder.plan().unwrap().handoff.instructions;
    assert!(
        next.iter()
            .any(|line| line.contains("Resume from beginning of S2.P2")),
        "{next:?}"
    );
}

#[test]
fn the_same_agent_resumes_in_a_fresh_session_at_the_same_stage() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    recorder.stage("S2.P2").unwrap();
    recorder.step_started("Write the specification").unwrap();
    recorder.note_partial("Section 3 is next").unwrap();
    recorder.leave().unwrap();
    scene.watch.pass(45);

    let found = Recorder::resume(&scene.view(), &key("Secondary-A"), "Secondary-A").unwrap();
    let message = messages::resume(&found.loaded.checkpoint, scene.watch.now());
    assert!(
        message.contains("Checkpoint found! Resuming work..."),
        "{message}"
    );
    let session = {
        let recorder = found.carry_on().unwrap();
        let agent = recorder.checkpoint().unwrap();
        assert_eq!(agent.agent_id.as_deref(), Some("Secondary-A"));
        assert_eq!(agent.stage.as_deref(), Some("S2.P2"));
        assert_eq!(agent.feature.as_deref(), Some("feature_02"));
        assert_eq!(agent.status, Some(AgentStatus::InProgress));
        assert_eq!(
            agent.session_id.as_deref(),
            Some(&*recorder.owner().session)
        );
        recorder.leave().unwrap();
        agent.session_id.unwrap()
    };
    assert_ne!(session, "s1");

    // Its program was restarted in the same session: there is nothing to write.
    let owner = Owner::new("Secondary-A").in_session(session);
    let found = Recorder::resume(&scene.view::<AgentCheckpoint>(), &key("Secondary-A"), owner);
    let saves = scene.saves("Secondary-A");
    let again = found.unwrap().carry_on().unwrap();
    assert_eq!(scene.saves("Secondary-A"), saves);
    again.step_done(&StepDone::current()).unwrap();

    // Another agent has a separate file.
    let found = Recorder::resume(
        &scene.view::<AgentCheckpoint>(),
        &key("Secondary-A"),
        "Secondary-B",
    );
    let refused = found.unwrap().carry_on().unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Claimed { .. }),
        "{refused}"
    );
    again.leave().unwrap();
    let found = Recorder::resume(
        &scene.view::<AgentCheckpoint>(),
        &key("Secondary-A"),
        "Secondary-B",
    );
    let refused = found.unwrap().carry_on().unwrap_err();
    assert!(refused.to_string().contains("take_over"), "{refused}");
    assert!(matches!(
        Recorder::begin(
            &scene.view::<AgentCheckpoint>(),
            &key("Secondary-A"),
            "Secondary-A",
            &AgentCheckpoint::begin("Secondary-A", "s9", "f", ["a"], scene.watch.now()),
        ),
        Ok(Opened::Found(_))
    ));
}

#[test]
fn an_error_blocks_the_agent_and_a_step_told_twice_is_there_once() {
    let scene = Scene::new();
    let recorder = agent(&scene);
    recorder
        .step_done(&StepDone::new("Research").with_modified("spec.md"))
        .unwrap();
    let again = recorder.step_done(&StepDone::new("Research").with_modified("spec.md"));
    assert!(!again.unwrap().is_written());
    let broken = recorder.scope(|_| Err::<(), _>("no network")).unwrap_err();
    assert!(broken.checkpoint.is_ok());
    let agent = recorder.checkpoint().unwrap();
    assert_eq!(agent.status, Some(AgentStatus::Blocked));
    assert_eq!(agent.blockers, ["no network"]);
    // The protocol has no failed agent: the agent is blocked, once by the same blocker.
    assert!(!recorder.failed("no network").unwrap().is_written());
}
