//! A stale verdict stays until an agent reports work.

use std::fs;
use std::path::Path;

use crate::common::{Reporting, key, time};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::agent_session::{AgentCheckpoint, TakeOver, take_over};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::staleness::Tracking;
use agent_checkpoint::store::{FileStore, MemoryStore, Saved};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ContextUse, Error, FixedClock, Operation,
    OperationContext,
};

const FILES: [&str; 2] = ["h.rs", "k.rs"];

/// A task whose agent `a` created two files, one of which was changed since and one removed.
fn stale_task(store: &MemoryStore, root: &Path) {
    let tasks = tasks(store, root);
    for name in FILES {
        fs::write(root.join(name), "one").unwrap();
    }
    let now = chrono::Utc::now();
    tasks
        .create(&key("t"), &TaskCheckpoint::begin("a", ["p1", "p2"], now))
        .unwrap();
    tasks
        .try_update(&key("t"), |task| {
            let done = StepDone::new("p1")
                .with_created("h.rs")
                .with_created("k.rs");
            task.report_at(done.clone(), now)
        })
        .unwrap();
    assert_eq!(states(store, root), ["fresh", "unchanged", "unchanged"]);
    fs::write(root.join("h.rs"), "other").unwrap();
    fs::remove_file(root.join("k.rs")).unwrap();
    assert_eq!(states(store, root), ["stale", "modified", "missing"]);
}

fn tasks(store: &MemoryStore, root: &Path) -> Checkpoints<TaskCheckpoint> {
    store.checkpoints().tracking(Tracking::new(root))
}

fn states(store: &MemoryStore, root: &Path) -> Vec<String> {
    let tasks: Checkpoints<TaskCheckpoint> = store.checkpoints();
    let judged = tasks.stale(&key("t"), root).unwrap();
    let files = judged.files().iter().map(|file| file.state.as_str());
    std::iter::once(judged.as_str())
        .chain(files)
        .map(str::to_owned)
        .collect()
}

fn report(tasks: &Checkpoints<TaskCheckpoint>, agent: &str, operation: &Operation) -> Saved {
    tasks
        .try_update(&key("t"), |task| {
            let context = OperationContext::at(chrono::Utc::now()).by(Some(agent), None);
            task.apply(operation, &context)
        })
        .unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn what_is_no_work_leaves_the_verdict() {
    let used = ContextUse::new(0.8).unwrap();
    let start = |step: &str| Operation::StepStart { text: text(step) };
    let note = Operation::Note { text: text("half") };
    let cases: Vec<(&str, Vec<Operation>)> = vec![
        ("b", vec![Operation::Reassign { to: text("b") }]),
        // Another agent begins, and has not looked at the files yet.
        ("b", vec![start("p2")]),
        (
            "b",
            vec![Operation::Reassign { to: text("b") }, start("p2"), note],
        ),
        ("a", vec![Operation::Context { used }]),
        (
            "a",
            vec![Operation::RateLimit {
                note: None,
                until: None,
            }],
        ),
        (
            "b",
            vec![Operation::Block {
                text: text("no key"),
                kind: None,
            }],
        ),
        (
            "b",
            vec![
                Operation::Block {
                    text: text("no key"),
                    kind: None,
                },
                Operation::Unblock,
            ],
        ),
        (
            "a",
            vec![Operation::Fail {
                text: text("broken"),
            }],
        ),
        (
            "b",
            vec![Operation::Decide {
                text: text("use c"),
                rationale: None,
            }],
        ),
    ];
    for (agent, operations) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = MemoryStore::new();
        stale_task(&store, folder.path());
        for operation in &operations {
            let saved = report(&tasks(&store, folder.path()), agent, operation);
            assert!(saved.files.is_empty(), "{operation:?}");
            assert_eq!(
                states(&store, folder.path()),
                ["stale", "modified", "missing"],
                "{agent}: {operation:?}"
            );
        }
        // Even if the reporter does not read the files at all.
        let tasks: Checkpoints<TaskCheckpoint> = store.checkpoints();
        let decide = Operation::Decide {
            text: text("d"),
            rationale: None,
        };
        report(&tasks, "b", &decide);
        assert_eq!(states(&store, folder.path())[0], "stale", "{operations:?}");
    }
}

#[test]
fn a_save_that_reports_no_work_keeps_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let (store, root) = (MemoryStore::new(), folder.path());
    stale_task(&store, root);
    for name in FILES {
        fs::write(root.join(name), "one").unwrap();
    }
    let touched = ["fresh", "touched", "touched"];
    assert_eq!(states(&store, root), touched);
    let note = Operation::RateLimit {
        note: None,
        until: None,
    };
    report(&tasks(&store, root), "a", &note);
    assert_eq!(states(&store, root), touched);
    let start = Operation::StepStart { text: text("p2") };
    report(&tasks(&store, root), "a", &start);
    assert_eq!(states(&store, root), ["fresh", "unchanged", "unchanged"]);
}

