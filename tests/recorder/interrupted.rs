//! After a kill in the middle of each call, at each file-system call, the task resumes correctly.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::store::{Durability, FileOptions, FileStore};
use agent_checkpoint::testkit::seam::{Call, Verdict, Watch, watched};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, Checkpoints, Handoff};
use agent_checkpoint::{Operation, StepDone};

use crate::common::{key, places};

/// Lets this many calls through; after that nothing happens any more, as after a kill.
struct Kill {
    left: usize,
    killed: bool,
}

impl Watch for Kill {
    fn before(&mut self, _: &Call<'_>) -> Verdict {
        if self.left == 0 {
            self.killed = true;
            return Verdict::Fail(io::Error::other("killed"));
        }
        self.left -= 1;
        Verdict::Go
    }
}

fn owner(name: &str) -> RecorderOptions {
    RecorderOptions::new(name)
        .claiming_for(Duration::from_secs(3600))
        .taking_over()
}

fn first(tasks: &Checkpoints<TaskCheckpoint>) -> TaskCheckpoint {
    TaskCheckpoint::begin("dev", ["a", "b", "c"], tasks.now())
}

/// Prepares a task whose second step is in progress, without waiting for the disk.
fn prepare(folder: &Path) {
    let store = quick(folder);
    let tasks = store.checkpoints();
    let opened = Recorder::begin(&tasks, &key("x"), owner("dev"), &first(&tasks));
    let Opened::Begun(recorder) = opened.unwrap() else {
        panic!("it was there");
    };
    recorder
        .batch([
            StepDone::new("a").into(),
            Operation::StepStart { text: "b".into() },
        ])
        .unwrap();
}

fn quick(folder: &Path) -> FileStore {
    FileStore::with_options(
        folder,
        FileOptions::default().with_durability(Durability::None),
    )
}

/// A kill loses no written data, so syncs do not matter to the calls. For one of them the syncs are killed as well.
fn store_for(name: &str, folder: &Path) -> FileStore {
    match name {
        "step_done" => FileStore::open(folder),
        _ => quick(folder),
    }
}

/// The recorder of the prepared task, with default saves.
fn recorder_of(store: &FileStore) -> Recorder<TaskCheckpoint> {
    let found = Recorder::resume(&store.checkpoints(), &key("x"), owner("dev")).unwrap();
    found.carry_on().unwrap()
}

type CallOf = dyn Fn(&Recorder<TaskCheckpoint>) -> agent_checkpoint::Result<()>;

/// Kills `call` before each of its file-system calls. The state is then the one before or the one after the call, and
/// another agent finishes the task. `told` distinguishes the two.
fn survives(name: &str, call: &CallOf, told: fn(&Handoff) -> String) {
    let after = {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let store = store_for(name, folder.path());
        let recorder = recorder_of(&store);
        call(&recorder).unwrap();
        told(&recorder.checkpoint().unwrap().handoff())
    };
    let mut seen = [0, 0];
    for left in places() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let store = store_for(name, folder.path());
        let recorder = recorder_of(&store);
        let before = told(&recorder.checkpoint().unwrap().handoff());
        let kill = Rc::new(RefCell::new(Kill {
            left,
            killed: false,
        }));
        let done = watched(kill.clone(), || call(&recorder));
        let killed = kill.borrow().killed;
        drop(recorder);

        // A new process, which has only the files.
        let store = quick(folder.path());
        let tasks = store.checkpoints::<TaskCheckpoint>();
        let Opened::Found(found) =
            Recorder::begin(&tasks, &key("x"), owner("next"), &first(&tasks)).unwrap()
        else {
            panic!("{name}, {left}: the checkpoint is gone");
        };
        assert!(
            found.resume.violations.is_empty(),
            "{name}, {left}: {:?}",
            found.resume.violations
        );
        let is = told(&found.resume.handoff);
        assert!(is == before || is == after, "{name}, {left}: {is}");
        if done.is_ok() {
            assert_eq!(is, after, "{name}, {left}: what was told is there");
        }
        seen[usize::from(is == after)] += 1;
        let recorder = found.carry_on().unwrap();
        recorder.unblock().unwrap();
        while let Some(step) = recorder.plan().unwrap().plan.start_at {
            recorder.step_done(&StepDone::new(step)).unwrap();
        }
        let task = recorder.checkpoint().unwrap();
        let mut steps: Vec<_> = task
            .completed_steps
            .iter()
            .filter_map(|step| step.step.clone())
            .collect();
        steps.sort();
        assert_eq!(steps, ["a", "b", "c"], "{name}, {left}: each step once");
        if !killed {
            break;
        }
    }
    assert!(
        seen[0] > 0 && seen[1] > 0,
        "{name}: killed before and after it counted: {seen:?}"
    );
}

