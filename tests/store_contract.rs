//! The contract of `CheckpointStore`, on every store of the library, boxed as callers have them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::checkpoint::{DropReason, Dropped, Fenced};
use agent_checkpoint::json::{CorruptCode, Document};
use agent_checkpoint::store::{
    Capabilities, Change, DeleteOptions, Page, PutOptions, Query, Saved,
};
use agent_checkpoint::{
    BuilderStateStore, CheckpointStore, CheckpointStoreExt, ClaimRequest, Error, ErrorKind, Expect,
    Fence, FileStore, Keep, Key, MemoryStore, Outcome, RecoverOptions, Recovery, Revision, Stored,
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
        Capabilities::none()
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

// Claims, history and recovery, on every store that offers them.

fn hour(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, Duration::from_secs(3600))
}

fn fenced(fence: Fence) -> PutOptions {
    PutOptions::new().fenced(Some(fence))
}

/// Runs a test on every store with this capability, and at least two have each.
fn where_offered(
    is_offered: fn(&Capabilities) -> bool,
    test: impl Fn(&dyn CheckpointStore, &Key, &Key),
) {
    let offered = std::cell::Cell::new(0);
    on_every_store(|store, a, b| {
        if is_offered(&store.capabilities()) {
            offered.set(offered.get() + 1);
            test(store, a, b);
        }
    });
    assert!(offered.get() > 1, "hardly any store offers it");
}

fn has_claims(offered: &Capabilities) -> bool {
    offered.claims
}

fn has_history(offered: &Capabilities) -> bool {
    offered.history
}

fn has_recovery(offered: &Capabilities) -> bool {
    offered.recovery
}

/// The texts that the entries of the history have, newest first, without what is there now.
fn past(store: &dyn CheckpointStore, key: &Key) -> Vec<u64> {
    let entries = store.history(key).unwrap();
    let past = entries.iter().filter(|entry| !entry.is_current());
    past.map(|entry| {
        let stored = store.load_revision(key, &entry.id).unwrap();
        assert_eq!(entry.revision.as_ref(), Ok(&stored.revision));
        stored.document.get("/n").unwrap().as_u64().unwrap()
    })
    .collect()
}

fn put_numbers(store: &dyn CheckpointStore, key: &Key, numbers: impl IntoIterator<Item = u64>) {
    for n in numbers {
        store
            .put(key, &document(&format!("{{\"n\":{n}}}")), &any())
            .unwrap();
    }
}

#[test]
fn a_store_without_claims_history_or_recovery_says_so() {
    let store = Plain(MemoryStore::new());
    let a = key("a");
    let entry = "1".parse().unwrap();
    let fence = Fence::new(1);
    let long = Duration::from_secs(1);
    let newest = RecoverOptions::with(Recovery::Newest);
    let answers = [
        store.claim(&a, &hour("one")).map(drop),
        store.renew(&a, fence, long).map(drop),
        store.release(&a, fence).map(drop),
        store.claimed(&a).map(drop),
        store.history(&a).map(drop),
        store.load_revision(&a, &entry).map(drop),
        store.pin(&a, &entry, true).map(drop),
        store.prune(&a, &Keep::default()).map(drop),
        store.recover(&a, &newest).map(drop),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NotOffered { .. }),
            "{error}"
        );
    }
}

#[test]
fn while_a_claim_stands_only_its_fence_writes() {
    where_offered(has_claims, |store, a, b| {
        assert!(store.claimed(a).unwrap().is_none());
        // There need be no checkpoint yet.
        let claim = store.claim(a, &hour("one")).unwrap();
        put_numbers(store, b, [7]);
        let kept_out = |error: Error| match error.kind() {
            ErrorKind::Claimed { owner, until } => {
                assert_eq!((owner.as_str(), *until), ("one", claim.expires));
                assert_eq!(error.key(), Some(a));
            }
            other => panic!("{other:?}"),
        };
        kept_out(store.put(a, &document("{}"), &any()).unwrap_err());
        store.put(a, &document("{}"), &fenced(claim.fence)).unwrap();
        kept_out(store.put(a, &document("{\"n\":1}"), &any()).unwrap_err());
        kept_out(store.delete(a, &DeleteOptions::new()).unwrap_err());
        let change = &mut |_: Option<&Stored>| Ok(Change::put(document("{\"n\":1}")));
        kept_out(store.transact(a, change).unwrap_err());
        kept_out(store.claim(a, &hour("two")).unwrap_err());
        assert_eq!(store.load(a).unwrap().unwrap().document.text(), "{}");

        let again = store.claim(a, &hour("one")).unwrap();
        assert_eq!((again.fence, again.since), (claim.fence, claim.since));
        let own = DeleteOptions::new().fenced(Some(claim.fence));
        assert!(store.delete(a, &own).unwrap());
        assert_eq!(store.claimed(a).unwrap().unwrap().fence, claim.fence);
    });
}

