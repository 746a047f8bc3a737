//! A later scan that reads only changes gives the result of a full scan.

use crate::common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{
    Beside, Capabilities, CheckpointStore, ClaimChange, Claims, DeleteOptions, FileStore, History,
    MemoryStore, Page, Put, Query, Saved, Stored,
};
use agent_checkpoint::testkit::seam::{Call, Watch, watched};
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Claim, ClaimRequest, Key, Result};
use chrono::{DateTime, TimeDelta, Utc};
use common::{hands_out_no, key, task, time};
use serde_json::Value;

const NOW: &str = "2026-03-02T08:05:00Z";

/// Longer than a tick of the clock that stamps files.
const TICK: Duration = Duration::from_millis(30);

/// The whole result of a scan.
fn told(fleet: &Fleet) -> Value {
    serde_json::to_value(fleet).unwrap()
}

/// The scan after this one, which must equal a full scan.
fn next(
    before: &Fleet,
    sources: &[Source<'_>],
    options: &FleetOptions,
    now: DateTime<Utc>,
) -> Fleet {
    let whole = Fleet::scan(sources, options, now);
    let again = before.rescan(sources, now);
    assert_eq!(told(&again), told(&whole), "at {now}");
    again
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn time_alone_changes_the_same_as_in_a_whole_scan() {
    let folder = tempfile::tempdir().unwrap();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    copy(&cases, folder.path());
    sleep(TICK);
    let sources = [Source::folder(folder.path())];
    for threads in [1, 3] {
        let options = FleetOptions::new().with_threads(threads);
        let mut now = time(NOW);
        let mut fleet = Fleet::scan(&sources, &options, now);
        for span in [
            TimeDelta::seconds(1),
            TimeDelta::minutes(30),
            TimeDelta::hours(3),
            TimeDelta::days(1000),
        ] {
            now += span;
            fleet = next(&fleet, &sources, &options, now);
        }
        // The clock was set back.
        next(&fleet, &sources, &options, time(NOW));
    }
}

#[test]
fn threads_change_nothing() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let scan = |threads| {
        let options = FleetOptions::new().with_threads(threads);
        told(&Fleet::scan(&[Source::folder(&cases)], &options, time(NOW)))
    };
    let one = scan(1);
    assert_eq!(one, scan(2));
    assert_eq!(one, scan(7));
}

#[test]
fn what_is_written_removed_or_claimed_shows() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("c"));
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone());
    for name in ["a", "b", "c", "d"] {
        tasks.create(&key(name), &task(&["one", "two"])).unwrap();
    }
    sleep(TICK);
    let sources = [Source::folder(folder.path())];
    let options = FleetOptions::new();
    let now = Utc::now();
    let mut fleet = Fleet::scan(&sources, &options, now);
    let claim = ClaimRequest::new("me", Duration::from_secs(3600));
    let claims = store.claims().unwrap();
    let steps: [&dyn Fn(); 6] = [
        &|| drop(tasks.update(&key("a"), |task| task.blockers = vec!["it".to_owned()])),
        &|| drop(claims.change_claim(&key("b"), &ClaimChange::Claim(claim.clone()))),
        &|| fs::remove_file(folder.path().join("c/c.json")).unwrap(),
        &|| fs::write(folder.path().join("c/d.json"), "{").unwrap(),
        &|| drop(tasks.create(&key("e"), &task(&["one"]))),
        &|| fs::remove_dir_all(folder.path().join("c/.agent-checkpoint")).unwrap(),
    ];
    for (step, change) in steps.iter().enumerate() {
        change();
        let after = next(&fleet, &sources, &options, now);
        assert_ne!(told(&after), told(&fleet), "step {step} shows");
        sleep(TICK);
        // The claim, which expires, was not read again.
        fleet = next(&after, &sources, &options, now + TimeDelta::hours(2));
        fleet = next(&fleet, &sources, &options, now);
    }
}

