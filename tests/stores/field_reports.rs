//! Failures that users of other systems reported and that do not happen here: `docs/field-reports.md` names the
//! reports. Many writers and kills are tested in `many_writers.rs` and `kills.rs`.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use crate::common::{clock, key, task};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::{CorruptCode, Document};
use agent_checkpoint::resume::{ResumeDecision, ResumeOptions};
use agent_checkpoint::store::{
    CheckpointStore, FileOptions, FileStore, Keep, Put, Query, RecoverOptions, Recovery,
};
use agent_checkpoint::testkit::seam::{Call, Operation, Verdict, Watch, watched};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind, Expect, PutMode};

struct Store {
    folder: tempfile::TempDir,
    files: FileStore,
}

impl Store {
    fn new() -> Store {
        let folder = tempfile::tempdir().unwrap();
        let files = FileStore::open(folder.path());
        Store { folder, files }
    }

    fn put(&self, name: &str, n: u64) {
        let document = Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
        self.files
            .put(&key(name), Put::new(document.clone()))
            .unwrap();
    }

    fn number(&self, name: &str) -> Option<u64> {
        let stored = self.files.load(&key(name)).unwrap().unwrap();
        stored.document.get("/n").unwrap().as_u64()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path(&key(name)).unwrap()
    }

    /// Damages a checkpoint like a power loss or another program; with an old time, so that readers do not wait for a
    /// running writer.
    fn damage(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let torn = self.folder.path().join("torn");
        fs::write(&torn, bytes).unwrap();
        set_back(&torn, Duration::from_secs(10));
        fs::rename(torn, self.path(name)).unwrap();
    }

    fn own(&self, inside: &str) -> PathBuf {
        self.folder.path().join(".agent-checkpoint").join(inside)
    }
}

fn set_back(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

fn newest() -> RecoverOptions {
    RecoverOptions::new(Recovery::Newest)
}

/// A power loss left a torn tail, and the agent began with nothing.
#[test]
fn a_torn_tail_does_not_resume_with_nothing() {
    let store = Store::new();
    let tasks = store.files.checkpoints::<TaskCheckpoint>();
    tasks.create(&key("a"), &task(&["one", "two"])).unwrap();
    tasks
        .update(&key("a"), |task| task.blockers = vec!["CI".to_owned()])
        .unwrap();
    let whole = fs::read_to_string(store.path("a")).unwrap();
    let cut = &whole[..whole.find("CI").unwrap()];
    store.damage("a", cut);

    let resume = |store: &FileStore| {
        let tasks = store.checkpoints::<TaskCheckpoint>();
        tasks.resume(
            &key("a"),
            &ResumeOptions::new(store.path(&key("a")).unwrap().parent().unwrap()),
        )
    };
    // The plan names the damage and the state to continue from; it does not begin from nothing.
    let damaged = resume(&store.files).unwrap();
    assert_eq!(damaged.damage.unwrap().offset, cut.len());
    assert_eq!(damaged.plan.decision, ResumeDecision::Verify);
    assert_eq!(damaged.recover_with.unwrap().as_str(), "1");
    let recovered = store.files.recover(&key("a"), &newest()).unwrap();
    assert_eq!(
        fs::read_to_string(recovered.put_aside.unwrap()).unwrap(),
        cut
    );
    let salvaged = recovered.salvaged.unwrap();
    assert_eq!(
        salvaged.get("/pendingSteps/1").unwrap().as_str(),
        Some("two".into())
    );
    let resumed = resume(&store.files).unwrap();
    assert_eq!(resumed.plan.start_at.as_deref(), Some("one"));
}

/// A short text was written over a long one; its stale tail made the store refuse to read and to write.
#[test]
fn a_stale_tail_does_not_wedge_the_store() {
    let store = Store::new();
    store.put("a", 1);
    store.damage("a", "{\"n\":2}00000}\n");
    let error = store.files.load(&key("a")).unwrap_err();
    match error.kind() {
        ErrorKind::Corrupt(corrupt) => {
            assert_eq!(
                (corrupt.code, corrupt.offset),
                (CorruptCode::TrailingBytes, 7)
            );
        }
        other => panic!("{other:?}"),
    }
    // Every other checkpoint still works, and so does the listing.
    store.put("b", 1);
    assert_eq!(store.files.list(&Query::all()).unwrap().entries.len(), 2);
    let salvage = RecoverOptions::new(Recovery::Salvage);
    store.files.recover(&key("a"), &salvage).unwrap();
    assert_eq!(store.number("a"), Some(2));
    store.put("a", 3);
}

/// After a power loss the file had its length and was all zeros.
#[test]
fn a_file_of_zeros_is_corrupt_and_the_state_before_goes_on() {
    let store = Store::new();
    store.put("a", 1);
    store.put("a", 2);
    store.damage("a", [0; 7]);
    let error = store.files.load(&key("a")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt(_)), "{error}");
    let recovered = store.files.recover(&key("a"), &newest()).unwrap();
    assert!(recovered.salvaged.is_none());
    assert_eq!(store.number("a"), Some(1));
}

