//! What a save costs beside the textbook durable replace, and a load beside a plain parse.
//!
//! All contenders take turns in one loop, so that whatever else the machine does falls on each; only
//! the ratios of their medians mean anything on another machine. `cargo bench --bench store`.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::{Decision, TaskCheckpoint};
use agent_checkpoint::json::Document;
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, MemoryStore, Put, Query,
};
use agent_checkpoint::{Checkpoints, Key, Limits, Revision};

/// One contender: its name, and what it does in round `n`.
type Contender<'a> = (&'static str, Box<dyn FnMut(usize) + 'a>);

/// Runs the contenders in turn and prints the ratio of each one's median to the first one's.
fn compare(title: &str, rounds: usize, contenders: &mut [Contender<'_>]) {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds + 20 {
        for (at, (_, run)) in contenders.iter_mut().enumerate() {
            let begin = Instant::now();
            run(round);
            // The first rounds warm the caches.
            if round >= 20 {
                times[at].push(begin.elapsed());
            }
        }
    }
    println!("\n{title}");
    let mut base = None;
    for (times, (name, _)) in times.iter_mut().zip(contenders.iter()) {
        times.sort();
        let median = times[times.len() / 2];
        let base = *base.get_or_insert(median);
        let ratio = median.as_secs_f64() / base.as_secs_f64();
        println!("  {ratio:6.2}  {median:>10.1?}  {name}");
    }
}

fn textbook(path: &Path, bytes: &[u8]) {
    let temp = path.with_extension("tmp");
    let mut file = File::create(&temp).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
    fs::rename(&temp, path).unwrap();
    File::open(path.parent().unwrap())
        .unwrap()
        .sync_all()
        .unwrap();
}

/// A checkpoint of about 2 KB.
fn checkpoint() -> TaskCheckpoint {
    let now = chrono::Utc::now();
    let plan = (0..8).map(|n| format!("Pending step {n} of the plan"));
    let mut task = TaskCheckpoint::begin("bench-agent", plan, now);
    for n in 0..8 {
        let done = StepDone::new(format!("Finished step number {n}"))
            .with_created(format!("src/module_{n}/mod.rs"))
            .with_modified("src/lib.rs");
        task.finish_step(&done, now).unwrap();
    }
    task.decisions.push(Decision::new("Keep it simple"));
    task
}

fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = FileStore::open(folder.path());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let key = Key::new("task").unwrap();
    let task = checkpoint();
    tasks.create(&key, &task).unwrap();
    let text = store.load(&key).unwrap().unwrap().document.into_text();
    println!("a checkpoint of {} bytes", text.len());

    let host = folder.path().join("builder-state.json");
    let inside = text.replace('\n', "\n    ");
    fs::write(
        &host,
        format!(
            "{{\n  \"activeWork\": {{\n    \"id\": \"w\",\n    \"checkpoint\": {}\n  }}\n}}\n",
            inside.trim_end()
        ),
    )
    .unwrap();
    let hosted = BuilderStateStore::open(&host);
    let hosted_tasks =
        Checkpoints::<TaskCheckpoint>::new(hosted.clone()).with_limits(Limits::unlimited());
    let active = Key::new("active").unwrap();

    let options = FileOptions::default().without_history();
    let bare = FileStore::with_options(folder.path().join("bare"), options);
    let book = folder.path().join("textbook.json");
    let rounds = 400;
    compare(
        "save (textbook: create, write, fdatasync, rename, fsync folder)",
        rounds,
        &mut [
            (
                "textbook durable replace",
                Box::new(|_| textbook(&book, text.as_bytes())),
            ),
            (
                "store.put of a changed document",
                Box::new(|n| {
                    let mut document = Document::from_text(text.clone()).unwrap();
                    document.set("/phase", &format!("phase {n}")).unwrap();
                    black_box(store.put(&key, Put::new(document.clone())).unwrap());
                }),
            ),
            (
                "the same without history",
                Box::new(|n| {
                    let mut document = Document::from_text(text.clone()).unwrap();
                    document.set("/phase", &format!("phase {n}")).unwrap();
                    black_box(bare.put(&key, Put::new(document.clone())).unwrap());
                }),
            ),
            (
                "tasks.update: lock, read, change, smallest edit, read back, write",
                Box::new(|n| {
                    black_box(
                        tasks
                            .update(&key, |task| task.blockers = vec![format!("blocker {n}")])
                            .unwrap(),
                    );
                }),
            ),
            (
                "the same inside a builder-state host file",
                Box::new(|n| {
                    black_box(
                        hosted_tasks
                            .update(&active, |task| task.blockers = vec![format!("blocker {n}")])
                            .unwrap(),
                    );
                }),
            ),
            (
                "tasks.update that changes nothing",
                Box::new(|_| {
                    black_box(tasks.update(&key, |_| {}).unwrap());
                }),
            ),
        ],
    );

    let path = store.path(&key).unwrap();
    compare(
        "load",
        2000,
        &mut [
            (
                "fs::read and serde_json::from_slice::<TaskCheckpoint>",
                Box::new(|_| {
                    let bytes = fs::read(&path).unwrap();
                    black_box(serde_json::from_slice::<TaskCheckpoint>(&bytes).unwrap());
                }),
            ),
            (
                "store.load: document and revision",
                Box::new(|_| {
                    black_box(store.load(&key).unwrap());
                }),
            ),
            (
                "tasks.load: typed, with violations",
                Box::new(|_| {
                    black_box(tasks.load(&key).unwrap());
                }),
            ),
        ],
    );

    let memory = MemoryStore::new();
    let in_memory =
        Checkpoints::<TaskCheckpoint>::new(memory.clone()).with_limits(Limits::unlimited());
    in_memory.create(&key, &task).unwrap();
    let document = Document::from_text(text.clone()).unwrap();
    compare(
        "without a disk",
        2000,
        &mut [
            (
                "serde_json::from_str::<TaskCheckpoint>",
                Box::new(|_| {
                    black_box(serde_json::from_str::<TaskCheckpoint>(&text).unwrap());
                }),
            ),
            (
                "document of a text",
                Box::new(|_| {
                    black_box(Document::parse(text.as_bytes()).unwrap());
                }),
            ),
            (
                "revision of a text",
                Box::new(|_| {
                    black_box(Revision::of(text.as_bytes()));
                }),
            ),
            (
                "typed reading of a document",
                Box::new(|_| {
                    black_box(document.read::<TaskCheckpoint>().unwrap());
                }),
            ),
            (
                "tasks.load",
                Box::new(|_| {
                    black_box(in_memory.load(&key).unwrap());
                }),
            ),
            (
                "tasks.update",
                Box::new(|n| {
                    black_box(
                        in_memory
                            .update(&key, |task| task.blockers = vec![format!("blocker {n}")])
                            .unwrap(),
                    );
                }),
            ),
        ],
    );

    let fleet = folder.path().join("fleet");
    let fleet_store = FileStore::open(&fleet);
    fs::create_dir(&fleet).unwrap();
    for n in 0..1000 {
        fs::write(fleet.join(format!("task-{n}.json")), &text).unwrap();
    }
    compare(
        "list 1,000 checkpoints",
        100,
        &mut [
            (
                "read_dir",
                Box::new(|_| {
                    black_box(
                        fs::read_dir(&fleet)
                            .unwrap()
                            .map(|entry| entry.unwrap().file_name())
                            .collect::<Vec<_>>(),
                    );
                }),
            ),
            (
                "store.list",
                Box::new(|_| {
                    black_box(fleet_store.list(&Query::all()).unwrap());
                }),
            ),
        ],
    );

    let names: Vec<String> = (0..100).map(|n| format!("fleet/task-{n}.json")).collect();
    let loaded = tasks.get(&key).unwrap().checkpoint;
    let stamp = loaded.metadata.last_updated_at;
    compare(
        "staleness of 100 files",
        500,
        &mut [
            (
                "metadata and modified of each",
                Box::new(|_| {
                    for name in &names {
                        black_box(
                            fs::metadata(folder.path().join(name))
                                .unwrap()
                                .modified()
                                .unwrap(),
                        );
                    }
                }),
            ),
            (
                "Staleness::of",
                Box::new(|_| {
                    let files = names.iter().map(String::as_str);
                    let _ = black_box(Staleness::of(files, stamp.as_ref(), folder.path(), None));
                }),
            ),
        ],
    );
}
