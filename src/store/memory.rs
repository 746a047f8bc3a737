//! A store in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{
    Capabilities, CheckpointStore, DeleteOptions, Outcome, Page, PutOptions, Query, Saved, Stored,
    check_expected,
};
use crate::checkpoint::{Dropped, Key, Result};
use crate::json::Document;

/// Keeps documents in memory: for tests, and for work that need not survive.
#[derive(Debug, Default)]
pub struct MemoryStore {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    documents: BTreeMap<Key, Stored>,
    overflow: BTreeMap<Key, Vec<Dropped>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Entries are whole at every point where a panic could come, so a poisoned lock is no harm.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointStore for MemoryStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        Ok(self.entries().documents.get(key).cloned())
    }

    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
        let mut entries = self.entries();
        check_expected(key, &options.expect, entries.documents.get(key))?;
        Ok(entries.put(key, document, &options.overflow))
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let mut entries = self.entries();
        check_expected(key, &options.expect, entries.documents.get(key))?;
        Ok(entries.documents.remove(key).is_some())
    }

    fn list(&self, query: &Query) -> Result<Page> {
        Ok(query.page(self.entries().documents.keys().cloned()))
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        Ok(self
            .entries()
            .overflow
            .get(key)
            .cloned()
            .unwrap_or_default())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

impl Entries {
    fn put(&mut self, key: &Key, document: &Document, overflow: &[Dropped]) -> Saved {
        let mut stored = Stored::new(document.clone());
        stored.modified = Some(SystemTime::now());
        let revision = stored.revision.clone();
        let previous = self
            .documents
            .get(key)
            .map(|present| present.revision.clone());
        let outcome = Outcome::of(previous.as_ref(), &revision);
        let mut saved = Saved::new(outcome, revision, previous);
        let kept = self.overflow.entry(key.clone()).or_default();
        if outcome == Outcome::Created {
            kept.clear();
        }
        if outcome != Outcome::Unchanged {
            for piece in overflow {
                if !kept.contains(piece) {
                    kept.push(piece.clone());
                }
            }
            if !overflow.is_empty() {
                saved.truncation.kept_in = Some("memory".to_owned());
            }
            self.documents.insert(key.clone(), stored);
        }
        saved
    }
}
