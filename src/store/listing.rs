//! Which keys a store has, and what it gives of each in the same request.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::Stored;
use crate::checkpoint::{Claim, Key};

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
    /// Only these keys; any when `None`.
    pub keys: Option<BTreeSet<Key>>,
    /// Whether [`Listed::content`] is wanted.
    pub documents: bool,
    /// Whether [`Listed::ledger`] is wanted.
    pub ledgers: bool,
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

    /// Only these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.keys = Some(keys.into_iter().collect());
        self
    }

    /// Also what is under each key, where the store has it at hand.
    #[must_use]
    pub fn with_documents(mut self) -> Self {
        self.documents = true;
        self
    }

    /// Also whether each key has a ledger, where the store can tell of many with few requests.
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

    /// The page of these keys; for those who write a store.
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
    /// The keys, in order, each with what the store gives of it.
    pub entries: Vec<Listed>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Key>,
    /// Files in the store's folder whose names no key has, so that nothing is passed over silently.
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
    /// A token that differs after each write of the document, its claim, or what lies beside it, but for the ledger; it is
    /// only compared for equality. What is read afterwards is of this version or a later one. `None` where the store would have to read the
    /// document for it.
    pub version: Option<String>,
    /// What is under the key, as one read gives it, if the query asks for it. `None` where the store leaves it out: it
    /// has to read each document by itself, the page would become too large, or this one cannot be read. Then
    /// [`load`](super::CheckpointStore::load) gives it, or the reason.
    pub content: Option<Box<Content>>,
    /// Whether the key has a ledger. A store that knows it anyway says it unasked.
    pub ledger: ListedLedger,
}

/// Whether a listed key has a [ledger](super::Beside::ledger).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListedLedger {
    /// The listing does not say: who wants to know reads it, with a request for each key.
    #[default]
    Unknown,
    /// It has none.
    Empty,
    /// It has one. The token differs after each line that is added; it is only compared for equality.
    Version(String),
}

impl ListedLedger {
    /// That of a ledger with so many lines: they are only ever added.
    #[must_use]
    pub fn of_lines(lines: u64) -> ListedLedger {
        match lines {
            0 => ListedLedger::Empty,
            lines => ListedLedger::Version(lines.to_string()),
        }
    }
}

/// What is under a listed key: what [`load`](super::CheckpointStore::load) and
/// [`claimed`](super::Claims::claimed) would have given.
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

    /// Says whether the key has a ledger.
    #[must_use]
    pub fn with_ledger(mut self, ledger: ListedLedger) -> Self {
        self.ledger = ledger;
        self
    }

    /// Sets what is under the key.
    #[must_use]
    pub fn with_content(mut self, stored: Stored, claim: Option<Claim>) -> Self {
        self.content = Some(Box::new(Content { stored, claim }));
        self
    }
}
