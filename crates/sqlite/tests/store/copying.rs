//! Copies between stores of every kind.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use agent_checkpoint::formats::Archive;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, CopyOptions, CopyReport, DeleteOptions, Durability, EntryId, FileOptions,
    FileStore, Keep, MemoryStore, Put, Query, copy,
};
use agent_checkpoint::testkit::seam::{Call, Operation, Verdict, Watch, watched};
use agent_checkpoint::{
    CheckpointStoreExt, ClaimRequest, DropReason, Dropped, Error, ErrorKind, Expect, Fence, Result,
    Revision,
};
use agent_checkpoint_sqlite::SqliteStore;
use chrono::DateTime;
use proptest::prelude::*;

use super::{key, numbered};

/// An action on a key.
#[derive(Clone, Debug)]
enum Act {
    Put(u8),
    PutAndDrop(u8),
    Archive(u8),
    Heartbeat(u8),
    Delete,
    Pin(usize, bool),
    Claim,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..6_u8).prop_map(Act::Put),
        2 => (0..6_u8).prop_map(Act::PutAndDrop),
        1 => (0..6_u8).prop_map(Act::Archive),
        1 => (0..6_u8).prop_map(Act::Heartbeat),
        2 => Just(Act::Delete),
        2 => (0..4_usize, any::<bool>()).prop_map(|(at, pinned)| Act::Pin(at, pinned)),
        1 => Just(Act::Claim),
    ]
}

const KEYS: [&str; 3] = ["a", "B/2", "c d"];

fn put(number: u8) -> Put {
    // Members that none of our types has, with unusual spellings.
    let text = format!("{{\"n\": {number}.0,\r\n\t\"unknown\": [1e3, \"\\u00e4\"]}}\n");
    Put::new(Document::from_text(text).unwrap())
}

fn perform(store: &dyn CheckpointStore, name: &str, act: &Act, number: u64) {
    let key = &key(name);
    let item = Dropped::new("/x", DropReason::Elements(1), number.into());
    let put = match act {
        Act::Put(number) => put(*number).with_fingerprints(format!("of {number}")),
        Act::PutAndDrop(number) => put(*number).with_dropped(vec![item]),
        Act::Archive(number) => {
            put(*number).with_archive((Archive::Complete, DateTime::UNIX_EPOCH))
        }
        Act::Heartbeat(number) => put(*number).skip_history(),
        Act::Delete => {
            store.delete(key, &DeleteOptions::new()).unwrap();
            return;
        }
        Act::Pin(at, pinned) => {
            if let Some(entry) = store.states(key).unwrap().get(*at) {
                store.pin(key, &entry.id, *pinned).unwrap();
            }
            return;
        }
        Act::Claim => {
            let request = ClaimRequest::new("someone", Duration::from_secs(60));
            let claim = store.claim(key, &request).unwrap();
            return drop(store.release(key, claim.fence).unwrap());
        }
    };
    store.put(key, put).unwrap();
}

/// Everything of a key that a copy must preserve.
#[derive(Debug, PartialEq)]
struct View {
    text: String,
    fingerprints: Option<String>,
    /// Newest first: the revision, the time of the write in microseconds, whether it is pinned, and how many tasks
    /// ended since.
    past: Vec<(Revision, u128, bool, usize)>,
    dropped: Vec<Dropped>,
    fence: Option<Fence>,
}

fn views(store: &dyn CheckpointStore) -> Vec<(String, View)> {
    let page = store.list(&Query::all()).unwrap();
    let view = |key| {
        let stored = store.load(key).unwrap().unwrap();
        let mut states = store.states(key).unwrap().into_iter();
        let current = states.next().unwrap();
        let micros = |saved: Option<std::time::SystemTime>| {
            let since = saved.unwrap().duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_micros()
        };
        let mut newer = (current.revision.unwrap(), 0);
        let mut past = Vec::new();
        for state in states {
            let this = (state.revision.unwrap(), state.tasks_since);
            // A file store lists a state once if the next one is the same.
            if state.pinned || this != newer {
                past.push((this.0.clone(), micros(state.saved), state.pinned, this.1));
                newer = this;
            }
        }
        let beside = store.beside();
        View {
            past,
            fingerprints: beside.fingerprints(key, &stored.revision).unwrap(),
            dropped: beside.dropped(key).unwrap(),
            fence: store.claimed(key).unwrap().map(|claim| claim.fence),
            text: stored.document.into_text(),
        }
    };
    page.keys()
        .map(|key| (key.to_string(), view(key)))
        .collect()
}

