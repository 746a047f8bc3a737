//! A store with only compare-and-swap.

use std::sync::Arc;

use agent_checkpoint::store::{
    Beside, Capabilities, CheckpointStore, DeleteOptions, MemoryStore, Page, Put, Query, Saved,
    Stored,
};
use agent_checkpoint::testkit::Place;
use agent_checkpoint::{Key, Result};

type Look = Arc<dyn Fn(&Put) -> Result<()> + Send + Sync>;

/// A store with only compare-and-swap. It has no claims, so every fence is accepted.
#[derive(Clone, Default)]
pub(crate) struct OnlySwaps {
    pub(crate) store: MemoryStore,
    before_put: Option<Look>,
}

impl OnlySwaps {
    /// A store that refuses each put that `look` refuses.
    pub(crate) fn before_put(look: impl Fn(&Put) -> Result<()> + Send + Sync + 'static) -> Self {
        OnlySwaps {
            store: MemoryStore::new(),
            before_put: Some(Arc::new(look)),
        }
    }
}

impl CheckpointStore for OnlySwaps {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.store.load(key)
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        if let Some(look) = &self.before_put {
            look(&put)?;
        }
        self.store.put(key, put.with_fence(None))
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.store.delete(key, &options.clone().with_fence(None))
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.store.forget(key, &options.clone().with_fence(None))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.store.list(query)
    }

    fn beside(&self) -> &dyn Beside {
        self.store.beside()
    }

    hands_out_no!(exclusive: Exclusive, claims: Claims, history: History, recovery: Recover, heartbeat: Heartbeat, changes: Changes);

    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }
}

impl Place for OnlySwaps {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(self.clone()))
    }
}
