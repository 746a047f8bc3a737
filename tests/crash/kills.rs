//! A process that saves is killed at random points, again and again: no acknowledged save is lost.
//!
//! A child does one act after another on the store, and reports through a pipe when it begins one and when it is done.
//! It is killed with SIGKILL. Then every act reported as done must be there, the act in progress may be there or not,
//! and everything there is whole. Then the next child continues.
//!
//! `AGENT_CHECKPOINT_KILLS` is the number of kills (500 in continuous integration, a part of them otherwise;
//! `scripts/soak` has 10,000). `AGENT_CHECKPOINT_SEED` is the seed, which is printed: it determines the acts and the
//! delays, but not the exact instruction of a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::children::{Given, Running, say};
use crate::common::{Reporting, an_hour_passes_since_the_sweep, cases, key, task, time, tree};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::Archive;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, Durability, FileOptions, FileStore, Keep,
    Put, RecoverOptions, Recovery, Stored,
};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, ErrorKind, Fence};

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// How many finished steps a task has before it is archived and begun anew.
const STEPS: u64 = 40;

const SLOTS: [&str; 2] = ["active", "adhoc:x"];

/// Damaged texts have this in them.
const DAMAGE: &str = "{\"n\": 1, \"damaged";

struct Place {
    files: FileStore,
    host: BuilderStateStore,
    folder: PathBuf,
}

impl Place {
    fn open(folder: &Path, durability: Durability) -> Place {
        let options = FileOptions::default()
            .with_durability(durability)
            .with_lock_timeout(Duration::from_secs(60));
        Place {
            files: FileStore::with_options(folder.join("store"), options.clone()),
            host: BuilderStateStore::with_options(folder.join("host.json"), options),
            folder: folder.to_path_buf(),
        }
    }

    fn archives(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.folder.join("store")).unwrap();
        let paths = names.map(|entry| entry.unwrap().path());
        let is_archive = |path: &PathBuf| path.to_string_lossy().contains("task%");
        paths.filter(is_archive).collect()
    }

    /// The number of the document under a key; `None` if there is none.
    fn number(&self, name: &str) -> agent_checkpoint::Result<Option<u64>> {
        let stored = self.files.load(&key(name))?;
        Ok(stored.map(|stored| number_of(&stored)))
    }
}

/// A document of a size that changes from one to the next.
fn numbered(n: u64) -> Document {
    let pad = "x".repeat(usize::try_from(n * 977 % 9001).unwrap());
    Document::from_text(format!("{{\"n\":{n},\"pad\":\"{pad}\",\"end\":{n}}}\n")).unwrap()
}

/// Its number, if it is exactly that document.
fn number_of(stored: &Stored) -> u64 {
    let n = stored.document.get("/n").and_then(|n| n.as_u64()).unwrap();
    assert_eq!(
        stored.document.text(),
        numbered(n).text(),
        "half a document"
    );
    n
}

fn slot_count(host: &BuilderStateStore, slot: &str) -> u64 {
    let tasks = host.checkpoints::<TaskCheckpoint>();
    let loaded = tasks.get(&key(slot)).unwrap();
    assert!(!loaded.is_partial);
    loaded.checkpoint.blockers[0].parse().unwrap()
}

/// How many steps of the task are finished; dropped ones are in the dropped log.
fn steps_done(files: &FileStore) -> Option<u64> {
    let tasks = files.checkpoints::<TaskCheckpoint>();
    let loaded = tasks.load(&key("task")).unwrap()?;
    assert!(!loaded.is_partial);
    let cut = tasks.dropped(&key("task")).unwrap();
    let cut = cut
        .iter()
        .map(|piece| piece.value["step"].as_str().unwrap().to_owned());
    let here = loaded.checkpoint.completed_steps;
    // If a kill came between the dropped log and the checkpoint, a step is in both.
    let all: BTreeSet<String> = cut
        .chain(here.into_iter().map(|step| step.step.unwrap()))
        .collect();
    let done = all.len() as u64;
    for n in 0..done {
        assert!(
            all.contains(&format!("did {n}")),
            "step {n} of {done} is lost: {all:?}"
        );
    }
    Some(done)
}

