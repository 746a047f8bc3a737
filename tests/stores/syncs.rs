//! The number of syncs of a save, counted in its system calls.
//!
//! A test starts this program again under strace; see `CHILD`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::common::{EXAMPLE, key, task};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder};
use agent_checkpoint::store::{BuilderStateStore, CheckpointStore, FileStore};
use agent_checkpoint::{Checkpoints, StepDone};

/// Makes this program the child of a test: the folder to work in.
const CHILD: &str = "AGENT_CHECKPOINT_SYNCS_CHILD";

/// Leaves a mark in the trace and does nothing else.
fn mark(name: &str) {
    let _ = fs::metadata(Path::new("/agent-checkpoint-mark").join(name));
}

#[test]
fn child_saves() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let files = FileStore::open(folder.join("store"));
    let host = folder.join("builder-state.json");
    fs::write(&host, EXAMPLE).unwrap();
    let hosted = BuilderStateStore::open(&host);
    let stores: [(Arc<dyn CheckpointStore>, &str, &str); 2] = [
        (Arc::new(files), "a", "file"),
        (Arc::new(hosted), "active", "host"),
    ];
    for (store, name, label) in stores {
        let tasks = Checkpoints::<TaskCheckpoint>::new(store);
        let key = key(name);
        if tasks.load(&key).unwrap().is_none() {
            tasks.create(&key, &task(&["one"])).unwrap();
        }
        // The first save creates the folder for our own files.
        for round in ["first", "second"] {
            mark(&format!("{label}-{round}"));
            tasks
                .update(&key, |task| task.blockers = vec![round.to_owned()])
                .unwrap();
        }
        mark(&format!("{label}-unchanged"));
        tasks.update(&key, |_| {}).unwrap();
        mark(&format!("{label}-load"));
        tasks.load(&key).unwrap();
        mark("end");
    }
    let tasks = Checkpoints::<TaskCheckpoint>::new(FileStore::open(folder.join("store")));
    let first = task(&["Ship it"]);
    let recorder = match Recorder::begin(&tasks, &key("long"), "dev", &first).unwrap() {
        Opened::Begun(recorder) => recorder,
        _ => panic!("it is new"),
    };
    for number in 0..14 {
        mark(&format!("step-{number}"));
        recorder
            .step_done(&StepDone::new(format!("Finished step {number}")))
            .unwrap();
    }
    mark("end");
}

/// The system calls after a mark, up to the next.
fn section<'l>(log: &'l str, name: &str) -> Vec<&'l str> {
    let calls: Vec<_> = log
        .lines()
        .skip_while(|line| !line.contains(&format!("/agent-checkpoint-mark/{name}\"")))
        .skip(1)
        .take_while(|line| !line.contains("/agent-checkpoint-mark/"))
        .collect();
    assert!(!calls.is_empty(), "no section {name} in\n{log}");
    calls
}

fn count(calls: &[&str], wanted: &[&str]) -> usize {
    let is = |call: &&&str| {
        let name = call.split_whitespace().nth(1).unwrap_or_default();
        wanted.iter().any(|wanted| name.starts_with(wanted))
    };
    calls.iter().filter(is).count()
}

#[test]
fn a_save_waits_for_the_disk_twice_and_one_that_changes_nothing_never() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("trace");
    let output = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "syncs::child_saves"])
        .env(CHILD, folder.path())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "strace must be installed in CI: {error}"
            );
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED a_save_waits_for_the_disk_twice (strace not installed)"
            );
            return;
        }
    };
    assert!(output.status.success(), "{output:?}");
    let log = fs::read_to_string(&log).unwrap();
    for label in ["file", "host"] {
        let second = section(&log, &format!("{label}-second"));
        let all = second.join("\n");
        assert_eq!(count(&second, &["fsync(", "fdatasync("]), 2, "{all}");
        assert_eq!(count(&second, &["rename"]), 1, "{all}");
        assert_eq!(count(&second, &["link"]), 1, "{all}");
        // Locking, reading, comparing, claims, history, the record of the save, and the check whether an older state
        // came back, are cheap calls besides the replace itself.
        let most = if label == "host" { 84 } else { 54 };
        assert!(second.len() <= most, "{} calls:\n{all}", second.len());

        for quiet in ["unchanged", "load"] {
            let calls = section(&log, &format!("{label}-{quiet}"));
            let all = calls.join("\n");
            let writing = ["fsync(", "fdatasync(", "rename", "mkdir", "unlink", "link"];
            assert_eq!(count(&calls, &writing), 0, "{all}");
            assert!(!all.contains("O_EXCL"), "{all}");
        }
    }
    // A report syncs as often, and once more for the dropped log if it drops a step.
    for (step, syncs) in [("step-5", 2), ("step-12", 3), ("step-13", 3)] {
        let calls = section(&log, step);
        let all = calls.join("\n");
        assert_eq!(count(&calls, &["fsync(", "fdatasync("]), syncs, "{all}");
    }
}
