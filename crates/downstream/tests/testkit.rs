//! How a user proves a store and a format of their own: also with processes, from another crate.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::checkpoint::{Claim, ClaimRequest, Dropped, Fence};
use agent_checkpoint::store::{Capabilities, DeleteOptions, Page, PutOptions, Query, Saved};
use agent_checkpoint::testkit::{Harness, Place};
use agent_checkpoint::{
    CheckpointStore, Document, FileStore, Key, Result, Stored, checkpoint_conformance,
    store_conformance,
};
use agent_checkpoint_downstream::Errand;
use tempfile::TempDir;

checkpoint_conformance!(
    errand,
    Errand,
    vec![Errand::new(&["baker", "bank"], chrono::Utc::now())]
);

/// The checkpoints of one team: a store of files under keys that begin with the team's name.
struct Team(FileStore);

impl Team {
    fn open(folder: &Path) -> Team {
        Team(FileStore::open(folder))
    }

    fn inside(key: &Key) -> Result<Key> {
        Key::new(format!("blue/{key}"))
    }
}

impl CheckpointStore for Team {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let found = self.0.load(&Team::inside(key)?);
        found.map_err(|error| error.with_key(key))
    }

    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
        outside(key, self.0.put(&Team::inside(key)?, document, options))
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        outside(key, self.0.delete(&Team::inside(key)?, options))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let all = self.0.list(&Query::all().with_prefix("blue/"))?;
        let names = all.keys.iter().map(|key| &key.as_str()["blue/".len()..]);
        let keys: Result<Vec<Key>> = names.map(Key::new).collect();
        Ok(query.page(keys?))
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.0.overflow(&Team::inside(key)?)
    }

    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        outside(key, self.0.claim(&Team::inside(key)?, request))
    }

    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        outside(key, self.0.renew(&Team::inside(key)?, fence, time_to_live))
    }

    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        outside(key, self.0.release(&Team::inside(key)?, fence))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.0.claimed(&Team::inside(key)?)
    }

    fn capabilities(&self) -> Capabilities {
        let files = self.0.capabilities();
        let mut offered = Capabilities::none();
        offered.claims = files.claims;
        offered.excludes_processes = files.excludes_processes;
        offered.survives_power_loss = files.survives_power_loss;
        offered
    }
}

/// An error names the key that the caller knows.
fn outside<T>(key: &Key, answer: Result<T>) -> Result<T> {
    answer.map_err(|error| agent_checkpoint::Error::new(error.kind().clone()).with_key(key))
}

struct Teams;

struct Office(TempDir);

impl Harness for Teams {
    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(Office(tempfile::tempdir().unwrap())))
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        Some(Ok(Box::new(Team::open(Path::new(address)))))
    }
}

impl Place for Office {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(Team::open(self.0.path())))
    }

    fn address(&self) -> Option<String> {
        Some(self.0.path().display().to_string())
    }
}

store_conformance!(team, Teams);
