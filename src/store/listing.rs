//! Which keys a store has.

use std::ffi::OsString;

use crate::checkpoint::Key;

/// Which keys are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Only keys that begin so.
    pub prefix: Option<String>,
    /// Only keys after this one: the [`next`](Page::next) of the page before.
    pub after: Option<Key>,
    /// At most so many; all when `None`.
    pub limit: Option<usize>,
}

impl Query {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Query::default()
    }

    /// Only keys that begin so.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Only keys after this one.
    #[must_use]
    pub fn after(mut self, key: Key) -> Self {
        self.after = Some(key);
        self
    }

    /// At most so many.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Whether a key is wanted, on this page or a later one.
    pub(super) fn takes(&self, key: &Key) -> bool {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        key.as_str().starts_with(prefix) && self.after.as_ref().is_none_or(|after| key > after)
    }

    /// The page of these keys.
    #[must_use]
    pub fn page(&self, keys: impl IntoIterator<Item = Key>) -> Page {
        let mut keys: Vec<Key> = keys.into_iter().filter(|key| self.takes(key)).collect();
        keys.sort();
        let mut next = None;
        if let Some(limit) = self.limit.filter(|limit| *limit < keys.len()) {
            keys.truncate(limit);
            next = keys.last().cloned().or_else(|| self.after.clone());
        }
        Page {
            keys,
            next,
            foreign: Vec::new(),
        }
    }
}

/// Some of the keys of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The keys, in order.
    pub keys: Vec<Key>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Key>,
    /// Files in the store's folder whose names no key has, so that nothing is passed over silently.
    pub foreign: Vec<OsString>,
}
