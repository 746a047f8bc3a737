//! Measures save, load, list and claim against the same requests, sent bare through the same driver. `cargo bench -p
//! agent-checkpoint-postgres`.
//!
//! `cargo bench -p agent-checkpoint-postgres -- load` runs only the parts with that word in their names. Needs an
//! installed PostgreSQL; the bench starts its own server.
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the tests use more"
)]
#[path = "../tests/store/cluster.rs"]
mod cluster;
#[path = "../../../benches/measure/mod.rs"]
mod measure;

use std::hint::black_box;
use std::path::Path;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Key};
use agent_checkpoint_postgres::PostgresStore;
use chrono::{DateTime, Utc};
use tokio::runtime::{Builder, Handle};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use cluster::{Cluster, fresh_schema};
use measure::work::checkpoint;
use measure::{Contender, compare};

/// The number of keys, and of keys per page.
const KEYS: usize = 1000;
const PAGE: usize = 256;

fn main() {
    measure::run(&[
        ("save", save),
        ("load", load),
        ("list", list),
        ("claim", claim),
    ]);
}

fn server() -> &'static Cluster {
    static SERVER: OnceLock<Cluster> = OnceLock::new();
    // The server shows the requests of other sessions in full.
    SERVER.get_or_init(|| Cluster::start_with("track_activity_query_size=16384"))
}

fn key(number: usize) -> Key {
    Key::new(format!("US-{number}")).unwrap()
}

fn text() -> String {
    serde_json::to_string_pretty(&checkpoint()).unwrap()
}

/// The document as it is saved in this round.
fn changed(text: &str, round: usize) -> Document {
    let mut document = Document::from_text(text.to_owned()).unwrap();
    document.set("/phase", &format!("phase {round}")).unwrap();
    document
}

/// A store with documents.
fn filled(schema: &str) -> PostgresStore {
    let store = PostgresStore::open_in(&server().address(), schema).unwrap();
    let document = Document::from_text(text()).unwrap();
    for number in 0..KEYS {
        store.put(&key(number), Put::new(document.clone())).unwrap();
    }
    store.with_connections(64)
}

/// The last request of the only store with this schema, as the server reports it.
fn last_request(of: &str) -> String {
    let sql = "SELECT query FROM pg_stat_activity WHERE application_name = 'agent-checkpoint' AND query LIKE $1 \
               ORDER BY state_change DESC LIMIT 1";
    let row = server().client().query_one(sql, &[&of]).unwrap();
    row.get(0)
}

/// The requests of a store.
struct Requests {
    present: String,
    states: String,
    write: String,
    list: String,
}

impl Requests {
    fn of(store: &PostgresStore) -> Requests {
        store.load(&key(0)).unwrap();
        let present = last_request("%AND s.number = c.present%");
        store.states(&key(0)).unwrap();
        let states = last_request("%ORDER BY s.number DESC%");
        let document = changed(&text(), 1_000_000);
        store.put(&key(0), Put::new(document)).unwrap();
        let write = last_request("WITH k AS%UPDATE checkpoints%");
        let query = Query::all().with_limit(PAGE);
        store.list(&query).unwrap();
        let list = last_request("SELECT c.name%");
        Requests {
            present,
            states,
            write,
            list,
        }
    }
}

/// A client without the store. It has its own connection, on a runtime that all clients share, as in a typical program.
struct Bare {
    runtime: Handle,
    client: Client,
    present: Statement,
    states: Statement,
    write: Statement,
    list: Statement,
}

fn runtime() -> Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    };
    RUNTIME.get_or_init(start).clone()
}

impl Bare {
    fn open(schema: &str, requests: &Requests) -> Bare {
        let runtime = runtime();
        let (client, connection) = runtime
            .block_on(tokio_postgres::connect(&server().address(), NoTls))
            .unwrap();
        runtime.spawn(connection);
        let set = format!(
            "SET search_path TO {schema}; SET plan_cache_mode TO force_generic_plan; SET jit TO off"
        );
        runtime.block_on(client.batch_execute(&set)).unwrap();
        let prepare = |sql: &str| runtime.block_on(client.prepare(sql)).unwrap();
        Bare {
            present: prepare(&requests.present),
            states: prepare(&requests.states),
            write: prepare(&requests.write),
            list: prepare(&requests.list),
            client,
            runtime,
        }
    }

    fn query(&self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        let asked = self.client.query(statement, values);
        self.runtime.block_on(asked).unwrap()
    }

    fn load(&self, key: &Key) -> Vec<Row> {
        self.query(&self.present, &[&key.as_str(), &i32::MAX])
    }

