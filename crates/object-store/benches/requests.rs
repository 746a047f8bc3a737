//! Measures each call against its requests, sent bare through the same driver to an S3 server on loopback, by 1, 8 and
//! 64 clients. The server handles one request at a time. `cargo bench -p agent-checkpoint-object-store`.
//!
//! `cargo bench -p agent-checkpoint-object-store -- load` runs only the parts with that word in their names. Needs the S3
//! server of the tests (`pip install 'moto[server,s3]'`).
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

#[allow(dead_code, reason = "it has what tests need")]
#[path = "../tests/store/client.rs"]
mod client;
#[allow(dead_code, reason = "it has what tests need")]
#[path = "../tests/store/driver.rs"]
mod driver;
#[path = "../../../benches/measure/mod.rs"]
mod measure;
#[allow(dead_code, reason = "it has what tests need")]
#[path = "../tests/store/server.rs"]
mod server;

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Key};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::aws::AmazonS3;
use agent_checkpoint_object_store::object_store::memory::InMemory;
use agent_checkpoint_object_store::object_store::path::Path as Place;
use agent_checkpoint_object_store::object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion,
};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};

use driver::Planned;
use measure::work::checkpoint;
use measure::{Contender, compare};

fn main() {
    if server::is_installed() {
        measure::run(&[
            ("save", save),
            ("load", load),
            ("list", list),
            ("claim", claim),
        ]);
    }
}

/// How many keys there are.
const KEYS: usize = 100;

/// A program without the store that keeps one object for each key.
struct Bare {
    runtime: Handle,
    objects: Arc<AmazonS3>,
    root: String,
}

/// The runtime of all bare requests, on a separate thread as in a store.
fn runtime() -> Handle {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
}

impl Bare {
    fn filled() -> Bare {
        let bare = Bare {
            runtime: runtime(),
            objects: client::driver_at(server::shared().port),
            root: server::fresh_root(),
        };
        for number in 0..KEYS {
            let name = key(number).to_string();
            let put = bare.put(&name, text(), PutMode::Create);
            bare.runtime.block_on(put);
        }
        bare
    }

    fn place(&self, name: &str) -> Place {
        Place::parse(format!("{}/{name}", self.root)).unwrap()
    }

    async fn put(&self, name: &str, text: String, mode: PutMode) {
        let options = PutOptions::from(mode);
        let place = self.place(name);
        let put = self.objects.put_opts(&place, text.into(), options);
        put.await.unwrap();
    }

    async fn get(&self, name: &str) -> (String, UpdateVersion) {
        let place = self.place(name);
        let got = self.objects.get(&place).await.unwrap();
        let version = UpdateVersion {
            e_tag: got.meta.e_tag.clone(),
            version: got.meta.version.clone(),
        };
        let bytes = got.bytes().await.unwrap();
        (String::from_utf8(bytes.to_vec()).unwrap(), version)
    }

    /// Reads an object and overwrites it.
    fn replace(&self, key: &Key, text: String, history: Option<usize>) {
        let name = key.as_str();
        self.runtime.block_on(async {
            let (before, version) = self.get(name).await;
            if let Some(number) = history {
                let entry = format!("history/{name}/{number}");
                self.put(&entry, before, PutMode::Create).await;
            }
            self.put(name, text, PutMode::Update(version)).await;
        });
    }
}

fn filled(objects: Arc<dyn ObjectStore>) -> ObjectCheckpointStore {
    let store = ObjectCheckpointStore::open(objects, &server::fresh_root()).unwrap();
    for number in 0..KEYS {
        let document = Document::from_text(text()).unwrap();
        store.put(&key(number), Put::new(document)).unwrap();
    }
    store
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

/// Runs `call` a number of times in each client, all clients at the same time.
fn at_once(clients: usize, times: usize, call: impl Fn(usize, usize) + Sync) {
    let (start, call) = (&Barrier::new(clients), &call);
    thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                start.wait();
                (0..times).for_each(|time| call(client, time));
            });
        }
    });
}

/// Measures one kind of call with each number of clients. Each client has its own key.
fn contest(
    what: &str,
    rounds: usize,
    bare_call: impl Fn(&Bare, &Key, usize) + Sync,
    store_call: impl Fn(&ObjectCheckpointStore, &Key, usize) + Sync,
) {
    let counted = Planned::new(Arc::new(InMemory::new()));
    let of_counted = filled(Arc::new(counted.clone()));
    counted.requests();
    store_call(&of_counted, &key(0), 1_000_000);
    let requests = counted.requests().len();
    let (bare, again) = (Bare::filled(), Bare::filled());
    let store = filled(client::driver_at(server::shared().port));
    for clients in [1, 8, 64] {
        let times = (8 / clients).max(1);
        let bare_call = |bare: &Bare, n: usize| {
            at_once(clients, times, |client, time| {
                // A number that no other round has.
                bare_call(bare, &key(client), clients * 1_000_000 + n * times + time);
            });
        };
        compare(
            &format!("{what}: {requests} requests, by {clients} at once, {times} each"),
            rounds,
            &mut [
                Contender::new("the same requests, bare", |n| bare_call(&bare, n)),
                Contender::new("the same again", |n| bare_call(&again, n)),
                Contender::new("the store", |n| {
                    at_once(clients, times, |client, time| {
                        let number = clients * 1_000_000 + n * times + time;
                        store_call(&store, &key(client), number);
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
        &format!("save of {} bytes, with history", text.len()),
        20,
        |bare, key, number| bare.replace(key, changed(&text, number).into_text(), Some(number)),
        |store, key, number| {
            black_box(store.put(key, Put::new(changed(&text, number))).unwrap());
        },
    );
}

fn load(_: &Path) {
    contest(
        "load",
        40,
        |bare, key, _| {
            let (text, _) = bare.runtime.block_on(bare.get(key.as_str()));
            black_box(Document::from_text(text).unwrap());
        },
        |store, key, _| {
            black_box(store.load(key).unwrap());
        },
    );
}

fn list(_: &Path) {
    contest(
        &format!("list of {KEYS}, with versions"),
        20,
        |bare, _, _| {
            let folder = Place::parse(&bare.root).unwrap();
            let listed = bare.objects.list(Some(&folder)).collect::<Vec<_>>();
            assert_eq!(bare.runtime.block_on(listed).len(), KEYS);
        },
        |store, _, _| assert_eq!(store.list(&Query::all()).unwrap().entries.len(), KEYS),
    );
}

fn claim(_: &Path) {
    let text = text();
    contest(
        "claim of a key that another has, taken over",
        20,
        |bare, key, number| bare.replace(key, changed(&text, number).into_text(), None),
        |store, key, number| {
            let request = ClaimRequest::new(format!("agent {number}"), Duration::from_secs(60));
            store.claim(key, &request.taking_over()).unwrap();
        },
    );
}
