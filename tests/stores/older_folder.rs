//! A folder written by version 0.1 is read completely, and its claims are still valid.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, EntryId, FileOptions, FileStore, HistoryEntry, Put, Query,
    RecoverOptions, Recovery,
};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, ClaimRequest, ErrorKind, FixedClock, Key};

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A copy of the folder, with the original times of its files, because the history depends on them.
fn copied() -> tempfile::TempDir {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/written-by-0.1");
    let to = tempfile::tempdir().unwrap();
    for line in fs::read_to_string(from.join("times.txt")).unwrap().lines() {
        let (time, name) = line.split_once(' ').unwrap();
        let (seconds, fraction) = time.split_once('.').unwrap();
        let nanos = fraction[..9].parse().unwrap();
        let time = UNIX_EPOCH + Duration::new(seconds.parse().unwrap(), nanos);
        let path = to.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, fs::read(from.join(name)).unwrap()).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    }
    to
}

/// A time at which the claims of the folder are still valid.
fn on_the_next_day() -> FileOptions {
    let now = "2026-01-06T08:00:00Z".parse().unwrap();
    FileOptions::default().with_clock(FixedClock(now))
}

/// Each entry of a history: its name, whether it is pinned, and how many tasks ended after it.
fn states(store: &dyn CheckpointStore, key: &Key) -> Vec<(String, bool, usize)> {
    let entries = store.states(key).unwrap();
    let state = |entry: &HistoryEntry| {
        store.load_revision(key, &entry.id).unwrap();
        (entry.id.to_string(), entry.pinned, entry.tasks_since)
    };
    entries.iter().map(state).collect()
}

fn state(name: &str, pinned: bool, tasks_since: usize) -> (String, bool, usize) {
    (name.to_owned(), pinned, tasks_since)
}

#[test]
fn history_dropped_items_and_fingerprints_of_an_older_folder_are_read() {
    let folder = copied();
    let store = FileStore::with_options(folder.path().join("store"), on_the_next_day())
        .with_layout(TaskCheckpoint::layout());
    let us_003 = key("US-003");
    let page = store.list(&Query::all()).unwrap();
    assert!(page.keys().eq(&["US-003", "a/b", "sess"].map(key)));
    let stored = store.load(&us_003).unwrap().unwrap();
    assert_eq!(
        states(&store, &us_003),
        [
            state("current", false, 0),
            state("7", false, 0),
            state("5", false, 0),
            state("4", true, 0),
            state("3", false, 0),
            state("2", false, 1),
            state("1", false, 1),
        ]
    );
    // The items of the first task ended with it.
    let dropped = store.beside().dropped(&us_003).unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0].pointer, "/decisions");
    let prints = store
        .beside()
        .fingerprints(&us_003, &stored.revision)
        .unwrap();
    assert!(prints.unwrap().contains("src/a.rs"));
    assert!(
        store
            .history()
            .unwrap()
            .rolled_back(&us_003, &stored.revision)
            .unwrap()
            .is_none()
    );
}

/// Every file and folder below this one, with its content.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            if path.is_dir() {
                all.push((name, Vec::new()));
                folders.push(path);
            } else {
                all.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

fn layout(folder: &Path) -> std::path::PathBuf {
    folder.join(".agent-checkpoint/layout")
}

#[test]
fn an_older_folder_is_taken_over_by_the_first_write_and_by_no_read() {
    let folder = copied();
    let files = folder.path().join("store");
    let before = tree(folder.path());
    let reads = |options: FileOptions| {
        let store = FileStore::with_options(&files, options).with_layout(TaskCheckpoint::layout());
        let us_003 = key("US-003");
        store.load(&us_003).unwrap().unwrap();
        assert_eq!(states(&store, &us_003).len(), 7);
        assert_eq!(store.beside().dropped(&us_003).unwrap().len(), 1);
        assert!(store.claimed(&us_003).unwrap().is_some());
        store
    };
    let store = reads(FileOptions::read_only());
    let next = || Put::new(Document::from_text("{\"n\": 1}").unwrap());
    let error = store.put(&key("new"), next()).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::ReadOnly);
    let store = reads(on_the_next_day());
    assert!(tree(folder.path()) == before, "a read changes nothing");

    // The log of a key has two files if version 0.1 moved a full one away.
    let log = files.join(".agent-checkpoint/overflow");
    fs::rename(
        log.join("US-003.json.jsonl"),
        log.join("US-003.json.1.jsonl"),
    )
    .unwrap();
    store.put(&key("new"), next()).unwrap();
    assert_eq!(fs::read_to_string(layout(&files)).unwrap(), "2\n");
    reads(on_the_next_day());
    let kept = |name: &str| {
        let moved = name.contains("/overflow/");
        moved || before.iter().any(|(old, _)| old == name)
    };
    let made = tree(&files).into_iter().map(|(name, _)| name);
    let made: Vec<String> = made.filter(|name| !kept(name)).collect();
    let ends = |end: &str| made.iter().any(|name| name.ends_with(end));
    assert!(ends("/new.json") && ends("/locks/new.json.lock") && ends("/layout"));
    assert!(before.iter().all(|(old, _)| kept(old)));
}

