//! However work ends, its checkpoint is saved first.

use std::panic::{AssertUnwindSafe, catch_unwind};

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::Interruption;
use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::recorder::Recorder;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::CheckpointStore;

use crate::common::key;
use crate::common::only_swaps::OnlySwaps;
use crate::scenes::{Scene, begun};

#[test]
fn work_that_ends_well_leaves_the_checkpoint_as_it_is() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let done = recorder.scope(|recorder| {
        recorder.step_started("a")?;
        Ok::<_, agent_checkpoint::Error>(7)
    });
    assert_eq!(done.unwrap(), 7);
    assert_eq!(scene.saves("US-003"), 1);
}

#[test]
fn an_error_is_in_the_checkpoint_before_anybody_is_told() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let long = format!("no such token\n{}", "at frame\n".repeat(500));
    let broken = recorder.scope(|_| Err::<(), _>(long.clone())).unwrap_err();
    assert_eq!(broken.error, long, "the caller has the whole of it");
    assert!(!broken.is_taken_over());
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.blockers, ["no such token"]);
    let plan = recorder.plan().unwrap().plan;
    assert_eq!(plan.decision, ResumeDecision::Ask);

    let word = "é".repeat(3000);
    let _ = recorder.scope(|_| Err::<(), _>(word)).unwrap_err();
    let task = recorder.checkpoint().unwrap();
    assert!(task.blockers[1].chars().count() <= 200);
}

#[test]
fn a_panic_is_in_the_checkpoint_before_it_goes_on() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.step_started("a").unwrap();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _ = recorder.scope(|_| -> Result<(), String> {
            panic!("index {} is gone", std::hint::black_box(3))
        });
    }));
    let words = unwound.unwrap_err();
    assert_eq!(words.downcast_ref::<String>().unwrap(), "index 3 is gone");
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.blockers, ["panicked: index 3 is gone"]);
    assert_eq!(task.metadata.reason, Some(Reason::Failure));

    // Even if the panic came inside a call of the recorder, which stays usable.
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _ = recorder.scope(|recorder| recorder.update(|_| panic!("inside")));
    }));
    assert!(unwound.is_err());
    assert_eq!(
        recorder.checkpoint().unwrap().blockers[1],
        "panicked: inside"
    );
    recorder.step_done(&StepDone::current()).unwrap();
}

#[test]
fn whoever_is_told_to_stop_leaves_nothing_in_the_way() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_started("a").unwrap();
    let stopped = Interruption::Stopped("stopped by SIGTERM".to_owned());
    scene.watch.pass(1);
    assert!(recorder.interrupted(&stopped).unwrap().is_written());
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.metadata.reason, Some(Reason::Manual));
    assert!(task.blockers.is_empty());
    let plan = recorder.plan().unwrap().plan;
    assert_eq!(plan.decision, ResumeDecision::Continue);
    // It stopped in order: the work in progress is a warning, not a question.
    assert!(plan.questions.is_empty(), "{:?}", plan.questions);
    let told = plan
        .warnings
        .iter()
        .any(|line| line.contains("Begun, and may have taken effect"));
    assert!(told, "{:?}", plan.warnings);
}

#[test]
fn where_no_checkpoint_can_be_made_the_error_says_that_too() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.reassign("other").unwrap();
    let broken = recorder.scope(|_| Err::<(), _>("no network")).unwrap_err();
    assert!(broken.is_taken_over());
    let words = broken.to_string();
    assert!(
        words.starts_with("no network; the failure could not be recorded in the checkpoint either"),
        "{words}"
    );
    // A task whose store is gone is not taken over.
    let plain = OnlySwaps::default();
    let view = agent_checkpoint::Checkpoints::<TaskCheckpoint>::new(plain.clone());
    let recorder = begun(&view, "x", "dev", &scene.first(&["a"]));
    let broken = recorder.scope(|_| {
        plain
            .delete(&key("x"), &agent_checkpoint::store::DeleteOptions::new())
            .unwrap();
        Err::<(), _>("no network")
    });
    assert!(!broken.unwrap_err().is_taken_over());
    assert!(Recorder::resume(&view, &key("x"), "dev").is_err());
}

#[cfg(unix)]
mod signals {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use agent_checkpoint::CheckpointStoreExt;
    use agent_checkpoint::StepDone;
    use agent_checkpoint::formats::task::Reason;
    use agent_checkpoint::formats::task::TaskCheckpoint;
    use agent_checkpoint::recorder::{Opened, Recorder};
    use agent_checkpoint::store::FileStore;

    use crate::common::children::{Given, Running, say, wait_until};
    use crate::common::key;

    /// Argument: where it waits for its end: `inside` a scope, or `after` one.
    #[test]
    fn child_works_until_a_signal_comes() {
        let Some(given) = Given::find() else { return };
        let store = FileStore::open(&given.folder);
        let tasks = store.checkpoints::<TaskCheckpoint>();
        let first = TaskCheckpoint::begin("dev", ["a", "b"], tasks.now());
        let Opened::Begun(recorder) = Recorder::begin(&tasks, &key("x"), "dev", &first).unwrap()
        else {
            panic!("it was there");
        };
        let wait = || loop {
            std::thread::sleep(Duration::from_secs(1));
        };
        let done = recorder.scope_with_signals(|recorder| {
            recorder.step_done(&StepDone::new("a"))?;
            recorder.step_started("b")?;
            if given.words[0] == "inside" {
                say("ready");
                wait();
            }
            Ok::<_, agent_checkpoint::Error>(())
        });
        done.unwrap().unwrap();
        say("ready");
        wait();
    }

    fn ended_by(folder: &Path, place: &str, signal: i32) -> TaskCheckpoint {
        use std::os::unix::process::ExitStatusExt;
        let function = "ending::signals::child_works_until_a_signal_comes";
        let mut child = Running::start(function, folder, place);
        assert_eq!(child.hear().as_deref(), Some("ready"));
        let mut kill = Command::new("kill");
        kill.arg(format!("-{signal}")).arg(child.id().to_string());
        assert!(kill.status().unwrap().success());
        let mut status = None;
        wait_until("end of the child", || {
            status = child.ended();
            status.is_some()
        });
        assert_eq!(
            status.unwrap().signal(),
            Some(signal),
            "as the signal does by default"
        );
        let store = FileStore::open(folder);
        store.checkpoints().get(&key("x")).unwrap().checkpoint
    }

    #[test]
    fn a_signal_is_in_the_checkpoint_before_it_ends_the_process() {
        for signal in [15, 2, 1] {
            let folder = tempfile::tempdir().unwrap();
            let task = ended_by(folder.path(), "inside", signal);
            assert_eq!(task.metadata.reason, Some(Reason::Manual), "{signal}");
            assert_eq!(task.completed_steps.len(), 1);
            assert!(task.blockers.is_empty() && task.current_step.is_some());
        }
    }

    #[test]
    fn after_its_scope_a_signal_ends_the_process_as_ever() {
        let folder = tempfile::tempdir().unwrap();
        let task = ended_by(folder.path(), "after", 15);
        assert_eq!(task.metadata.reason, Some(Reason::Periodic));
    }
}
