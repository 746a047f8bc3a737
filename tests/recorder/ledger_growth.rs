//! The cost of an effect does not grow with the ledger, and a cache entry of one ledger is never used for another.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{Effect, EffectDecision, Ledger};
use agent_checkpoint::store::{
    Beside, BuilderStateStore, Capabilities, CheckpointStore, Claims, DeleteOptions, FileOptions,
    FileStore, LedgerLines, LedgerMark, MemoryStore, Page, Put, Query, Saved, Stored,
};
use agent_checkpoint::{CheckpointStoreExt, Dropped, Fence, Key, Result, Revision};

use crate::common::{EXAMPLE, hands_out_no, key, task};

/// Longer than a tick of the clock that stamps files.
const TICK: Duration = Duration::from_millis(30);

/// A store that counts the ledger lines that it returns.
#[derive(Clone, Default)]
struct Counting {
    store: MemoryStore,
    lines: Arc<AtomicUsize>,
    /// It returns all lines each time.
    is_whole: bool,
}

impl CheckpointStore for Counting {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
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
        self.store.list(query)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        self.store.claims()
    }

    hands_out_no!(exclusive: Exclusive, history: History, recovery: Recover, heartbeat: Heartbeat, changes: Changes);

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

impl Beside for Counting {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.store.beside().dropped(key)
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        self.store.beside().newest_dropped(key, most)
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        self.store.beside().dropped_log(key)
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        self.store.beside().fingerprints(key, revision)
    }

    fn document_file(&self, _: &Key) -> Option<PathBuf> {
        None
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        let mark = mark.filter(|_| !self.is_whole);
        let found = self.store.beside().ledger_since(key, mark)?;
        self.lines.fetch_add(found.lines.len(), Ordering::Relaxed);
        Ok(found)
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        self.store.beside().append_to_ledger(key, line, at, fence)
    }
}

fn effect(number: usize) -> Effect {
    Effect::new("send-mail", &number).unwrap()
}

#[track_caller]
fn bring_about(ledger: &Ledger, number: usize) {
    match ledger.begin(&effect(number)).unwrap() {
        EffectDecision::Do(mut guard) => drop(guard.done(&number).unwrap()),
        other => panic!("the effect {number} is not to be brought about: {other:?}"),
    }
}

#[track_caller]
fn receipt(ledger: &Ledger, number: usize) -> usize {
    match ledger.begin(&effect(number)).unwrap() {
        EffectDecision::AlreadyDone(receipt) => receipt.read().unwrap(),
        other => panic!("the effect {number} is not done: {other:?}"),
    }
}

/// How many lines an effect reads after `count` others.
fn lines_behind(store: &Counting, count: usize) -> usize {
    let tasks = store.checkpoints::<TaskCheckpoint>();
    // Like a recorder, take a new ledger each time.
    let ledger = || tasks.ledger(&key("a"), "dev");
    (0..count).for_each(|number| bring_about(&ledger(), number));
    let before = store.lines.load(Ordering::Relaxed);
    bring_about(&ledger(), count);
    let lines = store.lines.load(Ordering::Relaxed) - before;
    // No recorded effect is lost.
    assert!((0..=count).all(|number| receipt(&ledger(), number) == number));
    lines
}

#[test]
fn an_effect_reads_as_many_lines_behind_a_thousand_as_behind_ten() {
    let few = lines_behind(&Counting::default(), 10);
    assert_eq!(few, lines_behind(&Counting::default(), 1_000));
    // A store that omits no lines shows that the count works.
    let whole = Counting {
        is_whole: true,
        ..Counting::default()
    };
    assert!(lines_behind(&whole, 100) >= 2 * 2 * 100);
}

/// Opens a store.
#[cfg(target_os = "linux")]
type Open<'o> = &'o dyn Fn() -> Box<dyn CheckpointStore>;

/// How many bytes this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let all = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    all.unwrap().parse().unwrap()
}

/// How many bytes the next effect reads after these, in a process that has the ledger cached and in a new one.
#[cfg(target_os = "linux")]
fn bytes_behind(store: Open<'_>, key: &Key, effects: std::ops::Range<usize>) -> [u64; 2] {
    let ledger = Ledger::new(store().into(), key, "dev");
    let next = effects.end;
    effects.for_each(|number| bring_about(&ledger, number));
    let measure = |ledger: &Ledger, number| {
        let before = bytes_read();
        bring_about(ledger, number);
        bytes_read() - before
    };
    let goes_on = measure(&ledger, next);
    [
        goes_on,
        measure(&Ledger::new(store().into(), key, "dev"), next + 1),
    ]
}

