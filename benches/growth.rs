//! Measures whether a save costs more with more checkpoints in the folder, entries in the history, or revisions before
//! it. `cargo bench --bench growth` also draws the curves into docs/performance; `-- history` runs one part.
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
use std::time::{Duration, Instant};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{Durability, FileOptions, FileStore, Keep};
use agent_checkpoint::{Checkpoints, Key, Limits};

use measure::plot::{Curve, svg};
use measure::work::{checkpoint, textbook};
use measure::{Contender, Measured, at, compare, short};

/// Makes this program a child process that saves once. The value is the folder of its store.
const CHILD: &str = "AGENT_CHECKPOINT_GROWTH_CHILD";

type Tasks = Checkpoints<TaskCheckpoint>;

fn main() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return first_save(&PathBuf::from(folder));
    }
    measure::run(&[
        ("checkpoints", checkpoints),
        ("history", history),
        ("revisions", revisions),
    ]);
}

fn key() -> Key {
    Key::new("task").unwrap()
}

fn begun(folder: &Path, options: FileOptions) -> Tasks {
    let tasks = with(folder, options);
    tasks.create(&key(), &checkpoint()).unwrap();
    tasks
}

fn with(folder: &Path, options: FileOptions) -> Tasks {
    Tasks::new(FileStore::with_options(folder, options)).with_limits(Limits::unlimited())
}

fn update(tasks: &Tasks, round: usize) {
    let saved = tasks.update(&key(), |task| task.blockers = vec![format!("{round}")]);
    black_box(saved.unwrap());
}

/// The checkpoint as JSON, for the textbook replace.
fn text() -> String {
    serde_json::to_string_pretty(&checkpoint()).unwrap()
}

/// Compares updates of these stores with the textbook replace, and returns the points of their curve.
fn ratios(title: &str, folder: &Path, stores: &[(usize, Tasks)]) -> Vec<(f64, f64)> {
    let (book, text) = (folder.join("textbook.json"), text());
    let mut all = vec![Contender::new("a textbook durable replace", |_| {
        textbook(&book, text.as_bytes());
    })];
    for (count, tasks) in stores {
        let name = format!("typed update, {count}");
        all.push(Contender::new(name, |n| update(tasks, n)));
    }
    points(&compare(title, 300, &mut all), stores)
}

fn points(measured: &[Measured], stores: &[(usize, Tasks)]) -> Vec<(f64, f64)> {
    let ratios = measured.iter().skip(1).map(|one| one.ratio);
    let counts = stores.iter().map(|(count, _)| *count as f64);
    counts.zip(ratios).collect()
}

fn draw(name: &str, title: &str, along: &str, curves: &[Curve]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance");
    // Outside of the project there is nowhere to draw.
    if folder.parent().is_some_and(Path::is_dir) {
        fs::create_dir_all(&folder).unwrap();
        let up = "times a textbook durable replace";
        fs::write(folder.join(name), svg(title, along, up, curves)).unwrap();
    }
}

