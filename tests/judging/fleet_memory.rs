//! The cost of a scan of thousands of checkpoints: one pass, and memory that grows only with their number.
//!
//! The test runs itself as a child process, whose peak of resident memory the kernel reports (`VmHWM`).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::common::time;
use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};

/// The folder for the child; without it the child's test does nothing.
const FOLDER: &str = "FLEET_MEMORY_FOLDER";
const NOW: &str = "2026-03-02T09:00:00Z";
/// The most that one checkpoint may add to the peak, with its row, its paths and its JSON.
const MOST_BYTES_EACH: u64 = 8 * 1024;

/// Checkpoints of a real size, 2.5 to 3 KB, a tenth of them stalled, in folders of 500.
fn fill(folder: &Path, count: usize) {
    let steps = |prefix: &str, n: usize| {
        let steps: Vec<String> = (0..n)
            .map(|i| format!("\"{prefix} {i}: wire the toggle to the context\""))
            .collect();
        steps.join(",")
    };
    let (done, next) = (steps("Done", 25), steps("Next", 20));
    for number in 0..count {
        let sub = folder.join(format!("group_{}", number / 500));
        fs::create_dir_all(&sub).unwrap();
        let last = if number % 10 == 0 {
            "07:00:00"
        } else {
            "08:55:00"
        };
        let text = format!(
            r#"{{"agent_id":"Secondary-{number}","agent_type":"secondary","session_id":"s{number}",
              "feature":"feature_{number}","stage":"S2.P2","phase":"Specification",
              "last_checkpoint":"2026-03-02T{last}Z","status":"IN_PROGRESS","can_resume":true,
              "files_modified":["f{number}/a.rs","f{number}/b.rs","f{number}/c.rs","shared/{}.rs"],
              "current_step":"Writing","completed_steps":[{done}],"next_steps":[{next}]}}"#,
            number / 2
        );
        fs::write(sub.join(format!("secondary_{number}.json")), text).unwrap();
    }
}

/// The peak of this process's resident memory, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let began = Instant::now();
    let sources = [Source::folder(Path::new(&folder))];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    let json = serde_json::to_string(&fleet).unwrap().len();
    assert!(json > fleet.rows().len());
    println!(
        "TOLD {} {} {} {} {}",
        fleet.rows().len(),
        fleet.totals().count("stalled"),
        fleet.findings().len(),
        peak(),
        began.elapsed().as_millis()
    );
}

/// Scans in a separate process. Returns the numbers of rows, stalled rows and findings, the peak in bytes, and the
/// milliseconds.
fn scan_apart(folder: &Path) -> [u64; 5] {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "fleet_memory::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = text
        .lines()
        .find_map(|line| Some(line.split_once("TOLD ")?.1));
    let told = told.unwrap_or_else(|| panic!("the child told nothing: {text}"));
    let numbers: Vec<u64> = told
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    numbers.try_into().unwrap()
}

#[test]
fn thousands_of_checkpoints_are_one_pass_in_bounded_memory() {
    let few = tempfile::tempdir().unwrap();
    let many = tempfile::tempdir().unwrap();
    fill(few.path(), 1_000);
    fill(many.path(), 4_000);
    let [rows, stalled, _, low, _] = scan_apart(few.path());
    assert_eq!((rows, stalled), (1_000, 100));
    let [rows, stalled, findings, high, took] = scan_apart(many.path());
    assert_eq!((rows, stalled), (4_000, 400));
    // Each pair shares a file, except the pairs with a stalled one.
    assert_eq!(findings, 1_600);
    let each = high.saturating_sub(low) / 3_000;
    println!(
        "4,000 checkpoints: peak {} MiB, {each} bytes for each, {took} ms",
        high / 1024 / 1024
    );
    assert!(each < MOST_BYTES_EACH, "{each} bytes for each checkpoint");
}

#[test]
fn a_document_adds_nothing_but_its_row() {
    // Ten times the size, and the same number.
    let small = tempfile::tempdir().unwrap();
    let large = tempfile::tempdir().unwrap();
    fill(small.path(), 1_000);
    fill(large.path(), 1_000);
    let padding = format!("\"x-notes\": \"{}\",", "n".repeat(27_000));
    for number in 0..1_000 {
        let name = format!("group_{}/secondary_{number}.json", number / 500);
        let text = fs::read_to_string(large.path().join(&name)).unwrap();
        let text = text.replacen('{', &format!("{{{padding}"), 1);
        fs::write(large.path().join(&name), text).unwrap();
    }
    let [_, _, _, low, _] = scan_apart(small.path());
    let [rows, _, _, high, _] = scan_apart(large.path());
    assert_eq!(rows, 1_000);
    // 27 MB more on disk; in memory only room for one document, and what the allocator keeps of it.
    let more = high.saturating_sub(low);
    assert!(more < 4 * 1024 * 1024, "{more} bytes");
}
