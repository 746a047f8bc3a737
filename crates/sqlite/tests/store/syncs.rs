//! Counts the syncs and the reads of a save in its system calls: this program runs itself again under strace.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Put};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest};
use agent_checkpoint_sqlite::SqliteStore;
use tempfile::tempdir;

use crate::{key, numbered};

const CHILD: &str = "AGENT_CHECKPOINT_SQLITE_SYNCS_CHILD";
const SAVES: u64 = 20;

/// Leaves a mark in the trace and does nothing else.
fn mark(name: &str) {
    let _none = std::fs::metadata(Path::new("/agent-checkpoint-mark").join(name));
}

#[test]
fn child_saves() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let store = SqliteStore::open(folder.join("a.db")).unwrap();
    let key = key("a");
    for number in 0..SAVES {
        mark("save");
        store.put(&key, numbered(number)).unwrap();
    }
    let request = ClaimRequest::new("one", std::time::Duration::from_secs(60));
    mark("claim");
    let claim = store.claim(&key, &request).unwrap();
    mark("release");
    store.release(&key, claim.fence).unwrap();
    mark("unchanged");
    store.put(&key, numbered(SAVES - 1)).unwrap();
    mark("load");
    store.load(&key).unwrap();
    mark("delete");
    store.delete(&key, &DeleteOptions::new()).unwrap();
    mark("readers");
    let start = std::sync::Barrier::new(12);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                start.wait();
                store.load(&key).unwrap();
            });
        }
    });
    mark("filling");
    let filling = "x".repeat(400_000);
    for number in 0..10 {
        let document = Document::from_text(format!("{{\"n\":{number},\"x\":\"{filling}\"}}"));
        store.put(&key, Put::new(document.unwrap())).unwrap();
    }
    let past = store.states(&key).unwrap().swap_remove(1).id;
    // Stores with empty caches.
    let opened = || SqliteStore::open(folder.join("a.db")).unwrap();
    let (one, two) = (opened(), opened());
    mark("large put");
    one.put(&key, numbered(0)).unwrap();
    mark("large load");
    two.load_revision(&key, &past).unwrap();
    mark("end");
}

#[test]
fn a_save_waits_for_the_disk_once_and_one_that_changes_nothing_never() {
    let folder = tempdir().unwrap();
    let trace = folder.path().join("trace");
    let output = Command::new("strace")
        .args(["-f", "-y", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "syncs::child_saves"])
        .env(CHILD, folder.path())
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        let _seen = writeln!(
            std::io::stderr(),
            "SKIPPED a_save_waits_for_the_disk_once (strace not installed)"
        );
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let trace = std::fs::read_to_string(&trace).unwrap();
    let sections: Vec<&str> = trace.split("/agent-checkpoint-mark/").skip(1).collect();
    let counts: Vec<(&str, usize)> = sections
        .iter()
        .map(|section| {
            let name = section.split('"').next().unwrap();
            (name, section.matches("sync(").count())
        })
        .collect();
    let parent = folder.path().parent().unwrap().display();
    let opening = trace.split("/agent-checkpoint-mark/").next().unwrap();
    let is_synced = |line: &str| line.contains("sync(") && line.contains(&format!("<{parent}>"));
    assert!(opening.lines().any(is_synced), "the folder's own name");
    let (first, rest) = counts.split_first().unwrap();
    assert!(first.1 >= 1, "the first save syncs the log's header, too");
    let wanted = |name: &str| usize::from(!matches!(name, "unchanged" | "load" | "readers"));
    // At a thousand pages the log is moved into the database.
    let filling = rest
        .iter()
        .position(|(name, _)| *name == "filling")
        .unwrap();
    for (name, syncs) in &rest[..filling] {
        assert_eq!(*syncs, wanted(name), "{name}, of {counts:?}");
    }
    assert_eq!(filling as u64, SAVES - 1 + 6);
    // Each of the ten states has a hundred pages.
    for section in sections
        .iter()
        .filter(|section| section.starts_with("large"))
    {
        let reads = section.matches("pread64(").count();
        assert!((100..200).contains(&reads), "{reads}: {:.10}", section);
    }
}
