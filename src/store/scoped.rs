//! The part of a store that belongs to one tenant.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};

use super::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, Decide, DeleteOptions,
    EntryId, Exclusive, Heartbeat, History, HistoryEntry, Keep, LedgerLines, LedgerMark, Listener,
    Page, Put, Query, Recover, RecoverOptions, Recovered, RolledBack, Saved, Stored, claims_of,
    history_of, recovery_of,
};
use crate::checkpoint::{Claim, Dropped, Error, ErrorKind, Fence, Key, Result, Revision};

/// A store for one tenant: the keys of another store that begin with a prefix, without that prefix. A tenant
/// cannot see or name the keys of another one.
///
/// A prefix should end with a character that no tenant's name contains, such as `/`: the prefix `a` also
/// matches `ab/1`.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::json::Document;
/// use agent_checkpoint::store::{CheckpointStore, MemoryStore, Put, Query, Scoped};
/// use agent_checkpoint::Key;
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let all = MemoryStore::new();
/// let ours = Scoped::new(all.clone(), "team-a/")?;
/// let document = Document::new(&serde_json::json!({ "status": "in_progress" }))?;
/// ours.put(&Key::new("US-003")?, Put::new(document))?;
/// assert!(all.load(&Key::new("team-a/US-003")?)?.is_some());
/// assert_eq!(Scoped::new(all, "team-b/")?.list(&Query::all())?.keys().count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scoped<S> {
    store: S,
    prefix: String,
}

impl<S: CheckpointStore> Scoped<S> {
    /// The keys of `store` that begin with `prefix`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) for a prefix that no key can have.
    pub fn new(store: S, prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        Key::new(format!("{prefix}-"))?;
        Ok(Scoped { store, prefix })
    }

    fn whole(&self, key: &Key) -> Result<Key> {
        Key::new(format!("{}{key}", self.prefix))
    }

    /// Runs `work` with the key as the inner store names it. An error gets the key as the tenant names it.
    fn at<T>(&self, key: &Key, work: impl FnOnce(&Key) -> Result<T>) -> Result<T> {
        let done = self.whole(key).and_then(|whole| work(&whole));
        done.map_err(|error| error.of_key(key))
    }
}

impl<S: CheckpointStore> CheckpointStore for Scoped<S> {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.at(key, |whole| self.store.load(whole))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.at(key, |whole| self.store.put(whole, put))
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        self.store.exclusive().map(|_| self as &dyn Exclusive)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.at(key, |whole| self.store.delete(whole, options))
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.at(key, |whole| self.store.forget(whole, options))
    }

    /// Foreign files of the inner store belong to no tenant, so they are not listed.
    fn list(&self, query: &Query) -> Result<Page> {
        let mut inside = query.clone();
        let prefix = query.prefix.as_deref().unwrap_or_default();
        inside.prefix = Some(format!("{}{prefix}", self.prefix));
        inside.after = query
            .after
            .as_ref()
            .map(|key| self.whole(key))
            .transpose()?;
        if let Some(keys) = &query.keys {
            // A key that is too long with the prefix cannot exist.
            inside.keys = Some(keys.iter().filter_map(|key| self.whole(key).ok()).collect());
        }
        let found = self.store.list(&inside)?;
        let own = |key: &Key| Key::new(key.as_str().strip_prefix(&*self.prefix)?).ok();
        let mut page = Page {
            next: found.next.as_ref().and_then(own),
            ..Page::default()
        };
        for mut listed in found.entries {
            match own(&listed.key) {
                Some(key) => {
                    listed.key = key;
                    page.entries.push(listed);
                }
                None => page.foreign.push(listed.key.as_str().into()),
            }
        }
        Ok(page)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        self.store.claims().map(|_| self as &dyn Claims)
    }

    fn history(&self) -> Option<&dyn History> {
        self.store.history().map(|_| self as &dyn History)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        self.store.recovery().map(|_| self as &dyn Recover)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        self.store.heartbeat().map(|_| self as &dyn Heartbeat)
    }

    fn changes(&self) -> Option<&dyn Changes> {
        self.store.changes().map(|_| self as &dyn Changes)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

impl<S: CheckpointStore> Exclusive for Scoped<S> {
    fn with_lock(&self, key: &Key, decide: &mut Decide<'_>) -> Result<Saved> {
        let none = || Error::new(ErrorKind::NotOffered { what: "lock" });
        let exclusive = self.store.exclusive().ok_or_else(none)?;
        self.at(key, |whole| exclusive.with_lock(whole, decide))
    }
}

impl<S: CheckpointStore> Beside for Scoped<S> {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.at(key, |whole| self.store.beside().dropped(whole))
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        self.at(key, |whole| self.store.beside().newest_dropped(whole, most))
    }

    fn dropped_log(&self, key: &Key) -> Result<Option<String>> {
        self.at(key, |whole| self.store.beside().dropped_log(whole))
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        self.at(key, |whole| {
            self.store.beside().fingerprints(whole, revision)
        })
    }

    fn document_file(&self, key: &Key) -> Option<PathBuf> {
        self.store.beside().document_file(&self.whole(key).ok()?)
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        self.at(key, |whole| self.store.beside().ledger_since(whole, mark))
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        self.at(key, |whole| {
            let beside = self.store.beside();
            beside.append_to_ledger(whole, line, at, fence)
        })
    }
}

