//! Many writers of one checkpoint, in separate processes: nothing is lost between them.
//!
//! A test starts this program again for the functions named `child_…`. The full run, in which every save waits for the
//! disk, is `scripts/soak`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::children::{Given, Running, open_gate, say, wait_at_gate, wait_until};
use crate::common::{cases, clock, key, task};
use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, Durability, FileOptions, FileStore, Put,
    RecoverOptions, Recovery,
};
use agent_checkpoint::testkit::seam::{Call, Operation, Verdict, Watch, watched};
use agent_checkpoint::{Checkpoints, ClaimRequest, ErrorKind, Expect, Fence, Fenced, Limits};

const WRITERS: u64 = 8;

/// A day, so that no claim of these tests expires by itself.
const LONG: Duration = Duration::from_secs(86_400);

/// Whether every save waits for the disk, as in `scripts/soak`. Without that the order of writers is the same, and the
/// suite stays fast.
fn durability() -> Durability {
    match std::env::var_os("AGENT_CHECKPOINT_SOAK") {
        Some(_) => Durability::Full,
        None => Durability::None,
    }
}

fn options() -> FileOptions {
    // The machine may be busy.
    FileOptions::default()
        .with_durability(durability())
        .with_lock_timeout(Duration::from_secs(300))
}

fn open(folder: &Path) -> FileStore {
    FileStore::with_options(folder.join("store"), options())
}

fn document(text: &str) -> Document {
    Document::from_text(text).unwrap()
}

/// The count of each writer, from the blockers `{writer}: {count}`.
fn counts(task: &TaskCheckpoint) -> BTreeMap<u64, u64> {
    let read = |line: &String| {
        let (writer, count) = line.split_once(": ").unwrap();
        (writer.parse().unwrap(), count.parse().unwrap())
    };
    task.blockers.iter().map(read).collect()
}

/// Increments the count of a writer.
fn count_up(task: &mut TaskCheckpoint, writer: u64) {
    let mut counts = counts(task);
    *counts.entry(writer).or_default() += 1;
    let lines = counts
        .iter()
        .map(|(writer, count)| format!("{writer}: {count}"));
    task.blockers = lines.collect();
}

/// Arguments: the writer's number, how many updates, its fence.
#[test]
fn child_counts_up() {
    let Some(given) = Given::find() else { return };
    let store = open(&given.folder);
    let fence = given
        .words
        .get(2)
        .map(|fence| fence.parse::<Fence>().unwrap());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone())
        .with_limits(Limits::unlimited())
        .fenced(fence);
    wait_at_gate(&given.folder);
    for _ in 0..given.number(1) {
        let writer = given.number(0);
        tasks
            .update(&key("shared"), |task| count_up(task, writer))
            .unwrap();
    }
}

/// Argument: the writer's number. Saves until it is told to stop. Reports for each save how long it took, in µs, and
/// how many saves were made since its last one.
#[test]
fn child_saves_without_a_pause() {
    let Some(given) = Given::find() else { return };
    // The default timeout.
    let options = FileOptions::default().with_durability(durability());
    let store = FileStore::with_options(given.folder.join("store"), options);
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let writer = given.number(0);
    wait_at_gate(&given.folder);
    let mut waits = Vec::new();
    let mut last = None;
    while !given.folder.join("stop").exists() {
        let began = Instant::now();
        let mut saves = 0;
        let count = |task: &mut TaskCheckpoint| {
            count_up(task, writer);
            saves = counts(task).values().sum();
        };
        tasks.update(&key("shared"), count).unwrap();
        let turns: u64 = last.map_or(1, |last| saves - last);
        last = Some(saves);
        waits.push(format!("{}:{turns}", began.elapsed().as_micros()));
    }
    say(&waits.join(" "));
}

