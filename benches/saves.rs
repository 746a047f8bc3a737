//! Measures a save against the textbook durable replace of equally many bytes. `cargo bench --bench saves`.
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
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::{BuilderStateStore, CheckpointStore, FileOptions, FileStore, Put};
use agent_checkpoint::{Checkpoints, Key, Limits, StepDone};

use measure::work::{checkpoint, host, textbook};
use measure::{Contender, at, compare, short};

/// Makes this program a child process of the bench. The value is its action and its folder.
const CHILD: &str = "AGENT_CHECKPOINT_SAVES_CHILD";

fn main() {
    if let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) {
        return match folder.extension() {
            Some(_) => memory_of_an_update(&folder),
            None => save_for_a_while(&folder),
        };
    }
    measure::run(&[
        ("save", save),
        ("step", step),
        ("unchanged", unchanged),
        ("host", in_a_host_file),
        ("edit", edit),
        ("threads", threads),
        ("processes", processes),
    ]);
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

/// The document as it is saved in this round.
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

/// A recorder of a task with three steps done; its files are tracked if `is_tracking`.
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

/// Resets the recorder to three steps done, and returns the step of this round.
fn next_step(recorder: &Recorder<TaskCheckpoint>, round: usize, files: &[String]) -> StepDone {
    let reset = recorder.update(|task| {
        task.completed_steps.truncate(3);
        Ok(())
    });
    reset.unwrap();
    let mut done = StepDone::new(format!("Made part p{round}"));
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
                let done = StepDone::new(format!("Made part p{n}"));
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
        if cfg!(target_os = "linux") && filling > 0 {
            let output = child(&path).output().unwrap();
            print!("{}", String::from_utf8(output.stdout).unwrap());
        }
    }
}

fn child(folder: &Path) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env(CHILD, folder);
    child
}

/// Measures how much one update of a host file adds to the peak memory of a process.
fn memory_of_an_update(path: &Path) {
    let status = |name: &str| -> f64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<f64>().unwrap() * 1024.0
    };
    let before = status("VmRSS:");
    let tasks = Tasks::new(BuilderStateStore::open(path)).with_limits(Limits::unlimited());
    update(
        &tasks,
        &Key::new("active").unwrap(),
        std::process::id() as usize,
    );
    let size = fs::metadata(path).unwrap().len() as f64;
    let times = (status("VmHWM:") - before) / size;
    println!(
        "memory of the first update of a process: {times:.1} x the size of the file, at most 6"
    );
}

fn edit(folder: &Path) {
    let (store, _) = begun(folder, FileOptions::default());
    let small = text_of(&store);
    for (text, rounds) in [(small.clone(), 5000), (host(&small, 1_000_000), 200)] {
        let set = |n: usize| {
            let mut document = Document::from_text(text.clone()).unwrap();
            document.set("/phase", &format!("phase {n}")).unwrap();
            black_box(document);
        };
        compare(
            &format!("one value edited in {} bytes", text.len()),
            rounds,
            &mut [
                Contender::new("parse and edit", set),
                Contender::new("parse as serde_json::Value, edit and print", |n| {
                    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
                    value["phase"] = format!("phase {n}").into();
                    black_box(serde_json::to_string_pretty(&value).unwrap());
                }),
            ],
        );
    }
}

/// The number of saves per second with `threads` threads, each of which saves its own key.
fn rate(threads: usize, save: impl Fn(usize, usize) + Sync) -> f64 {
    const EACH: Duration = Duration::from_millis(700);
    let start = Barrier::new(threads);
    let saves: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| {
                let (start, save) = (&start, &save);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    let mut saves = 0;
                    while began.elapsed() < EACH {
                        save(thread, saves);
                        saves += 1;
                    }
                    saves
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    saves as f64 / EACH.as_secs_f64()
}

fn threads(folder: &Path) {
    const MANY: usize = 64;
    let (store, tasks) = begun(&folder.join("store"), FileOptions::default());
    let text = text_of(&store);
    let keys: Vec<Key> = (0..MANY)
        .map(|n| Key::new(format!("task-{n}")).unwrap())
        .collect();
    for key in &keys {
        tasks.create(key, &checkpoint()).unwrap();
    }
    fs::create_dir(folder.join("books")).unwrap();
    let book = |n: usize| folder.join("books").join(format!("{n}.json"));
    let ours = |thread: usize, round: usize| update(&tasks, &keys[thread], round);
    let plain = |thread: usize, _: usize| textbook(&book(thread), text.as_bytes());
    let mut factors = Vec::new();
    for _ in 0..7 {
        let book = rate(MANY, plain) / rate(1, plain);
        let ours = rate(MANY, ours) / rate(1, ours);
        factors.push((ours / book, ours, book));
    }
    factors.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, ours, book) = factors[factors.len() / 2];
    println!(
        "\n{MANY} threads on {MANY} keys of one folder, in saves of one thread, median of 7 pairs"
    );
    println!("| {ratio:6.2} | >= 0.95          | update {ours:.2} x, textbook {book:.2} x");
}

/// Saves one key repeatedly and prints how long each save took, including the wait for other writers.
fn save_for_a_while(folder: &Path) {
    let tasks = Tasks::new(FileStore::open(folder)).with_limits(Limits::unlimited());
    let began = Instant::now();
    let (mut times, mut refused) = (Vec::new(), 0);
    while began.elapsed() < Duration::from_secs(4) {
        let begin = Instant::now();
        let blocker = format!("{} {}", std::process::id(), times.len());
        match tasks.update(&key(), |task| task.blockers = vec![blocker.clone()]) {
            Ok(_) => times.push(begin.elapsed()),
            Err(_) => refused += 1,
        }
    }
    println!("{refused}");
    for time in times {
        println!("{}", time.as_nanos());
    }
}

fn processes(folder: &Path) {
    let store = folder.join("store");
    begun(&store, FileOptions::default());
    let run = |count: usize| {
        let all: Vec<_> = (0..count)
            .map(|_| child(&store).stdout(Stdio::piped()).spawn().unwrap())
            .collect();
        let (mut times, mut refused) = (Vec::new(), 0);
        for one in all {
            let output = one.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut numbers = text.lines().map(|line| line.parse::<u64>().unwrap());
            refused += numbers.next().unwrap();
            times.extend(numbers.map(Duration::from_nanos));
        }
        times.sort();
        (times, refused)
    };
    let mut all = Vec::new();
    for _ in 0..3 {
        let (one, _) = run(1);
        let (eight, refused) = run(8);
        let sum = eight.len() as f64 / one.len() as f64;
        let save = at(&one, 0.5);
        let wait = at(&eight, 0.999).as_secs_f64() / save.as_secs_f64();
        all.push((sum, wait, save, refused));
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    println!("\n8 processes on one key, saving without a pause, three pairs of 4 s");
    for (sum, wait, save, refused) in all {
        println!(
            "| {sum:6.2} x one process (>= 0.80) | p99.9 {wait:.1} saves of {} (<= 20) | {refused} refused",
            short(save)
        );
    }
}
