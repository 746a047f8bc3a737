//! Every store compared with one model of a store, over random sequences of steps.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::only_swaps::OnlySwaps;
use crate::common::tries;
use crate::model_of_a_store::{Subject, follow, steps};
use agent_checkpoint::Key;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, Durability, FileOptions, FileStore, Keep, MemoryStore,
};
use agent_checkpoint::testkit::MovableClock;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Few, so that the limit is reached.
const KEEP: usize = 3;

fn keys(names: [&str; 2]) -> Vec<Key> {
    names.map(|name| Key::new(name).unwrap()).to_vec()
}

/// Many more in `scripts/soak`.
fn cases(few: u32) -> Config {
    let times = match std::env::var_os("AGENT_CHECKPOINT_SOAK") {
        Some(_) => 20,
        None => 1,
    };
    tries(few * times)
}

struct InMemory {
    store: MemoryStore,
    clock: MovableClock,
}

impl InMemory {
    fn new() -> Self {
        let clock = MovableClock::new();
        let store = MemoryStore::new()
            .with_clock(clock.clone())
            .with_history(Keep::newest(KEEP));
        InMemory { store, clock }
    }
}

impl Subject for InMemory {
    fn store(&self) -> &dyn CheckpointStore {
        &self.store
    }

    fn clock(&self) -> &MovableClock {
        &self.clock
    }

    fn keys(&self) -> Vec<Key> {
        keys(["a", "b/../c"])
    }

    fn keep(&self) -> usize {
        KEEP
    }
}

/// A store with only compare-and-swap, and the clock of the memory store inside it.
struct Plain {
    store: OnlySwaps,
    clock: MovableClock,
}

impl Subject for Plain {
    fn store(&self) -> &dyn CheckpointStore {
        &self.store
    }

    fn clock(&self) -> &MovableClock {
        &self.clock
    }

    fn keys(&self) -> Vec<Key> {
        keys(["a", "b"])
    }

    fn keep(&self) -> usize {
        KEEP
    }
}

/// A file store that is opened anew for every reopening.
struct InFiles<S> {
    store: S,
    open: fn(&Path, FileOptions) -> S,
    file: fn(&S, &Path, &Key) -> PathBuf,
    names: [&'static str; 2],
    folder: tempfile::TempDir,
    clock: MovableClock,
}

impl<S> InFiles<S> {
    fn new(
        open: fn(&Path, FileOptions) -> S,
        file: fn(&S, &Path, &Key) -> PathBuf,
        names: [&'static str; 2],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = MovableClock::new();
        InFiles {
            store: open(folder.path(), options(&clock)),
            open,
            file,
            names,
            folder,
            clock,
        }
    }
}

fn options(clock: &MovableClock) -> FileOptions {
    FileOptions::default()
        .with_durability(Durability::None)
        .with_history(Keep::newest(KEEP))
        .with_clock(clock.clone())
}

impl<S: CheckpointStore> Subject for InFiles<S> {
    fn store(&self) -> &dyn CheckpointStore {
        &self.store
    }

    fn clock(&self) -> &MovableClock {
        &self.clock
    }

    fn keys(&self) -> Vec<Key> {
        keys(self.names)
    }

    fn keep(&self) -> usize {
        KEEP
    }

    fn reopen(&mut self) {
        self.store = (self.open)(self.folder.path(), options(&self.clock));
    }

    fn damage(&mut self, key: &Key, has_good_part: bool) -> bool {
        let path = (self.file)(&self.store, self.folder.path(), key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // By rename, because a write in place would change all hard links of the file, the history's too; and with an
        // old time, so that no reader waits for its writer.
        let torn = self.folder.path().join("torn");
        let is_shared = self.store.capabilities().embedded;
        let text = match (has_good_part, is_shared) {
            (false, _) => "\0\0\0\0\0".to_owned(),
            (true, false) => "{\"n\":4,\"x\":[1".to_owned(),
            (true, true) => format!("{HOST}}}"),
        };
        fs::write(&torn, text).unwrap();
        let file = File::options().write(true).open(&torn).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(10))
            .unwrap();
        fs::rename(&torn, path).unwrap();
        true
    }

    fn remove(&mut self, key: &Key) -> bool {
        // For a host file the builder's own state would be lost.
        let is_shared = self.store.capabilities().embedded;
        let path = (self.file)(&self.store, self.folder.path(), key);
        !is_shared && fs::remove_file(path).is_ok()
    }
}

fn in_a_folder() -> InFiles<FileStore> {
    InFiles::new(
        |folder, options| FileStore::with_options(folder.join("store"), options),
        |store, _, key| store.path(key).unwrap(),
        ["a", "b/../c"],
    )
}

/// A host file with room for two checkpoints.
const HOST: &str =
    "{\n  \"activePrd\": {\n    \"id\": \"p\"\n  },\n  \"adhocQueue\": [{\"id\": \"x\"}]\n}\n";

fn in_a_host_file() -> InFiles<BuilderStateStore> {
    let subject = InFiles::new(
        |folder, options| BuilderStateStore::with_options(folder.join("host.json"), options),
        |_, folder, _| folder.join("host.json"),
        ["active", "adhoc:x"],
    );
    fs::write(subject.folder.path().join("host.json"), HOST).unwrap();
    subject
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_store_in_memory_does_what_the_model_says(steps in steps(60)) {
        follow(&mut InMemory::new(), &steps);
    }

    #[test]
    fn a_store_that_only_compares_and_swaps_does_what_the_model_says(steps in steps(40)) {
        let store = OnlySwaps::default();
        follow(&mut Plain { store, clock: MovableClock::new() }, &steps);
    }
}

proptest! {
    // Each read of a damaged file takes a pause.
    #![proptest_config(cases(10))]

    #[test]
    fn a_folder_of_files_does_what_the_model_says(steps in steps(50)) {
        follow(&mut in_a_folder(), &steps);
    }

    #[test]
    fn a_host_file_does_what_the_model_says(steps in steps(50)) {
        follow(&mut in_a_host_file(), &steps);
    }
}
