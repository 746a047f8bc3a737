//! The contract of `CheckpointStore`, on every store of the library, boxed as callers have them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use std::path::Path;

use agent_checkpoint::checkpoint::{DropReason, Dropped};
use agent_checkpoint::json::{CorruptCode, Document};
use agent_checkpoint::store::{
    Capabilities, Change, DeleteOptions, Page, PutOptions, Query, Saved,
};
use agent_checkpoint::{
    BuilderStateStore, CheckpointStore, Error, ErrorKind, Expect, FileStore, Key, MemoryStore,
    Outcome, Revision, Stored,
};
use common::key;

fn document(text: &str) -> Document {
    Document::from_text(text).unwrap()
}

/// Runs a test on every store; a host file has the two slots that stand for the keys.
fn on_every_store(test: impl Fn(&dyn CheckpointStore, &Key, &Key)) {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    std::fs::write(
        &host,
        "{\n  \"activePrd\": {\n    \"id\": \"p\"\n  },\n  \"adhocQueue\": [{\"id\": \"x\"}]\n}\n",
    )
    .unwrap();
    let stores: [(Box<dyn CheckpointStore>, &str, &str); 3] = [
        (Box::new(MemoryStore::new()), "a", "b/../c"),
        (
            Box::new(FileStore::open(folder.path().join("new/store"))),
            "a",
            "b/../c",
        ),
        (
            Box::new(BuilderStateStore::open(&host)),
            "active",
            "adhoc:x",
        ),
    ];
    for (store, first, second) in stores {
        test(&*store, &key(first), &key(second));
    }
}

fn any() -> PutOptions {
    PutOptions::new()
}

#[test]
fn what_is_put_comes_back_to_the_byte() {
    on_every_store(|store, a, b| {
        assert!(store.load(a).unwrap().is_none());
        let text = "{\"n\": 1.50,   \"x\": \"\\u00e4\", \"x\":[ ]}";
        let saved = store.put(a, &document(text), &any()).unwrap();
        assert_eq!((saved.outcome, saved.previous), (Outcome::Created, None));
        let stored = store.load(a).unwrap().unwrap();
        if store.capabilities().embedded {
            assert!(stored.document.same_value(&document(text)));
            assert!(stored.document.text().contains("1.50"));
        } else {
            assert_eq!(stored.document.text(), text);
        }
        assert_eq!(stored.revision, saved.revision);
        let bytes = stored.document.text().as_bytes();
        assert_eq!(stored.revision, Revision::of(bytes));
        assert!(store.load(b).unwrap().is_none());
    });
}

#[test]
fn the_same_bytes_again_are_no_write() {
    on_every_store(|store, a, _| {
        let first = store.put(a, &document("{\"n\":1}"), &any()).unwrap();
        let modified = store.load(a).unwrap().unwrap().modified;
        let again = store.put(a, &document("{\"n\":1}"), &any()).unwrap();
        assert_eq!(again.outcome, Outcome::Unchanged);
        assert_eq!(again.revision, first.revision);
        assert_eq!(store.load(a).unwrap().unwrap().modified, modified);
        let other = store.put(a, &document("{\"n\":2}"), &any()).unwrap();
        assert_eq!(other.outcome, Outcome::Replaced);
        assert_eq!(other.previous, Some(first.revision));
    });
}

