//! Helpers of the tests.

use std::sync::{Arc, Mutex};

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::store::MemoryStore;
use agent_checkpoint::{Checkpoint, Checkpoints, Clock};
use chrono::{DateTime, TimeDelta, Utc};

use crate::common::{key, time};

/// A clock that moves only on demand; clones are the same clock.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Mutex<DateTime<Utc>>>);

impl Watch {
    pub(crate) fn at(text: &str) -> Watch {
        Watch(Arc::new(Mutex::new(time(text))))
    }

    pub(crate) fn pass(&self, minutes: i64) {
        *self.0.lock().unwrap() += TimeDelta::minutes(minutes);
    }
}

impl Clock for Watch {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

/// A store in memory and the clock of it and its view.
pub(crate) struct Scene {
    pub(crate) watch: Watch,
    pub(crate) store: MemoryStore,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let watch = Watch::at("2026-03-02T08:00:00Z");
        Scene {
            store: MemoryStore::new().with_clock(watch.clone()),
            watch,
        }
    }

    pub(crate) fn view<C: Checkpoint>(&self) -> Checkpoints<C> {
        Checkpoints::new(self.store.clone()).with_clock(self.watch.clone())
    }

    /// A recorder of a task that `dev` begins.
    pub(crate) fn task(&self, plan: &[&str]) -> Recorder<TaskCheckpoint> {
        begun(&self.view(), "US-003", "dev", &self.first(plan))
    }

    /// How often the checkpoint was saved after its task had begun.
    pub(crate) fn saves(&self, name: &str) -> usize {
        CheckpointStoreExt::states(&self.store, &key(name))
            .unwrap()
            .len()
            - 1
    }

    pub(crate) fn first(&self, plan: &[&str]) -> TaskCheckpoint {
        TaskCheckpoint::begin("dev", plan.iter().copied(), self.watch.now())
    }
}

pub(crate) fn begun<C: Checkpoint>(
    view: &Checkpoints<C>,
    name: &str,
    options: impl Into<RecorderOptions>,
    first: &C,
) -> Recorder<C> {
    match Recorder::begin(view, &key(name), options, first).unwrap() {
        Opened::Begun(recorder) => recorder,
        Opened::Found(found) | Opened::Complete(found) => {
            panic!("{name} was there: {}", found.loaded.document.text())
        }
    }
}