/// How often each of `writers` processes saved one key in this time; how long each save took, in µs; and how many saves
/// were made meanwhile, including itself, in ascending order.
fn saves_in(time: Duration, writers: u64) -> (Vec<usize>, Vec<u64>, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone());
    tasks.create(&key("shared"), &task(&[])).unwrap();
    let children: Vec<_> = (0..writers)
        .map(|writer| {
            let words = writer.to_string();
            Running::start(
                "many_writers::child_saves_without_a_pause",
                folder.path(),
                &words,
            )
        })
        .collect();
    open_gate(folder.path());
    std::thread::sleep(time);
    fs::write(folder.path().join("stop"), "").unwrap();
    let mut saves = Vec::new();
    let (mut all, mut turns) = (Vec::new(), Vec::new());
    for child in children {
        let said = child.finish();
        let before = all.len();
        for wait in said[0].split_whitespace() {
            let (time, saves) = wait.split_once(':').unwrap();
            all.push(time.parse().unwrap());
            turns.push(saves.parse().unwrap());
        }
        saves.push(all.len() - before);
    }
    all.sort_unstable();
    turns.sort_unstable();
    (saves, all, turns)
}

/// The wait that this many of 1,000 saves do not exceed.
fn share(waits: &[u64], of_1000: usize) -> u64 {
    waits[((waits.len() * of_1000) / 1000).min(waits.len() - 1)]
}

/// The broken rule: the process that released the lock took it again at once, and others waited for seconds until they
/// were refused.
#[test]
fn of_eight_writers_of_one_key_each_has_its_turn_and_none_is_refused() {
    // With real syncs, long enough that 1 in 1,000 is a meaningful number.
    let is_long = durability() == Durability::Full;
    let time = Duration::from_secs(if is_long { 60 } else { 2 });
    let (_, alone, _) = saves_in(time / 4, 1);
    let (saves, waits, turns) = saves_in(time, WRITERS);
    let one = u64::try_from(time.as_micros()).unwrap() / waits.len().max(1) as u64;
    let [half, most_of_all, nearly_all] = [500, 990, 999].map(|of| share(&waits, of));
    println!(
        "saves {saves:?}, one in {one} µs; alone one takes {} µs (of 1,000 one over {}); waits: half {half}, of 1,000 \
         ten over {most_of_all}, one over {nearly_all}, the longest {}: {}, {}, {} and {} times one",
        share(&alone, 500),
        share(&alone, 999),
        share(&waits, 1000),
        half / one,
        most_of_all / one,
        nearly_all / one,
        share(&waits, 1000) / one,
    );
    let (least, most) = (saves.iter().min().unwrap(), saves.iter().max().unwrap());
    assert!(
        most / (least + 1) < 4,
        "{saves:?}: one saved far more often than another"
    );
    // Counted in saves of other writers, because the duration of a save depends on the disk.
    let turns = [500, 990, 999, 1000].map(|of| share(&turns, of));
    println!(
        "saves from one of a writer's to its next: half {}, of 1,000 ten over {}, one over {}, the most {}",
        turns[0], turns[1], turns[2], turns[3]
    );
    // Of the few saves of the short form, one in 1,000 is the first one.
    let (waited, most) = if is_long {
        (turns[2], 20)
    } else {
        (turns[1], 40)
    };
    assert!(waited <= most, "{turns:?}");
}

/// Argument: the old fence. Tries every write until it is told to stop.
#[test]
fn child_writes_with_an_old_fence() {
    let Some(given) = Given::find() else { return };
    let store = open(&given.folder);
    let shared = key("shared");
    let fence: Fence = given.words[0].parse().unwrap();
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).fenced(fence);
    wait_at_gate(&given.folder);
    let mut refused = 0_u64;
    while !given.folder.join("stop").exists() {
        let any_delete = DeleteOptions::new().with_fence(Some(fence));
        let tried = match refused % 5 {
            0 => tasks.update(&shared, |task| count_up(task, 99)).map(drop),
            1 => store
                .put(&shared, Put::new(document("{}")).with_fence(Some(fence)))
                .map(drop),
            2 => store.delete(&shared, &any_delete).map(drop),
            3 => store.renew(&shared, fence, LONG).map(drop),
            _ => store.release(&shared, fence).map(drop),
        };
        let error = tried.expect_err("an old owner got in");
        match error.kind() {
            ErrorKind::Fenced {
                why: Fenced::TakenOver { by },
                ..
            } if by == "crew" => assert!(error.to_string().contains("crew"), "{error}"),
            other => panic!("{other:?}"),
        }
        refused += 1;
    }
    say(&refused.to_string());
}

