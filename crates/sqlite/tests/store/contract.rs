//! The contract of `CheckpointStore`, checked by the testkit.

use std::path::Path;

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{Error, Key, Result, store_conformance};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::TempDir;

const MAX_BYTES: u64 = 6 << 20;

struct Database {
    folder: TempDir,
    clock: MovableClock,
}

impl Database {
    fn new() -> Self {
        Database {
            folder: tempfile::tempdir().unwrap(),
            clock: MovableClock::default(),
        }
    }

    fn open_at(path: &Path, clock: MovableClock) -> Result<Box<dyn CheckpointStore>> {
        let store = SqliteStore::open(path)?.with_clock(clock);
        Ok(Box::new(store.with_max_bytes(MAX_BYTES)))
    }
}

impl Place for Database {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Database::open_at(&self.folder.path().join("a.db"), self.clock.clone())
    }

    fn address(&self) -> Option<String> {
        Some(self.folder.path().join("a.db").display().to_string())
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        Some(Database::open_at(
            Path::new(address),
            MovableClock::default(),
        ))
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        let damaged = Connection::open(self.folder.path().join("a.db")).and_then(|database| {
            database.execute(
                "UPDATE states SET text = '{\"n\": [1, 2' FROM keys \
                 WHERE keys.name = ?1 AND states.id = keys.present",
                [key.as_str()],
            )
        });
        let damaged = damaged.map_err(|error| Error::refused("no damage").with_source(error))?;
        Ok(damaged == 1)
    }

    fn raw(&self) -> Option<Vec<u8>> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        Some(files.flatten().collect())
    }

    fn clock(&self) -> Option<MovableClock> {
        Some(self.clock.clone())
    }

    fn keeps(&self) -> Option<usize> {
        Some(10)
    }

    fn max_bytes(&self) -> Option<u64> {
        Some(MAX_BYTES)
    }
}

store_conformance!(sqlite, Database::new());