#[test]
fn work_takes_the_files_over_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = MemoryStore::new();
    stale_task(&store, folder.path());
    fs::write(folder.path().join("new.rs"), "one").unwrap();
    let done = StepDone::new("p2").with_created("new.rs").into();
    let saved = report(&tasks(&store, folder.path()), "b", &done);
    assert_eq!(saved.files.taken_over, FILES);
    // The removal of the file is part of the reported work.
    assert_eq!(
        states(&store, folder.path()),
        ["fresh", "unchanged", "removed", "unchanged"]
    );
    // A file that the work names is not reported as taken over.
    fs::write(folder.path().join("h.rs"), "by b").unwrap();
    let done = StepDone::new("p3").with_modified("h.rs").into();
    let saved = report(&tasks(&store, folder.path()), "b", &done);
    assert!(saved.files.is_empty());
    assert_eq!(states(&store, folder.path())[0], "fresh");
    // Its own agent begins the next step: that is work, too.
    fs::write(folder.path().join("h.rs"), "by b again").unwrap();
    let start = Operation::StepStart { text: text("p4") };
    let saved = report(&tasks(&store, folder.path()), "b", &start);
    assert_eq!(saved.files.taken_over, ["h.rs"]);
}

#[test]
fn a_name_that_was_never_there_is_reported_until_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = MemoryStore::new();
    let tasks = tasks(&store, root);
    let now = chrono::Utc::now();
    tasks
        .create(&key("t"), &TaskCheckpoint::begin("a", ["p1"], now))
        .unwrap();
    fs::write(root.join("h.rs"), "one").unwrap();
    let done = |step: &str, file: &str| -> Operation {
        let done = StepDone::new(step).with_created("h.rs");
        done.with_created(file).into()
    };
    let saved = report(&tasks, "a", &done("p1", "tpyo.rs"));
    assert_eq!(saved.files.missing, ["tpyo.rs"]);
    for step in ["p2", "p3"] {
        assert_eq!(
            states(&store, root),
            ["indeterminate", "unchanged", "indeterminate"]
        );
        report(&tasks, "a", &done(step, "h.rs"));
    }
    fs::write(root.join("tpyo.rs"), "one").unwrap();
    assert_eq!(states(&store, root), ["stale", "unchanged", "appeared"]);
    let saved = report(&tasks, "a", &done("p4", "h.rs"));
    assert_eq!(saved.files.taken_over, ["tpyo.rs"]);
    assert_eq!(states(&store, root)[0], "fresh");
    let saved = report(&tasks, "a", &done("p5", "/etc/passwd"));
    assert_eq!(saved.files.outside, ["/etc/passwd"]);
}

/// An agent's checkpoint belongs to it: an agent that takes over gets a new one, in the same file or beside it.
#[test]
fn taking_over_leaves_the_verdict() {
    let now = time("2026-03-02T10:00:00Z");
    for (new, beside, tracked) in [
        ("A", false, true),
        ("A", false, false),
        ("B", false, true),
        ("B", true, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let layout = AgentCheckpoint::layout();
        let store = FileStore::open(root.join("agents")).with_layout(layout);
        let mut agents = store.checkpoints::<AgentCheckpoint>();
        if tracked {
            agents = agents.tracking(Tracking::new(root));
        }
        let agents = agents.with_clock(FixedClock(now));
        fs::write(root.join("h.rs"), "one").unwrap();
        let mut agent = AgentCheckpoint::begin("A", "s1", "feature", ["p1"], now);
        agent.files_modified = vec![text("h.rs")];
        agents.create(&key("A"), &agent).unwrap();
        fs::write(root.join("h.rs"), "other").unwrap();
        let mut by = TakeOver::new(new, "s2", "crashed");
        if beside {
            by = by.beside();
        }
        let taken = take_over(&store, &key("A"), &by, chrono::Utc::now()).unwrap();
        let judged = agents.stale(&taken.key, root).unwrap();
        assert_eq!(judged.as_str(), "stale", "{new}, {beside}, {tracked}");
    }
}

/// Without a record the stamp of the checkpoint decides, and a save moves it.
#[test]
fn a_verdict_by_the_stamp_stands_too() -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = MemoryStore::new();
    let old = time("2026-03-02T10:00:00Z");
    let untracked: Checkpoints<TaskCheckpoint> = store.checkpoints().with_clock(FixedClock(old));
    let mut task = TaskCheckpoint::begin("a", ["p1"], old);
    task.report_at(
        StepDone::new("p1")
            .with_created("h.rs")
            .with_created("k.rs"),
        old,
    )?;
    untracked.create(&key("t"), &task)?;
    for name in FILES {
        fs::write(root.join(name), "one").unwrap();
    }
    let before = std::time::UNIX_EPOCH;
    let file = fs::File::options().write(true).open(root.join("k.rs"));
    file.unwrap().set_modified(before).unwrap();
    assert_eq!(states(&store, root), ["stale", "modified", "unchanged"]);
    let decide = |text: &str| Operation::Decide {
        text: text.to_owned(),
        rationale: None,
    };
    report(&tasks(&store, root), "b", &decide("x"));
    assert_eq!(states(&store, root), ["stale", "modified", "unchanged"]);
    // In a folder without the files nothing is learned, and nothing forgotten.
    let elsewhere = tempfile::tempdir().unwrap();
    report(&tasks(&store, elsewhere.path()), "b", &decide("y"));
    assert_eq!(states(&store, root), ["stale", "modified", "unchanged"]);
    Ok(())
}
