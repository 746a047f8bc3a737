//! Lists the keys of a store, with what the same request returns of each.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::Stored;
use crate::checkpoint::{Claim, Key};

/// Which keys are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Only keys with this prefix.
    pub prefix: Option<String>,
    /// Only keys after this one: the [`next`](Page::next) of the page before.
    pub after: Option<Key>,
    /// At most this many keys; all if `None`.
    pub limit: Option<usize>,
    /// Only these keys; any key if `None`.
    pub keys: Option<BTreeSet<Key>>,
    /// Whether to return [`Listed::content`].
    pub documents: bool,
    /// Whether to return [`Listed::ledger`].
    pub ledgers: bool,
}

impl Query {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Query::default()
    }

    /// Only keys with this prefix.
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

    /// At most this many keys.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Only these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.keys = Some(keys.into_iter().collect());
        self
    }

    /// Also the content of each key, if the store has it at hand.
    #[must_use]
    pub fn with_documents(mut self) -> Self {
        self.documents = true;
        self
    }

    /// Also whether each key has a ledger, if the store can tell for many keys with few requests.
    #[must_use]
    pub fn with_ledgers(mut self) -> Self {
        self.ledgers = true;
        self
    }

    /// Whether a key is wanted, on this page or a later one.
    pub(super) fn takes(&self, key: &Key) -> bool {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        key.as_str().starts_with(prefix)
            && self.after.as_ref().is_none_or(|after| key > after)
            && self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }

    /// The page of these keys that the query wants; for authors of stores.
    #[must_use]
    pub fn page<L: Into<Listed>>(&self, listed: impl IntoIterator<Item = L>) -> Page {
        let listed = listed.into_iter().map(Into::into);
        let mut entries: Vec<Listed> = listed.filter(|listed| self.takes(&listed.key)).collect();
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        let mut next = None;
        if let Some(limit) = self.limit.filter(|limit| *limit < entries.len()) {
            entries.truncate(limit);
            let last = entries.last().map(|last| last.key.clone());
            next = last.or_else(|| self.after.clone());
        }
        Page {
            entries,
            next,
            foreign: Vec::new(),
        }
    }
}

/// Some of the keys of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// The keys, in order, each with what the store returns of it.
    pub entries: Vec<Listed>,
    /// Where the next page begins; `None` on the last page.
    pub next: Option<Key>,
    /// Files in the store's folder whose names belong to no key, so that none is skipped silently.
    pub foreign: Vec<OsString>,
}

impl Page {
    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|listed| &listed.key)
    }
}

/// One key of a [`Page`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// The key.
    pub key: Key,
    /// A token that changes with each write of the document, of its claim, or of what lies beside it, except
    /// the ledger. It can only be compared for equality. Content that is read afterwards has this version or a
    /// later one. `None` if the store would have to read the document for it.
    pub version: Option<String>,
    /// The content of the key, from one consistent read, if the query asks for it. `None` if the store does not
    /// provide it: it would have to read each document separately, the page would become too large, or the
    /// content cannot be read. In that case [`load`](super::CheckpointStore::load) returns it or the error.
    pub content: Option<Box<Content>>,
    /// Whether the key has a ledger. A store may state this without being asked.
    pub ledger: ListedLedger,
}

/// Whether a listed key has a [ledger](super::Beside::ledger).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListedLedger {
    /// The listing does not say; reading the ledger tells, with one request for each key.
    #[default]
    Unknown,
    /// It has none.
    Empty,
    /// It has one. The token changes with each added line; it can only be compared for equality.
    Version(String),
}

impl ListedLedger {
    /// The state of a ledger with this many lines. The number suffices as a token because lines are only ever added.
    #[must_use]
    pub fn of_lines(lines: u64) -> ListedLedger {
        match lines {
            0 => ListedLedger::Empty,
            lines => ListedLedger::Version(lines.to_string()),
        }
    }
}

/// The content of a listed key: what [`load`](super::CheckpointStore::load) and
/// [`claimed`](super::Claims::claimed) would have returned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Content {
    /// The document.
    pub stored: Stored,
    /// The last claim.
    pub claim: Option<Claim>,
}

impl From<Key> for Listed {
    fn from(key: Key) -> Self {
        Listed {
            key,
            version: None,
            content: None,
            ledger: ListedLedger::Unknown,
        }
    }
}

impl Listed {
    /// Sets the version.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets whether the key has a ledger.
    #[must_use]
    pub fn with_ledger(mut self, ledger: ListedLedger) -> Self {
        self.ledger = ledger;
        self
    }

    /// Sets the content.
    #[must_use]
    pub fn with_content(mut self, stored: Stored, claim: Option<Claim>) -> Self {
        self.content = Some(Box::new(Content { stored, claim }));
        self
    }
}