#[test]
fn updates_of_eight_processes_are_all_there_and_no_old_owner_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    let updates = u64::from(cases(500));
    let store = open(folder.path());
    let shared = key("shared");
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    tasks.create(&shared, &task(&[])).unwrap();

    // Three earlier owners: one released its claim, one's claim expired, one was taken for dead.
    let claim = |request: ClaimRequest| store.claim(&shared, &request).unwrap().fence;
    let released = claim(ClaimRequest::new("early", LONG));
    store.release(&shared, released).unwrap();
    let short = Duration::from_millis(1);
    let expired = claim(ClaimRequest::new("slow", short));
    std::thread::sleep(2 * short);
    let taken = claim(ClaimRequest::new("dead", LONG));
    let crew = claim(ClaimRequest::new("crew", LONG).taking_over());
    assert!(released < expired && expired < taken && taken < crew);

    let old: Vec<_> = [released, expired, taken]
        .iter()
        .map(|fence| {
            let words = fence.to_string();
            Running::start(
                "many_writers::child_writes_with_an_old_fence",
                folder.path(),
                &words,
            )
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let words = format!("{writer} {updates} {crew}");
            Running::start("many_writers::child_counts_up", folder.path(), &words)
        })
        .collect();
    open_gate(folder.path());
    for writer in writers {
        writer.finish();
    }
    fs::write(folder.path().join("stop"), "").unwrap();
    for old in old {
        let said = old.finish();
        let refused: u64 = said[0].parse().unwrap();
        assert!(refused > 5, "an old owner tried {refused} times only");
    }

    let counted = counts(&tasks.get(&shared).unwrap().checkpoint);
    assert_eq!(counted.len() as u64, WRITERS, "{counted:?}");
    assert_eq!(
        counted.values().sum::<u64>(),
        WRITERS * updates,
        "{counted:?}"
    );
    assert!(
        counted.values().all(|count| *count == updates),
        "{counted:?}"
    );
    let last = store.claimed(&shared).unwrap().unwrap();
    assert_eq!((last.owner.as_str(), last.fence), ("crew", crew));
}

/// Becomes true when this is dropped.
struct Set<'f>(&'f AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Readers that use the library, and one that just opens the file like any other program.
#[test]
fn who_reads_while_others_write_sees_whole_files_that_never_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let shared = key("shared");
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    tasks.create(&shared, &task(&[])).unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let words = format!("{writer} 150");
            Running::start("many_writers::child_counts_up", folder.path(), &words)
        })
        .collect();
    let done = AtomicBool::new(false);
    let read_on = |read: &dyn Fn() -> BTreeMap<u64, u64>| {
        let (mut reads, mut before) = (0_u64, BTreeMap::new());
        while !done.load(Ordering::Relaxed) {
            let now = read();
            for (writer, count) in &before {
                assert!(now[writer] >= *count, "{before:?}, then {now:?}");
            }
            before = now;
            reads += 1;
        }
        reads
    };
    let path = store.path(&shared).unwrap();
    std::thread::scope(|scope| {
        let loads = scope.spawn(|| {
            read_on(&|| {
                let loaded = tasks.get(&shared).unwrap();
                assert!(!loaded.is_partial);
                counts(&loaded.checkpoint)
            })
        });
        let pasts = scope.spawn(|| {
            read_on(&|| {
                // A listed earlier state can be loaded, or was pruned just now.
                for entry in store.states(&shared).unwrap() {
                    assert!(entry.revision.is_ok(), "{entry:?}");
                    match store.load_revision(&shared, &entry.id) {
                        Ok(_) => {}
                        Err(error) => assert!(
                            matches!(error.kind(), ErrorKind::NoSuchRevision { .. }),
                            "{error}"
                        ),
                    }
                }
                BTreeMap::new()
            })
        });
        let opens = scope.spawn(|| {
            read_on(&|| {
                let text = fs::read_to_string(&path).unwrap();
                let task: TaskCheckpoint = serde_json::from_str(&text).unwrap();
                counts(&task)
            })
        });
        // Also if a writer fails, so that the test does not wait for the readers forever.
        let until_done = Set(&done);
        open_gate(folder.path());
        for writer in writers {
            writer.finish();
        }
        drop(until_done);
        for reads in [loads, pasts, opens].map(|reader| reader.join().unwrap()) {
            assert!(reads > 10, "{reads} reads only");
        }
    });
    let counted = counts(&tasks.get(&shared).unwrap().checkpoint);
    assert_eq!(counted.values().sum::<u64>(), 600, "{counted:?}");
}