fn checkpoints(folder: &Path) {
    let text = text();
    let stores: Vec<(usize, Tasks)> = [10, 1_000, 100_000]
        .map(|count| {
            let folder = folder.join(count.to_string());
            let tasks = begun(&folder, FileOptions::default());
            for n in 1..count {
                fs::write(folder.join(format!("other-{n}.json")), &text).unwrap();
            }
            (count, tasks)
        })
        .into();
    // Else the writing of these files goes on below all that is measured.
    let synced = Command::new("sync").status();
    assert!(synced.is_ok_and(|status| status.success()));
    // A file system may itself be slower in a large folder, so the textbook replaces a file in each.
    let books: Vec<PathBuf> = stores
        .iter()
        .map(|(count, _)| folder.join(count.to_string()).join("textbook.json"))
        .collect();
    let mut all = Vec::new();
    for ((count, tasks), book) in stores.iter().zip(&books) {
        let name = format!("a textbook durable replace, {count}");
        all.push(Contender::new(name, |_| textbook(book, text.as_bytes())));
        let name = format!("typed update, {count}");
        all.push(Contender::new(name, |n| update(tasks, n)));
    }
    let measured = compare("checkpoints in the folder", 300, &mut all);
    drop(all);
    let counts = || stores.iter().map(|(count, _)| *count as f64);
    let every_other = |from: usize| measured.iter().skip(from).step_by(2).map(|one| one.ratio);
    let textbooks: Vec<(f64, f64)> = counts().zip(every_other(0)).collect();
    let warm: Vec<(f64, f64)> = counts().zip(every_other(1)).collect();

    println!("\nthe first save of a process, after another process saved there");
    let book = folder.join("textbook.json");
    let mut firsts = vec![Vec::new(); stores.len()];
    let mut plain = Vec::new();
    for _ in 0..21 {
        let began = Instant::now();
        textbook(&book, text.as_bytes());
        plain.push(began.elapsed());
        for ((count, _), times) in stores.iter().zip(&mut firsts) {
            times.push(in_a_process(&folder.join(count.to_string())));
        }
    }
    plain.sort();
    let plain = at(&plain, 0.5);
    let mut cold = Vec::new();
    for ((count, _), times) in stores.iter().zip(&mut firsts) {
        times.sort();
        let median = at(times, 0.5);
        let ratio = median.as_secs_f64() / plain.as_secs_f64();
        let most = short(at(times, 0.99));
        println!(
            "| {ratio:6.2} | {:>9} | {most:>9} | {count} checkpoints",
            short(median)
        );
        cold.push((*count as f64, ratio));
    }
    let curves = [
        ("textbook".to_owned(), textbooks),
        ("update".to_owned(), warm),
        ("first of a process".to_owned(), cold),
    ];
    draw(
        "checkpoints.svg",
        "A save, by checkpoints in the folder",
        "checkpoints",
        &curves,
    );
}

/// How long the first save of a new process takes, measured inside that process.
fn in_a_process(folder: &Path) -> Duration {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.env(CHILD, folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Duration::from_nanos(text.trim().parse().unwrap())
}

fn first_save(folder: &Path) {
    let round = std::process::id() as usize;
    let began = Instant::now();
    update(&with(folder, FileOptions::default()), round);
    println!("{}", began.elapsed().as_nanos());
}

fn history(folder: &Path) {
    let stores: Vec<(usize, Tasks)> = [1, 10, 100, 1_000]
        .map(|count| {
            let options = || FileOptions::default().with_history(Keep::newest(count));
            let path = folder.join(count.to_string());
            let filling = begun(&path, options().with_durability(Durability::None));
            (0..count + 2).for_each(|n| update(&filling, n));
            (count, with(&path, options()))
        })
        .into();
    let curve = ratios("entries in the history", folder, &stores);
    let curves = [("update".to_owned(), curve)];
    draw(
        "history.svg",
        "A save, by entries in the history",
        "entries",
        &curves,
    );
}

fn revisions(folder: &Path) {
    let path = folder.join("store");
    let none = FileOptions::default().with_durability(Durability::None);
    let filling = begun(&path, none);
    let mut curve = Vec::new();
    let mut made = 1;
    for count in [1, 100, 10_000, 100_000] {
        (made..count).for_each(|n| update(&filling, n));
        made = made.max(count);
        let stores = [(count, with(&path, FileOptions::default()))];
        curve.extend(ratios("revisions before", folder, &stores));
        println!("on disk: {} bytes", size_of(&path));
    }
    let curves = [("update".to_owned(), curve)];
    draw(
        "revisions.svg",
        "A save, by revisions before it",
        "revisions",
        &curves,
    );
}

/// The total size of a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.metadata().unwrap() {
            found if found.is_dir() => size_of(&entry.path()),
            found => found.len(),
        })
        .sum()
}
