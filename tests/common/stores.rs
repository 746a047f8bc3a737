//! The stores of the library as places for the testkit.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use agent_checkpoint::formats::Layout;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, Keep, MemoryStore,
};
use agent_checkpoint::testkit::seam::fail_call;
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{Key, Result};
use tempfile::TempDir;

/// The largest document of the file stores here, in bytes.
const MAX_BYTES: u64 = 2_000_000;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A text that is no document but has a readable part.
const DAMAGE: &str = "{\"n\": 7, \"x\": [1, 2";

pub(crate) struct InMemory {
    pub(crate) store: MemoryStore,
    pub(crate) clock: MovableClock,
}

pub(crate) fn in_memory() -> InMemory {
    let clock = MovableClock::new();
    let store = MemoryStore::new().with_clock(clock.clone());
    InMemory { store, clock }
}

impl Place for InMemory {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(self.store.clone()))
    }

    fn clock(&self) -> Option<MovableClock> {
        Some(self.clock.clone())
    }

    fn keeps(&self) -> Option<usize> {
        Some(Keep::COUNT)
    }

    fn can_be_damaged(&self) -> bool {
        false
    }
}

/// Stores of files, in a folder or of one file.
#[derive(Clone)]
pub(crate) struct Files {
    single: bool,
    history: bool,
    layout: Layout,
    keys: Vec<Key>,
}

impl Files {
    pub(crate) fn in_a_folder() -> Files {
        Files {
            single: false,
            history: true,
            layout: Layout::default(),
            keys: Vec::new(),
        }
    }

    pub(crate) fn of_one_file() -> Files {
        Files {
            single: true,
            ..Files::in_a_folder()
        }
    }

    /// Uses the file names of a protocol, and keys that it does not change.
    pub(crate) fn named(mut self, layout: Layout, keys: [&str; 2]) -> Files {
        self.layout = layout;
        self.keys = keys.map(key).to_vec();
        self
    }

    pub(crate) fn without_history(mut self) -> Files {
        self.history = false;
        self
    }

    pub(crate) fn place(self) -> FilesPlace {
        FilesPlace {
            files: self,
            folder: tempfile::tempdir().unwrap(),
            clock: MovableClock::new(),
        }
    }

    pub(crate) fn open(&self, folder: &Path, clock: Option<MovableClock>) -> FileStore {
        let mut options = FileOptions::default().with_max_bytes(MAX_BYTES);
        if let Some(clock) = clock {
            options = options.with_clock(clock);
        }
        if !self.history {
            options = options.without_history();
        }
        let store = match self.single {
            true => FileStore::single(folder.join("work/checkpoint.json"), options).unwrap(),
            false => FileStore::with_options(folder.join("new/store"), options),
        };
        store.with_layout(self.layout)
    }
}

/// The contents of all files below a folder.
pub(crate) fn raw(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        bytes.extend(match path.is_dir() {
            true => raw(&path),
            false => fs::read(path).unwrap(),
        });
    }
    bytes
}

pub(crate) struct FilesPlace {
    files: Files,
    pub(crate) folder: TempDir,
    clock: MovableClock,
}

impl FilesPlace {
    pub(crate) fn store(&self) -> FileStore {
        self.files
            .open(self.folder.path(), Some(self.clock.clone()))
    }
}

impl Place for FilesPlace {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(self.store()))
    }

    fn address(&self) -> Option<String> {
        Some(self.folder.path().display().to_string())
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        // Its clock starts at the same time as that of the other place.
        let clock = Some(MovableClock::new());
        let store = self.files.open(Path::new(address), clock);
        Some(Ok(Box::new(store)))
    }

    fn keys(&self) -> Vec<Key> {
        let only = self.store().key().cloned();
        only.into_iter().chain(self.files.keys.clone()).collect()
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        fs::write(self.store().path(key)?, DAMAGE).unwrap();
        Ok(true)
    }

    fn raw(&self) -> Option<Vec<u8>> {
        Some(raw(self.folder.path()))
    }

    fn clock(&self) -> Option<MovableClock> {
        Some(self.clock.clone())
    }

    fn keeps(&self) -> Option<usize> {
        self.files.history.then_some(Keep::COUNT)
    }

    fn max_bytes(&self) -> Option<u64> {
        Some(MAX_BYTES)
    }

    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        Some(fail_call(number, run))
    }
}

/// Two checkpoints inside a larger file.
const HOST: &str =
    "{\n  \"activePrd\": {\n    \"id\": \"p\"\n  },\n  \"adhocQueue\": [{\"id\": \"x\"}]\n}\n";

pub(crate) struct HostFile {
    folder: TempDir,
    clock: MovableClock,
}

pub(crate) fn host_file() -> HostFile {
    let place = HostFile {
        folder: tempfile::tempdir().unwrap(),
        clock: MovableClock::new(),
    };
    fs::write(place.path(), HOST).unwrap();
    place
}

impl HostFile {
    fn path(&self) -> PathBuf {
        self.folder.path().join("builder-state.json")
    }
}

fn open_host(path: &Path, clock: MovableClock) -> BuilderStateStore {
    let options = FileOptions::default()
        .with_max_bytes(MAX_BYTES)
        .with_clock(clock);
    BuilderStateStore::with_options(path, options)
}

impl Place for HostFile {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(open_host(&self.path(), self.clock.clone())))
    }

    fn address(&self) -> Option<String> {
        Some(self.path().display().to_string())
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let store = open_host(Path::new(address), MovableClock::new());
        Some(Ok(Box::new(store)))
    }

    fn keys(&self) -> Vec<Key> {
        vec![key("active"), key("adhoc:x")]
    }

    fn damage(&self, _: &Key) -> Result<bool> {
        let mut text = fs::read_to_string(self.path()).unwrap();
        text.push('}');
        fs::write(self.path(), text).unwrap();
        Ok(true)
    }

    fn clock(&self) -> Option<MovableClock> {
        Some(self.clock.clone())
    }

    fn keeps(&self) -> Option<usize> {
        Some(Keep::COUNT)
    }

    fn max_bytes(&self) -> Option<u64> {
        Some(MAX_BYTES)
    }

    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        Some(fail_call(number, run))
    }
}