/// Arguments: the slot, the writer's number, how many updates.
#[test]
fn child_counts_up_in_a_slot() {
    let Some(given) = Given::find() else { return };
    let store = BuilderStateStore::with_options(given.folder.join("host.json"), options());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let slot = key(&given.words[0]);
    wait_at_gate(&given.folder);
    for _ in 0..given.number(2) {
        tasks
            .update(&slot, |task| count_up(task, given.number(1)))
            .unwrap();
    }
}

#[test]
fn two_slots_of_one_host_file_are_updated_at_once_and_both_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(
        &host,
        "{\"mine\":1.50,\"activePrd\":{\"id\":\"p\"},\"adhocQueue\":[{\"id\":\"x\",\"kept\":[ ]}]}\n",
    )
    .unwrap();
    let store = BuilderStateStore::with_options(&host, options());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).with_limits(Limits::unlimited());
    let slots = ["active", "adhoc:x"];
    for slot in slots {
        tasks.create(&key(slot), &task(&[])).unwrap();
    }
    let writers: Vec<_> = slots
        .iter()
        .enumerate()
        .map(|(writer, slot)| {
            let words = format!("{slot} {writer} 300");
            Running::start(
                "many_writers::child_counts_up_in_a_slot",
                folder.path(),
                &words,
            )
        })
        .collect();
    open_gate(folder.path());
    for writer in writers {
        writer.finish();
    }
    for (writer, slot) in (0_u64..).zip(slots) {
        let loaded = tasks.get(&key(slot)).unwrap();
        assert_eq!(counts(&loaded.checkpoint), BTreeMap::from([(writer, 300)]));
        assert!(loaded.violations.is_empty(), "{:?}", loaded.violations);
    }
    // The builder's own members are unchanged, byte for byte.
    let text = fs::read_to_string(&host).unwrap();
    assert!(
        text.starts_with("{\"mine\":1.50,\"activePrd\":{\"id\":\"p\""),
        "{text}"
    );
    assert!(text.contains("{\"id\":\"x\",\"kept\":[ ]"), "{text}");
}

/// Arguments: the writer's number, the last round.
#[test]
fn child_expects_the_revision_it_read() {
    let Some(given) = Given::find() else { return };
    let store = open(&given.folder);
    let shared = key("shared");
    let (writer, last) = (given.number(0), given.number(1));
    wait_at_gate(&given.folder);
    let (mut won, mut conflicts) = (Vec::new(), 0_u64);
    loop {
        let stored = store.load(&shared).unwrap().unwrap();
        let round = stored.document.get("/round").unwrap().as_u64().unwrap();
        if round >= last {
            break;
        }
        let next = document(&format!("{{\"round\":{},\"by\":{writer}}}", round + 1));
        let expect = Expect::Revision(stored.revision.clone());
        match store.put(&shared, Put::new(next.clone()).with_expect(expect)) {
            Ok(_) => won.push((round + 1).to_string()),
            Err(error) => match error.kind() {
                ErrorKind::Conflict { expected, found } => {
                    assert_eq!(*expected, Expect::Revision(stored.revision));
                    assert!(found.is_some());
                    conflicts += 1;
                }
                other => panic!("{other:?}"),
            },
        }
    }
    say(&format!("{conflicts} {}", won.join(" ")));
}