macro_rules! a_kill_in_the_middle_of {
    ($($name:ident($recorder:ident) $call:expr, $told:expr;)+) => { $(
        #[test]
        fn $name() {
            survives(stringify!($name), &|$recorder| $call.map(|_| ()), $told);
        }
    )+ };
}

a_kill_in_the_middle_of! {
    step_started(recorder) recorder.step_started("c"), |it| format!("{:?}", it.in_progress[0].text);
    step_done(recorder) recorder.step_done(&StepDone::current()), |it| format!("{}", it.done.len());
    decide(recorder) recorder.decide("x", None), |it| format!("{}", it.decisions.len());
    note_partial(recorder) recorder.note_partial("half"), |it| format!("{:?}", it.in_progress[0].note);
    block(recorder) recorder.block("no"), |it| format!("{:?}", it.blockers);
    phase(recorder) recorder.phase("verification"), |it| format!("{:?}", it.phase);
    verification(recorder) recorder.verification("t", "passed"), |it| format!("{}", it.verification.is_some());
    failed(recorder) recorder.failed("no"), |it| format!("{:?}", it.status);
    rate_limited(recorder) recorder.rate_limited(Some("half")), |it| format!("{:?}", it.in_progress[0].note);
    reassign(recorder) recorder.reassign("other"), |it| format!("{:?}", it.previous_agents);
    batch(recorder) recorder.batch([
        Operation::Decide { text: "x".into(), rationale: None },
        Operation::Note { text: "half".into() },
    ]), |it| format!("{} {:?}", it.decisions.len(), it.in_progress[0].note);
    scope(recorder) {
        let broken = recorder.scope(|_| Err::<(), _>("no")).unwrap_err();
        broken.checkpoint.map(|recorded| *recorded)
    }, |it| format!("{:?}", it.blockers);
}

#[test]
fn begin_carry_on_and_start_over() {
    for left in places() {
        let folder = tempfile::tempdir().unwrap();
        let kill = Rc::new(RefCell::new(Kill {
            left,
            killed: false,
        }));
        {
            let store = quick(folder.path());
            let tasks = store.checkpoints::<TaskCheckpoint>();
            watched(kill.clone(), || {
                let Opened::Begun(recorder) =
                    Recorder::begin(&tasks, &key("x"), owner("dev"), &first(&tasks))?
                else {
                    panic!("it was there");
                };
                recorder.step_done(&StepDone::new("a"))?;
                let found = Recorder::resume(&tasks, &key("x"), owner("other"))?;
                let recorder = found.carry_on()?;
                recorder.step_done(&StepDone::new("b"))?;
                let found = Recorder::resume(&tasks, &key("x"), owner("third"))?;
                found.start_over(&first(&tasks)).map(|_| ())
            })
            .ok();
        }
        let store = quick(folder.path());
        let tasks = store.checkpoints::<TaskCheckpoint>();
        let recorder =
            match Recorder::begin(&tasks, &key("x"), owner("next"), &first(&tasks)).unwrap() {
                Opened::Begun(recorder) => recorder,
                Opened::Found(found) => found.carry_on().unwrap(),
                Opened::Complete(_) => panic!("nothing is left to do"),
            };
        while let Some(step) = recorder.plan().unwrap().plan.start_at {
            recorder.step_done(&StepDone::new(step)).unwrap();
        }
        let task = recorder.checkpoint().unwrap();
        let steps: Vec<_> = task
            .completed_steps
            .iter()
            .filter_map(|step| step.step.as_deref())
            .collect();
        assert_eq!(steps, ["a", "b", "c"], "{left}");
        if !kill.borrow().killed {
            break;
        }
    }
}