#[test]
fn a_writer_with_another_expectation_gets_a_conflict() {
    on_every_store(|store, a, _| {
        let expecting = PutOptions::expecting;
        let one = store
            .put(a, &document("{\"n\":1}"), &expecting(Expect::Absent))
            .unwrap();
        let conflict = |expect: Expect| {
            let error = store
                .put(a, &document("{\"n\":9}"), &expecting(expect.clone()))
                .unwrap_err();
            assert_eq!(error.key(), Some(a));
            match error.kind() {
                ErrorKind::Conflict { expected, found } => {
                    assert_eq!(*expected, expect);
                    found.clone()
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(conflict(Expect::Absent), Some(one.revision.clone()));
        let two = store
            .put(
                a,
                &document("{\"n\":2}"),
                &expecting(Expect::Revision(one.revision.clone())),
            )
            .unwrap();
        assert_eq!(
            conflict(Expect::Revision(one.revision.clone())),
            Some(two.revision.clone())
        );
        assert!(
            store
                .delete(a, &DeleteOptions::expecting(Expect::Revision(one.revision)))
                .is_err()
        );
        assert!(
            store
                .delete(a, &DeleteOptions::expecting(Expect::Revision(two.revision)))
                .unwrap()
        );
        assert!(store.load(a).unwrap().is_none());
        assert!(!store.delete(a, &DeleteOptions::new()).unwrap());
        assert_eq!(conflict(Expect::Revision(Revision::of(b"{}"))), None);
    });
}

#[test]
fn a_transaction_sees_what_is_there_and_writes_what_it_decides() {
    on_every_store(|store, a, _| {
        let error = store
            .transact(a, &mut |present| {
                assert!(present.is_none());
                Ok(Change::Keep)
            })
            .unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NotFound);
        let number = |stored: &Stored| stored.document.get("/n").unwrap().as_u64();
        for n in 0..3_u64 {
            store
                .transact(a, &mut |present| {
                    assert_eq!(present.and_then(number), n.checked_sub(1));
                    Ok(Change::put(document(&format!("{{\"n\":{n}}}"))))
                })
                .unwrap();
        }
        let refused = store.transact(a, &mut |_| Err(Error::refused("not now")));
        assert!(refused.is_err());
        let kept = store.transact(a, &mut |_| Ok(Change::Keep)).unwrap();
        assert_eq!(kept.outcome, Outcome::Unchanged);
        assert_eq!(number(&store.load(a).unwrap().unwrap()), Some(2));
    });
}

#[test]
fn of_eight_threads_that_expect_nothing_one_wins() {
    on_every_store(|store, a, _| {
        let wins: usize = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn(move || {
                        let text = format!("{{\"writer\":{n}}}");
                        let options = PutOptions::expecting(Expect::Absent);
                        usize::from(store.put(a, &document(&text), &options).is_ok())
                    })
                })
                .collect();
            writers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    });
}

#[test]
fn keys_are_listed_in_order_a_page_at_a_time() {
    on_every_store(|store, a, b| {
        assert!(store.list(&Query::all()).unwrap().keys.is_empty());
        for key in [b, a] {
            store.put(key, &document("{}"), &any()).unwrap();
        }
        let all = store.list(&Query::all()).unwrap();
        assert_eq!(all.keys, [a.clone(), b.clone()]);
        let first = store.list(&Query::all().with_limit(1)).unwrap();
        assert_eq!(
            (&first.keys[..], &first.next),
            (&[a.clone()][..], &Some(a.clone()))
        );
        let second = store.list(&Query::all().after(a.clone())).unwrap();
        assert_eq!((second.keys, second.next), (vec![b.clone()], None));
        let some = Query::all().with_prefix(&b.as_str()[..2]);
        assert_eq!(store.list(&some).unwrap().keys, std::slice::from_ref(b));
    });
}

#[test]
fn a_corrupt_document_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let host = folder.path().join("host.json");
    let hosted = BuilderStateStore::open(&host);
    let cases: [(&dyn CheckpointStore, &str, &Path); 2] = [
        (&store, "a", &folder.path().join("a.json")),
        (&hosted, "top", &host),
    ];
    for (store, name, path) in cases {
        std::fs::write(path, "{\"n\": [1, 2").unwrap();
        let key = key(name);
        let corrupt = |result: Result<(), Error>| match result.unwrap_err().kind() {
            ErrorKind::Corrupt(corrupt) => assert_eq!(corrupt.code, CorruptCode::Truncated),
            other => panic!("{other:?}"),
        };
        corrupt(store.load(&key).map(drop));
        for expect in [
            Expect::Any,
            Expect::Absent,
            Expect::Revision(Revision::of(b"{}")),
        ] {
            let options = PutOptions::expecting(expect.clone());
            corrupt(store.put(&key, &document("{}"), &options).map(drop));
            corrupt(
                store
                    .delete(&key, &DeleteOptions::expecting(expect))
                    .map(drop),
            );
        }
        corrupt(
            store
                .transact(&key, &mut |_| Ok(Change::put(document("{}"))))
                .map(drop),
        );
        assert_eq!(std::fs::read(path).unwrap(), b"{\"n\": [1, 2");
    }
}

