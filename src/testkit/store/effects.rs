//! The rules for effects: an effect of a process that is killed never takes place twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::checkpoint::Key;
use crate::ledger::{Effect, EffectDecision, EffectStatus, Ledger, Settlement};
use crate::store::{CheckpointStore, DeleteOptions};
use crate::testkit::fixture::Fixture;
use crate::testkit::process::Process;
use crate::testkit::{Place, Skipped};

/// How often a process is killed, unless `AGENT_CHECKPOINT_EFFECT_KILLS` is set.
const KILLS: u64 = 20;

/// Among this many kills at least one falls into an effect.
const MANY: u64 = 100;

/// The longest wait before a kill.
const LONGEST: Duration = Duration::from_millis(500);

/// The number of kills after which the ledger is forgotten, so that it stays short.
const TASK: u64 = 20;

/// An effect whose process is killed at any point either took place once or is in doubt. An effect in doubt is settled
/// by the outside file, so that it takes place exactly once. The same holds for two processes at the same time, on
/// systems that show whether a process still runs.
pub fn killed_effects_take_place_once(place: &dyn Place, test: &str) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    fixture.excludes_processes()?;
    let kills = std::env::var("AGENT_CHECKPOINT_EFFECT_KILLS").ok();
    let mut kills = kills.map_or(KILLS, |kills| kills.parse().unwrap());
    if fixture.capabilities().embedded && kills > MANY {
        // The ledger of a slot cannot be removed, and each reading reads all of it.
        kills /= 4;
    }
    let outside = tempfile::NamedTempFile::new().unwrap();
    let command = format!("bring-about {}", outside.path().display());
    let sees_processes = cfg!(target_os = "linux");
    let mut doubts = 0;
    for kill in 0..kills {
        let others = if sees_processes { kill % 2 } else { 0 };
        let mut children: Vec<Process> = (0..=others)
            .map(|_| Process::start(&fixture, test))
            .collect();
        let began = Instant::now();
        for child in &mut children {
            child.send(&command);
        }
        children[0].next_answer();
        // The waits are spread over the time that an effect takes here.
        let part = (kill * 7_919 % 1_000) as f64 / 1_000.0;
        thread::sleep(began.elapsed().mul_f64(1.5 * part).min(LONGEST));
        drop(children);
        let store = place.open().unwrap();
        doubts += count(store.into(), &fixture.key, outside.path());
        if kill % TASK == TASK - 1 && !fixture.capabilities().embedded {
            fixture
                .store
                .forget(&fixture.key, &DeleteOptions::new())
                .unwrap();
            File::create(outside.path()).unwrap();
        }
    }
    assert!(
        kills < MANY || doubts > 0,
        "no process was killed during an effect, so the rule tested nothing"
    );
    Ok(())
}

/// Checks that nothing took place twice, without settling anything. Returns how many effects are in doubt.
#[track_caller]
fn count(store: Arc<dyn CheckpointStore>, key: &Key, outside: &Path) -> u64 {
    let mut times: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(outside).unwrap().lines() {
        *times.entry(line.to_owned()).or_default() += 1;
    }
    assert!(
        times.values().all(|times| *times == 1),
        "these effects took place more than once: {times:?}"
    );
    let mut doubts = 0;
    for effect in Ledger::new(store, key, "counter").effects().unwrap() {
        match effect.status {
            EffectStatus::Done { .. } => {
                assert!(
                    times.contains_key(&effect.id),
                    "{} is recorded as done, but did not take place",
                    effect.id
                );
            }
            EffectStatus::NotDone => {
                assert!(
                    !times.contains_key(&effect.id),
                    "{} took place, but is not recorded as done",
                    effect.id
                );
            }
            EffectStatus::InDoubt => doubts += 1,
            EffectStatus::InProgress => {}
        }
    }
    doubts
}

/// The work of a child until it is killed: one effect after the other, each a line in the outside file.
pub(in crate::testkit) fn bring_about(
    store: Arc<dyn CheckpointStore>,
    key: &Key,
    outside: &Path,
    answer: &dyn Fn(&str),
) {
    let ledger = Ledger::new(store, key, "child");
    let took_place = |id: &str| {
        let lines = fs::read_to_string(outside).unwrap();
        lines.lines().any(|line| line == id)
    };
    let mut outside_now = File::options().append(true).open(outside).unwrap();
    let mut known = ledger.effects().unwrap().len().saturating_sub(2);
    let there = known + 2;
    loop {
        let effect = Effect::with_id(format!("effect-{known}")).unwrap();
        match ledger.begin(&effect).unwrap() {
            EffectDecision::Do(mut guard) => {
                let line = format!("{}\n", effect.id());
                outside_now.write_all(line.as_bytes()).unwrap();
                guard.done(&known).unwrap();
                answer(effect.id());
            }
            EffectDecision::AlreadyDone(_) => {
                known += 1;
                // Another may be faster each time.
                if known > there {
                    answer("another did it");
                }
            }
            EffectDecision::InProgress(_) => thread::sleep(Duration::from_millis(1)),
            EffectDecision::InDoubt(doubt) => {
                let settlement = match took_place(effect.id()) {
                    true => Settlement::done(&known).unwrap(),
                    false => Settlement::NotDone,
                };
                // Another process may have settled it and begun it again.
                let _settled = ledger.settle(&doubt, settlement);
                answer("settled");
            }
        }
    }
}