impl<S: CheckpointStore> Claims for Scoped<S> {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.at(key, |whole| {
            claims_of(&self.store)?.change_claim(whole, change)
        })
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.at(key, |whole| claims_of(&self.store)?.claimed(whole))
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let all = claims_of(&self.store)?.claimed_without_document()?;
        let own = |key: &Key| Key::new(key.as_str().strip_prefix(&*self.prefix)?).ok();
        Ok(all.iter().filter_map(own).collect())
    }
}

impl<S: CheckpointStore> History for Scoped<S> {
    fn states(&self, key: &Key) -> Result<Vec<HistoryEntry>> {
        self.at(key, |whole| history_of(&self.store)?.states(whole))
    }

    fn load_revision(&self, key: &Key, entry: &EntryId) -> Result<Stored> {
        self.at(key, |whole| {
            history_of(&self.store)?.load_revision(whole, entry)
        })
    }

    fn pin(&self, key: &Key, entry: &EntryId, pinned: bool) -> Result<EntryId> {
        self.at(key, |whole| {
            history_of(&self.store)?.pin(whole, entry, pinned)
        })
    }

    fn prune(&self, key: &Key, keep: &Keep) -> Result<Vec<EntryId>> {
        self.at(key, |whole| history_of(&self.store)?.prune(whole, keep))
    }

    fn append(&self, key: &Key, state: &Stored, tasks_ended: usize) -> Result<EntryId> {
        self.at(key, |whole| {
            history_of(&self.store)?.append(whole, state, tasks_ended)
        })
    }

    fn changed_without(&self, key: &Key, present: &Revision) -> Result<Option<SystemTime>> {
        self.at(key, |whole| {
            history_of(&self.store)?.changed_without(whole, present)
        })
    }

    fn rolled_back(&self, key: &Key, present: &Revision) -> Result<Option<RolledBack>> {
        self.at(key, |whole| {
            history_of(&self.store)?.rolled_back(whole, present)
        })
    }
}

impl<S: CheckpointStore> Recover for Scoped<S> {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        self.at(key, |whole| {
            recovery_of(&self.store)?.recover(whole, options)
        })
    }
}

impl<S: CheckpointStore> Heartbeat for Scoped<S> {
    fn beat(&self, key: &Key, now: DateTime<Utc>, fence: Option<Fence>) -> Result<Saved> {
        let none = || {
            Error::new(ErrorKind::NotOffered {
                what: "heartbeats of its own",
            })
        };
        let heartbeat = self.store.heartbeat().ok_or_else(none)?;
        self.at(key, |whole| heartbeat.beat(whole, now, fence))
    }
}

impl<S: CheckpointStore> Changes for Scoped<S> {
    fn listen(&self) -> Result<Box<dyn Listener>> {
        let none = || Error::new(ErrorKind::NotOffered { what: "listening" });
        let listener = self.store.changes().ok_or_else(none)?.listen()?;
        let prefix = self.prefix.clone();
        Ok(Box::new(ListenerOfScope { listener, prefix }))
    }
}

/// Forwards the keys that begin with a prefix.
struct ListenerOfScope {
    listener: Box<dyn Listener>,
    prefix: String,
}

impl Listener for ListenerOfScope {
    fn next(&mut self, timeout: Duration) -> Result<Option<Key>> {
        let began = Instant::now();
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            let Some(whole) = self.listener.next(left)? else {
                return Ok(None);
            };
            let own = whole.as_str().strip_prefix(&self.prefix).map(Key::new);
            if let Some(Ok(own)) = own {
                return Ok(Some(own));
            }
            // Others may write without a pause, so the timeout is checked here too.
            if began.elapsed() >= timeout {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
mod tests {
    use super::*;

    /// Others write without a pause.
    struct Busy(usize);

    impl Listener for Busy {
        fn next(&mut self, _timeout: Duration) -> Result<Option<Key>> {
            self.0 += 1;
            assert!(self.0 < 1000, "it goes on when its time is over");
            Key::new("b/1").map(Some)
        }
    }

    #[test]
    fn who_hears_of_one_prefix_waits_no_longer_where_others_write_without_a_pause() {
        let (listener, prefix) = (Box::new(Busy(0)), "a/".to_owned());
        let mut changes = ListenerOfScope { listener, prefix };
        assert_eq!(changes.next(Duration::ZERO).unwrap(), None);
    }
}
