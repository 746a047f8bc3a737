//! Kills and suspends workers at random.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process::{Child, Command};
use std::time::Duration;

use agent_checkpoint::Key;

use super::{Result, Worker};

/// How many workers are killed and suspended: the first ones, each at a random time of its work.
const KILLED: u64 = 6;
const STOPPED: u64 = if cfg!(unix) { 3 } else { 0 };

#[derive(Default)]
pub(super) struct Misfortune {
    pub(super) killed: u64,
    pub(super) stopped: u64,
}

impl Misfortune {
    pub(super) fn strike(&mut self, working: &mut BTreeMap<Key, Worker>) -> Result<()> {
        for (task, worker) in working {
            let left = [KILLED - self.killed, STOPPED - self.stopped];
            let is_spared = worker.is_stopped || worker.began.elapsed() < worker.luck;
            if is_spared || left == [0, 0] {
                continue;
            }
            if random(left[0] + left[1]) < left[0] {
                worker.process.kill()?;
                self.killed += 1;
            } else {
                println!("{task}: {} is stopped", worker.name);
                signal("STOP", &worker.process)?;
                worker.is_stopped = true;
                self.stopped += 1;
            }
            // Not twice, even if it takes a while to die.
            worker.luck = Duration::MAX;
        }
        Ok(())
    }

    pub(super) fn is_over(&self) -> bool {
        (self.killed, self.stopped) == (KILLED, STOPPED)
    }
}

/// How long a worker runs undisturbed.
pub(super) fn luck() -> Duration {
    Duration::from_millis(50 + random(350))
}

/// A random number below `below`.
fn random(below: u64) -> u64 {
    // Each `RandomState` has new random keys.
    RandomState::new().hash_one(()) % below
}

/// Sends a process a signal by its name.
pub(super) fn signal(name: &str, process: &Child) -> Result<()> {
    let id = process.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status()?;
    match sent.success() {
        true => Ok(()),
        false => Err(format!("signal {name} to {id}: {sent}").into()),
    }
}