/// The rule broken: a later scan that compared stamps alone would not see this.
#[test]
fn a_file_that_changed_in_the_tick_of_the_look_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let text = |step: char| {
        format!(
            r#"{{"phase":"implementation","completedSteps":[],"pendingSteps":["step {step}"],
                "metadata":{{"createdBy":"a"}}}}"#
        )
    };
    let sources = [Source::folder(folder.path())];
    let start = |fleet: &Fleet| fleet.rows()[0].next.as_ref().unwrap().start_at.clone();
    let mut missed = 0;
    for round in 0..20 {
        fs::write(&path, text('1')).unwrap();
        let first = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
        let stamp = fs::metadata(&path).unwrap().modified().unwrap();
        // In place, with the same size, immediately.
        fs::write(&path, text('2')).unwrap();
        missed += usize::from(fs::metadata(&path).unwrap().modified().unwrap() == stamp);
        let second = first.rescan(&sources, time(NOW));
        assert_eq!(start(&second).as_deref(), Some("step 2"), "round {round}");
    }
    println!("{missed} of 20 changes left the time as it was");
}

/// Counts calls to the file system by kind.
#[derive(Default)]
struct Calls(BTreeMap<String, usize>);

impl Watch for Calls {
    fn after(&mut self, call: &Call<'_>) {
        *self.0.entry(format!("{:?}", call.operation)).or_default() += 1;
    }
}

fn calls<T>(run: impl FnOnce() -> T) -> (T, BTreeMap<String, usize>) {
    let calls = Rc::new(RefCell::new(Calls::default()));
    let done = watched(calls.clone(), run);
    (done, Rc::try_unwrap(calls).ok().unwrap().into_inner().0)
}

/// The calls that each checkpoint of a folder adds to a scan and to the next scan.
#[test]
fn the_calls_for_each_file_are_counted() {
    let options = FleetOptions::new().with_threads(1);
    let now = Utc::now();
    let of = |count: usize| {
        let folder = tempfile::tempdir().unwrap();
        let tasks = Checkpoints::<TaskCheckpoint>::new(FileStore::open(folder.path()));
        for number in 0..count {
            tasks
                .create(&key(&format!("a{number}")), &task(&["one"]))
                .unwrap();
        }
        sleep(TICK);
        let sources = [Source::folder(folder.path())];
        let (first, of_first) = calls(|| Fleet::scan(&sources, &options, now));
        let (second, of_second) = calls(|| first.rescan(&sources, now));
        assert_eq!(told(&second), told(&first));
        (of_first, of_second)
    };
    let ((few, few_again), (many, many_again)) = (of(2), of(12));
    let each = |few: &BTreeMap<String, usize>, many: &BTreeMap<String, usize>| {
        let each = many.iter().map(|(kind, many)| {
            let few = few.get(kind).copied().unwrap_or_default();
            (kind.clone(), (many - few) / 10)
        });
        each.filter(|(_, each)| *each > 0).collect::<Vec<_>>()
    };
    let (first, again) = (each(&few, &many), each(&few_again, &many_again));
    println!("first {first:?}, again {again:?}");
    assert_eq!(again, [("Inspect".to_owned(), 1)], "nothing is read again");
    let most = |kind: &str, most: usize| {
        let found = first.iter().find(|(found, _)| found == kind);
        let found = found.map_or(0, |(_, each)| *each);
        assert!(found <= most, "{kind}: {found}, at most {most}");
    };
    // The checkpoint, and the note of its last save.
    most("Open", 2);
    most("Read", 2);
    most("Inspect", 6);
    most("List", 0);
}

/// Counts the requests of a scan to a store.
#[derive(Default)]
struct Counting {
    store: MemoryStore,
    kind: Kind,
    lists: AtomicUsize,
    /// In pages.
    documents: AtomicUsize,
    /// Single requests for documents and claims.
    single: AtomicUsize,
}

#[derive(Default, PartialEq)]
enum Kind {
    #[default]
    Right,
    HasNoVersions,
    /// Like a store that does not see writes.
    HasOneVersion,
}

