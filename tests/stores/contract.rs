//! The contract of `CheckpointStore`, checked by the testkit on every store of the library.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::key;
use crate::common::only_swaps::OnlySwaps;
use crate::stores::{Files, FilesPlace, host_file, in_memory};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::json::{CorruptCode, Document};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, FileStore, MemoryStore, Put, Query,
    RecoverOptions, Recovery, Scoped, Stored,
};
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ClaimRequest, Error, ErrorKind, Expect, Key, Revision,
    store_conformance,
};

store_conformance!(in_memory, in_memory());
store_conformance!(only_compare_and_swap, OnlySwaps::default());
store_conformance!(a_folder_of_files, Files::in_a_folder().place());
// In these protocols the id is in the file, and several spellings mean one agent, so these use their own keys.
store_conformance!(
    a_folder_with_backups_of_the_protocol,
    Files::in_a_folder()
        .named(AgentCheckpoint::layout(), ["us_003", "adhoc_7"])
        .place()
);
store_conformance!(
    a_folder_with_ids_in_its_files,
    Files::in_a_folder()
        .named(SitebuilderCheckpoint::layout(), ["US-003", "adhoc-7"])
        .place()
);
store_conformance!(one_file, Files::of_one_file().place());
store_conformance!(
    without_history,
    Files::in_a_folder().without_history().place()
);
store_conformance!(a_host_file, host_file());

/// A store of files for one tenant.
struct OfATenant(FilesPlace);

impl OfATenant {
    fn scoped(store: Box<dyn CheckpointStore>) -> Result<Box<dyn CheckpointStore>, Error> {
        let other = Scoped::new(&store, "team-b/")?;
        assert!(other.list(&Query::all())?.keys().next().is_none());
        Ok(Box::new(Scoped::new(store, "team-a/")?))
    }
}

impl Place for OfATenant {
    fn open(&self) -> Result<Box<dyn CheckpointStore>, Error> {
        OfATenant::scoped(self.0.open()?)
    }

    fn address(&self) -> Option<String> {
        self.0.address()
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>, Error>> {
        let store = self.0.connect(address)?;
        Some(store.and_then(OfATenant::scoped))
    }

    fn damage(&self, key: &Key) -> Result<bool, Error> {
        self.0.damage(&Key::new(format!("team-a/{key}"))?)
    }

    fn raw(&self) -> Option<Vec<u8>> {
        self.0.raw()
    }

    fn clock(&self) -> Option<MovableClock> {
        self.0.clock()
    }

    fn keeps(&self) -> Option<usize> {
        self.0.keeps()
    }

    fn max_bytes(&self) -> Option<u64> {
        self.0.max_bytes()
    }

    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        self.0.fail(number, run)
    }
}

store_conformance!(of_a_tenant, OfATenant(Files::in_a_folder().place()));

#[test]
fn an_error_of_a_tenant_names_no_other_key_than_its_own() {
    let all = MemoryStore::new();
    let ours = Scoped::new(all.clone(), "team-a/").unwrap();
    put_numbers(&ours, &key("a"), [1]);
    put_numbers(&all, &key("team-b/a"), [1]);
    let put = Put::new(document("{}")).with_expect(Expect::Absent);
    let conflict = ours.put(&key("a"), put).unwrap_err();
    assert_eq!(conflict.key(), Some(&key("a")));
    assert!(!conflict.to_string().contains("team"), "{conflict}");
    let long = key(&"x".repeat(Key::MAX_BYTES));
    let refused = ours.load(&long).unwrap_err();
    assert!(!refused.to_string().contains("team"), "{refused}");
    let page = ours
        .list(&Query::all().with_prefix("a").with_limit(1))
        .unwrap();
    assert_eq!(page.keys().collect::<Vec<_>>(), [&key("a")]);
    assert_eq!(page.next, None);
    assert!(Scoped::new(all, " ").is_err());
}

fn document(text: &str) -> Document {
    Document::from_text(text).unwrap()
}

