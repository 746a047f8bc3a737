//! What a program does with a store, act by act.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use agent_checkpoint::{CheckpointStore, Key};

use super::disk::{Depth, Disk};
use super::explore::{State, explore};
use super::oracle::{Seen, judge, observe, past};
use super::scratch;
use super::step::{Recorder, Step};
use super::tree::Tree;

/// What a program does in a folder, one act after the other; each is acknowledged to its user.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) open: fn(&Path) -> Box<dyn CheckpointStore>,
    pub(crate) key: Key,
    /// What is there, and on the disk, before.
    pub(crate) before: fn(&Path),
    pub(crate) acts: Vec<fn(&Path)>,
    /// Whether acts that were acknowledged may be lost, each whole: where not every save waits for the disk.
    pub(crate) may_be_older: bool,
    /// What must hold besides the rules for all.
    pub(crate) also: fn(&Look<'_>) -> Result<(), String>,
}

/// A state after a crash, before the next save changes it.
pub(crate) struct Look<'l> {
    pub(crate) store: &'l dyn CheckpointStore,
    pub(crate) folder: &'l Path,
    /// How many acts were acknowledged.
    pub(crate) acknowledged: usize,
    pub(crate) found: &'l Seen,
}

/// The calls of a scenario, and what its store held after each act.
pub(crate) struct Recorded {
    pub(crate) initial: Tree,
    pub(crate) steps: Vec<Step>,
    pub(crate) seen: Vec<Seen>,
    /// What the history held before the first act.
    pub(crate) past: Vec<Seen>,
}

impl Scenario {
    /// Runs the scenario where it begins with `initial`.
    fn record_from(&self, initial: &Tree) -> Recorded {
        let folder = scratch();
        initial.write(folder.path());
        let see = || observe(&*(self.open)(folder.path()), &self.key);
        let mut seen = vec![see()];
        let past = past(&*(self.open)(folder.path()), &self.key);
        let steps = RefCell::new(Vec::new());
        for act in &self.acts {
            let made = Recorder::record(folder.path(), |acknowledged| {
                act(folder.path());
                acknowledged();
            });
            steps.borrow_mut().extend(made);
            seen.push(see());
        }
        let steps = steps.into_inner();
        // A call that went past the seam would be missing in the states: then nothing is proved.
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

    /// Judges every state that a loss of power may leave.
    pub(crate) fn survives_crashes(&self, depth: Depth) {
        let began = Instant::now();
        let recorded = self.record();
        let disk = Disk::of(&recorded.initial);
        let mut findings = Findings::default();
        let states = explore(disk, &recorded.steps, 0, depth, |state| {
            let result = judged(self, &recorded, state);
            findings.add(state, &recorded.steps, result);
        });
        findings.report(self.name);
        println!(
            "EXPLORED {}: {} calls, {states} states, {} ms",
            self.name,
            recorded.steps.len(),
            began.elapsed().as_millis()
        );
    }

    /// The program is killed after each of its calls, which loses nothing yet; then it runs again to its end,
    /// and only then the power goes. What was acknowledged then must be there, although some of it was made by
    /// the one that was killed.
    pub(crate) fn survives_a_kill_and_then_a_crash(&self, depth: Depth) {
        let began = Instant::now();
        let first = self.record();
        let mut findings = Findings::default();
        let mut states = 0;
        for killed_after in 0..first.steps.len() {
            let mut disk = Disk::of(&first.initial);
            for step in &first.steps[..killed_after] {
                disk.apply(step);
            }
            let mut again = self.record_from(&disk.live());
            // What the killed one removed may come back.
            again.past.extend([&first.past[..], &first.seen].concat());
            states += explore(disk, &again.steps, self.acts.len(), depth, |state| {
                let result = judged(self, &again, state)
                    .map_err(|why| format!("killed after call {killed_after} before: {why}"));
                findings.add(state, &again.steps, result);
            });
        }
        findings.report(self.name);
        println!(
            "EXPLORED {} (killed before): {} runs, {states} states, {} ms",
            self.name,
            first.steps.len(),
            began.elapsed().as_millis()
        );
    }
}

/// What the oracle says of a state, tried out in a folder.
pub(crate) fn judged(
    scenario: &Scenario,
    recorded: &Recorded,
    state: &State,
) -> Result<(), String> {
    let folder = scratch();
    state.tree.write(folder.path());
    judge(scenario, recorded, state.acknowledged, folder.path())
}

/// The states that were found bad.
#[derive(Default)]
pub(crate) struct Findings(Vec<String>);

impl Findings {
    pub(crate) fn add(&mut self, state: &State, steps: &[Step], result: Result<(), String>) {
        let Err(why) = result else {
            return;
        };
        let last = state.calls.checked_sub(1).map(|last| &steps[last]);
        let last = format!("{last:?}").chars().take(120).collect::<String>();
        self.0.push(format!(
            "{why}\nafter {} of {} calls ({} acts acknowledged), the last {last}:\n{}",
            state.calls,
            steps.len(),
            state.acknowledged,
            state.tree.describe()
        ));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn report(&self, name: &str) {
        assert!(
            self.0.is_empty(),
            "{name}: {} bad states, the first:\n{}",
            self.0.len(),
            self.0
                .iter()
                .take(3)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n")
        );
    }
}