#[test]
fn a_fence_only_ever_grows_and_an_old_one_never_opens_again() {
    where_offered(has_claims, |store, a, _| {
        let mut fences: Vec<Fence> = Vec::new();
        let claims = [
            hour("one"),
            hour("two").taking_over(),
            // Also the owner itself, after a release and after a delete.
            hour("two"),
            hour("three"),
        ];
        for (at, request) in claims.iter().enumerate() {
            let claim = store.claim(a, request).unwrap();
            assert!(
                fences.iter().all(|old| *old < claim.fence),
                "{fences:?} {claim:?}"
            );
            for old in &fences {
                let error = store
                    .put(a, &document("{\"n\":9}"), &fenced(*old))
                    .unwrap_err();
                match error.kind() {
                    ErrorKind::Fenced { fence, why } => {
                        assert_eq!(*fence, old.number());
                        let by = request.owner.clone();
                        assert_eq!(*why, Fenced::TakenOver { by });
                    }
                    other => panic!("{other:?}"),
                }
                assert!(store.renew(a, *old, Duration::from_secs(9)).is_err());
                assert!(store.release(a, *old).is_err());
            }
            put_as(store, a, at, claim.fence);
            if at > 0 {
                store.release(a, claim.fence).unwrap();
                // To give it back again changes nothing.
                assert!(store.release(a, claim.fence).unwrap().released);
                let late = store.put(a, &document("{}"), &fenced(claim.fence));
                assert!(late.is_err());
                store.delete(a, &DeleteOptions::new()).unwrap();
            }
            fences.push(claim.fence);
        }
        let invented = Fence::new(fences[3].number() + 1);
        let error = store
            .put(a, &document("{}"), &fenced(invented))
            .unwrap_err();
        assert!(error.to_string().contains("no such claim"), "{error}");
    });
}

fn put_as(store: &dyn CheckpointStore, key: &Key, n: usize, fence: Fence) {
    let text = format!("{{\"n\":{n}}}");
    store.put(key, &document(&text), &fenced(fence)).unwrap();
}

#[test]
fn a_claim_that_ran_out_keeps_nobody_out_and_can_be_renewed_until_another_has_it() {
    where_offered(has_claims, |store, a, _| {
        let short = Duration::from_millis(20);
        let claim = store.claim(a, &ClaimRequest::new("one", short)).unwrap();
        std::thread::sleep(2 * short);
        let late = store
            .put(a, &document("{}"), &fenced(claim.fence))
            .unwrap_err();
        assert!(late.to_string().contains("renew it"), "{late}");
        put_numbers(store, a, [1]);
        let renewed = store
            .renew(a, claim.fence, Duration::from_secs(60))
            .unwrap();
        assert_eq!((renewed.fence, renewed.since), (claim.fence, claim.since));
        store
            .put(a, &document("{\"n\":2}"), &fenced(claim.fence))
            .unwrap();
        let other = store.claim(a, &hour("two").taking_over()).unwrap();
        let error = store.renew(a, claim.fence, short).unwrap_err();
        assert!(error.to_string().contains("two has taken"), "{error}");
        assert_eq!(store.claimed(a).unwrap().unwrap(), other);
    });
}

#[test]
fn what_a_write_replaces_or_deletes_is_in_the_history() {
    where_offered(has_history, |store, a, b| {
        assert!(store.history(a).unwrap().is_empty());
        put_numbers(store, a, 1..=4);
        assert_eq!(past(store, a), [3, 2, 1]);
        let entries = store.history(a).unwrap();
        assert!(entries[0].is_current() && !entries[1].is_current());
        let loaded = store.load_revision(a, &entries[0].id).unwrap();
        assert_eq!(loaded.revision, store.load(a).unwrap().unwrap().revision);
        assert!(store.delete(a, &DeleteOptions::new()).unwrap());
        assert_eq!(past(store, a), [4, 3, 2, 1]);
        assert!(store.history(b).unwrap().is_empty());
        let missing = store.load_revision(a, &"987654".parse().unwrap());
        let missing = missing.unwrap_err();
        assert!(
            matches!(missing.kind(), ErrorKind::NoSuchRevision { .. }),
            "{missing}"
        );
        let restored = store
            .restore(a, &store.history(a).unwrap()[3].id, &any())
            .unwrap();
        assert_eq!(restored.outcome, Outcome::Created);
        let now = store.load(a).unwrap().unwrap();
        assert_eq!(now.document.get("/n").unwrap().as_u64(), Some(1));
    });
}