fn put_numbers(store: &dyn CheckpointStore, key: &Key, numbers: impl IntoIterator<Item = u64>) {
    for n in numbers {
        let document = document(&format!("{{\"n\":{n}}}"));
        store.put(key, Put::new(document.clone())).unwrap();
    }
}

#[test]
fn no_byte_of_a_damaged_file_is_written_over() {
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
            corrupt(
                store
                    .put(&key, Put::new(document("{}")).with_expect(expect.clone()))
                    .map(drop),
            );
            corrupt(
                store
                    .delete(&key, &DeleteOptions::new().with_expect(expect))
                    .map(drop),
            );
        }
        corrupt(
            store
                .transact(&key, |_| Ok(Some(Put::new(document("{}")))))
                .map(drop),
        );
        assert_eq!(std::fs::read(path).unwrap(), b"{\"n\": [1, 2");
    }
}

#[test]
fn a_store_behind_any_pointer_counts_every_increment() {
    let stores: [Box<dyn CheckpointStore>; 4] = [
        Box::new(OnlySwaps::default()),
        Box::new(Box::new(MemoryStore::new())),
        Box::new(std::sync::Arc::new(MemoryStore::new())),
        Box::new(Box::leak(Box::new(MemoryStore::new())) as &MemoryStore),
    ];
    for store in &stores {
        let a = key("a");
        store.put(&a, Put::new(document("{\"n\":0}"))).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        store
                            .transact(&key("a"), |present| {
                                let mut document = present.unwrap().document.clone();
                                let n = document.get("/n").unwrap().as_u64().unwrap();
                                document.set("/n", &(n + 1)).unwrap();
                                Ok(Some(Put::new(document)))
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

/// An empty slot in a larger file is no damage.
#[test]
fn inside_a_host_file_nothing_is_brought_back_to_an_empty_place() {
    let place = host_file();
    let (store, active) = (place.open().unwrap(), key("active"));
    put_numbers(&*store, &active, [1]);
    store.delete(&active, &DeleteOptions::new()).unwrap();
    let newest = RecoverOptions::new(Recovery::Newest);
    assert!(store.recover(&active, &newest).unwrap().document.is_none());
}

/// Damages the file and continues with the newest state, with the readable part, or anew.
#[test]
fn what_cannot_be_read_is_put_aside_and_another_state_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let files = FileStore::open(folder.path().join("store"));
    let host = folder.path().join("host.json");
    let hosted = BuilderStateStore::open(&host);
    let cases: [(&dyn CheckpointStore, &str, PathBuf); 2] = [
        (&files, "a", folder.path().join("store/a.json")),
        (&hosted, "top", host),
    ];
    for (store, name, path) in cases {
        let key = key(name);
        put_numbers(store, &key, [1, 2]);
        let whole = std::fs::read_to_string(&path).unwrap();
        let torn = format!("{whole}}}");
        std::fs::write(&path, &torn).unwrap();
        let entries = store.states(&key).unwrap();
        assert!(entries[0].is_current() && entries[0].revision.is_err());
        assert!(store.load(&key).is_err());

        // Only the holder of the claim may do it.
        let claim = store
            .claim(&key, &ClaimRequest::new("one", Duration::from_secs(3600)))
            .unwrap();
        let newest = RecoverOptions::new(Recovery::Newest);
        let refused = store.recover(&key, &newest).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Claimed { .. }),
            "{refused}"
        );
        let own = |with| RecoverOptions::new(with).with_fence(Some(claim.fence));
        let recovered = store.recover(&key, &own(Recovery::Newest)).unwrap();
        assert_eq!(recovered.damage.unwrap().code, CorruptCode::TrailingBytes);
        let number = |document: Option<Document>| document.unwrap().get("/n").unwrap().as_u64();
        assert_eq!(number(recovered.document), Some(1));
        assert_eq!(number(recovered.salvaged), Some(2));
        let aside = recovered.put_aside.unwrap();
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), torn);

        std::fs::write(&path, &torn).unwrap();
        let salvaged = store.recover(&key, &own(Recovery::Salvage)).unwrap();
        assert_eq!(number(salvaged.document), Some(2));
        // The same damage is kept once.
        assert_eq!(salvaged.put_aside.unwrap(), aside);
        let load = |document: &Stored| document.document.get("/n").unwrap().as_u64();
        assert_eq!(load(&store.load(&key).unwrap().unwrap()), Some(2));

        std::fs::write(&path, "\0\0\0\0").unwrap();
        let none = store.recover(&key, &own(Recovery::Salvage)).unwrap_err();
        assert!(
            matches!(none.kind(), ErrorKind::NotRecoverable { .. }),
            "{none}"
        );
        let fresh = store.recover(&key, &own(Recovery::Fresh));
        if store.capabilities().embedded {
            // The builder's own state would be lost.
            assert!(fresh.is_err());
        } else {
            assert!(fresh.unwrap().document.is_none());
            assert!(store.load(&key).unwrap().is_none());
        }
        let newest = store.recover(&key, &own(Recovery::Newest));
        if store.capabilities().embedded {
            newest.unwrap();
            assert!(store.load(&key).unwrap().is_some());
        } else {
            // After a fresh begin the old task does not come back unasked.
            let none = newest.unwrap_err();
            assert!(matches!(none.kind(), ErrorKind::NotRecoverable { .. }));
        }
    }
}

