//! Measures a load, a list, a fleet, a verdict on files and a prompt against a plain parse and bare calls. `cargo bench
//! --bench reads`, or only some parts: `cargo bench --bench reads -- fleet`.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

mod measure;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::staleness::{Staleness, Tracking};
use agent_checkpoint::store::{
    CheckpointStore, ClaimChange, Durability, FileOptions, FileStore, MemoryStore, Query,
};
use agent_checkpoint::{Checkpoints, ClaimRequest, Key, Limits, Revision};
use chrono::Utc;

use measure::work::checkpoint;
use measure::{Contender, Measured, compare, is_wanted};

/// Makes this program a child process whose memory is measured. The value is its folder.
const CHILD: &str = "READS_BENCH_CHILD";

fn main() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return memory_of(Path::new(&folder));
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    let parts: [measure::Part; 8] = [
        ("load", loads),
        ("list", lists),
        ("staleness", staleness),
        ("resume", resume),
        ("hostile", hostile),
        ("fleet", fleets),
        ("again", again),
        ("memory", memory),
    ];
    for (name, run) in parts.into_iter().filter(|(name, _)| is_wanted(name)) {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        run(&folder);
        fs::remove_dir_all(folder).unwrap();
    }
}

fn loads(folder: &Path) {
    let store = FileStore::open(folder);
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
            })
            .at_most(1.5),
        ],
    );
    let memory = MemoryStore::new();
    let in_memory = Checkpoints::<TaskCheckpoint>::new(memory).with_limits(Limits::unlimited());
    in_memory.create(&key, &task).unwrap();
    let document = Document::from_text(text.clone()).unwrap();
    compare(
        "load without a disk",
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
                let blocker = vec![format!("blocker {n}")];
                let update = |task: &mut TaskCheckpoint| task.blockers.clone_from(&blocker);
                black_box(in_memory.update(&key, update).unwrap());
            }),
        ],
    );
}

