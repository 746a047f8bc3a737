//! What remains in the files of a forgotten task.

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::ErrorKind;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, Put};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;

use super::{files_in, key};

const TASKS: usize = 40;

/// The mark that the texts of a task repeat.
fn mark(task: usize) -> String {
    format!("<of task {task}>")
}

/// Texts of a few bytes, of about a page and of many pages.
fn put(store: &SqliteStore, task: usize, length: usize) {
    let text = mark(task).repeat(1 + length / 12);
    let document = Document::new(&serde_json::json!({ "text": text })).unwrap();
    let put = Put::new(document).with_fingerprints(mark(task));
    store.put(&key(&format!("T{task}")), put).unwrap();
}

fn is_kept(folder: &Path, task: usize) -> bool {
    let mark = mark(task);
    files_in(folder).iter().any(|name| {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        bytes.windows(mark.len()).any(|at| at == mark.as_bytes())
    })
}

fn forget(store: &SqliteStore, task: usize) -> agent_checkpoint::Result<bool> {
    store.forget(&key(&format!("T{task}")), &DeleteOptions::new())
}

#[test]
fn no_byte_of_a_forgotten_task_is_left_whatever_its_texts_were_like() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    let lengths = [5, 300, 4000, 1000, 20_000, 900, 4100, 70, 9000];
    for round in 0..16 {
        for task in 0..TASKS {
            put(
                &store,
                task,
                lengths[(round * 7 + task) % lengths.len()] + task,
            );
        }
    }
    assert!((0..TASKS).all(|task| is_kept(folder.path(), task)));
    for task in (0..TASKS).step_by(2) {
        assert!(forget(&store, task).unwrap());
        assert!(!is_kept(folder.path(), task), "task {task} is still there");
    }
    assert!(
        (1..TASKS)
            .step_by(2)
            .all(|task| is_kept(folder.path(), task))
    );
}

#[test]
fn a_reader_of_an_older_state_keeps_the_log_and_the_next_forget_empties_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    put(&store, 1, 100);
    let reader = Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM keys")
        .unwrap();
    let store = store.with_lock_timeout(Duration::from_millis(50));
    let error = forget(&store, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Locked { .. }), "{error}");
    assert!(store.load(&key("T1")).unwrap().is_none());
    assert!(is_kept(folder.path(), 1), "nothing was left to do");
    drop(reader);
    assert!(!forget(&store, 1).unwrap());
    assert!(!is_kept(folder.path(), 1));
}
