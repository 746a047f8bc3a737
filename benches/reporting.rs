//! Measures a report of a short task and of a long one, alone and in a batch, and a typed load against a plain parse.
//! `cargo bench --bench reporting`, or one part of it: `cargo bench --bench reporting -- batch`.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

mod measure;

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder};
use agent_checkpoint::store::{Durability, FileOptions, FileStore};
use agent_checkpoint::{
    Checkpoint, Checkpoints, Key, Limits, Operation, OperationContext, StepDone,
};

use measure::{Contender, at, compare, is_wanted, short};

fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    if is_wanted("step_done") {
        step_done(folder.path());
    }
    if is_wanted("batch") {
        batch(folder.path());
    }
    if is_wanted("load") {
        load(folder.path());
    }
}

fn first() -> TaskCheckpoint {
    TaskCheckpoint::begin("dev", ["Ship it"], chrono::Utc::now())
}

fn done(number: usize) -> StepDone {
    StepDone::new(format!("Finished step number {number}"))
        .with_modified(format!("src/module_{}.rs", number % 20))
}

/// Reports one more finished step after different numbers of steps.
fn step_done(folder: &Path) {
    let key = Key::new("task").unwrap();
    let lengths = [10, 100, 3_000];
    let cpu: Vec<RefCell<Vec<Duration>>> = lengths.iter().map(|_| RefCell::default()).collect();
    let mut contenders = Vec::new();
    for (cpu, length) in cpu.iter().zip(lengths) {
        // The steps before need not survive a power loss.
        let long = folder.join(format!("after-{length}"));
        let quick = FileOptions::default().with_durability(Durability::None);
        let recorder = record(
            &Checkpoints::new(FileStore::with_options(&long, quick)),
            &key,
        );
        for number in 0..length {
            recorder.step_done(&done(number)).unwrap();
        }
        drop(recorder);
        let (key, copy) = (key.clone(), folder.join(format!("copy-{length}")));
        let prepare = move |round: usize| {
            let copy = copy.join(round.to_string());
            copy_folder(&long, &copy);
            let recorder = record(&Checkpoints::new(FileStore::open(&copy)), &key);
            // The first save in a folder does extra work.
            recorder.step_done(&done(length)).unwrap();
            recorder
        };
        let run = move |recorder: Recorder<TaskCheckpoint>| {
            let began = on_cpu();
            recorder.step_done(&done(length + 1)).unwrap();
            cpu.borrow_mut().push(on_cpu() - began);
        };
        contenders.push(
            Contender::prepared(
                format!("recorder.step_done after {length} steps"),
                prepare,
                run,
            )
            .at_most(1.3),
        );
    }
    compare("step_done", 100, &mut contenders);
    drop(contenders);
    let mut base = None;
    for (cpu, length) in cpu.iter().zip(lengths) {
        let mut times = cpu.borrow_mut();
        times.sort();
        let median = at(&times, 0.5);
        let base = *base.get_or_insert(median);
        let ratio = median.as_secs_f64() / base.as_secs_f64();
        println!(
            "| {ratio:6.2} | <= 1.30 | {:>9} | of the processor, after {length} steps",
            short(median)
        );
    }
}

fn record(tasks: &Checkpoints<TaskCheckpoint>, key: &Key) -> Recorder<TaskCheckpoint> {
    match Recorder::begin(tasks, key, "dev", &first()).unwrap() {
        Opened::Begun(recorder) => recorder,
        Opened::Found(found) | Opened::Complete(found) => found.carry_on().unwrap(),
    }
}

/// The processor time of this thread, if the system reports it.
fn on_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    Duration::from_nanos(first.parse().unwrap_or_default())
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &copy),
            false => drop(fs::copy(entry.path(), copy).unwrap()),
        }
    }
}

/// Reports that become one change, in a store that does not wait for the disk.
fn batch(folder: &Path) {
    let quick = FileOptions::default().with_durability(Durability::None);
    let store = FileStore::with_options(folder.join("batch"), quick);
    let tasks = Checkpoints::<TaskCheckpoint>::new(store);
    let mut of_one = None;
    for length in [10, 100, 1_000] {
        let reports: Vec<Operation> = (0..length).map(|number| done(number).into()).collect();
        let prepare = |round: usize| {
            let key = Key::new(format!("task-{length}-{round}")).unwrap();
            record(&tasks, &key)
        };
        let run = |recorder: Recorder<TaskCheckpoint>| {
            black_box(recorder.batch(reports.iter().cloned()).unwrap());
        };
        let title = format!("batch of {length}");
        let measured = compare(
            &title,
            20,
            &mut [Contender::prepared("recorder.batch", prepare, run)],
        );
        let each = measured[0].median / length as u32;
        let base = *of_one.get_or_insert(each);
        let ratio = each.as_secs_f64() / base.as_secs_f64();
        println!("| {ratio:6.2} | {:>9} | for each report", short(each));
    }
}

/// A checkpoint of about 2 KB.
fn checkpoint() -> TaskCheckpoint {
    let now = chrono::Utc::now();
    let plan = ('a'..='h').map(|letter| format!("Pending part {letter} of the plan"));
    let mut task = TaskCheckpoint::begin("bench-agent", plan, now);
    for number in 0..8 {
        let done = done(number).with_created(format!("src/new_{number}/mod.rs"));
        task.apply(&done.into(), &OperationContext::at(now))
            .unwrap();
    }
    task
}

/// Measures a typed load, with violations and revision, against a plain program.
fn load(folder: &Path) {
    let store = FileStore::open(folder.join("load"));
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let key = Key::new("task").unwrap();
    tasks.create(&key, &checkpoint()).unwrap();
    println!(
        "a checkpoint of {} bytes",
        fs::metadata(store.path(&key).unwrap()).unwrap().len()
    );
    let path = store.path(&key).unwrap();
    compare(
        "load",
        3000,
        &mut [
            Contender::new("fs::read and serde_json::from_slice", |_| {
                let bytes = fs::read(&path).unwrap();
                black_box(serde_json::from_slice::<TaskCheckpoint>(&bytes).unwrap());
            }),
            Contender::new("tasks.load", |_| {
                black_box(tasks.load(&key).unwrap());
            })
            .at_most(1.5),
        ],
    );
}
