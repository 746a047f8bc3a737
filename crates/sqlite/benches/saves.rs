//! Measures a save against a bare upsert through rusqlite and against the textbook durable replace of a file. `cargo
//! bench -p agent-checkpoint-sqlite`.
//!
//! `cargo bench -p agent-checkpoint-sqlite -- threads` runs only the parts with that word in their names.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

#[path = "../../../benches/measure/mod.rs"]
mod measure;

use std::hint::black_box;
use std::path::Path;
use std::sync::{Barrier, Mutex};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, FileStore, Put};
use agent_checkpoint::{Checkpoints, Key, Limits};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;

use measure::work::{checkpoint, textbook};
use measure::{Contender, compare};

/// The number of threads that save at the same time, and of the saves of each per round.
const THREADS: usize = 8;
const SAVES: usize = 5;

fn main() {
    measure::run(&[("save", save), ("load", load), ("threads", threads)]);
}

fn key(number: usize) -> Key {
    Key::new(format!("US-{number}")).unwrap()
}

fn text() -> String {
    serde_json::to_string_pretty(&checkpoint()).unwrap()
}

/// A program without the library: one table, one statement, the settings of the store.
struct Bare(Connection);

impl Bare {
    fn open(path: &Path) -> Bare {
        let connection = Connection::open(path).unwrap();
        let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; \
                        CREATE TABLE documents (key TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT";
        connection.execute_batch(settings).unwrap();
        Bare(connection)
    }

    fn save(&self, key: &Key, text: &str) {
        let sql = "INSERT INTO documents VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET text = ?2";
        self.0.execute(sql, [key.as_str(), text]).unwrap();
    }

    fn load(&self, key: &Key) -> String {
        let sql = "SELECT text FROM documents WHERE key = ?1";
        let found = self.0.query_row(sql, [key.as_str()], |row| row.get(0));
        found.unwrap()
    }
}

/// The document as it is saved in this round.
fn changed(text: &str, round: usize) -> Document {
    let mut document = Document::from_text(text.to_owned()).unwrap();
    document.set("/phase", &format!("phase {round}")).unwrap();
    document
}

fn save(folder: &Path) {
    let bare = Bare::open(&folder.join("bare.db"));
    let store = SqliteStore::open(folder.join("store.db")).unwrap();
    let files = FileStore::open(folder.join("files"));
    let typed = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let (one, two, text) = (key(1), key(2), text());
    typed.create(&two, &checkpoint()).unwrap();
    let book = folder.join("textbook.json");
    compare(
        &format!("save of {} bytes", text.len()),
        400,
        &mut [
            Contender::prepared(
                "a bare upsert",
                |n| changed(&text, 2 * n).into_text(),
                |text| bare.save(&one, &text),
            ),
            // SQLite writes nothing where the text is the same.
            Contender::prepared(
                "the same again",
                |n| changed(&text, 2 * n + 1).into_text(),
                |text| bare.save(&one, &text),
            ),
            Contender::prepared(
                "put of a document, with history",
                |n| changed(&text, n),
                |document| {
                    black_box(store.put(&one, Put::new(document)).unwrap());
                },
            )
            .at_most(1.25),
            Contender::new("typed update, with history", |n| {
                let saved = typed.update(&two, |task| task.blockers = vec![format!("blocker {n}")]);
                black_box(saved.unwrap());
            }),
            Contender::prepared(
                "a textbook durable replace of a file",
                |n| changed(&text, n).into_text(),
                |text| textbook(&book, text.as_bytes()),
            ),
            Contender::prepared(
                "put of a document into a FileStore, with history",
                |n| changed(&text, n),
                |document| {
                    black_box(files.put(&one, Put::new(document)).unwrap());
                },
            ),
        ],
    );
}

fn load(folder: &Path) {
    let bare = Bare::open(&folder.join("bare.db"));
    let store = SqliteStore::open(folder.join("store.db")).unwrap();
    let files = FileStore::open(folder.join("files"));
    let text = text();
    let document = Document::from_text(text.clone()).unwrap();
    for number in 0..1000 {
        bare.save(&key(number), &text);
        store.put(&key(number), Put::new(document.clone())).unwrap();
        if number < 50 {
            files.put(&key(number), Put::new(document.clone())).unwrap();
        }
    }
    compare(
        "load of one of 1,000",
        2000,
        &mut [
            Contender::new("a bare select, and the document of its text", |n| {
                let text = bare.load(&key(n % 1000));
                black_box(Document::from_text(text).unwrap());
            }),
            Contender::new("load", |n| {
                black_box(store.load(&key(n % 1000)).unwrap());
            }),
            Contender::new("load from a FileStore of 50", |n| {
                black_box(files.load(&key(n % 50)).unwrap());
            }),
        ],
    );
}

/// Threads that save at the same time, each under its own key.
fn at_once(save: impl Fn(&Key, usize) + Sync) {
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, save) = (&start, &save);
            scope.spawn(move || {
                start.wait();
                for number in 0..SAVES {
                    save(&key(thread), number);
                }
            });
        }
    });
}

fn threads(folder: &Path) {
    let bare = Mutex::new(Bare::open(&folder.join("bare.db")));
    let store = SqliteStore::open(folder.join("store.db")).unwrap();
    let alone: Vec<_> = (0..THREADS)
        .map(|_| SqliteStore::open(folder.join("alone.db")).unwrap())
        .collect();
    let text = text();
    compare(
        &format!("{THREADS} threads, {SAVES} saves each"),
        30,
        &mut [
            Contender::new("bare upserts, one connection in a mutex", |n| {
                at_once(|key, number| {
                    let text = changed(&text, n * SAVES + number).into_text();
                    bare.lock().unwrap().save(key, &text);
                });
            }),
            Contender::new("puts into one store", |n| {
                at_once(|key, number| {
                    let document = changed(&text, n * SAVES + number);
                    store.put(key, Put::new(document)).unwrap();
                });
            }),
            Contender::new("puts into a store of each thread", |n| {
                at_once(|key, number| {
                    let document = changed(&text, n * SAVES + number);
                    let own: usize = key.as_str()[3..].parse().unwrap();
                    alone[own].put(key, Put::new(document)).unwrap();
                });
            }),
        ],
    );
}