#[test]
fn of_eight_processes_that_expect_one_revision_exactly_one_wins_each_round() {
    const ROUNDS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store
        .put(&key("shared"), Put::new(document("{\"round\":0}")))
        .unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let words = format!("{writer} {ROUNDS}");
            Running::start(
                "many_writers::child_expects_the_revision_it_read",
                folder.path(),
                &words,
            )
        })
        .collect();
    open_gate(folder.path());
    let (mut rounds, mut conflicts) = (Vec::new(), 0);
    for writer in writers {
        let said = writer.finish();
        let numbers: Vec<u64> = said[0]
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        conflicts += numbers[0];
        rounds.extend_from_slice(&numbers[1..]);
    }
    rounds.sort_unstable();
    assert_eq!(rounds, (1..=ROUNDS).collect::<Vec<_>>());
    assert!(conflicts > 0, "nobody ever lost: this proved nothing");
}

#[test]
fn child_recovers() {
    let Some(given) = Given::find() else { return };
    let store = open(&given.folder);
    wait_at_gate(&given.folder);
    let recovered = store
        .recover(&key("shared"), &RecoverOptions::new(Recovery::Newest))
        .unwrap();
    let revision = store.load(&key("shared")).unwrap().unwrap().revision;
    let aside = recovered.put_aside.unwrap_or_else(|| "nothing".to_owned());
    assert_eq!(recovered.damage.is_some(), aside != "nothing");
    say(&format!("{revision} {aside}"));
}

#[test]
fn recovery_raced_by_many_puts_one_copy_aside() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let shared = key("shared");
    for n in 0..3 {
        let text = format!("{{\"n\":{n}}}");
        store.put(&shared, Put::new(document(&text))).unwrap();
    }
    // The present text is corrupt; the newest state before it is n = 1. The second time the same damage comes again,
    // the third time a different one.
    let whole = agent_checkpoint::Revision::of(b"{\"n\":1}").to_string();
    let mut copies = std::collections::BTreeSet::new();
    for damage in ["{\"n\":2", "{\"n\":2", "\0\0\0\0\0\0\0"] {
        let _ = fs::remove_file(folder.path().join("gate"));
        let children: Vec<_> = (0..WRITERS)
            .map(|_| Running::start("many_writers::child_recovers", folder.path(), ""))
            .collect();
        fs::write(store.path(&shared).unwrap(), damage).unwrap();
        open_gate(folder.path());
        let said: Vec<String> = children.into_iter().flat_map(Running::finish).collect();
        let mut asides = Vec::new();
        for line in &said {
            let (revision, aside) = line.split_once(' ').unwrap();
            assert_eq!(revision, whole, "{said:?}");
            if aside != "nothing" {
                assert_eq!(fs::read_to_string(aside).unwrap(), damage);
                asides.push(PathBuf::from(aside));
            }
        }
        assert_eq!((said.len(), asides.len()), (8, 1), "{said:?}");
        copies.extend(asides);
        let kept = fs::read_dir(copies.first().unwrap().parent().unwrap()).unwrap();
        assert_eq!(kept.count(), copies.len());
    }
    assert_eq!(copies.len(), 2);
}

/// Truncates the file and rewrites it in place, like an editor or a script with `>`, until it is told to stop.
#[test]
fn child_rewrites_in_place() {
    let Some(given) = Given::find() else { return };
    let path = given.folder.join("store/shared.json");
    wait_at_gate(&given.folder);
    let mut edits = 0_u64;
    while !given.folder.join("stop").exists() {
        edits += 1;
        fs::write(&path, format!("{{\"from\":{edits},\"to\":{edits}}}\n")).unwrap();
        std::thread::sleep(Duration::from_micros(500));
    }
    say(&edits.to_string());
}

