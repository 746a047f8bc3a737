//! A store of this orchestrator's own: that of the library, with a place for each team.

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::store::{
    Capabilities, CheckpointStore, DeleteOptions, Exclusive, FileStore, Page, Put, Query, Saved,
    Stored,
};
use agent_checkpoint::{Claim, ClaimRequest, Dropped, Error, Fence, Key, Result};

/// The checkpoints of one team: a store of files under keys that begin with the team's name.
#[derive(Clone, Debug)]
pub struct Team {
    files: FileStore,
    prefix: String,
}

impl Team {
    /// Those of a team in a folder that all teams share.
    #[must_use]
    pub fn open(folder: &Path, name: &str) -> Team {
        Team {
            files: FileStore::open(folder),
            prefix: format!("{name}/"),
        }
    }

    fn inside(&self, key: &Key) -> Result<Key> {
        Key::new(format!("{}{key}", self.prefix))
    }
}

impl CheckpointStore for Team {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        outside(key, self.files.load(&self.inside(key)?))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        outside(key, self.files.put(&self.inside(key)?, put))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        None
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        outside(key, self.files.delete(&self.inside(key)?, options))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let all = self.files.list(&Query::all().with_prefix(&self.prefix))?;
        let names = all
            .keys
            .iter()
            .map(|key| &key.as_str()[self.prefix.len()..]);
        let keys: Result<Vec<Key>> = names.map(Key::new).collect();
        Ok(query.page(keys?))
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        outside(key, self.files.overflow(&self.inside(key)?))
    }

    fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        outside(key, self.files.claim(&self.inside(key)?, request))
    }

    fn renew(&self, key: &Key, fence: Fence, time_to_live: Duration) -> Result<Claim> {
        outside(
            key,
            self.files.renew(&self.inside(key)?, fence, time_to_live),
        )
    }

    fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
        outside(key, self.files.release(&self.inside(key)?, fence))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        outside(key, self.files.claimed(&self.inside(key)?))
    }

    fn capabilities(&self) -> Capabilities {
        let files = self.files.capabilities();
        let mut offered = Capabilities::none();
        offered.claims = files.claims;
        offered.excludes_processes = files.excludes_processes;
        offered.survives_power_loss = files.survives_power_loss;
        offered
    }
}

/// An error names the key that the caller knows, and has the error of the files as its cause.
fn outside<T>(key: &Key, answer: Result<T>) -> Result<T> {
    answer.map_err(|error| {
        let known = Error::new(error.kind().clone()).with_key(key);
        let known = match error.path() {
            Some(path) => known.with_path(path),
            None => known,
        };
        known.with_source(error)
    })
}