fn lists(folder: &Path) {
    fill(folder, 1, 1000);
    let folder = folder.join("group-0");
    let store = FileStore::open(&folder);
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone());
    let names = || -> Vec<_> {
        let entries = fs::read_dir(&folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    compare(
        "list 1,000 checkpoints",
        100,
        &mut [
            Contender::new("read_dir", |_| {
                black_box(names());
            }),
            Contender::new("store.list", |_| {
                black_box(store.list(&Query::all()).unwrap());
            }),
        ],
    );
    compare(
        "list 1,000 checkpoints and load each",
        30,
        &mut [
            Contender::new("read_dir, fs::read and serde_json of each", |_| {
                let texts = names().into_iter().map(|name| folder.join(name));
                texts.filter(|path| is_json(path)).for_each(parse);
            }),
            Contender::new("store.list, tasks.load of each", |_| {
                for key in store.list(&Query::all()).unwrap().keys() {
                    black_box(tasks.load(key).unwrap());
                }
            })
            .at_most(1.5),
        ],
    );
}

fn staleness(folder: &Path) {
    const FILES: usize = 10_000;
    let names: Vec<String> = (0..FILES)
        .map(|n| format!("src/m{}/file-{n}.rs", n / 100))
        .collect();
    for name in &names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let now = || Some(Utc::now());
    // With the fingerprints of a save, and with only the time stamp of the checkpoint.
    let tasks = Checkpoints::<TaskCheckpoint>::new(FileStore::open(folder.join("c")))
        .with_limits(Limits::unlimited())
        .tracking(Tracking::new(folder).without_gitignore());
    let key = Key::new("task").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut task = checkpoint();
    task.completed_steps[0].files_created.clone_from(&names);
    tasks.create(&key, &task).unwrap();
    let stamp = tasks.get(&key).unwrap().checkpoint.metadata.last_updated_at;
    let threads = threads();
    let statx = |names: &[String]| {
        for name in names {
            let found = fs::symlink_metadata(folder.join(name)).unwrap();
            black_box(found.modified().unwrap());
        }
    };
    compare(
        &format!("staleness of {FILES} files, {threads} threads"),
        60,
        &mut [
            Contender::new("statx of each, on as many threads", |_| {
                std::thread::scope(|scope| {
                    for part in names.chunks(names.len().div_ceil(threads)) {
                        scope.spawn(move || statx(part));
                    }
                });
            }),
            Contender::new("the same on one thread", |_| statx(&names)),
            Contender::new("Staleness::of, by the stamp", |_| {
                let files = names.iter().map(String::as_str);
                let _ = black_box(Staleness::of(files, stamp.as_ref(), folder, now()));
            })
            .at_most(1.2),
            Contender::new("tasks.stale, by the fingerprints, with the load", |_| {
                let _ = black_box(tasks.stale(&key, folder).unwrap());
            }),
        ],
    );
}

fn resume(folder: &Path) {
    let tasks = Checkpoints::<TaskCheckpoint>::new(FileStore::open(folder));
    let key = Key::new("task").unwrap();
    tasks.create(&key, &checkpoint()).unwrap();
    let path = folder.join("task.json");
    let options = ResumeOptions::new(folder);
    let planned = tasks.resume(&key, &options).unwrap();
    compare(
        "resume a checkpoint of 2 KB (goal: plan and prompt within 200 us)",
        1000,
        &mut [
            Contender::new("fs::read and serde_json", |_| parse(path.clone())),
            Contender::new("plan", |_| {
                let _ = black_box(tasks.resume(&key, &options).unwrap());
            }),
            Contender::new("prompt", |_| {
                black_box(planned.prompt().unwrap());
            }),
            Contender::new("plan and prompt", |_| {
                let planned = tasks.resume(&key, &options).unwrap();
                black_box(planned.prompt().unwrap());
            }),
        ],
    );
}

/// Texts that repeatedly begin like secrets: twice the text must take twice the time.
fn hostile(folder: &Path) {
    let tasks = Checkpoints::<TaskCheckpoint>::new(FileStore::open(folder))
        .with_limits(Limits::unlimited());
    let planned = ["token=(", "eyJ-eyJ.eyJ", "a://b:c@", "# [x](y)\n"].map(|shape| {
        [100_000, 200_000].map(|bytes| {
            let mut task = checkpoint();
            task.blockers = vec![shape.repeat(bytes / shape.len())];
            let key = Key::new(format!("{bytes}-{}", shape.len())).unwrap();
            tasks.create(&key, &task).unwrap();
            tasks.resume(&key, &ResumeOptions::new(folder)).unwrap()
        })
    });
    let shapes = [
        "`token=(`",
        "`eyJ-eyJ.eyJ`",
        "`a://b:c@`",
        "headings and links",
    ];
    for (shape, [half, whole]) in shapes.iter().zip(&planned) {
        compare(
            &format!("prompt with hostile text, {shape}"),
            10,
            &mut [
                Contender::new("100 KB", |_| {
                    black_box(half.prompt().unwrap());
                }),
                Contender::new("200 KB", |_| {
                    black_box(whole.prompt().unwrap());
                })
                .at_most(2.4),
            ],
        );
    }
}

/// Creates `groups` folders of `tasks_each` tasks, as a store keeps them. Each tenth is claimed, and most name files of
/// their own.
fn fill(folder: &Path, groups: usize, tasks_each: usize) {
    let task = checkpoint();
    let numbers: Vec<usize> = (0..groups).collect();
    std::thread::scope(|scope| {
        for part in numbers.chunks(groups.div_ceil(threads())) {
            let task = &task;
            scope.spawn(move || {
                for group in part {
                    let folder = folder.join(format!("group-{group}"));
                    let options = FileOptions::default().with_durability(Durability::None);
                    let store = FileStore::with_options(&folder, options);
                    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone());
                    for number in 0..tasks_each {
                        let name = format!("task-{number}");
                        let mut task = task.clone();
                        task.metadata.created_by = Some(format!("agent-{group}-{number}"));
                        for step in &mut task.completed_steps {
                            for file in step.files_created.iter_mut() {
                                *file = format!("src/{group}/{name}/{file}");
                            }
                            if !number.is_multiple_of(50) {
                                step.files_modified.clear();
                            }
                        }
                        let key = Key::new(name).unwrap();
                        tasks.create(&key, &task).unwrap();
                        if number.is_multiple_of(10) {
                            let claim = ClaimRequest::new("agent", Duration::from_secs(86_400));
                            let claims = store.claims().unwrap();
                            let claim = ClaimChange::Claim(claim);
                            claims.change_claim(&key, &claim).unwrap();
                        }
                    }
                }
            });
        }
    });
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

fn parse(path: PathBuf) {
    let bytes = fs::read(path).unwrap();
    black_box(serde_json::from_slice::<TaskCheckpoint>(&bytes).unwrap());
}

/// The files of a folder and its sub-folders that a scan reads: all except the locks.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files(&path, into);
        } else if path.extension().is_none_or(|ending| ending != "lock") {
            into.push(path);
        }
    }
}