/// A program without the lock keeps rewriting the file: a reader waits until it is whole, and a writer is refused or
/// builds on the program's text.
#[test]
fn a_file_that_another_program_is_just_rewriting_is_not_taken_for_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let shared = key("shared");
    let first = document("{\"from\":0,\"to\":0}");
    store.put(&shared, Put::new(first.clone())).unwrap();
    let foreign = Running::start("many_writers::child_rewrites_in_place", folder.path(), "");
    open_gate(folder.path());
    let until = Instant::now() + Duration::from_secs(3);
    // "Too busy" is allowed; "corrupt" is not.
    let busy = |kind: &ErrorKind| matches!(kind, ErrorKind::ChangedMeanwhile);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reads = 0;
                while Instant::now() < until {
                    match store.load(&shared) {
                        Ok(stored) => {
                            let document = stored.unwrap().document;
                            let [from, to] = ["/from", "/to"]
                                .map(|member| document.get(member).unwrap().as_u64());
                            assert_eq!(from, to, "half a file: {}", document.text());
                            reads += 1;
                        }
                        Err(error) => assert!(busy(error.kind()), "{error}"),
                    }
                }
                assert!(reads > 10, "{reads} reads only");
            });
        }
        let mut saves = 0_u64;
        while Instant::now() < until {
            let saved = store.transact(&shared, |present| {
                let mut document = present.unwrap().document.clone();
                document.set("/saves", &saves).unwrap();
                Ok(Some(Put::new(document)))
            });
            match saved {
                Ok(_) => saves += 1,
                Err(error) => assert!(busy(error.kind()), "{error}"),
            }
        }
        assert!(saves > 0);
    });
    fs::write(folder.path().join("stop"), "").unwrap();
    let said = foreign.finish();
    assert!(said[0].parse::<u64>().unwrap() > 100, "{said:?}");
    assert!(store.load(&shared).unwrap().is_some());
}

/// Another program, which writes into the file just before one of our file-system calls.
struct Intruder {
    path: PathBuf,
    calls: usize,
    at: usize,
    /// The kind of that call.
    operation: Option<Operation>,
}

const FOREIGN: &str = "{\"n\":1,\"foreign\":\"an edit in place\"}";

impl Watch for Intruder {
    fn before(&mut self, call: &Call<'_>) -> Verdict {
        if self.calls == self.at {
            fs::write(&self.path, FOREIGN).unwrap();
            self.operation = Some(call.operation);
        }
        self.calls += 1;
        Verdict::Go
    }
}

/// The edit comes at every single call of a save. Up to the last check it is seen and kept. In the instant between that
/// check and the rename, it ends up in the history.
#[test]
fn an_edit_by_another_program_at_any_point_of_a_save_is_not_lost() {
    let (mut kept, mut in_history) = (0, Vec::new());
    for at in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let shared = key("shared");
        store.put(&shared, Put::new(document("{\"n\":1}"))).unwrap();
        store
            .put(&shared, Put::new(document("{\"n\": 1}")))
            .unwrap();
        let path = store.path(&shared).unwrap();
        let intruder = Rc::new(RefCell::new(Intruder {
            path: path.clone(),
            calls: 0,
            at,
            operation: None,
        }));
        let watch: Rc<RefCell<dyn Watch>> = Rc::clone(&intruder) as _;
        let saved = watched(watch, || {
            store.transact(&shared, |present| {
                let mut document = present.unwrap().document.clone();
                document.set("/n", &2).unwrap();
                Ok(Some(Put::new(document)))
            })
        });
        let Some(operation) = intruder.borrow().operation else {
            saved.unwrap();
            break;
        };
        let text = fs::read_to_string(&path).unwrap();
        if text.contains("an edit in place") {
            kept += 1;
            continue;
        }
        // Our save replaced it after all, but it can be found.
        saved.unwrap();
        assert_eq!(text, "{\"n\": 2}");
        let found = store.states(&shared).unwrap().iter().any(|entry| {
            let past = store.load_revision(&shared, &entry.id).unwrap();
            past.document.text() == FOREIGN
        });
        assert!(found, "an edit before call {at} ({operation:?}) is nowhere");
        in_history.push(operation);
    }
    assert!(kept > 20, "{kept}");
    // Only in the instant before the rename.
    assert_eq!(in_history, [Operation::Rename]);
}

/// Argument: its name. Takes the lock and keeps it.
#[test]
fn child_holds_the_checkpoint() {
    let Some(given) = Given::find() else { return };
    let options = options().with_holder(&given.words[0]);
    let store = FileStore::with_options(given.folder.join("store"), options);
    let _ = store.transact(&key("shared"), |_| {
        say("held");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    });
}

