//! What a save costs beside the textbook durable replace of as many bytes. `cargo bench --bench saves`.
//!
//! `cargo bench --bench saves -- host` runs only the parts with that word in their names.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench that cannot run should say where"
)]

mod measure;

use std::fs;
use std::hint::black_box;
use std::path::Path;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::{BuilderStateStore, CheckpointStore, FileOptions, FileStore, Put};
use agent_checkpoint::{Checkpoints, Key, Limits, StepDone};

use measure::work::{checkpoint, host, textbook};
use measure::{Contender, compare, is_wanted};

fn main() {
    // Beside the build, and so on a disk: what lies in memory has nothing to wait for.
    let folder = tempfile::tempdir_in(".").unwrap();
    let parts: [(&str, fn(&Path)); 4] = [
        ("save", save),
        ("step", step),
        ("unchanged", unchanged),
        ("host", in_a_host_file),
    ];
    for (name, part) in parts {
        if is_wanted(name) {
            let folder = folder.path().join(name);
            fs::create_dir(&folder).unwrap();
            part(&folder);
        }
    }
}

type Tasks = Checkpoints<TaskCheckpoint>;

fn key() -> Key {
    Key::new("task").unwrap()
}

/// A store with one checkpoint in it, and its typed view.
fn begun(folder: &Path, options: FileOptions) -> (FileStore, Tasks) {
    let store = FileStore::with_options(folder, options);
    let tasks = Tasks::new(store.clone()).with_limits(Limits::unlimited());
    tasks.create(&key(), &checkpoint()).unwrap();
    (store, tasks)
}

fn text_of(store: &impl CheckpointStore) -> String {
    store.load(&key()).unwrap().unwrap().document.into_text()
}

/// The document as it shall be in this round.
fn changed(text: &str, round: usize) -> Put {
    let mut document = Document::from_text(text.to_owned()).unwrap();
    document.set("/phase", &format!("phase {round}")).unwrap();
    Put::new(document)
}

fn update(tasks: &Tasks, key: &Key, round: usize) {
    let saved = tasks.update(key, |task| task.blockers = vec![format!("blocker {round}")]);
    black_box(saved.unwrap());
}

fn save(folder: &Path) {
    let (kept, typed) = begun(&folder.join("kept"), FileOptions::default());
    let without = || FileOptions::default().without_history();
    let (bare, bare_typed) = begun(&folder.join("bare"), without());
    let text = text_of(&kept);
    let book = folder.join("textbook.json");
    let (key, title) = (key(), format!("save of {} bytes", text.len()));
    compare(
        &title,
        400,
        &mut [
            Contender::new("a textbook durable replace", |_| {
                textbook(&book, text.as_bytes());
            }),
            Contender::new("the same again", |_| textbook(&book, text.as_bytes())),
            Contender::prepared(
                "put of a document, with history",
                |n| changed(&text, n),
                |put| {
                    black_box(kept.put(&key, put).unwrap());
                },
            )
            .at_most(1.17),
            Contender::prepared(
                "put of a document, without history",
                |n| changed(&text, n),
                |put| {
                    black_box(bare.put(&key, put).unwrap());
                },
            ),
            Contender::new("typed update, with history", |n| update(&typed, &key, n)).at_most(1.30),
            Contender::new("typed update, without history", |n| {
                update(&bare_typed, &key, n);
            }),
        ],
    );
}

/// A recorder of a task with three steps done, whose files are tracked if that is asked for.
fn recorder(folder: &Path, is_tracking: bool) -> Recorder<TaskCheckpoint> {
    let mut tasks = Tasks::new(FileStore::open(folder.join("store")));
    if is_tracking {
        tasks = tasks.tracking(Tracking::new(folder));
    }
    let mut task = checkpoint();
    task.completed_steps.truncate(3);
    let options = RecorderOptions::new("bench-agent");
    match Recorder::begin(&tasks, &key(), options, &task).unwrap() {
        Opened::Begun(recorder) => recorder,
        _ => panic!("a checkpoint was there"),
    }
}

/// A recorder with three steps done again, and the step of this round.
fn next_step(recorder: &Recorder<TaskCheckpoint>, round: usize, files: &[String]) -> StepDone {
    let reset = recorder.update(|task| {
        task.completed_steps.truncate(3);
        Ok(())
    });
    reset.unwrap();
    let mut done = StepDone::new(format!("Made part {round}"));
    for file in files {
        done = done.with_modified(file);
    }
    done
}

fn step(folder: &Path) {
    let text = serde_json::to_string_pretty(&checkpoint()).unwrap();
    let files: Vec<String> = (0..9).map(|n| format!("src/part_{n}.rs")).collect();
    fs::create_dir_all(folder.join("tracked/src")).unwrap();
    for file in &files {
        fs::write(folder.join("tracked").join(file), file).unwrap();
    }
    let plain = recorder(&folder.join("plain"), false);
    let tracked = recorder(&folder.join("tracked"), true);
    let long = recorder(&folder.join("long"), false);
    let book = folder.join("textbook.json");
    compare(
        "step_done of a recorder",
        300,
        &mut [
            Contender::new("a textbook durable replace", |_| {
                textbook(&book, text.as_bytes());
            }),
            Contender::prepared(
                "step_done that names 9 files",
                |n| next_step(&plain, n, &files),
                |done| {
                    black_box(plain.step_done(&done).unwrap());
                },
            )
            .at_most(1.40),
            Contender::prepared(
                "step_done that names 9 files, which are tracked",
                |n| next_step(&tracked, n, &files),
                |done| {
                    black_box(tracked.step_done(&done).unwrap());
                },
            )
            .at_most(1.65),
            Contender::new("step_done that moves an older step out", |n| {
                let done = StepDone::new(format!("Made part {n}"));
                black_box(long.step_done(&done).unwrap());
            }),
        ],
    );
}

fn unchanged(folder: &Path) {
    let (store, tasks) = begun(folder, FileOptions::default());
    let (key, text) = (key(), text_of(&store));
    let path = store.path(&key).unwrap();
    compare(
        "a save that changes nothing",
        2000,
        &mut [
            Contender::new("read the file", |_| {
                black_box(fs::read(&path).unwrap());
            }),
            Contender::prepared(
                "put of what is there",
                |_| Put::new(Document::from_text(text.clone()).unwrap()),
                |put| {
                    black_box(store.put(&key, put).unwrap());
                },
            ),
            Contender::new("typed update that changes nothing", |_| {
                black_box(tasks.update(&key, |_| {}).unwrap());
            }),
        ],
    );
}

fn in_a_host_file(folder: &Path) {
    let (store, _) = begun(&folder.join("plain"), FileOptions::default());
    let text = text_of(&store);
    for (name, filling, rounds, most) in [("2KB", 0, 300, 1.40), ("1MB", 1_000_000, 60, 3.0)] {
        let path = folder.join(format!("{name}.json"));
        fs::write(&path, host(&text, filling)).unwrap();
        let tasks = Tasks::new(BuilderStateStore::open(&path)).with_limits(Limits::unlimited());
        let active = Key::new("active").unwrap();
        update(&tasks, &active, 0);
        let bytes = fs::read(&path).unwrap();
        let book = folder.join("textbook.json");
        compare(
            &format!("save inside a host file of {} bytes", bytes.len()),
            rounds,
            &mut [
                Contender::new("a textbook durable replace of as many bytes", |_| {
                    textbook(&book, &bytes);
                }),
                Contender::new("typed update", |n| update(&tasks, &active, n)).at_most(most),
            ],
        );
    }
}