/// The broken rule: a task that began anew under the name of an ended one came back as that task.
#[test]
fn a_recovery_goes_back_to_no_task_that_ended() {
    let number = |document: Option<Document>| document.unwrap().get("/n").unwrap().as_u64();
    let places: [(&dyn Place, &str); 3] = [
        (&in_memory(), "a"),
        (&Files::in_a_folder().place(), "a"),
        (&host_file(), "active"),
    ];
    for (place, name) in places {
        let (store, a) = (&*place.open().unwrap(), &key(name));
        let newest = RecoverOptions::new(Recovery::Newest);
        put_numbers(store, a, [1, 2]);
        store.delete(a, &DeleteOptions::new()).unwrap();
        if store.capabilities().embedded {
            put_numbers(store, a, [3]);
            let since: Vec<_> = store.states(a).unwrap();
            let since: Vec<_> = since.iter().map(|entry| entry.tasks_since).collect();
            assert_eq!(since, [0, 1, 1]);
            continue;
        }
        // A mere deletion is undone.
        let back = store.recover(a, &newest).unwrap();
        assert_eq!(number(back.document), Some(2));
        put_numbers(store, a, [3]);
        assert!(
            store
                .states(a)
                .unwrap()
                .iter()
                .all(|it| it.tasks_since == 0)
        );
        store.delete(a, &DeleteOptions::new()).unwrap();
        // A new document is another task, whose own states come back.
        put_numbers(store, a, [4]);
        let of_before = store.states(a).unwrap();
        assert!(of_before[1..].iter().all(|entry| entry.tasks_since == 1));
        store.delete(a, &DeleteOptions::new()).unwrap();
        let back = store.recover(a, &newest).unwrap();
        assert_eq!(number(back.document), Some(4));
        store.delete(a, &DeleteOptions::new()).unwrap();
        let fresh = RecoverOptions::new(Recovery::Fresh);
        store.recover(a, &fresh).unwrap();
        let none = store.recover(a, &newest).unwrap_err();
        assert!(
            matches!(none.kind(), ErrorKind::NotRecoverable { .. }),
            "{none}"
        );
        // Every state can still be loaded by its id.
        let entry = &store.states(a).unwrap()[0];
        assert_eq!(entry.tasks_since, 1);
        store.restore(a, &entry.id, Expect::Any, None).unwrap();
    }
}

#[test]
fn a_clone_is_the_same_store() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let files = FileStore::open(folder.path());
    for [one, other] in [
        [&memory as &dyn CheckpointStore, &memory.clone()],
        [&files, &files.clone()],
    ] {
        put_numbers(one, &key("a"), [1]);
        let seen = other.load(&key("a")).unwrap().unwrap();
        assert_eq!(seen.document.text(), r#"{"n":1}"#);
        other.delete(&key("a"), &DeleteOptions::new()).unwrap();
        assert!(one.load(&key("a")).unwrap().is_none());
    }
}
