//! The acts of a program on a store.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use agent_checkpoint::Key;
use agent_checkpoint::store::CheckpointStore;

use crate::common::cases;

use super::disk::{Depth, Disk};
use super::explore::{State, explore};
use super::oracle::{Seen, judge, observe, past};
use super::scenarios::text;
use super::scratch;
use super::step::{Recorder, Step};
use super::tree::Tree;

/// One act of a program in a folder.
pub(crate) type Act = fn(&Path) -> agent_checkpoint::Result<()>;

/// The verdict on a state; an error describes the problem.
pub(crate) type Judged = Result<(), String>;

/// A sequence of acts in a folder, each of which is acknowledged to the user.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) open: fn(&Path) -> Box<dyn CheckpointStore>,
    pub(crate) key: Key,
    /// The state on disk before the first act.
    pub(crate) before: fn(&Path),
    pub(crate) acts: Vec<Act>,
    /// Whether acknowledged acts may be lost, each as a whole, because not every save waits for the disk.
    pub(crate) may_be_older: bool,
    /// Whether the first act begins with an unsynced write of another program: until the act is acknowledged, any
    /// content is possible.
    pub(crate) foreign: bool,
    /// Further conditions besides the general rules.
    pub(crate) also: fn(&Look<'_>) -> Judged,
}

/// A state after a crash, before the next save changes it.
pub(crate) struct Look<'l> {
    pub(crate) store: &'l dyn CheckpointStore,
    pub(crate) folder: &'l Path,
    /// How many acts were acknowledged.
    pub(crate) acknowledged: usize,
    pub(crate) found: &'l Seen,
}

/// The calls of a scenario, and the content of its store after each act.
pub(crate) struct Recorded {
    pub(crate) initial: Tree,
    pub(crate) steps: Vec<Step>,
    pub(crate) seen: Vec<Seen>,
    /// The content of the history before the first act.
    pub(crate) past: Vec<Seen>,
}

impl Scenario {
    /// Runs the scenario, starting with `initial`.
    fn record_from(&self, initial: &Tree) -> Recorded {
        let folder = scratch();
        initial.write(folder.path());
        let see = || observe(&*(self.open)(folder.path()), &self.key);
        let mut seen = vec![see()];
        let mut past = past(&*(self.open)(folder.path()), &self.key);
        if self.foreign {
            past.push(Seen::Text(text("foreign")));
        }
        let steps = RefCell::new(Vec::new());
        for act in &self.acts {
            let made = Recorder::record(folder.path(), |acknowledged| {
                act(folder.path()).unwrap();
                acknowledged();
            });
            steps.borrow_mut().extend(made);
            seen.push(see());
        }
        let steps = steps.into_inner();
        // If a call bypassed the seam, the states would lack it, and nothing would be proved.
        let mut disk = Disk::of(initial);
        for step in &steps {
            disk.apply(step);
        }
        let (modelled, real) = (disk.live(), Tree::read(folder.path()));
        assert_eq!(
            modelled.describe(),
            real.describe(),
            "{}: the calls that were seen make another tree than the program did",
            self.name
        );
        Recorded {
            initial: initial.clone(),
            steps,
            seen,
            past,
        }
    }

    pub(crate) fn record(&self) -> Recorded {
        let folder = scratch();
        (self.before)(folder.path());
        self.record_from(&Tree::read(folder.path()))
    }

    /// Judges every state that a power loss may leave.
    pub(crate) fn survives_crashes(&self, depth: Depth) {
        let began = Instant::now();
        let recorded = self.record();
        let all = recorded.states(0, depth);
        let found = all.len();
        let states = sample(all, depth, MOST_STATES);
        let findings = self.judge_all(&recorded, &states);
        report(self.name, &findings);
        println!(
            "EXPLORED {}: {} calls, {} of {found} states, {} ms",
            self.name,
            recorded.steps.len(),
            states.len(),
            began.elapsed().as_millis()
        );
    }