fn copied(from: &dyn CheckpointStore, to: &dyn CheckpointStore) -> Result<CopyReport> {
    copy(from, to, &CopyOptions::new(), &mut |_| {})
}

fn copied_all(from: &dyn CheckpointStore, to: &dyn CheckpointStore) -> usize {
    let report = copied(from, to).unwrap();
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    assert!(report.unreadable.is_empty() && report.foreign.is_empty());
    report.copied
}

fn files(folder: &Path, durability: Durability) -> FileStore {
    let options = FileOptions::default().with_durability(durability);
    FileStore::with_options(folder.join("files"), options)
}

/// Makes one file-system call fail, except calls that set a time: a pin whose time could not be set shows a later time,
/// which loses nothing.
struct Nth {
    left: Option<usize>,
}

impl Watch for Nth {
    fn before(&mut self, call: &Call<'_>) -> Verdict {
        if call.operation == Operation::SetTime {
            return Verdict::Go;
        }
        let is_it = self.left == Some(0);
        self.left = self.left.and_then(|left| left.checked_sub(1));
        match is_it {
            true => Verdict::Fail(std::io::Error::other("this call is made to fail")),
            false => Verdict::Go,
        }
    }
}

/// Makes the call with this number (from 0) fail during `run`. Returns whether `run` reached that call.
fn fail_call(number: usize, run: impl FnOnce()) -> bool {
    let left = Some(number);
    let nth = Rc::new(RefCell::new(Nth { left }));
    watched(nth.clone(), run);
    nth.borrow().left.is_none()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_through_stores_of_every_kind_is_equal_and_goes_on_where_it_was_interrupted(
        acts in prop::collection::vec((0..KEYS.len(), act()), 1..60),
        fails in prop::collection::vec(0..150_usize, 0..3),
    ) {
        let source = MemoryStore::new();
        for (number, (at, act)) in (0..).zip(&acts) {
            perform(&source, KEYS[*at], act, number);
        }
        // Fingerprints may be missing at any time, for example when the call that writes them failed.
        let has_failed = !fails.is_empty();
        let views = |store: &dyn CheckpointStore| {
            let mut views = views(store);
            if has_failed {
                views.iter_mut().for_each(|(_, view)| view.fingerprints = None);
            }
            views
        };
        let expected = views(&source);
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), Durability::Full);
        for number in fails {
            fail_call(number, || drop(copied(&source, &files)));
        }
        copied_all(&source, &files);
        prop_assert_eq!(&views(&files), &expected);
        prop_assert_eq!(copied_all(&source, &files), 0);
        let sqlite = SqliteStore::open(folder.path().join("a.db")).unwrap();
        prop_assert_eq!(copied_all(&files, &sqlite), expected.len());
        prop_assert_eq!(&views(&sqlite), &expected);
        prop_assert_eq!(copied_all(&files, &sqlite), 0);
        let last = MemoryStore::new();
        prop_assert_eq!(copied_all(&sqlite, &last), expected.len());
        prop_assert_eq!(&views(&last), &expected);
    }
}

#[test]
fn a_copy_goes_on_whichever_of_its_calls_failed() {
    let source = MemoryStore::new();
    let acts = [
        Act::Put(1),
        Act::Pin(0, true),
        Act::Delete,
        Act::Put(2),
        Act::Claim,
        Act::Archive(3),
        Act::PutAndDrop(1),
    ];
    for (number, act) in (0..).zip(&acts) {
        perform(&source, "a", act, number);
    }
    let without_fingerprints = |store: &dyn CheckpointStore| {
        let mut views = views(store);
        views
            .iter_mut()
            .for_each(|(_, view)| view.fingerprints = None);
        views
    };
    let expected = without_fingerprints(&source);
    for number in 0.. {
        let folder = tempfile::tempdir().unwrap();
        // All calls but the syncs, which the test above makes fail.
        let files = files(folder.path(), Durability::None);
        let failed = fail_call(number, || drop(copied(&source, &files)));
        let report = copied(&source, &files).unwrap();
        let found = without_fingerprints(&files);
        assert!(
            report.refused.is_empty() && found == expected,
            "after call {number} failed: {:?}, {found:?} in place of {expected:?}",
            report.refused
        );
        if !failed {
            assert!(number > 100, "{number} calls");
            break;
        }
    }
}

fn kind_of(error: &Error) -> &ErrorKind {
    error.kind()
}