/// One act: reports its begin, runs it, and reports its end.
fn act(words: &str, run: impl FnOnce() -> String) {
    say(&format!("begin {words}"));
    let more = run();
    say(&format!("done {words} {more}"));
}

/// Arguments: the seed, whether every save waits for the disk, how many acts (0: until it is killed).
#[test]
fn child_saves_until_it_is_killed() {
    let Some(given) = Given::find() else { return };
    let mut random = Random(given.number(0));
    let durability = match given.words[1].as_str() {
        "full" => Durability::Full,
        _ => Durability::None,
    };
    let place = Place::open(&given.folder, durability);
    let mut saver = Saver {
        a: place.number("a").unwrap().unwrap(),
        r: 0,
        fence: None,
        place,
    };
    saver.claim(given.number(0));
    saver.mend();
    say("ready");
    let acts = given.number(2);
    let mut done = 0;
    while acts == 0 || done < acts {
        saver.act(&mut random);
        done += 1;
    }
}

struct Saver {
    place: Place,
    a: u64,
    r: u64,
    fence: Option<Fence>,
}

impl Saver {
    fn files(&self) -> &FileStore {
        &self.place.files
    }

    fn act(&mut self, random: &mut Random) {
        let now = time("2026-03-02T08:00:00Z");
        match random.below(20) {
            0..6 => {
                let n = self.a + 1;
                act(&format!("put {n}"), || {
                    self.files()
                        .put(&key("a"), Put::new(numbered(n)).with_fence(self.fence))
                        .unwrap();
                    String::new()
                });
                self.a = n;
            }
            6..10 => {
                let tasks = self.files().checkpoints::<TaskCheckpoint>();
                match steps_done(self.files()) {
                    None => act("start 0", || {
                        tasks.create(&key("task"), &task(&[])).unwrap();
                        String::new()
                    }),
                    Some(STEPS..) => act("archive", || {
                        let any = DeleteOptions::new();
                        self.files()
                            .archive(&key("task"), Archive::Aborted, now, &any)
                            .unwrap();
                        String::new()
                    }),
                    Some(n) => act(&format!("step {}", n + 1), || {
                        let step = StepDone::new(format!("did {n}"));
                        tasks
                            .try_update(&key("task"), |task| task.report_at(step.clone(), now))
                            .unwrap();
                        String::new()
                    }),
                }
            }
            10 | 11 => {
                let slot = usize::try_from(random.below(2)).unwrap();
                let tasks = self.place.host.checkpoints::<TaskCheckpoint>();
                let n = slot_count(&self.place.host, SLOTS[slot]) + 1;
                act(&format!("slot {slot} {n}"), || {
                    tasks
                        .update(&key(SLOTS[slot]), |task| task.blockers[0] = n.to_string())
                        .unwrap();
                    String::new()
                });
            }
            12 => match self.fence {
                None => self.claim(random.next()),
                Some(fence) if random.below(3) == 0 => {
                    act("release", || {
                        self.files().release(&key("a"), fence).unwrap();
                        fence.to_string()
                    });
                    self.fence = None;
                }
                Some(fence) => act("renew", || {
                    let live = Duration::from_secs(7200 + random.below(60));
                    let renewed = self.files().renew(&key("a"), fence, live).unwrap();
                    renewed.fence.to_string()
                }),
            },
            13 | 14 => {
                let n = self.r + 1;
                act(&format!("r {n}"), || {
                    self.files().put(&key("r"), Put::new(numbered(n))).unwrap();
                    String::new()
                });
                self.r = n;
            }
            15 => self.damage_and_recover(random),
            16 => {
                let most = usize::try_from(random.below(6)).unwrap();
                act("prune", || {
                    self.files().prune(&key("a"), &Keep::newest(most)).unwrap();
                    String::new()
                });
            }
            _ => self.pin_or_unpin(),
        }
    }