#[test]
fn a_folder_of_a_newer_program_is_read_and_not_written() {
    let folder = copied();
    let files = folder.path().join("store");
    let long = "2".repeat(40);
    for (number, is_newer) in [
        ("3\n", true),
        ("\0\0", false),
        ("", false),
        ("two", false),
        (&*long, false),
    ] {
        fs::write(layout(&files), number).unwrap();
        let before = tree(folder.path());
        let store = FileStore::with_options(&files, on_the_next_day())
            .with_layout(TaskCheckpoint::layout());
        assert_eq!(states(&store, &key("US-003")).len(), 7);
        let put = Put::new(Document::from_text("{\"n\": 1}").unwrap());
        let request = ClaimRequest::new("other", Duration::from_secs(60));
        let errors = [
            store.put(&key("new"), put).map(drop),
            store.delete(&key("a/b"), &Default::default()).map(drop),
            store.claim(&key("a/b"), &request).map(drop),
            store
                .recover(&key("a/b"), &RecoverOptions::new(Recovery::Newest))
                .map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            let refused = ErrorKind::NewerLayout { found: 3, known: 2 };
            assert_eq!(*error.kind() == refused, is_newer, "{error}");
            assert_eq!(error.code() == "unreadable", !is_newer, "{error}");
        }
        assert!(tree(folder.path()) == before, "{number:?}");
    }
    // A layout file that a power loss removed makes it an older folder.
    fs::remove_file(layout(&files)).unwrap();
    let store = FileStore::open(&files);
    let put = || Put::new(Document::from_text("{\"n\": 1}").unwrap());
    store.put(&key("new"), put()).unwrap();
    assert!(layout(&files).exists());
    // A store reads the layout once; `git clean` removes the number with the folder.
    fs::remove_dir_all(files.join(".agent-checkpoint")).unwrap();
    store.put(&key("newer"), put()).unwrap();
    assert!(layout(&files).exists());
}

#[test]
fn claims_of_an_older_folder_keep_others_out() {
    let folder = copied();
    let store = FileStore::with_options(folder.path().join("store"), on_the_next_day())
        .with_layout(TaskCheckpoint::layout());
    let us_003 = key("US-003");
    let claim = store.claimed(&us_003).unwrap().unwrap();
    assert_eq!(claim.owner, "ui-dev");
    let put = |fence| {
        let next = Document::from_text("{\"n\": 1}").unwrap();
        store.put(&us_003, Put::new(next).with_fence(fence))
    };
    let error = put(None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Claimed { .. }), "{error}");
    put(Some(claim.fence)).unwrap();
    let other = ClaimRequest::new("other", Duration::from_secs(60));
    let error = store.claim(&us_003, &other).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Claimed { .. }), "{error}");
    let taken = store.claim(&us_003, &other.taking_over()).unwrap();
    assert!(taken.fence > claim.fence);
    let error = put(Some(claim.fence)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Fenced { .. }), "{error}");
    assert!(store.claimed(&key("US-005")).unwrap().unwrap().released);
}

#[test]
fn a_recovery_in_an_older_folder_stays_within_the_present_task() {
    let folder = copied();
    let store = FileStore::with_options(folder.path().join("store"), on_the_next_day())
        .with_layout(TaskCheckpoint::layout());
    let us_003 = key("US-003");
    let fence = store.claimed(&us_003).unwrap().map(|claim| claim.fence);
    let files = folder.path().join("store");
    fs::write(files.join("US-003.json"), "{\"agent\": ").unwrap();
    let recovered = store
        .recover(
            &us_003,
            &RecoverOptions::new(Recovery::Newest).with_fence(fence),
        )
        .unwrap();
    assert_eq!(recovered.entry.unwrap().as_str(), "7");
    let quarantine = files.join(".agent-checkpoint/corrupt/US-003.json");
    assert_eq!(fs::read_dir(quarantine).unwrap().count(), 2);
    // If only states of the task before are left, none of them is used.
    for kept in ["7", "6", "5", "4", "3"] {
        let history = files.join(".agent-checkpoint");
        let _ = fs::remove_file(history.join(format!("history/US-003.json/{kept}.json")));
        let _ = fs::remove_file(history.join(format!("pinned/US-003.json/{kept}.json")));
    }
    fs::write(files.join("US-003.json"), "{\"agent\": ").unwrap();
    let error = store
        .recover(
            &us_003,
            &RecoverOptions::new(Recovery::Newest).with_fence(fence),
        )
        .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotRecoverable { .. }),
        "{error}"
    );
    assert_eq!(
        store
            .load_revision(&us_003, &EntryId::current())
            .unwrap_err()
            .key(),
        Some(&us_003)
    );
}

#[test]
fn a_protocols_own_backups_in_an_older_folder_are_its_history() {
    let folder = copied();
    let store = FileStore::with_options(folder.path().join("store"), on_the_next_day())
        .with_layout(AgentCheckpoint::layout());
    assert_eq!(
        states(&store, &key("sess")),
        [
            state("current", false, 0),
            state("sess_20260105_080100", false, 0)
        ]
    );
    let sessions = store.checkpoints::<AgentCheckpoint>();
    assert!(sessions.load(&key("sess")).unwrap().is_some());
}

#[test]
fn a_host_file_of_an_older_folder_has_its_slot_with_all_that_lies_beside_it() {
    let folder = copied();
    let store = BuilderStateStore::open(folder.path().join("host.json"));
    let active = key("active");
    let stored = store.load(&active).unwrap().unwrap();
    assert_eq!(
        states(&store, &active),
        [
            state("current", false, 0),
            state("3@active", false, 0),
            state("2@active", false, 0),
            state("1@active", false, 0),
        ]
    );
    assert_eq!(store.beside().dropped(&active).unwrap().len(), 1);
    assert!(
        store
            .beside()
            .fingerprints(&active, &stored.revision)
            .unwrap()
            .is_some()
    );
    assert_eq!(store.claimed(&active).unwrap().unwrap().owner, "react-dev");
}