#[test]
fn what_is_claimed_or_another_in_the_target_is_refused_by_name_and_nothing_of_it_changes() {
    let (from, to) = (MemoryStore::new(), MemoryStore::new());
    for name in ["another", "claimed", "plain", "begun"] {
        from.put(&key(name), numbered(1)).unwrap();
        from.put(&key(name), numbered(2)).unwrap();
    }
    let request = ClaimRequest::new("one", Duration::from_secs(60));
    let claim = from.claim(&key("claimed"), &request).unwrap();
    to.put(&key("another"), numbered(3)).unwrap();
    to.put(&key("begun"), numbered(3)).unwrap();
    to.delete(&key("begun"), &DeleteOptions::new()).unwrap();
    let before = to.states(&key("begun")).unwrap();
    let mut seen = Vec::new();
    let report = copy(&from, &to, &CopyOptions::new(), &mut |progress| {
        seen.push((progress.key.to_string(), progress.done, progress.total));
    });
    let report = report.unwrap();
    assert_eq!((report.copied, report.present), (1, 0));
    let refused: Vec<_> = report
        .refused
        .iter()
        .map(|error| error.key().unwrap().as_str())
        .collect();
    assert_eq!(refused, ["another", "begun", "claimed"]);
    let kinds: Vec<_> = report.refused.iter().map(kind_of).collect();
    assert!(
        matches!(
            kinds[..],
            [
                ErrorKind::Conflict {
                    expected: Expect::Absent,
                    found: Some(_)
                },
                ErrorKind::Refused { .. },
                ErrorKind::Claimed { .. }
            ]
        ),
        "{kinds:?}"
    );
    assert_eq!(seen[3], ("plain".to_owned(), 4, 4));
    assert_eq!(to.states(&key("begun")).unwrap(), before);
    assert!(to.load(&key("claimed")).unwrap().is_none());

    // The owner keeps its claim in the source and has none in the target.
    let all = CopyOptions::new().include_claimed().with_prefix("cl");
    assert_eq!(copy(&from, &to, &all, &mut |_| {}).unwrap().copied, 1);
    let old = to.put(&key("claimed"), numbered(9).with_fence(claim.fence));
    assert!(matches!(old.unwrap_err().kind(), ErrorKind::Fenced { .. }));
    let next = to.claim(&key("claimed"), &request).unwrap();
    assert!(next.fence > claim.fence);
}

#[test]
fn a_target_that_keeps_fewer_states_has_the_newest_and_what_is_pinned() {
    let from = MemoryStore::new().with_history(Keep::newest(30));
    for number in 0..20 {
        from.put(&key("a"), numbered(number)).unwrap();
    }
    let oldest = from.states(&key("a")).unwrap().pop().unwrap();
    from.pin(&key("a"), &oldest.id, true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = SqliteStore::open(folder.path().join("a.db")).unwrap();
    let to = to.with_history(Keep::newest(5));
    assert_eq!(copied_all(&from, &to), 1);
    assert_eq!(copied_all(&from, &to), 0);
    let past = to.states(&key("a")).unwrap();
    assert_eq!(past.len(), 1 + 5 + 1);
    assert!(past[6].pinned && past[6].revision == oldest.revision);
    // The same document with another history is not taken for a copy.
    to.pin(&key("a"), &past[3].id, true).unwrap();
    let report = copied(&from, &to).unwrap();
    assert!(matches!(report.refused[..], [ref error] if error.code() == "conflict"));
}

#[test]
fn what_a_store_cannot_keep_is_refused_and_not_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let from = MemoryStore::new();
    from.put(&key("a"), numbered(1)).unwrap();
    from.put(&key("a"), numbered(2)).unwrap();
    let options = FileOptions::default().without_history();
    let to = FileStore::with_options(folder.path().join("none"), options);
    let report = copied(&from, &to).unwrap();
    assert!(matches!(report.refused[..], [ref error] if error.code() == "not-offered"));
    assert!(to.load(&key("a")).unwrap().is_none());
    let documents = CopyOptions::new().skip_history();
    assert_eq!(copy(&from, &to, &documents, &mut |_| {}).unwrap().copied, 1);

    // A damaged earlier state is reported, and everything else is copied.
    let from = files(folder.path(), Durability::Full);
    for number in 1..4 {
        from.put(&key("a"), numbered(number)).unwrap();
    }
    let entry = folder
        .path()
        .join("files/.agent-checkpoint/history/a.json/1.json");
    std::fs::write(entry, "{\"n\": ").unwrap();
    let to = MemoryStore::new();
    let report = copied(&from, &to).unwrap();
    assert_eq!(report.copied, 1);
    let told: Vec<_> = report
        .unreadable
        .iter()
        .map(|(_, entry)| entry.clone())
        .collect();
    assert_eq!(told, ["1".parse::<EntryId>().unwrap()]);
    assert_eq!(to.states(&key("a")).unwrap().len(), 2);
}