    fn claim(&mut self, seed: u64) {
        act("claim", || {
            let owner = format!("child {seed:x}");
            let request = ClaimRequest::new(owner, Duration::from_secs(3600)).taking_over();
            let claim = self.files().claim(&key("a"), &request).unwrap();
            self.fence = Some(claim.fence);
            claim.fence.to_string()
        });
    }

    /// Continues from the state that a kill in the middle of `damage_and_recover` left.
    fn mend(&mut self) {
        match self.place.number("r") {
            Ok(Some(n)) => self.r = n,
            Ok(None) => self.recover(),
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => self.recover(),
            Err(error) => panic!("{error}"),
        }
    }

    fn recover(&mut self) {
        act("recover", || {
            let newest = RecoverOptions::new(Recovery::Newest);
            self.files().recover(&key("r"), &newest).unwrap();
            self.r = self.place.number("r").unwrap().unwrap();
            self.r.to_string()
        });
    }

    /// Another program tears the file or removes it.
    fn damage_and_recover(&mut self, random: &mut Random) {
        let path = self.files().path(&key("r")).unwrap();
        say("begin damage");
        if random.below(2) == 0 {
            fs::remove_file(&path).unwrap();
        } else {
            // By rename, so that the history's link to the file is not torn with it; and with an old time, so that
            // readers do not wait for a running writer.
            let torn = self.place.folder.join("torn");
            fs::write(&torn, format!("{DAMAGE} {}", random.below(12))).unwrap();
            age(&torn, Duration::from_secs(10));
            fs::rename(&torn, &path).unwrap();
        }
        say("done damage");
        self.recover();
    }

    fn pin_or_unpin(&self) {
        let a = key("a");
        let entries = self.files().states(&a).unwrap();
        let pinned: Vec<_> = entries.iter().filter(|entry| entry.pinned).collect();
        if pinned.len() > 2 {
            let oldest = pinned[pinned.len() - 1].id.clone();
            act(&format!("unpin {oldest}"), || {
                self.files().pin(&a, &oldest, false).unwrap();
                String::new()
            });
            return;
        }
        let entry = &entries[entries.len() / 2];
        let n = number_of(&self.files().load_revision(&a, &entry.id).unwrap());
        act("pin", || {
            let id = self.files().pin(&a, &entry.id, true).unwrap();
            format!("{id} {n}")
        });
    }
}