    /// The program is killed after each of its calls, which loses nothing yet. Then it runs again to its end, and only
    /// then the power fails. Everything acknowledged must be there, even if the killed process made a part of it.
    pub(crate) fn survives_a_kill_and_then_a_crash(&self, depth: Depth) {
        let began = Instant::now();
        let first = self.record();
        let mut count = 0;
        for killed_after in 0..first.steps.len() {
            let mut disk = Disk::of(&first.initial);
            for step in &first.steps[..killed_after] {
                disk.apply(step);
            }
            let mut again = self.record_from(&disk.live());
            // What the killed process removed may come back.
            again.past.extend([&first.past[..], &first.seen].concat());
            let states = explore(disk, &again.steps, self.acts.len(), depth);
            let states = sample(states, depth, MOST_STATES_OF_A_KILL);
            count += states.len();
            let findings = self.judge_all(&again, &states);
            report(
                &format!("{}, killed after call {killed_after} before", self.name),
                &findings,
            );
        }
        println!(
            "EXPLORED {} (killed before): {} runs, {count} states, {} ms",
            self.name,
            first.steps.len(),
            began.elapsed().as_millis()
        );
    }

    /// The problem of each bad state, for a person.
    pub(crate) fn judge_all(&self, recorded: &Recorded, states: &[State]) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let findings = Mutex::new(Vec::new());
        let judge = || {
            while let Some(state) = states.get(next.fetch_add(1, Ordering::Relaxed)) {
                let folder = scratch();
                state.tree.write(folder.path());
                if let Err(why) = judge(self, recorded, state.acknowledged, folder.path()) {
                    let finding = recorded.describe(state, &why);
                    findings.lock().unwrap().push((state.calls, finding));
                }
            }
        };
        // A reader of a corrupt file waits briefly and reads again, so judge others meanwhile.
        std::thread::scope(|scope| {
            for _ in 0..JUDGES {
                scope.spawn(judge);
            }
        });
        let mut findings = findings.into_inner().unwrap();
        findings.sort();
        findings.into_iter().map(|(_, finding)| finding).collect()
    }
}

/// How many states of a scenario are judged in continuous integration, unless all are requested (`scripts/crash`).
const MOST_STATES: u32 = 400;

/// The same for each call after which a program is killed.
const MOST_STATES_OF_A_KILL: u32 = 40;

/// This many of the states, evenly spread, and always the last one, after which nothing more happens.
fn sample(states: Vec<State>, depth: Depth, most: u32) -> Vec<State> {
    let most = cases(most) as usize;
    if depth != Depth::Part || states.len() <= most {
        return states;
    }
    let count = states.len();
    let is_taken = |at: usize| at + 1 == count || (at * most) % count < most;
    let numbered = states.into_iter().enumerate();
    numbered
        .filter(|(at, _)| is_taken(*at))
        .map(|(_, state)| state)
        .collect()
}

/// How many states are judged at the same time.
const JUDGES: usize = 8;

impl Recorded {
    /// The states that a power loss may leave once `from` acts are acknowledged, or later.
    pub(crate) fn states(&self, from: usize, depth: Depth) -> Vec<State> {
        explore(Disk::of(&self.initial), &self.steps, from, depth)
    }

    fn describe(&self, state: &State, why: &str) -> String {
        let last = state.calls.checked_sub(1).map(|last| &self.steps[last]);
        let last = format!("{last:?}").chars().take(120).collect::<String>();
        format!(
            "{why}\nafter {} of {} calls ({} acts acknowledged), the last {last}:\n{}",
            state.calls,
            self.steps.len(),
            state.acknowledged,
            state.tree.describe()
        )
    }
}

fn report(name: &str, findings: &[String]) {
    assert!(
        findings.is_empty(),
        "{name}: {} bad states, the first:\n{}",
        findings.len(),
        findings[..findings.len().min(3)].join("\n")
    );
}
