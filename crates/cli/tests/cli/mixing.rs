//! `ckpt` and programs that link the library, on one checkpoint at the same time.

use std::thread;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, Durability, FileOptions, FileStore, Put,
};
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, ClaimRequest, Expect, Key, Limits};

use crate::project::{EXAMPLE, Project, TASK};

const EACH: usize = 25;

fn options() -> FileOptions {
    FileOptions::default()
        .with_durability(Durability::None)
        .with_lock_timeout(Duration::from_secs(120))
}

fn block_again_and_again(tasks: &Checkpoints<TaskCheckpoint>, key: &Key, who: &str) {
    for n in 0..EACH {
        tasks
            .update(key, |task| task.blockers.push(format!("{who} {n}")))
            .unwrap();
    }
}

/// Asserts that every report of every writer is there once, in the order of its writer.
fn assert_whole(blockers: &[String], who: &[&str]) {
    assert_eq!(blockers.len(), who.len() * EACH, "{blockers:?}");
    for who in who {
        let of = |line: &&String| line.starts_with(&format!("{who} "));
        let lines: Vec<_> = blockers.iter().filter(of).cloned().collect();
        let all: Vec<_> = (0..EACH).map(|n| format!("{who} {n}")).collect();
        assert_eq!(lines, all);
    }
}

#[test]
fn what_the_library_and_ckpt_report_at_once_is_all_there() {
    let project = Project::with("t.json", TASK);
    let store = FileStore::single(project.path("t.json"), options()).unwrap();
    let key = store.key().unwrap().clone();
    let claim = store
        .claim(&key, &ClaimRequest::new("crew", Duration::from_secs(3600)))
        .unwrap();
    let fence = claim.fence.to_string();
    let tasks = store
        .checkpoints::<TaskCheckpoint>()
        .with_limits(Limits::unlimited())
        .fenced(claim.fence);
    thread::scope(|scope| {
        for who in ["ckpt-a", "ckpt-b"] {
            let (project, fence) = (&project, &fence);
            scope.spawn(move || {
                for n in 0..EACH {
                    let line = format!("{who} {n}");
                    project.expect(0, &["block", &line, "--store", "t.json", "--fence", fence]);
                    // A writer without a fence is kept out all the time.
                    project.expect(4, &["block", "late", "--store", "t.json"]);
                }
            });
        }
        let (tasks, key) = (&tasks, &key);
        for who in ["library-a", "library-b"] {
            scope.spawn(move || block_again_and_again(tasks, key, who));
        }
    });
    let blockers = tasks.get(&key).unwrap().checkpoint.blockers;
    assert_whole(&blockers, &["ckpt-a", "ckpt-b", "library-a", "library-b"]);
    // Members that neither side knows are unchanged, byte for byte.
    assert!(
        project
            .read("t.json")
            .contains("\"x-mine\": {\"weight\": 1.50}")
    );
}

#[test]
fn a_slot_that_ckpt_changes_and_one_that_the_library_changes_are_both_whole() {
    let file = "docs/builder-state.json";
    let host = EXAMPLE.trim_end().strip_suffix('}').unwrap().trim_end();
    let host =
        format!("{host},\n  \"adhocQueue\": [{{\"id\": \"x\", \"checkpoint\": {{}}}}]\n}}\n");
    let project = Project::with(file, &host);
    let store = BuilderStateStore::with_options(project.path(file), options());
    let key = Key::new("adhoc:x").unwrap();
    let tasks = store
        .checkpoints::<TaskCheckpoint>()
        .with_limits(Limits::unlimited());
    thread::scope(|scope| {
        scope.spawn(|| block_again_and_again(&tasks, &key, "library"));
        for n in 0..EACH {
            let line = format!("ckpt {n}");
            project.expect(0, &["block", &line, "--store", file, "--slot", "active"]);
        }
    });
    assert_whole(&tasks.get(&key).unwrap().checkpoint.blockers, &["library"]);
    let active = tasks.get(&Key::new("active").unwrap()).unwrap();
    assert_whole(&active.checkpoint.blockers, &["ckpt"]);
    assert!(
        project
            .read(file)
            .contains("\"sessionId\": \"builder-abc123\"")
    );
}

/// `--expect` of `ckpt` and [`Expect::Revision`] of the library are the same: if two read one revision, one of them
/// wins.
#[test]
fn of_ckpt_and_the_library_that_expect_one_revision_one_wins() {
    let project = Project::with("t.json", TASK);
    let store = FileStore::single(project.path("t.json"), options()).unwrap();
    let key = store.key().unwrap().clone();
    let (mut ckpt, mut library) = (0, 0);
    for round in 0..20 {
        let stored = store.load(&key).unwrap().unwrap();
        let revision = stored.revision.to_string();
        let (by_ckpt, by_library) = thread::scope(|scope| {
            let change = format!("/x-mine/by=\"ckpt {round}\"");
            let project = &project;
            let run = scope.spawn(move || {
                let run = project.ckpt(&["set", "t.json", &change, "--expect", &revision]);
                assert!([0, 5].contains(&run.code), "{run:?}");
                run.code == 0
            });
            // Let either side come first.
            thread::sleep(Duration::from_micros(500 * round));
            let mut document = stored.document.clone();
            document
                .set("/x-mine/by", &format!("library {round}"))
                .unwrap();
            let expect = Expect::Revision(stored.revision.clone());
            let saved = store.put(&key, Put::new(document.clone()).with_expect(expect));
            (run.join().unwrap(), saved.is_ok())
        });
        assert!(
            by_ckpt != by_library,
            "round {round}: {by_ckpt} {by_library}"
        );
        let text = project.read("t.json");
        let winner = if by_ckpt { "ckpt" } else { "library" };
        assert!(text.contains(&format!("{winner} {round}")), "{text}");
        ckpt += usize::from(by_ckpt);
        library += usize::from(by_library);
    }
    assert_eq!(ckpt + library, 20);
}