/// Named after what happened: a save that failed again and again pushed every good state out.
#[test]
fn failed_saves_do_not_rotate_good_history_away() {
    where_offered(has_history, |store, a, _| {
        put_numbers(store, a, 1..=4);
        for _ in 0..30 {
            let stale = PutOptions::expecting(Expect::Absent);
            assert!(store.put(a, &document("{}"), &stale).is_err());
            let refuse = &mut |_: Option<&Stored>| Err(Error::refused("not now"));
            assert!(store.transact(a, refuse).is_err());
            let wrong = DeleteOptions::expecting(Expect::Absent);
            assert!(store.delete(a, &wrong).is_err());
            // The same bytes again are no save either.
            put_numbers(store, a, [4]);
        }
        assert_eq!(past(store, a), [3, 2, 1]);
    });
}

/// Named after what happened: a database of checkpoints that grew until the disk was full.
#[test]
fn history_does_not_grow_for_ever() {
    where_offered(has_history, |store, a, b| {
        put_numbers(store, a, 1..=40);
        assert_eq!(past(store, a), (30..=39).rev().collect::<Vec<_>>());
        // Also of one that is made and deleted again and again.
        for n in 1..=40 {
            put_numbers(store, b, [n]);
            assert!(store.delete(b, &DeleteOptions::new()).unwrap());
        }
        let left = past(store, b);
        assert!(left.len() <= Keep::COUNT, "{left:?}");
        assert_eq!(left[0], 40);
    });
}

#[test]
fn pruning_leaves_the_newest_and_what_is_pinned() {
    where_offered(has_history, |store, a, _| {
        put_numbers(store, a, 1..=6);
        let entries = store.history(a).unwrap();
        let third = &entries[3].id;
        assert_eq!(store.pin(a, third, true).unwrap(), *third);
        let current = store.pin(a, &entries[0].id, true).unwrap();
        assert!(!current.is_current());
        let gone = store.prune(a, &Keep::newest(0)).unwrap();
        assert_eq!(past(store, a), [6, 5, 3]);
        // Of a larger file also the state from before this key had anything in it.
        assert!(gone.len() >= 3, "{gone:?}");
        for id in &gone {
            assert!(store.load_revision(a, id).is_err());
        }
        // What was pinned as the present state is unpinned as such, too.
        store.pin(a, &"current".parse().unwrap(), false).unwrap();
        store.pin(a, third, false).unwrap();
        put_numbers(store, a, [7]);
        store.prune(a, &Keep::newest(1)).unwrap();
        assert_eq!(past(store, a), [6]);
        // However little is kept: what was deleted is not lost.
        assert!(store.delete(a, &DeleteOptions::new()).unwrap());
        store.prune(a, &Keep::newest(0)).unwrap();
        assert_eq!(past(store, a), [7]);
        let none = store.pin(a, &"current".parse().unwrap(), true).unwrap_err();
        assert!(
            matches!(none.kind(), ErrorKind::NoSuchRevision { .. }),
            "{none}"
        );
    });
}

/// The newest entry of a slot may be from when it was empty; that is not the one that must stay.
#[test]
fn pruning_leaves_the_newest_state_of_a_slot_that_was_begun_anew() {
    where_offered(has_history, |store, a, _| {
        put_numbers(store, a, [1, 2]);
        assert!(store.delete(a, &DeleteOptions::new()).unwrap());
        put_numbers(store, a, [3]);
        store.prune(a, &Keep::newest(0)).unwrap();
        assert_eq!(past(store, a), [2]);
    });
}

#[test]
fn where_nothing_is_wrong_a_recovery_changes_nothing() {
    where_offered(has_recovery, |store, a, _| {
        put_numbers(store, a, [1, 2]);
        let before = store.load(a).unwrap().unwrap();
        for with in [Recovery::Newest, Recovery::Fresh, Recovery::Salvage] {
            let recovered = store.recover(a, &RecoverOptions::with(with)).unwrap();
            assert!(recovered.damage.is_none() && recovered.saved.is_none());
            assert_eq!(store.load(a).unwrap().unwrap().revision, before.revision);
        }
        assert_eq!(past(store, a), [1]);
    });
}