fn held(folder: &Path) -> Running {
    let store = open(folder);
    let put = store.put(&key("shared"), Put::new(document("{}")));
    put.unwrap();
    let mut holder = Running::start(
        "many_writers::child_holds_the_checkpoint",
        folder,
        "agent-seven",
    );
    assert_eq!(holder.hear().as_deref(), Some("held"));
    holder
}

#[test]
fn a_checkpoint_is_free_at_once_when_the_process_that_holds_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let holder = held(folder.path());
    let store = open(folder.path());
    let quick = FileStore::with_options(
        folder.path().join("store"),
        options().with_lock_timeout(Duration::from_millis(50)),
    );
    let next = document("{\"n\":1}");
    let locked = quick.put(&key("shared"), Put::new(next.clone()));
    assert!(matches!(
        locked.unwrap_err().kind(),
        ErrorKind::Locked { .. }
    ));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let saved = store.put(&key("shared"), Put::new(next.clone()));
            saved.unwrap();
            Instant::now()
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished());
        let killed = Instant::now();
        holder.kill();
        let waited = waiter.join().unwrap() - killed;
        assert!(waited < Duration::from_secs(2), "{waited:?}");
    });
    assert_eq!(
        store.load(&key("shared")).unwrap().unwrap().document.text(),
        "{\"n\":1}"
    );
}

#[test]
fn a_wait_that_ends_names_the_holder_its_process_and_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let holder = held(folder.path());
    std::thread::sleep(Duration::from_millis(150));
    let short = Duration::from_millis(100);
    let store = FileStore::with_options(
        folder.path().join("store"),
        options().with_lock_timeout(short),
    );
    let error = store
        .put(&key("shared"), Put::new(document("{}")))
        .unwrap_err();
    let ErrorKind::Locked {
        waited,
        holder: Some(name),
        pid,
        held_for: Some(held_for),
    } = error.kind()
    else {
        panic!("{error:?}")
    };
    assert!(name.contains("agent-seven"), "{name}");
    assert!(name.contains(&format!("process {}", holder.id())), "{name}");
    assert_eq!(*pid, Some(holder.id()));
    assert!(
        *waited >= short && *held_for > *waited,
        "{waited:?} {held_for:?}"
    );
    let told = error.to_string();
    assert!(
        told.contains("shared.json") && told.contains(name),
        "{told}"
    );
    assert!(
        told.contains(&format!("for {:.1} s", held_for.as_secs_f64())),
        "{told}"
    );
    assert!(!told.contains(".lock"), "{told}");
}

/// A claim is judged at the time of the write, not at the time at which its writer began to wait.
#[test]
fn a_claim_that_runs_out_while_its_owner_waits_for_the_lock_does_not_open_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let shared = key("shared");
    let store = open(folder.path());
    store.put(&shared, Put::new(document("{}"))).unwrap();
    let live = Duration::from_millis(400);
    let claim = store
        .claim(&shared, &ClaimRequest::new("slow", live))
        .unwrap();
    let waits = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut late = None;
        let holder = FileStore::with_options(folder.path().join("store"), options());
        let kept = holder.transact(&shared, |_| {
            late = Some(scope.spawn(|| {
                waits.store(true, Ordering::Relaxed);
                open(folder.path()).put(
                    &shared,
                    Put::new(document("{\"n\":1}")).with_fence(Some(claim.fence)),
                )
            }));
            wait_until("waiting writer", || waits.load(Ordering::Relaxed));
            std::thread::sleep(2 * live);
            Ok(None)
        });
        kept.unwrap();
        let error = late.unwrap().join().unwrap().unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Fenced {
                    why: Fenced::Expired { .. },
                    ..
                }
            ),
            "{error}"
        );
    });
    assert_eq!(store.load(&shared).unwrap().unwrap().document.text(), "{}");
}