/// A program without the library: lists a folder, reads each file and those beside it, and parses them.
fn plain(folder: &Path) {
    let mut all = Vec::new();
    files(folder, &mut all);
    for path in all {
        let is_claims = path
            .parent()
            .is_some_and(|folder| folder.ends_with("claims"));
        if !is_json(&path) {
            black_box(fs::read(path).unwrap());
        } else if is_claims {
            let bytes = fs::read(path).unwrap();
            black_box(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap());
        } else {
            parse(path);
        }
    }
}

/// Lists a folder and stats each file.
fn statx(folder: &Path) {
    let mut all = Vec::new();
    files(folder, &mut all);
    for path in all {
        black_box(fs::symlink_metadata(path).unwrap());
    }
}

/// Runs `work` on the folders of a fleet, split over threads.
fn on_threads(folder: &Path, groups: usize, work: fn(&Path)) {
    let numbers: Vec<usize> = (0..groups).collect();
    std::thread::scope(|scope| {
        for part in numbers.chunks(groups.div_ceil(threads())) {
            scope.spawn(move || {
                for group in part {
                    work(&folder.join(format!("group-{group}")));
                }
            });
        }
    });
}

fn scan(folder: &Path, threads: usize) -> Fleet {
    let options = FleetOptions::new().with_threads(threads);
    Fleet::scan(&[Source::folder(folder)], &options, Utc::now())
}

fn fleets(folder: &Path) {
    const GROUPS: usize = 4;
    fill(folder, GROUPS, 1000);
    let compared = compare(
        "fleet of 4,000 checkpoints",
        20,
        &mut [
            Contender::new("list, read and parse, one thread", |_| plain(folder)),
            Contender::new("Fleet::scan, one thread", |_| {
                black_box(scan(folder, 1));
            })
            .at_most(1.4),
        ],
    );
    let threads = threads();
    let on_all = compare(
        &format!("fleet of 4,000 checkpoints, {threads} threads"),
        20,
        &mut [
            Contender::new("list, read and parse, on as many threads", |_| {
                on_threads(folder, GROUPS, plain);
            }),
            Contender::new("Fleet::scan on as many threads", |_| {
                black_box(scan(folder, threads));
            })
            .at_most(1.4),
            Contender::new("Fleet::scan, one thread", |_| {
                black_box(scan(folder, 1));
            }),
        ],
    );
    let speedup = |all: &[Measured]| all[2].median.as_secs_f64() / all[1].median.as_secs_f64();
    println!("{threads} threads: {:.2} x one", speedup(&on_all));
    drop(compared);
}

/// Repeats a scan after 100 of 100,000 checkpoints changed.
fn again(folder: &Path) {
    const GROUPS: usize = 100;
    fill(folder, GROUPS, 1000);
    std::thread::sleep(Duration::from_millis(50));
    let sources = [Source::folder(folder)];
    let first = scan(folder, threads());
    let change = |round: usize| {
        for number in 0..100 {
            let path = folder.join(format!("group-{number}/task-{}.json", round % 1000));
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replacen("Pending", "pending", 1)).unwrap();
        }
    };
    compare(
        &format!("100,000 checkpoints again, {} threads", threads()),
        10,
        &mut [
            Contender::new("list and statx, on as many threads", |_| {
                on_threads(folder, GROUPS, statx);
            }),
            Contender::prepared("Fleet::rescan after 100 changed", change, |()| {
                black_box(first.rescan(&sources, Utc::now()));
            })
            .at_most(1.3),
        ],
    );
}

/// Measures, in a separate process, the peak of resident memory above the size of the result, for a scan of 100,000.
fn memory(folder: &Path) {
    fill(folder, 100, 1000);
    let child = Command::new(std::env::current_exe().unwrap())
        .env(CHILD, folder)
        .output()
        .unwrap();
    print!("\n{}", String::from_utf8_lossy(&child.stdout));
}

fn resident(what: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.and_then(|it| it.parse().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// A second result is as large as the first, including the parts that a copy of a row would share.
fn memory_of(folder: &Path) {
    let start = resident("VmRSS:");
    let first = scan(folder, threads());
    let (peak, one) = (resident("VmHWM:"), resident("VmRSS:"));
    let second = scan(folder, threads());
    let result = resident("VmRSS:") - one;
    println!("memory of a scan of {} checkpoints", first.rows().len());
    println!("peak {peak:.0} MB, of which the start {start:.0} MB and the result {result:.0} MB");
    println!("over the result {:.0} MB (goal 64)", peak - start - result);
    black_box((first, second));
}