fn age(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

/// What the children reported as done, and the act that the last one was in.
struct Known {
    a: u64,
    task: Option<u64>,
    r: u64,
    /// The newest state that is surely in the history of `r`.
    r_before: u64,
    /// Whether the file of `r` may be torn or gone.
    damaged: bool,
    slots: [u64; 2],
    fences: Vec<Fence>,
    released: bool,
    pins: BTreeMap<String, u64>,
    /// States that were ever pinned stay in the history out of order.
    once_pinned: BTreeSet<u64>,
    at: Option<Vec<String>>,
    acts: u64,
    kills_in: BTreeMap<String, u64>,
}

impl Known {
    fn hear(&mut self, said: &[String]) {
        self.at = None;
        for line in said {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match words[0].as_str() {
                "begin" => self.at = Some(words[1..].to_vec()),
                "done" => {
                    self.done(&words[1..]);
                    self.at = None;
                    self.acts += 1;
                }
                _ => {}
            }
        }
        if let Some(at) = &self.at {
            *self.kills_in.entry(at[0].clone()).or_default() += 1;
            self.damaged |= at[0] == "damage";
        }
    }

    fn done(&mut self, words: &[String]) {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0].as_str() {
            "put" => self.a = number(1),
            "start" | "step" => self.task = Some(number(1)),
            "archive" => self.task = None,
            "slot" => self.slots[usize::try_from(number(1)).unwrap()] = number(2),
            "r" => (self.r_before, self.r) = (self.r, number(1)),
            "damage" => self.damaged = true,
            "recover" => self.recovered(number(1)),
            "claim" => {
                self.fences.push(Fence::new(number(1)));
                self.released = false;
            }
            "release" => self.released = true,
            "pin" => {
                self.pins.insert(words[1].clone(), number(2));
                self.once_pinned.insert(number(2));
            }
            "unpin" => {
                self.pins.remove(&words[1]);
            }
            "renew" | "prune" => {}
            other => panic!("a child said {other}"),
        }
    }

    /// The newest entry is back: the state before the last save, or the last state itself if a kill had already left an
    /// entry of it.
    fn recovered(&mut self, n: u64) {
        assert!([self.r, self.r_before].contains(&n), "{n}, not {}", self.r);
        self.r = n;
        self.damaged = false;
    }

    /// The number that the killed act would have written.
    fn may_be(&self, act: &str) -> Option<u64> {
        let at = self.at.as_ref().filter(|at| at[0] == act)?;
        at.last()?.parse().ok()
    }

    /// Judges the state that the killed child left, and continues from it.
    fn judge(&mut self, place: &Place) {
        self.judge_documents(place);
        self.judge_claim(place);
        self.judge_history(place);
        self.at = None;
    }

    fn judge_documents(&mut self, place: &Place) {
        let a = place.number("a").unwrap();
        assert!(
            a == Some(self.a) || a == self.may_be("put"),
            "{a:?}, not {}: {:?}",
            self.a,
            self.at
        );
        self.a = a.unwrap();

        let task = steps_done(&place.files);
        let was_at = self.at.as_ref().map_or("", |at| at[0].as_str());
        let may_be = self.may_be("step").or(self.may_be("start"));
        assert!(
            task == self.task
                || (task.is_none() && was_at == "archive")
                || (task.is_some() && task == may_be),
            "{task:?}, not {:?}: {:?}",
            self.task,
            self.at
        );
        // Each archived text is there once, and whole.
        for path in place.archives() {
            let text = fs::read_to_string(&path).unwrap();
            let whole: TaskCheckpoint = serde_json::from_str(&text).unwrap();
            assert!(!whole.completed_steps.is_empty());
            assert!(
                task.is_none_or(|task| task < STEPS),
                "put aside and still there"
            );
            fs::remove_file(&path).unwrap();
        }
        self.task = task;

        for (at, slot) in SLOTS.iter().enumerate() {
            let count = slot_count(&place.host, slot);
            let was_here = was_at == "slot" && self.at.as_ref().unwrap()[1] == at.to_string();
            let may_be = self.may_be("slot").filter(|_| was_here);
            assert!(
                count == self.slots[at] || Some(count) == may_be,
                "{slot}: {count}"
            );
            self.slots[at] = count;
        }

        match place.number("r") {
            Ok(Some(n)) if Some(n) == self.may_be("r") => {
                (self.r_before, self.r) = (self.r, n);
            }
            Ok(Some(n)) if self.damaged => self.recovered(n),
            Ok(Some(n)) => assert_eq!(n, self.r, "{:?}", self.at),
            Ok(None) => assert!(self.damaged, "the file of r is gone"),
            Err(error) => match error.kind() {
                ErrorKind::Corrupt(_) if self.damaged => {}
                other => panic!("{other:?}"),
            },
        }
        let aside = place.folder.join("store/.agent-checkpoint/corrupt/r.json");
        if aside.exists() {
            let files = fs::read_dir(aside)
                .unwrap()
                .map(|file| file.unwrap().path());
            let texts: Vec<_> = files.filter(|path| !is_temp(path)).collect();
            assert!(texts.len() <= 9, "{texts:?}");
            for path in texts {
                assert!(fs::read_to_string(path).unwrap().starts_with(DAMAGE));
            }
        }
    }

    fn judge_claim(&mut self, place: &Place) {
        let claim = place.files.claimed(&key("a")).unwrap();
        let Some(last) = self.fences.last() else {
            return;
        };
        let claim = claim.unwrap();
        assert!(
            claim.fence >= *last,
            "the fence went back: {claim:?}, {last}"
        );
        if claim.fence > *last {
            assert_eq!(self.at.as_ref().unwrap()[0], "claim");
            self.fences.push(claim.fence);
        } else {
            let may_be = self.at.as_ref().is_some_and(|at| at[0] == "release");
            assert!(claim.released == self.released || may_be, "{claim:?}");
        }
        self.released = claim.released;
        // The earlier owner is kept out.
        if let [.., old, _] = self.fences.as_slice() {
            let error = place
                .files
                .put(&key("a"), Put::new(numbered(0)).with_fence(Some(*old)))
                .unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Fenced { .. }), "{error}");
        }
    }

    fn judge_history(&mut self, place: &Place) {
        let a = key("a");
        for name in ["task", "r"] {
            for entry in place.files.states(&key(name)).unwrap() {
                let is_whole = entry.revision.is_ok() || (entry.is_current() && self.damaged);
                assert!(is_whole, "{name}: {entry:?}");
            }
        }
        for slot in SLOTS {
            for entry in place.host.states(&key(slot)).unwrap() {
                assert!(entry.revision.is_ok(), "{slot}: {entry:?}");
            }
        }
        let entries = place.files.states(&a).unwrap();
        let mut pins = BTreeMap::new();
        let mut below = self.a;
        for entry in &entries {
            let n = number_of(&place.files.load_revision(&a, &entry.id).unwrap());
            if entry.pinned {
                pins.insert(entry.id.to_string(), n);
                self.once_pinned.insert(n);
            }
            // Every save raised the number by one, so nothing is missing in between.
            if n + 1 == below {
                below = n;
            } else {
                assert!(
                    n == below || self.once_pinned.contains(&n),
                    "{n} after {below}: {entries:?}"
                );
            }
        }
        assert!(
            entries.iter().any(|entry| !entry.is_current()),
            "the newest entry is gone"
        );
        for (id, n) in &self.pins {
            let is_being_unpinned = self.at.as_ref().is_some_and(|at| at[0] == "unpin");
            assert!(
                pins.get(id) == Some(n) || is_being_unpinned,
                "pin {id} of {n}: {pins:?}"
            );
        }
        self.pins = pins;
    }
}

