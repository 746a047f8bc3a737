//! Proves this crate's own store and format with the testkit, with several processes, too.
#![cfg(feature = "testkit")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::path::Path;

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::testkit::Place;
use agent_checkpoint::{Result, checkpoint_conformance, store_conformance};
use agent_checkpoint_downstream::{Errand, Team};
use tempfile::TempDir;

checkpoint_conformance!(
    errand,
    Errand,
    vec![Errand::new(&["baker", "bank"], chrono::Utc::now())]
);

struct Office(TempDir);

impl Office {
    fn new() -> Self {
        Office(tempfile::tempdir().unwrap())
    }
}

impl Place for Office {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(Team::open(self.0.path(), "blue")))
    }

    fn address(&self) -> Option<String> {
        Some(self.0.path().display().to_string())
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        Some(Ok(Box::new(Team::open(Path::new(address), "blue"))))
    }
}

store_conformance!(team, Office::new());
