//! The calls that `scripts/counts` counts: one of each kind, between two marks in the trace.
//!
//! `counts FOLDER` works in that folder, which must exist and be empty.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench that cannot run should say where"
)]

mod measure;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::{BuilderStateStore, CheckpointStore, FileStore, Put};
use agent_checkpoint::{Checkpoints, Key, StepDone};

use measure::work::{checkpoint, host};

type Tasks = Checkpoints<TaskCheckpoint>;

/// Runs `work` between marks with this name. The marks only show up in the trace.
fn counted<T>(name: &str, work: impl FnOnce() -> T) {
    let mark = |name: &str| {
        let _ = fs::metadata(Path::new("/agent-checkpoint-mark").join(name));
    };
    mark(name);
    black_box(work());
    mark("end");
}

fn main() {
    // `cargo bench` runs every bench; without a folder this one does nothing.
    let Some(folder) = std::env::args().skip(1).find(|word| !word.starts_with('-')) else {
        return;
    };
    let folder = PathBuf::from(folder);
    documents(&folder.join("documents"));
    typed(&folder.join("typed"));
    steps(&folder.join("steps"), false);
    steps(&folder.join("tracked"), true);
    in_a_host_file(&folder.join("host"));
}

fn key() -> Key {
    Key::new("task").unwrap()
}

fn documents(folder: &Path) {
    let (store, text) = (FileStore::open(folder), text());
    let put = |phase: &str| {
        let mut document = Document::from_text(text.clone()).unwrap();
        document.set("/phase", phase).unwrap();
        Put::new(document)
    };
    let save = |put| store.put(&key(), put).unwrap();
    // With a history of full length.
    for round in 0..12 {
        save(put(&format!("round {round}")));
    }
    let next = put("next");
    counted("put of a changed document", || save(next));
    let same = put("next");
    counted("put of the same document", || save(same));
    counted("load of a document", || store.load(&key()).unwrap());
}

fn text() -> String {
    serde_json::to_string_pretty(&checkpoint()).unwrap()
}

fn typed(folder: &Path) {
    let tasks = Tasks::new(FileStore::open(folder));
    tasks.create(&key(), &checkpoint()).unwrap();
    update_and_load(&tasks, &key(), "");
}

fn update_and_load(tasks: &Tasks, key: &Key, of: &str) {
    let update = |blocker: &str| {
        let saved = tasks.update(key, |task| task.blockers = vec![blocker.to_owned()]);
        saved.unwrap()
    };
    for round in 0..12 {
        update(&format!("round {round}"));
    }
    counted(&format!("typed update{of}"), || update("next"));
    counted(&format!("typed update{of} that changes nothing"), || {
        update("next")
    });
    counted(&format!("typed load{of}"), || tasks.load(key).unwrap());
}

fn steps(folder: &Path, is_tracking: bool) {
    let files: Vec<String> = (0..9).map(|n| format!("src/part_{n}.rs")).collect();
    fs::create_dir_all(folder.join("src")).unwrap();
    for file in &files {
        fs::write(folder.join(file), file).unwrap();
    }
    // A separate repository, so that files around the folder do not matter.
    fs::create_dir_all(folder.join(".git/refs/heads")).unwrap();
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let commit = "0123456789".repeat(4) + "\n";
    fs::write(folder.join(".git/refs/heads/main"), commit).unwrap();
    let mut tasks = Tasks::new(FileStore::open(folder.join("store")));
    if is_tracking {
        tasks = tasks.tracking(Tracking::new(folder));
    }
    let plan = ["Go on"];
    let first = TaskCheckpoint::begin("bench-agent", plan, tasks.now());
    let options = RecorderOptions::new("bench-agent");
    let recorder = match Recorder::begin(&tasks, &key(), options, &first).unwrap() {
        Opened::Begun(recorder) => recorder,
        _ => panic!("a checkpoint was there"),
    };
    let step = |number: usize| {
        let done = StepDone::new(format!("Made part {number}"));
        files
            .iter()
            .fold(done, |done, file| done.with_modified(file))
    };
    let named = |number| match is_tracking {
        true => format!("step_done number {number}, with 9 tracked files"),
        false => format!("step_done number {number}, with 9 files"),
    };
    for number in 1..=101 {
        let done = step(number);
        let record = || recorder.step_done(&done).unwrap();
        match number {
            6 | 11 | 101 => counted(&named(number), record),
            _ => drop(record()),
        }
    }
}

fn in_a_host_file(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let path = folder.join("builder-state.json");
    fs::write(&path, host(&text(), 0)).unwrap();
    let tasks = Tasks::new(BuilderStateStore::open(&path));
    update_and_load(&tasks, &Key::new("active").unwrap(), " in a host file");
}
