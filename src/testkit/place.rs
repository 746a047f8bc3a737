//! The interface that the author of a store implements: an empty place, and how to open the store there.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use crate::checkpoint::{Key, Result};
use crate::store::CheckpointStore;

use super::MovableClock;

/// An empty place where a store keeps its documents, for example a temporary folder or a new schema of a test database.
///
/// Each rule gets its own place, which is removed when it is dropped. Only [`open`](Place::open) is required. Each
/// other method offers something that not every store has; without it, the rules that need it are [skipped](Skipped).
pub trait Place: Send + Sync {
    /// Opens the store here. Each call returns a separate opening, or connection, with the same documents.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened; the rule then fails.
    fn open(&self) -> Result<Box<dyn CheckpointStore>>;

    /// How another process finds this place, for example a path or a URL. A store that promises
    /// [`excludes_processes`](crate::store::Capabilities::excludes_processes) must return an address, since the promise
    /// cannot be tested otherwise.
    fn address(&self) -> Option<String> {
        None
    }

    /// Opens the store at the [`address`](Place::address) of another place, in another process. `None` if the store
    /// cannot be opened by address. A store that takes a clock is given a new [`MovableClock`].
    ///
    /// # Errors
    ///
    /// When the store cannot be opened; the rule then fails.
    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let _ = address;
        None
    }

    /// The keys of a store with fixed keys. Empty for a store that takes any key.
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    /// Replaces the document under `key` by a text that is not a document, without the help of the store. Returns
    /// `false` if that is not possible. A store that can recover must implement this, unless its places [cannot be
    /// damaged](Place::can_be_damaged).
    ///
    /// # Errors
    ///
    /// When the damage cannot be done; the rule then fails.
    fn damage(&self, key: &Key) -> Result<bool> {
        let _ = key;
        Ok(false)
    }

    /// Whether this place can contain anything but a document. `false` for a store that keeps parsed documents in
    /// memory.
    fn can_be_damaged(&self) -> bool {
        true
    }

    /// All bytes that are kept in this place, in any order: the contents of all files of a file store, or a database
    /// with its log. The rules search them for what was forgotten.
    fn raw(&self) -> Option<Vec<u8>> {
        None
    }

    /// The clock of the stores that are opened here, if they take one.
    fn clock(&self) -> Option<MovableClock> {
        None
    }

    /// How many earlier states of each key the store keeps, if it has such a limit; one or more.
    fn keeps(&self) -> Option<usize> {
        None
    }

    /// How precisely the store records the end of a claim, for example one second if it keeps whole seconds. Without a
    /// [`clock`](Place::clock), the rules wait until a claim has expired.
    fn claim_resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// The size in bytes above which the store refuses a document, if it has such a limit; choose a small one.
    fn max_bytes(&self) -> Option<u64> {
        None
    }

    /// Calls `run`, and makes call number `number`, counted from 0, fail among those that the store makes to the layer
    /// below it (a file system, a database). Returns whether `run` made that call, or `None` if calls cannot be made to
    /// fail.
    ///
    /// For a store that keeps its documents in a [`FileStore`](crate::store::FileStore), use
    /// [`seam::fail_call`](super::seam::fail_call).
    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        let _ = (number, run);
        None
    }
}

/// Why a rule was skipped: the store does not offer what the rule is about, or the place has no means to try it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Skipped(pub(super) &'static str);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The result of a rule: nothing, or why the rule was skipped.
pub trait MaybeSkipped {
    /// Why the rule was skipped.
    fn skipped(self) -> Option<Skipped>;
}

impl MaybeSkipped for () {
    fn skipped(self) -> Option<Skipped> {
        None
    }
}

impl MaybeSkipped for std::result::Result<(), Skipped> {
    fn skipped(self) -> Option<Skipped> {
        self.err()
    }
}

/// Ends a test: reports a skipped rule on the standard error, which the test harness does not capture here.
#[doc(hidden)]
pub fn __report(outcome: impl MaybeSkipped, test: &str) {
    if let Some(why) = outcome.skipped() {
        let line = format!("SKIPPED {} ({why})\n", __test_name(test));
        let _seen = std::io::stderr().write_all(line.as_bytes());
    }
}

/// The name of a test in the test harness: the path without the crate.
#[doc(hidden)]
#[must_use]
pub fn __test_name(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}
