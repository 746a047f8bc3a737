//! A step is one write, and a report of something known is none.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::SourceFiles;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::RecorderOptions;
use agent_checkpoint::store::{FileStore, Outcome};
use agent_checkpoint::testkit::seam::{self, Call, Watch, watched};
use agent_checkpoint::{Operation, StepDone};

use crate::scenes::{Scene, begun};

/// The files that got new contents.
#[derive(Default)]
struct Renames(Vec<PathBuf>);

impl Watch for Renames {
    fn after(&mut self, call: &Call<'_>) {
        if call.operation == seam::Operation::Rename {
            self.0.push(call.path.to_path_buf());
        }
    }
}

#[test]
fn each_call_is_one_write_of_one_file_and_the_same_call_again_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a", "b"], tasks.now());
    let recorder = begun(&tasks, "x", "dev", &first);
    let writes =
        |call: &dyn Fn() -> agent_checkpoint::Result<agent_checkpoint::recorder::Recorded>| {
            let renames = Rc::new(RefCell::new(Renames::default()));
            let recorded = watched(renames.clone(), || call().unwrap());
            let paths = renames.borrow().0.clone();
            assert!(
                paths.iter().all(|path| path.ends_with("x.json")),
                "{paths:?}"
            );
            assert_eq!(recorded.is_written(), !paths.is_empty());
            paths.len()
        };
    let step = StepDone::new("did a").with_pending("a");
    let again = StepDone::new("did a");
    let calls: [(&str, &dyn Fn() -> _); 7] = [
        ("step_started", &|| recorder.step_started("a")),
        ("note_partial", &|| recorder.note_partial("half")),
        ("decide", &|| recorder.decide("x", Some("y"))),
        ("block", &|| recorder.block("no")),
        ("unblock", &|| recorder.unblock()),
        ("phase", &|| recorder.phase("verification")),
        ("failed", &|| recorder.failed("all is lost")),
    ];
    for (name, call) in calls {
        assert_eq!(writes(call), 1, "{name}");
        assert_eq!(writes(call), 0, "{name} again");
    }
    assert_eq!(writes(&|| recorder.step_done(&step)), 1);
    assert_eq!(writes(&|| recorder.step_done(&again)), 0);
    let several = || {
        recorder.batch([
            Operation::StepStart { text: "b".into() },
            Operation::Decide {
                text: "z".into(),
                rationale: None,
            },
            Operation::Note {
                text: "begun".into(),
            },
        ])
    };
    assert_eq!(writes(&several), 1);
    assert_eq!(writes(&several), 0);
    let size = std::fs::metadata(folder.path().join("x.json"));
    assert!(size.unwrap().len() < 2048);
}

#[test]
fn a_batch_is_made_as_a_whole_or_not_at_all() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    let before = recorder.checkpoint().unwrap();
    let refused = recorder.batch([
        Operation::StepStart { text: "a".into() },
        StepDone::current().into(),
        StepDone::new("x").with_pending("no such step").into(),
    ]);
    assert!(refused.is_err());
    assert_eq!(recorder.checkpoint().unwrap(), before);
    let empty = recorder.batch::<Operation>([]).unwrap();
    assert_eq!(empty.saved.outcome, Outcome::Unchanged);
}

#[test]
fn files_that_are_no_sources_are_handed_back_unless_the_caller_takes_all() {
    let scene = Scene::new();
    let step = || {
        StepDone::new("a")
            .with_created("target/a.o")
            .with_modified("src/a.rs")
    };
    let usual = begun(&scene.view(), "x", "dev", &scene.first(&["a"]));
    assert_eq!(usual.step_done(&step()).unwrap().left_out, ["target/a.o"]);
    let options = RecorderOptions::new("dev").with_sources(SourceFiles::all());
    let all = begun(&scene.view(), "y", options, &scene.first(&["a"]));
    assert!(all.step_done(&step()).unwrap().left_out.is_empty());
    let task = all.checkpoint().unwrap();
    assert_eq!(task.completed_steps[0].files_created, ["target/a.o"]);
}