#[test]
#[cfg(target_os = "linux")]
fn an_effect_reads_as_many_bytes_behind_many_as_behind_ten() {
    let folder = tempfile::tempdir().unwrap();
    let quick =
        || FileOptions::default().with_durability(agent_checkpoint::store::Durability::None);
    let files = || {
        let folder = folder.path().join("files");
        Box::new(FileStore::with_options(folder, quick())) as Box<dyn CheckpointStore>
    };
    let path = folder.path().join("builder-state.json");
    fs::write(&path, EXAMPLE).unwrap();
    let host =
        || Box::new(BuilderStateStore::with_options(&path, quick())) as Box<dyn CheckpointStore>;
    let slot = host().list(&Query::all()).unwrap().entries[0].key.clone();
    let stores: [(Open<'_>, Key); 2] = [(&files, key("a")), (&host, slot)];
    for (store, key) in stores {
        let [few, _] = bytes_behind(store, &key, 0..10);
        let [many, anew] = bytes_behind(store, &key, 20..320);
        assert!(
            many < few + 100,
            "{few} bytes behind 10, and {many} behind 300"
        );
        // Each line has more than 100 bytes, and is read once, however many steps an effect has.
        assert!(
            (60_000..few + 2 * 400 * 320).contains(&anew),
            "{anew} bytes in a new process"
        );
    }
}

fn ledger_file(folder: &Path) -> PathBuf {
    folder.join(".agent-checkpoint/ledger/a.json.jsonl")
}

#[test]
fn what_another_program_does_to_the_file_of_a_ledger_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = ledger_file(folder.path());
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    tasks.create(&key("a"), &task(&["one"])).unwrap();
    let ledger = tasks.ledger(&key("a"), "dev");
    for number in 0..4 {
        bring_about(&ledger, number);
    }
    // A person edits a receipt in place, with the same length.
    sleep(TICK);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(r#""json":"1""#, r#""json":"7""#)).unwrap();
    assert_eq!(
        [0, 1, 2, 3].map(|number| receipt(&ledger, number)),
        [0, 7, 2, 3]
    );
    // Another process adds a line: its effect is not done again.
    let one = fs::read_to_string(&file).unwrap();
    bring_about(&ledger, 4);
    let both = fs::read_to_string(&file).unwrap();
    let theirs = both[one.len()..].replace(effect(4).id(), effect(5).id());
    fs::write(&file, format!("{both}{theirs}")).unwrap();
    assert_eq!(receipt(&ledger, 5), 4);
    bring_about(&ledger, 6);
    // A shorter file, and one with another inode.
    sleep(TICK);
    fs::write(&file, one).unwrap();
    assert!(matches!(
        ledger.begin(&effect(6)).unwrap(),
        EffectDecision::Do(_)
    ));
    sleep(TICK);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        file.with_extension("new"),
        text.replace(r#""json":"7""#, r#""json":"1""#),
    )
    .unwrap();
    fs::rename(file.with_extension("new"), &file).unwrap();
    assert_eq!(receipt(&ledger, 1), 1);
    // Damage is found, even at the beginning.
    sleep(TICK);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen('{', "x", 1)).unwrap();
    assert_eq!(ledger.begin(&effect(1)).unwrap_err().code(), "unreadable");
}

#[test]
fn nothing_of_a_task_that_was_forgotten_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let open = || FileStore::open(folder.path());
    let stores: [(Box<dyn CheckpointStore>, Box<dyn CheckpointStore>); 2] = {
        let memory = MemoryStore::new();
        [
            (Box::new(open()), Box::new(open())),
            (Box::new(memory.clone()), Box::new(memory)),
        ]
    };
    for (store, other) in stores {
        let tasks = Arc::<dyn CheckpointStore>::from(store).checkpoints::<TaskCheckpoint>();
        let others = Arc::<dyn CheckpointStore>::from(other).checkpoints::<TaskCheckpoint>();
        let (ledger, next) = (
            tasks.ledger(&key("a"), "dev"),
            others.ledger(&key("a"), "dev"),
        );
        for number in 0..3 {
            bring_about(&ledger, number);
        }
        tasks.create(&key("a"), &task(&["one"])).unwrap();
        others
            .store()
            .forget(&key("a"), &DeleteOptions::new())
            .unwrap();
        // The same number of lines, with the same lengths.
        for number in [2, 0, 1] {
            bring_about(&next, number);
        }
        others
            .store()
            .forget(&key("a"), &DeleteOptions::new())
            .unwrap();
        for number in 0..3 {
            bring_about(&ledger, number);
        }
    }
}

#[test]
fn what_a_task_before_it_did_is_not_done_by_the_next_one() {
    let store = MemoryStore::new();
    let tasks = store.checkpoints::<TaskCheckpoint>();
    tasks.create(&key("a"), &task(&["one"])).unwrap();
    let ledger = tasks.ledger(&key("a"), "dev");
    bring_about(&ledger, 0);
    bring_about(&ledger, 1);
    // The process that archived the task was killed before it recorded that.
    let revision = tasks.get(&key("a")).unwrap().revision;
    let killed = format!(
        r#"{{"is":"ending","at":"2026-03-02T08:00:00Z","by":"one","document":"{revision}"}}"#
    );
    let at = store.beside().ledger(&key("a")).unwrap().len();
    assert!(
        store
            .beside()
            .append_to_ledger(&key("a"), &killed, at, None)
            .unwrap()
    );
    store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    tasks.create(&key("a"), &task(&["Another"])).unwrap();
    bring_about(&ledger, 0);
    // Even after one more line, and for a reader of all lines.
    bring_about(&ledger, 1);
    let next = store
        .checkpoints::<TaskCheckpoint>()
        .ledger(&key("a"), "next");
    assert_eq!([0, 1].map(|number| receipt(&next, number)), [0, 1]);
    assert_eq!(next.effects().unwrap().len(), 2);
}