/// Recovery left hundreds of copies of damaged files.
#[test]
fn however_often_a_file_is_damaged_few_copies_are_kept() {
    let store = Store::new();
    store.put("a", 1);
    store.put("a", 2);
    for n in 0..20 {
        let torn = format!("{{\"n\":{n}");
        // The same damage twice is kept once.
        for _ in 0..2 {
            store.damage("a", &torn);
            let recovered = store.files.recover(&key("a"), &newest()).unwrap();
            let aside = recovered.put_aside.unwrap();
            assert_eq!(fs::read_to_string(aside).unwrap(), torn);
        }
        let kept = fs::read_dir(store.own("corrupt/a.json")).unwrap().count();
        assert!(kept <= 8, "{kept}");
    }
}

/// Refuses one kind of call to the file system.
struct Refusing {
    operation: Operation,
    to: PathBuf,
}

impl Watch for Refusing {
    fn before(&mut self, call: &Call<'_>) -> Verdict {
        if call.operation == self.operation && call.path == self.to {
            return Verdict::Fail(io::ErrorKind::StorageFull.into());
        }
        Verdict::Go
    }
}

/// Each save failed, and each pushed out one of the good backups.
#[test]
fn saves_that_the_disk_refuses_do_not_rotate_good_history_away() {
    let store = Store::new();
    for n in 0..4 {
        store.put("a", n);
    }
    let before = store.files.states(&key("a")).unwrap();
    for n in 10..40 {
        let refusing = Refusing {
            operation: Operation::Rename,
            to: store.path("a"),
        };
        let watch: Rc<RefCell<dyn Watch>> = Rc::new(RefCell::new(refusing));
        let document = Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
        let saved = watched(watch, || {
            store.files.put(&key("a"), Put::new(document.clone()))
        });
        assert_eq!(saved.unwrap_err().code(), "disk-full");
    }
    assert_eq!(store.files.states(&key("a")).unwrap(), before);
    assert_eq!(store.number("a"), Some(3));
}

/// "The latest" was silently an older one.
#[test]
fn a_fallback_to_an_older_state_is_announced() {
    let store = Store::new();
    for n in 1..=4 {
        store.put("a", n);
    }
    // The newest earlier state is torn, too.
    fs::write(store.own("history/a.json/3.json"), "{\"n\":").unwrap();
    store.damage("a", "{\"n\":4");
    // A load never falls back by itself.
    assert!(store.files.load(&key("a")).is_err());
    let told = store.files.states(&key("a")).unwrap();
    assert!(told[0].revision.is_err() && told[1].revision.is_err() && told[2].revision.is_ok());
    let recovered = store.files.recover(&key("a"), &newest()).unwrap();
    assert!(recovered.damage.is_some());
    assert_eq!(recovered.entry, Some("2".parse().unwrap()));
    assert_eq!(recovered.passed_over, ["3".parse().unwrap()]);
    assert_eq!(store.number("a"), Some(2));
}

/// A clean-up removed the only good copy.
#[test]
fn the_only_good_copy_is_never_pruned() {
    let store = Store::new();
    for n in 1..=4 {
        store.put("a", n);
    }
    fs::write(store.own("history/a.json/3.json"), "{\"n\":").unwrap();
    store.damage("a", "{\"n\":4");
    store.files.prune(&key("a"), &Keep::newest(0)).unwrap();
    store.files.recover(&key("a"), &newest()).unwrap();
    assert_eq!(store.number("a"), Some(2));
    // After a deletion it is still there.
    fs::remove_file(store.path("a")).unwrap();
    store.files.prune(&key("a"), &Keep::newest(0)).unwrap();
    store.files.recover(&key("a"), &newest()).unwrap();
    assert_eq!(store.number("a"), Some(2));
}