impl Counting {
    /// The counts of lists, documents in pages, and single requests since the last call.
    fn counts(&self) -> [usize; 3] {
        [&self.lists, &self.documents, &self.single].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

impl CheckpointStore for Counting {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.single.fetch_add(1, Ordering::Relaxed);
        self.store.load(key)
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.store.put(key, put)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.store.delete(key, options)
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.store.forget(key, options)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let mut page = self.store.list(query)?;
        for listed in &mut page.entries {
            match self.kind {
                Kind::Right => {}
                Kind::HasNoVersions => *listed = listed.key.clone().into(),
                Kind::HasOneVersion => listed.version = Some("1".to_owned()),
            }
        }
        let given = page.entries.iter().filter(|it| it.content.is_some());
        self.documents.fetch_add(given.count(), Ordering::Relaxed);
        Ok(page)
    }

    fn beside(&self) -> &dyn Beside {
        self.store.beside()
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        self.store.history()
    }

    hands_out_no!(exclusive: Exclusive, recovery: Recover, heartbeat: Heartbeat, changes: Changes);

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

impl Claims for Counting {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.store.change_claim(key, change)
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.single.fetch_add(1, Ordering::Relaxed);
        Claims::claimed(&self.store, key)
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        self.store.claimed_without_document()
    }
}

fn numbered(number: usize) -> Key {
    key(&format!("a{number:04}"))
}

/// A scanned store of a thousand tasks, each claimed.
fn thousand(kind: Kind) -> Counting {
    let store = Counting {
        kind,
        ..Counting::default()
    };
    for number in 0..1000 {
        let tasks = store.store.checkpoints::<TaskCheckpoint>();
        tasks.create(&numbered(number), &task(&["one"])).unwrap();
        let claim = ClaimRequest::new("me", Duration::from_secs(3600));
        store.store.claim(&numbered(number), &claim).unwrap();
    }
    store
}

/// Changes a hundred of them: a new text, and a claim that is released.
fn change_hundred(store: &Counting) {
    for number in (0..1000).step_by(10) {
        let fence = Claims::claimed(&store.store, &numbered(number)).unwrap();
        let fence = fence.unwrap().fence;
        let tasks = Checkpoints::<TaskCheckpoint>::new(store.store.clone()).fenced(fence);
        let blocked = |task: &mut TaskCheckpoint| task.blockers = vec!["it".to_owned()];
        tasks.update(&numbered(number), blocked).unwrap();
        store.store.release(&numbered(number), fence).unwrap();
    }
}

#[test]
fn of_a_store_only_what_changed_is_read_again() {
    let store = thousand(Kind::Right);
    let sources = [Source::store("memory", &store)];
    let (options, now) = (FleetOptions::new(), Utc::now());
    let first = Fleet::scan(&sources, &options, now);
    assert_eq!(first.totals().rows, 1000);
    // Pages of 256 keys, with their documents and claims.
    assert_eq!(store.counts(), [4, 1000, 0]);
    let later = now + TimeDelta::minutes(1);
    let same = first.rescan(&sources, later);
    assert_eq!(store.counts(), [4, 0, 0]);
    assert_eq!(told(&same), told(&Fleet::scan(&sources, &options, later)));
    change_hundred(&store);
    store.counts();
    let second = same.rescan(&sources, later);
    // For each page one more request, for the changes.
    assert_eq!(store.counts(), [8, 100, 0]);
    assert_ne!(told(&second), told(&same));
    assert_eq!(told(&second), told(&Fleet::scan(&sources, &options, later)));
    // A removed checkpoint is no row, and a new one is.
    let fence = Claims::claimed(&store.store, &numbered(1))
        .unwrap()
        .unwrap()
        .fence;
    let with = DeleteOptions::new().with_fence(fence);
    assert!(store.store.delete(&numbered(1), &with).unwrap());
    let tasks = store.store.checkpoints::<TaskCheckpoint>();
    tasks.create(&numbered(1001), &task(&["one"])).unwrap();
    next(&second, &sources, &options, later);
}

/// The rule broken: without versions everything is read, one document and one claim at a time.
#[test]
fn of_a_store_without_versions_all_is_read_again() {
    let store = thousand(Kind::HasNoVersions);
    let sources = [Source::store("memory", &store)];
    let (options, now) = (FleetOptions::new(), Utc::now());
    let first = Fleet::scan(&sources, &options, now);
    assert_eq!(store.counts(), [4, 0, 2000]);
    change_hundred(&store);
    let second = next(&first, &sources, &options, now);
    assert_ne!(told(&second), told(&first));
}

/// The rule broken: if a write makes no new version, it is not seen. The testkit finds such a store.
#[test]
fn a_store_whose_versions_stand_still_hides_its_writes() {
    let store = thousand(Kind::HasOneVersion);
    let sources = [Source::store("memory", &store)];
    let (options, now) = (FleetOptions::new(), Utc::now());
    let first = Fleet::scan(&sources, &options, now);
    change_hundred(&store);
    assert_eq!(told(&first.rescan(&sources, now)), told(&first));
    assert_ne!(told(&Fleet::scan(&sources, &options, now)), told(&first));
}
