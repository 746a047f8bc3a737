//! Workstreams and gates, and a build that fails.

use agent_checkpoint::Operation;
use agent_checkpoint::formats::build_pipeline::{BuildCheckpoint, ExecutionSpec, SpecPhase};
use agent_checkpoint::{Checkpoint, Clock, Status};

use crate::scenes::{Scene, begun};

fn started(id: &str) -> Operation {
    Operation::WorkstreamStart { id: id.to_owned() }
}

fn done(id: &str, files: &[&str]) -> Operation {
    Operation::WorkstreamDone {
        id: id.to_owned(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
    }
}

#[test]
fn a_build_is_recorded_by_workstreams_and_gates_and_its_error_is_kept() {
    let scene = Scene::new();
    let phase = SpecPhase::new(1, [("WS1", "Database"), ("WS2", "Service")]);
    let spec = ExecutionSpec::new([phase], ["lint"]);
    let first = BuildCheckpoint::initialize("PRD-009", "x", &spec, scene.watch.now()).unwrap();
    let recorder = begun(&scene.view(), "PRD-009", "builder", &first);
    recorder.report(started("WS1")).unwrap();
    recorder.report(done("WS1", &["dtos.ts"])).unwrap();
    recorder.gate_passed("lint").unwrap();
    assert!(!recorder.gate_passed("lint").unwrap().is_written());
    let build = recorder.checkpoint().unwrap();
    assert_eq!(build.completed_workstreams, ["WS1"]);
    assert_eq!(build.files(), ["dtos.ts"]);

    recorder.report(started("WS2")).unwrap();
    let broken = recorder
        .scope(|_| Err::<(), _>("no such type"))
        .unwrap_err();
    assert!(broken.checkpoint.unwrap().is_written());
    let build = recorder.checkpoint().unwrap();
    assert_eq!(build.status(), Status::Failed);
    assert_eq!(build.handoff().blockers.len(), 1);
    assert!(recorder.decide("x", None).is_err());
}