#[test]
fn what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew() {
    on_every_store(|store, a, b| {
        let cut = |n: u64| Dropped::new("/x", DropReason::Elements(1), n.into());
        let put = |text: &str, pieces: Vec<Dropped>| {
            store
                .put(a, &document(text), &any().with_overflow(pieces))
                .unwrap()
        };
        put("{\"n\":1}", Vec::new());
        assert!(put("{\"n\":2}", vec![cut(1)]).truncation.kept_in.is_some());
        put("{\"n\":3}", vec![cut(1), cut(2)]);
        let kept = || -> Vec<_> {
            let pieces = store.overflow(a).unwrap();
            pieces.iter().map(|piece| piece.value.clone()).collect()
        };
        assert_eq!(kept(), [1, 2]);
        assert!(store.overflow(b).unwrap().is_empty());
        // A put that is refused or changes nothing leaves no record.
        let stale = PutOptions::expecting(Expect::Absent).with_overflow(vec![cut(3)]);
        assert!(store.put(a, &document("{}"), &stale).is_err());
        let same = store.load(a).unwrap().unwrap().document;
        let options = any().with_overflow(vec![cut(3)]);
        store.put(a, &same, &options).unwrap();
        assert_eq!(kept(), [1, 2]);
        // Another task under the same key has cut nothing yet.
        store.delete(a, &DeleteOptions::new()).unwrap();
        put("{\"n\":1}", Vec::new());
        assert!(kept().is_empty());
    });
}

/// A store that has nothing but compare-and-swap, as one over a database has.
struct Plain(MemoryStore);

impl CheckpointStore for Plain {
    fn load(&self, key: &Key) -> agent_checkpoint::Result<Option<Stored>> {
        self.0.load(key)
    }

    fn put(
        &self,
        key: &Key,
        document: &Document,
        options: &PutOptions,
    ) -> agent_checkpoint::Result<Saved> {
        self.0.put(key, document, options)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> agent_checkpoint::Result<bool> {
        self.0.delete(key, options)
    }

    fn list(&self, query: &Query) -> agent_checkpoint::Result<Page> {
        self.0.list(query)
    }

    fn overflow(&self, key: &Key) -> agent_checkpoint::Result<Vec<Dropped>> {
        self.0.overflow(key)
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

#[test]
fn a_store_behind_any_pointer_counts_every_increment() {
    let stores: [Box<dyn CheckpointStore>; 4] = [
        Box::new(Plain(MemoryStore::new())),
        Box::new(Box::new(MemoryStore::new())),
        Box::new(std::sync::Arc::new(MemoryStore::new())),
        Box::new(Box::leak(Box::new(MemoryStore::new())) as &MemoryStore),
    ];
    for store in &stores {
        let a = key("a");
        store.put(&a, &document("{\"n\":0}"), &any()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        store
                            .transact(&key("a"), &mut |present| {
                                let mut document = present.unwrap().document.clone();
                                let n = document.get("/n").unwrap().as_u64().unwrap();
                                document.set("/n", &(n + 1)).unwrap();
                                Ok(Change::put(document))
                            })
                            .unwrap();
                    }
                });
            }
        });
        let document = store.load(&a).unwrap().unwrap().document;
        assert_eq!(document.get("/n").unwrap().as_u64(), Some(200));
    }
}