/// A stale check was softened to "reload, and go on": two histories interleaved for good.
#[test]
fn a_stale_save_is_refused_and_not_reloaded_behind_its_writers_back() {
    let store = Store::new();
    let tasks = store.files.checkpoints::<TaskCheckpoint>();
    let created = tasks.create(&key("a"), &task(&["one"])).unwrap();
    let loaded = tasks.get(&key("a")).unwrap();
    tasks
        .update(&key("a"), |task| task.blockers = vec!["theirs".to_owned()])
        .unwrap();
    let mut mine = loaded.checkpoint.clone();
    mine.blockers = vec!["mine".to_owned()];
    for _ in 0..3 {
        let stale = Expect::Revision(created.revision.clone());
        let error = tasks
            .put(&key("a"), &mine, PutMode::Edit, &stale)
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Conflict { .. }),
            "{error}"
        );
    }
    let now = tasks.get(&key("a")).unwrap().checkpoint;
    assert_eq!(now.blockers, ["theirs"]);
    assert_eq!(store.files.states(&key("a")).unwrap().len(), 2);
}

/// The wall clock was the version: a zone, a coarse file system or a clock set back lost saves.
#[test]
fn no_clock_makes_a_writer_stale_or_lets_a_stale_one_in() {
    let folder = tempfile::tempdir().unwrap();
    let at = |time: &str| {
        let options = FileOptions::default().with_clock(clock(time));
        FileStore::with_options(folder.path(), options)
    };
    let document = |n: u64| Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
    let (late, early) = (at("2026-03-02T08:00:00Z"), at("2001-01-01T00:00:00+14:00"));
    let a = key("a");
    let first = late.put(&a, Put::new(document(1))).unwrap();
    let path = late.path(&a).unwrap();
    // Touched, and set back by years: it is still the same state.
    set_back(&path, Duration::from_secs(100_000_000));
    let over = |n, revision| Put::new(document(n)).with_expect(Expect::Revision(revision));
    let second = early.put(&a, over(2, first.revision.clone())).unwrap();
    // Written at the same instant and with the same size as before: it is a different state.
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    late.put(&a, Put::new(document(3))).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    for stale in [first.revision, second.revision] {
        for store in [&late, &early] {
            let error = store.put(&a, over(9, stale.clone())).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Conflict { .. }),
                "{error}"
            );
        }
    }
}

/// A listing that pauses between two pages blocks no writer, and a slow writer blocks no reader.
#[test]
fn a_paused_listing_blocks_no_writer_and_a_writer_no_reader() {
    let store = Store::new();
    for name in ["a", "b", "c"] {
        store.put(name, 1);
        store.put(name, 2);
    }
    let first = store.files.list(&Query::all().with_limit(1)).unwrap();
    let options = FileOptions::default().with_lock_timeout(Duration::ZERO);
    let impatient = FileStore::with_options(store.folder.path(), options);
    let document = Document::from_text("{\"n\":3}").unwrap();
    for name in ["a", "b", "c"] {
        impatient
            .put(&key(name), Put::new(document.clone()))
            .unwrap();
    }
    store.put("d", 1);
    let rest = Query::all().after(first.next.unwrap());
    assert_eq!(store.files.list(&rest).unwrap().entries.len(), 3);

    let kept = store.files.transact(&key("a"), |_| {
        assert_eq!(impatient.list(&Query::all()).unwrap().entries.len(), 4);
        assert!(impatient.load(&key("a")).unwrap().is_some());
        let past = impatient.states(&key("a")).unwrap();
        impatient.load_revision(&key("a"), &past[1].id).unwrap();
        assert!(impatient.claimed(&key("a")).unwrap().is_none());
        // Another checkpoint has a separate lock.
        impatient.put(&key("b"), Put::new(Document::from_text("{}").unwrap()))?;
        Ok(None)
    });
    kept.unwrap();
}
