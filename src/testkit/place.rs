//! What the author of a store gives: an empty place, and how to open the store there.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use crate::checkpoint::{Key, Result};
use crate::store::CheckpointStore;

use super::MovableClock;

/// An empty place where a store keeps its documents: a temporary folder, a fresh schema of a test database.
///
/// Each rule gets a place of its own, which is removed when it is dropped. Only [`open`](Place::open) is
/// required. Each other method offers something that not every store has; without it, the rules that need it
/// are [skipped](Skipped).
pub trait Place: Send + Sync {
    /// Opens the store here. Each call is an opening, or a connection, of its own with the same documents.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened; the rule then fails.
    fn open(&self) -> Result<Box<dyn CheckpointStore>>;

    /// How another process finds this place: a path, a URL. A store that promises
    /// [`excludes_processes`](crate::store::Capabilities::excludes_processes) must have one, since nothing else
    /// could prove the promise.
    fn address(&self) -> Option<String> {
        None
    }

    /// Opens the store at the [`address`](Place::address) of another place, in another process. A store that
    /// takes a clock is given a new [`MovableClock`].
    ///
    /// # Errors
    ///
    /// When the store cannot be opened; the rule then fails.
    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let _ = address;
        None
    }

    /// The keys that the store has, where they are fixed. Empty where the store takes any key.
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    /// Replaces the document under `key` by a text that is no document, behind the store's back. `false` where
    /// that cannot be done. A store that can recover must have this, unless its places
    /// [cannot be damaged](Place::can_be_damaged).
    ///
    /// # Errors
    ///
    /// When the damage cannot be done; the rule then fails.
    fn damage(&self, key: &Key) -> Result<bool> {
        let _ = key;
        Ok(false)
    }

    /// Whether anything but a document can be in this place. `false` for a store that keeps parsed documents in
    /// memory.
    fn can_be_damaged(&self) -> bool {
        true
    }

    /// All bytes that are kept in this place, in any order: of a store of files the contents of each, of a database also
    /// those of its log. What was forgotten is searched for in them.
    fn raw(&self) -> Option<Vec<u8>> {
        None
    }

    /// The clock of the stores that are opened here, where they take one.
    fn clock(&self) -> Option<MovableClock> {
        None
    }

    /// How many earlier states the store keeps of each key, where it has such a bound; one or more.
    fn keeps(&self) -> Option<usize> {
        None
    }

    /// How precisely the store records the end of a claim; one second where it keeps whole seconds. Without a
    /// [`clock`](Place::clock), rules wait until a claim has run out.
    fn claim_resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// The size in bytes above which the store refuses a document, where it has such a limit; choose a small one.
    fn max_bytes(&self) -> Option<u64> {
        None
    }

    /// Calls `run` while call number `number`, from 0, that the store makes to the layer below it (a file
    /// system, a database) fails. Returns whether `run` made that call; `None` where calls cannot be made to fail.
    ///
    /// For a store that keeps its documents in a [`FileStore`](crate::store::FileStore), use [`seam::fail_call`](super::seam::fail_call).
    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        let _ = (number, run);
        None
    }
}

/// Why a rule was not tried: the store does not offer what the rule is about, or the place has no means to try it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Skipped(pub(super) &'static str);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What a rule returns: nothing, or why it was skipped.
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

/// The end of a test: what was skipped is always visible, past the capture of passing tests.
#[doc(hidden)]
pub fn __report(outcome: impl MaybeSkipped, test: &str) {
    if let Some(why) = outcome.skipped() {
        let line = format!("SKIPPED {} ({why})\n", __test_name(test));
        let _seen = std::io::stderr().write_all(line.as_bytes());
    }
}

/// The name of a test as the test harness has it: without the crate.
#[doc(hidden)]
#[must_use]
pub fn __test_name(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}