fn is_temp(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with(".agent-checkpoint-") && name.ends_with(".tmp")
}

fn temps(folder: &Path) -> Vec<PathBuf> {
    let names = tree(folder).into_iter().map(|name| folder.join(name));
    names.filter(|path| is_temp(path)).collect()
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
    )
}

#[test]
fn a_writer_killed_at_any_point_loses_no_save_that_it_was_told_of() {
    let kills = number_from("AGENT_CHECKPOINT_KILLS").unwrap_or_else(|| cases(500).into());
    let seed = number_from("AGENT_CHECKPOINT_SEED").unwrap_or_else(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        now.as_secs() % 1_000_000
    });
    // Written directly, past the harness: a run that fails later can be repeated.
    let _ = writeln!(
        std::io::stderr(),
        "{kills} kills, AGENT_CHECKPOINT_SEED={seed}"
    );
    let mut random = Random(seed);

    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("host.json"),
        "{\"activePrd\":{\"id\":\"p\"},\"adhocQueue\":[{\"id\":\"x\"}]}\n",
    )
    .unwrap();
    let place = Place::open(folder.path(), Durability::None);
    for n in 1..=3 {
        for name in ["a", "r"] {
            place.files.put(&key(name), Put::new(numbered(n))).unwrap();
        }
    }
    let mut begun = task(&[]);
    begun.blockers = vec!["0".to_owned()];
    for slot in SLOTS {
        let tasks = place.host.checkpoints::<TaskCheckpoint>();
        tasks.create(&key(slot), &begun).unwrap();
    }
    let mut known = Known {
        a: 3,
        task: None,
        r: 3,
        r_before: 2,
        damaged: false,
        slots: [0, 0],
        fences: Vec::new(),
        released: false,
        pins: BTreeMap::new(),
        once_pinned: BTreeSet::new(),
        at: None,
        acts: 0,
        kills_in: BTreeMap::new(),
    };

    let mut left_temps = 0;
    for kill in 0..kills {
        let durability = if random.below(2) == 0 { "full" } else { "none" };
        let words = format!("{} {durability} 0", random.next());
        let mut child = Running::start(
            "kills::child_saves_until_it_is_killed",
            folder.path(),
            &words,
        );
        let mut said = Vec::new();
        // Sometimes before it is ready, too.
        if random.below(10) > 0 {
            while said.last().is_none_or(|line| line != "ready") {
                let line = child.hear();
                said.push(
                    line.unwrap_or_else(|| panic!("kill {kill}: the child gave up: {said:?}")),
                );
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(40_000)));
        said.extend(child.kill());
        known.hear(&said);
        known.judge(&place);
        // Leftovers of a killed writer are removed once they are old; those of a very recent one stay.
        let temps = temps(folder.path());
        left_temps += temps.len();
        for temp in temps {
            age(&temp, Duration::from_secs(7200));
        }
        an_hour_passes_since_the_sweep(folder.path());
    }

    // The last child ends by itself.
    let words = format!("{} none 100", random.next());
    let said = Running::start(
        "kills::child_saves_until_it_is_killed",
        folder.path(),
        &words,
    )
    .finish();
    known.hear(&said);
    known.judge(&place);
    for temp in temps(folder.path()) {
        age(&temp, Duration::from_secs(7200));
    }
    an_hour_passes_since_the_sweep(folder.path());
    for round in 0..2 {
        let mut last = Saver {
            place: Place::open(folder.path(), Durability::None),
            a: known.a + round,
            r: known.r,
            fence: None,
        };
        last.claim(round);
        last.mend();
        last.damage_and_recover(&mut random);
        last.pin_or_unpin();
        let next = numbered(last.a + 1);
        last.files()
            .put(&key("a"), Put::new(next.clone()).with_fence(last.fence))
            .unwrap();
        let tasks = last.place.host.checkpoints::<TaskCheckpoint>();
        let save = |task: &mut TaskCheckpoint| task.blockers[0] = format!("{}", 1_000_000 + round);
        tasks.update(&key(SLOTS[0]), save).unwrap();
    }
    assert_eq!(
        temps(folder.path()),
        [] as [PathBuf; 0],
        "not swept after {}",
        left_temps
    );

    let in_acts: u64 = known.kills_in.values().sum();
    let _ = writeln!(
        std::io::stderr(),
        "{} acts done; {in_acts} kills within one: {:?}; {left_temps} temporary files left and swept",
        known.acts,
        known.kills_in
    );
    assert!(
        known.acts * 2 > kills,
        "the children hardly came to anything"
    );
    assert!(
        in_acts * 4 > kills,
        "hardly a kill fell into an act: this proved little"
    );
}

/// A killed writer leaves its temporary file in the folder in which it was writing: that of the checkpoints, the
/// claims, the fingerprints, the history, or the archived and quarantined texts.
#[test]
fn what_killed_writers_left_is_swept_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path(), Durability::None);
    let own = folder.path().join("store/.agent-checkpoint");
    let mut left = Vec::new();
    for inside in [
        "..",
        ".",
        "claims",
        "files",
        "history/a.json",
        "pinned/a.json",
        "corrupt/a.json",
    ] {
        fs::create_dir_all(own.join(inside)).unwrap();
        for (name, hours) in [("oldOLDold123", 2), ("newNEWnew123", 0)] {
            let temp = own
                .join(inside)
                .join(format!(".agent-checkpoint-{name}.tmp"));
            fs::write(&temp, "{\"n\"").unwrap();
            age(&temp, Duration::from_secs(3600 * hours));
            left.push(temp);
        }
    }
    place.files.put(&key("a"), Put::new(numbered(1))).unwrap();
    for temp in left {
        // The writer of the young ones may be alive.
        let is_young = temp.to_string_lossy().contains("newNEWnew123");
        assert_eq!(temp.exists(), is_young, "{}", temp.display());
    }
}