#[test]
fn what_was_deleted_can_be_brought_back_with_what_was_cut_from_it() {
    where_offered(has_recovery, |store, a, _| {
        let newest = RecoverOptions::with(Recovery::Newest);
        if store.capabilities().embedded {
            // An empty place in a larger file is nothing wrong.
            put_numbers(store, a, [1]);
            store.delete(a, &DeleteOptions::new()).unwrap();
            assert!(store.recover(a, &newest).unwrap().document.is_none());
            return;
        }
        let none = store.recover(a, &newest).unwrap_err();
        assert!(
            matches!(none.kind(), ErrorKind::NotRecoverable { .. }),
            "{none}"
        );
        let cut = Dropped::new("/x", DropReason::Elements(1), 7.into());
        put_numbers(store, a, [1]);
        store
            .put(a, &document("{\"n\":2}"), &any().with_overflow(vec![cut]))
            .unwrap();
        store.delete(a, &DeleteOptions::new()).unwrap();
        let recovered = store.recover(a, &newest).unwrap();
        assert!(recovered.damage.is_none() && recovered.put_aside.is_none());
        assert!(recovered.entry.is_some());
        let stored = store.load(a).unwrap().unwrap();
        assert_eq!(stored.document.text(), "{\"n\":2}");
        assert_eq!(store.overflow(a).unwrap().len(), 1);
    });
}

/// Damages the file and goes on with the newest state, with the good part, or anew.
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
        let entries = store.history(&key).unwrap();
        assert!(entries[0].is_current() && entries[0].revision.is_err());
        assert!(store.load(&key).is_err());

        // Only for whoever may write.
        let claim = store.claim(&key, &hour("one")).unwrap();
        let newest = RecoverOptions::with(Recovery::Newest);
        let refused = store.recover(&key, &newest).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Claimed { .. }),
            "{refused}"
        );
        let own = |with| RecoverOptions::with(with).fenced(Some(claim.fence));
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
            // The builder's own state would go with it.
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
            // Whoever began fresh does not get the old task back unasked.
            let none = newest.unwrap_err();
            assert!(matches!(none.kind(), ErrorKind::NotRecoverable { .. }));
        }
    }
}

/// What began anew under the name of a task that was over came back as that task.
#[test]
fn a_recovery_goes_back_to_no_task_that_ended() {
    let number = |document: Option<Document>| document.unwrap().get("/n").unwrap().as_u64();
    where_offered(has_recovery, |store, a, _| {
        let newest = RecoverOptions::with(Recovery::Newest);
        put_numbers(store, a, [1, 2]);
        store.delete(a, &DeleteOptions::new()).unwrap();
        if store.capabilities().embedded {
            put_numbers(store, a, [3]);
            let since: Vec<_> = store.history(a).unwrap();
            let since: Vec<_> = since.iter().map(|entry| entry.tasks_since).collect();
            assert_eq!(since, [0, 1, 1]);
            return;
        }
        // A mere deletion is undone.
        let back = store.recover(a, &newest).unwrap();
        assert_eq!(number(back.document), Some(2));
        put_numbers(store, a, [3]);
        assert!(
            store
                .history(a)
                .unwrap()
                .iter()
                .all(|it| it.tasks_since == 0)
        );
        store.delete(a, &DeleteOptions::new()).unwrap();
        // But a new document is another task, whose own states come back.
        put_numbers(store, a, [4]);
        let of_before = store.history(a).unwrap();
        assert!(of_before[1..].iter().all(|entry| entry.tasks_since == 1));
        store.delete(a, &DeleteOptions::new()).unwrap();
        let back = store.recover(a, &newest).unwrap();
        assert_eq!(number(back.document), Some(4));
        store.delete(a, &DeleteOptions::new()).unwrap();
        let fresh = RecoverOptions::with(Recovery::Fresh);
        store.recover(a, &fresh).unwrap();
        let none = store.recover(a, &newest).unwrap_err();
        assert!(
            matches!(none.kind(), ErrorKind::NotRecoverable { .. }),
            "{none}"
        );
        // By name every state is still to be had.
        let entry = &store.history(a).unwrap()[0];
        assert_eq!(entry.tasks_since, 1);
        store.restore(a, &entry.id, &any()).unwrap();
    });
}
