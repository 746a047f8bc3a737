//! Workstreams and gates, and a build whose work fails.

use agent_checkpoint::ItemKind::Workstream;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::{Checkpoint, Clock, ExecutionSpec, SpecPhase, Status};

use crate::scenes::{Scene, begun};

#[test]
fn a_build_is_recorded_by_workstreams_and_gates_and_its_error_is_kept() {
    let scene = Scene::new();
    let phase = SpecPhase::new(1, [("WS1", "Database"), ("WS2", "Service")]);
    let spec = ExecutionSpec::new([phase], ["lint"]);
    let first = BuildCheckpoint::initialize("PRD-009", "x", &spec, scene.watch.now()).unwrap();
    let recorder = begun(&scene.view(), "PRD-009", "builder", &first);
    recorder.item_started(Workstream, "WS1").unwrap();
    recorder.item_done(Workstream, "WS1", &["dtos.ts"]).unwrap();
    recorder.gate_passed("lint").unwrap();
    assert!(!recorder.gate_passed("lint").unwrap().is_written());
    let build = recorder.checkpoint().unwrap();
    assert_eq!(build.completed_workstreams, ["WS1"]);
    assert_eq!(build.files(), ["dtos.ts"]);

    recorder.item_started(Workstream, "WS2").unwrap();
    let broken = recorder
        .scope(|_| Err::<(), _>("no such type"))
        .unwrap_err();
    assert!(broken.checkpoint.unwrap().is_written());
    let build = recorder.checkpoint().unwrap();
    assert_eq!(build.status(), Status::Failed);
    assert_eq!(build.handoff().blockers.len(), 1);
    assert!(recorder.decide("x", None).is_err());
}