    /// Writes a new state if there is a text, otherwise a new claim.
    fn write(&self, key: &Key, text: Option<&[u8]>) {
        let name = key.as_str();
        let rows = match text {
            Some(_) => self.query(&self.states, &[&name, &i32::MAX, &false, &None::<i64>]),
            None => self.load(key),
        };
        let row = &rows[0];
        let now: DateTime<Utc> = row.get(0);
        let (version, last, task): (i64, i64, i64) = (row.get(2), row.get(5), row.get(6));
        let new = text.map(|_| last + 1);
        let last = new.unwrap_or(last);
        // The entries of the history after the tenth.
        let numbers = rows.iter().map(|row| row.get::<_, i64>(10));
        let removed: Vec<i64> = numbers.skip(10).collect();
        let claim = "{\"owner\":\"bench\",\"fence\":1800000000000,\"since\":\"2026-01-01T00:00:00Z\",\
                      \"expires\":\"2026-01-01T00:00:00Z\",\"released\":false}";
        let claim = Some(claim).filter(|_| text.is_none());
        let owner = claim.map(|_| "bench");
        let revision =
            text.map(|_| "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
        let (nothing, no_number, no_text) = (None::<&[u8]>, None::<i64>, None::<&str>);
        let (no_texts, no_bytes) = (Vec::<String>::new(), Vec::<Option<Vec<u8>>>::new());
        let (modified, no_time) = (text.map(|_| now), None::<DateTime<Utc>>);
        let written = self.query(
            &self.write,
            &[
                &name,
                &version,
                &(version << 20),
                &last,
                &last,
                &task,
                &claim,
                &owner,
                &0_i64,
                &revision,
                &nothing,
                &now,
                &no_time,
                &removed,
                &new,
                &text,
                &no_number,
                &false,
                &false,
                &no_texts,
                &no_texts,
                &no_bytes,
                &no_text,
                &nothing,
                &no_text,
                &false,
                &text.map(|_| task),
                &modified,
            ],
        );
        assert_eq!(written[0].get::<_, i64>(0), 1);
    }

    fn list(&self) -> Vec<Row> {
        let last = "\u{10ffff}".repeat(50);
        self.query(&self.list, &[&"", &last, &"", &(PAGE as i64 + 1)])
    }
}

/// Runs `call` a number of times in each client, all clients at the same time.
fn at_once(clients: usize, times: usize, call: impl Fn(usize, usize) + Sync) -> Duration {
    let start = Barrier::new(clients + 1);
    let (start, call) = (&start, &call);
    thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|client| {
                scope.spawn(move || {
                    start.wait();
                    (0..times).for_each(|time| call(client, time));
                })
            })
            .collect();
        start.wait();
        let began = std::time::Instant::now();
        all.into_iter().for_each(|client| client.join().unwrap());
        began.elapsed()
    })
}

/// Measures one kind of request with each number of clients. Each client has its own keys.
fn contest(
    what: &str,
    rounds: usize,
    bare_call: impl Fn(&Bare, &Key, usize) + Sync,
    store_call: impl Fn(&PostgresStore, &Key, usize) + Sync,
) {
    let schemas = [fresh_schema(), fresh_schema()];
    let [of_bare, store] = schemas.each_ref().map(|schema| filled(schema));
    let requests = Requests::of(&of_bare);
    drop(of_bare);
    let bare: Vec<Bare> = (0..64)
        .map(|_| Bare::open(&schemas[0], &requests))
        .collect();
    for clients in [1, 8, 64] {
        let times = (32 / clients).max(2);
        let number = |round: usize, time: usize| round * times + time;
        // Measured twice, to show how far two equal things differ.
        let bare_call = |n: usize| {
            at_once(clients, times, |client, time| {
                bare_call(&bare[client], &key(client * 8 + time % 8), number(n, time));
            });
        };
        compare(
            &format!("{what} by {clients} at once, {times} each"),
            rounds,
            &mut [
                Contender::new("the same requests, bare", bare_call),
                Contender::new("the same again", bare_call),
                Contender::new("the store", |n| {
                    at_once(clients, times, |client, time| {
                        store_call(&store, &key(client * 8 + time % 8), number(n, time));
                    });
                })
                .at_most(1.25),
            ],
        );
    }
}

fn save(_: &Path) {
    let text = text();
    contest(
        &format!("save of {} bytes", text.len()),
        60,
        |bare, key, number| bare.write(key, Some(changed(&text, number).text().as_bytes())),
        |store, key, number| {
            let put = Put::new(changed(&text, number));
            black_box(store.put(key, put).unwrap());
        },
    );
}

fn load(_: &Path) {
    contest(
        "load",
        150,
        |bare, key, _| {
            let rows = bare.load(key);
            black_box(Document::parse(rows[0].get(15)).unwrap());
        },
        |store, key, _| drop(black_box(store.load(key).unwrap())),
    );
}

fn list(_: &Path) {
    let query = Query::all().with_limit(PAGE);
    contest(
        &format!("list of a page of {PAGE}"),
        40,
        |bare, _, _| {
            // A listing reads the names and versions.
            let values =
                |row: &Row| -> (String, i64, Option<i64>) { (row.get(0), row.get(1), row.get(2)) };
            let rows: Vec<_> = bare.list().iter().map(values).collect();
            drop(black_box(rows));
        },
        |store, _, _| drop(black_box(store.list(&query).unwrap())),
    );
}

fn claim(_: &Path) {
    let request = ClaimRequest::new("bench", Duration::from_secs(3600));
    contest(
        "claim",
        60,
        |bare, key, _| bare.write(key, None),
        |store, key, _| drop(black_box(store.claim(key, &request).unwrap())),
    );
}
