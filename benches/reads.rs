//! What a load, a list and a verdict cost beside a plain parse and bare calls. `cargo bench --bench reads`.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

mod measure;

use std::fs;
use std::hint::black_box;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::store::{CheckpointStore, FileStore, MemoryStore, Query};
use agent_checkpoint::{Checkpoints, Key, Limits, Revision};

use measure::work::checkpoint;
use measure::{Contender, compare};

fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = FileStore::open(folder.path());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let key = Key::new("task").unwrap();
    let task = checkpoint();
    tasks.create(&key, &task).unwrap();
    let text = store.load(&key).unwrap().unwrap().document.into_text();
    println!("a checkpoint of {} bytes", text.len());

    let path = store.path(&key).unwrap();
    compare(
        "load",
        2000,
        &mut [
            Contender::new(
                "fs::read and serde_json::from_slice::<TaskCheckpoint>",
                |_| {
                    let bytes = fs::read(&path).unwrap();
                    black_box(serde_json::from_slice::<TaskCheckpoint>(&bytes).unwrap());
                },
            ),
            Contender::new("store.load: document and revision", |_| {
                black_box(store.load(&key).unwrap());
            }),
            Contender::new("tasks.load: typed, with violations", |_| {
                black_box(tasks.load(&key).unwrap());
            }),
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
            Contender::new("serde_json::from_str::<TaskCheckpoint>", |_| {
                black_box(serde_json::from_str::<TaskCheckpoint>(&text).unwrap());
            }),
            Contender::new("document of a text", |_| {
                black_box(Document::parse(text.as_bytes()).unwrap());
            }),
            Contender::new("revision of a text", |_| {
                black_box(Revision::of(text.as_bytes()));
            }),
            Contender::new("typed reading of a document", |_| {
                black_box(document.read::<TaskCheckpoint>().unwrap());
            }),
            Contender::new("tasks.load", |_| {
                black_box(in_memory.load(&key).unwrap());
            }),
            Contender::new("tasks.update", |n| {
                black_box(
                    in_memory
                        .update(&key, |task| task.blockers = vec![format!("blocker {n}")])
                        .unwrap(),
                );
            }),
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
            Contender::new("read_dir", |_| {
                black_box(
                    fs::read_dir(&fleet)
                        .unwrap()
                        .map(|entry| entry.unwrap().file_name())
                        .collect::<Vec<_>>(),
                );
            }),
            Contender::new("store.list", |_| {
                black_box(fleet_store.list(&Query::all()).unwrap());
            }),
        ],
    );

    let names: Vec<String> = (0..100).map(|n| format!("fleet/task-{n}.json")).collect();
    let loaded = tasks.get(&key).unwrap().checkpoint;
    let stamp = loaded.metadata.last_updated_at;
    compare(
        "staleness of 100 files",
        500,
        &mut [
            Contender::new("metadata and modified of each", |_| {
                for name in &names {
                    black_box(
                        fs::metadata(folder.path().join(name))
                            .unwrap()
                            .modified()
                            .unwrap(),
                    );
                }
            }),
            Contender::new("Staleness::of", |_| {
                let files = names.iter().map(String::as_str);
                let _ = black_box(Staleness::of(files, stamp.as_ref(), folder.path(), None));
            }),
        ],
    );
}
