//! What each call costs beside the requests that it makes, sent bare through the same driver to an S3 server on loopback.
//! `cargo bench -p agent-checkpoint-object-store`.
//!
//! `cargo bench -p agent-checkpoint-object-store -- load` runs only the parts with that word in their names. Needs the S3
//! server of the tests (`pip install 'moto[server,s3]'`).
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]

#[path = "../../../benches/measure/mod.rs"]
mod measure;
#[allow(dead_code, reason = "it has what tests need")]
#[path = "../tests/store/server.rs"]
mod server;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Query};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Key};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::aws::AmazonS3;
use agent_checkpoint_object_store::object_store::path::Path as Place;
use agent_checkpoint_object_store::object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion,
};
use futures_util::StreamExt;
use tokio::runtime::Runtime;

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

/// The requests without the store: what a program would send that keeps one object for each key.
struct Bare {
    runtime: Runtime,
    objects: Arc<AmazonS3>,
    root: String,
}

impl Bare {
    fn new() -> Bare {
        let runtime = tokio::runtime::Builder::new_current_thread();
        Bare {
            runtime: { runtime }.enable_all().build().unwrap(),
            objects: server::driver_at(server::shared().port),
            root: server::fresh_root(),
        }
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

    /// Reads, and writes over what was read.
    fn replace(&self, name: &str, text: String, history: Option<usize>) {
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

fn open() -> ObjectCheckpointStore {
    let driver = server::driver_at(server::shared().port);
    ObjectCheckpointStore::open(driver, &server::fresh_root()).unwrap()
}

fn key(number: usize) -> Key {
    Key::new(format!("US-{number}")).unwrap()
}

fn text() -> String {
    serde_json::to_string_pretty(&checkpoint()).unwrap()
}

/// The document as it shall be in this round.
fn changed(text: &str, round: usize) -> Document {
    let mut document = Document::from_text(text.to_owned()).unwrap();
    document.set("/phase", &format!("phase {round}")).unwrap();
    document
}

fn save(_: &Path) {
    let (bare, again, store, text) = (Bare::new(), Bare::new(), open(), text());
    for bare in [&bare, &again] {
        let put = bare.put("one", text.clone(), PutMode::Create);
        bare.runtime.block_on(put);
    }
    compare(
        &format!("save of {} bytes", text.len()),
        300,
        &mut [
            Contender::prepared(
                "a bare get, a put of it elsewhere, and a put on condition",
                |n| (changed(&text, n).into_text(), n),
                |(text, n)| bare.replace("one", text, Some(n)),
            ),
            Contender::prepared(
                "the same again",
                |n| (changed(&text, n).into_text(), n),
                |(text, n)| again.replace("one", text, Some(n)),
            ),
            Contender::prepared(
                "put of a document, with history",
                |n| changed(&text, n),
                |document| {
                    black_box(store.put(&key(1), Put::new(document)).unwrap());
                },
            ),
        ],
    );
}

fn load(_: &Path) {
    let (bare, store, text) = (Bare::new(), open(), text());
    bare.runtime
        .block_on(bare.put("one", text.clone(), PutMode::Create));
    let put = Put::new(Document::from_text(text).unwrap());
    store.put(&key(1), put).unwrap();
    compare(
        "load",
        500,
        &mut [
            Contender::new("a bare get, and the document of its text", |_| {
                let (text, _) = bare.runtime.block_on(bare.get("one"));
                black_box(Document::from_text(text).unwrap());
            }),
            Contender::new("load", |_| {
                black_box(store.load(&key(1)).unwrap());
            }),
        ],
    );
}

fn list(_: &Path) {
    let (bare, store, text) = (Bare::new(), open(), text());
    for number in 0..100 {
        let name = key(number).to_string();
        let put = bare.put(&name, text.clone(), PutMode::Create);
        bare.runtime.block_on(put);
        let put = Put::new(Document::from_text(text.clone()).unwrap());
        store.put(&key(number), put).unwrap();
    }
    let folder = Place::parse(&bare.root).unwrap();
    compare(
        "list of 100",
        200,
        &mut [
            Contender::new("a bare list", |_| {
                let listed = bare.objects.list(Some(&folder)).collect::<Vec<_>>();
                assert_eq!(bare.runtime.block_on(listed).len(), 100);
            }),
            Contender::new("list, with versions", |_| {
                let page = store.list(&Query::all()).unwrap();
                assert_eq!(page.entries.len(), 100);
            }),
        ],
    );
}

fn claim(_: &Path) {
    let (bare, store, text) = (Bare::new(), open(), text());
    bare.runtime
        .block_on(bare.put("one", text.clone(), PutMode::Create));
    let put = Put::new(Document::from_text(text.clone()).unwrap());
    store.put(&key(1), put).unwrap();
    compare(
        "claim",
        300,
        &mut [
            Contender::prepared(
                "a bare get, and a put on condition",
                |n| changed(&text, n).into_text(),
                |text| bare.replace("one", text, None),
            ),
            Contender::new("claim of a key that another has, taken over", |n| {
                let request = ClaimRequest::new(format!("agent {n}"), Duration::from_secs(60));
                store.claim(&key(1), &request.taking_over()).unwrap();
            }),
        ],
    );
}
