//! A store that only this orchestrator has: the library's file store, with a place for each team.

use std::path::{Path, PathBuf};

use agent_checkpoint::store::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, DeleteOptions, Exclusive,
    FileStore, Heartbeat, History, LedgerLines, LedgerMark, Page, Put, Query, Recover, Saved,
    Stored,
};
use agent_checkpoint::{Claim, Dropped, Error, Fence, Key, Result, Revision};

/// The checkpoints of one team: a store of files under keys that begin with the team's name.
#[derive(Clone, Debug)]
pub struct Team {
    files: FileStore,
    prefix: String,
}

impl Team {
    /// Opens the store of a team in a folder that all teams share.
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

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        outside(key, self.files.forget(&self.inside(key)?, options))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let all = self.files.list(&Query::all().with_prefix(&self.prefix))?;
        let names = all.keys().map(|key| &key.as_str()[self.prefix.len()..]);
        let keys: Result<Vec<Key>> = names.map(Key::new).collect();
        Ok(query.page(keys?))
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        None
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        None
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        let files = self.files.capabilities();
        let mut offered = Capabilities::none();
        offered.excludes_processes = files.excludes_processes;
        offered.survives_power_loss = files.survives_power_loss;
        offered
    }
}

impl Beside for Team {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        outside(key, self.files.dropped(&self.inside(key)?))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        outside(key, self.files.newest_dropped(&self.inside(key)?, most))
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        outside(key, self.files.dropped_log(&self.inside(key)?))
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        outside(key, self.files.fingerprints(&self.inside(key)?, revision))
    }

    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        self.files.document_file(&self.inside(key).ok()?)
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        outside(key, self.files.ledger_since(&self.inside(key)?, mark))
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        let inside = self.inside(key)?;
        let appended = self.files.append_to_ledger(&inside, line, at, fence);
        outside(key, appended)
    }
}

impl Claims for Team {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        outside(key, self.files.change_claim(&self.inside(key)?, change))
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        outside(key, Claims::claimed(&self.files, &self.inside(key)?))
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let all = self.files.claimed_without_document()?;
        let own = |key: &Key| Key::new(key.as_str().strip_prefix(&self.prefix)?).ok();
        Ok(all.iter().filter_map(own).collect())
    }
}

/// Replaces the key in an error by the one that the caller knows, and keeps the original error as the cause.
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