/// A dead agent's task goes to the next agent that asks once its claim has expired, with a fence that keeps the dead
/// one out for good.
#[test]
fn an_expired_owner_does_not_write() {
    let folder = tempfile::tempdir().unwrap();
    let shared = key("shared");
    let at = |time: &str| {
        FileStore::with_options(
            folder.path().join("store"),
            options().with_clock(clock(time)),
        )
    };
    let early = at("2026-03-02T08:00:00Z");
    let request = |owner| ClaimRequest::new(owner, Duration::from_secs(900));
    let dead = early.claim(&shared, &request("dead")).unwrap();
    early
        .put(
            &shared,
            Put::new(document("{\"n\":1}")).with_fence(Some(dead.fence)),
        )
        .unwrap();
    assert!(early.claim(&shared, &request("next")).is_err());

    let late = at("2026-03-02T08:15:00Z");
    let error = late
        .put(
            &shared,
            Put::new(document("{\"n\":2}")).with_fence(Some(dead.fence)),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expired at 2026-03-02T08:15:00Z"),
        "{error}"
    );
    let next = late.claim(&shared, &request("next")).unwrap();
    assert!(next.fence > dead.fence);
    // A release does not reset the count, and the old fence is not accepted for a later claim either.
    late.release(&shared, next.fence).unwrap();
    let third = late.claim(&shared, &request("third")).unwrap();
    assert!(third.fence > next.fence);
    for store in [&early, &late] {
        let error = store
            .put(
                &shared,
                Put::new(document("{\"n\":2}")).with_fence(Some(dead.fence)),
            )
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("third has a later claim on the task"),
            "{error}"
        );
    }
    assert_eq!(
        late.load(&shared).unwrap().unwrap().document.text(),
        "{\"n\":1}"
    );
}

/// Arguments: the asking owner, and for how many milliseconds.
#[test]
fn child_claims() {
    let Some(given) = Given::find() else { return };
    let store = open(&given.folder);
    let request = ClaimRequest::new(
        given.words[0].clone(),
        Duration::from_millis(given.number(1)),
    );
    wait_at_gate(&given.folder);
    match store.claim(&key("shared"), &request) {
        Ok(claim) => say(&format!("granted {}", claim.fence)),
        Err(error) => match error.kind() {
            ErrorKind::Claimed { owner, .. } => say(&format!("refused {owner}")),
            other => panic!("{other:?}"),
        },
    }
    if given.words.get(2).is_some() {
        std::thread::sleep(LONG);
    }
}

/// The broken rule: a claim was a file that was written and read back, so both believed that they had it.
#[test]
fn a_task_that_many_ask_for_at_once_is_given_to_one() {
    for round in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let children: Vec<_> = (0..WRITERS)
            .map(|n| {
                Running::start(
                    "many_writers::child_claims",
                    folder.path(),
                    &format!("agent-{n} 600000"),
                )
            })
            .collect();
        open_gate(folder.path());
        let said: Vec<String> = children.into_iter().flat_map(Running::finish).collect();
        let granted = said
            .iter()
            .filter(|line| line.starts_with("granted"))
            .count();
        assert_eq!((granted, said.len()), (1, 8), "round {round}: {said:?}");
        let last = open(folder.path())
            .claimed(&key("shared"))
            .unwrap()
            .unwrap();
        let refused = said.iter().filter(|line| line.starts_with("refused"));
        for line in refused {
            assert_eq!(*line, format!("refused {}", last.owner));
        }
    }
}

/// The broken rule: a killed agent's claim was held forever.
#[test]
fn the_claim_of_a_dead_agent_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut dead = Running::start(
        "many_writers::child_claims",
        folder.path(),
        "dead 1500 stay",
    );
    open_gate(folder.path());
    let said = dead.hear().unwrap();
    let fence: Fence = said.strip_prefix("granted ").unwrap().parse().unwrap();
    dead.kill();
    let store = open(folder.path());
    let ask = || store.claim(&key("shared"), &ClaimRequest::new("next", LONG));
    // No process can know that it is dead, so its time must run out first.
    assert!(
        matches!(ask().unwrap_err().kind(), ErrorKind::Claimed { owner, .. } if owner == "dead")
    );
    let mut next = None;
    wait_until("claim of another", || {
        next = ask().ok();
        next.is_some()
    });
    assert!(next.unwrap().fence > fence);
    let error = store
        .put(
            &key("shared"),
            Put::new(document("{}")).with_fence(Some(fence)),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("next has a later claim on the task"),
        "{error}"
    );
}
