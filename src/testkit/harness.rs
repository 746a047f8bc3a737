//! What the author of a store tells of it.

use std::time::Duration;

use crate::checkpoint::{Key, Result};
use crate::store::CheckpointStore;

use super::MovableClock;

/// A kind of store that is to be proved: where its tests get empty places from.
///
/// Only [`place`](Harness::place) must be there. Each other method tells of something that not every store
/// has; the rules that need it are skipped, and say so, where it is not offered.
pub trait Harness: Sync {
    /// A new place with nothing in it: a temporary folder, a schema of a test database. It is removed when
    /// it is dropped.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being made; every rule then fails.
    fn place(&self) -> Result<Box<dyn Place>>;

    /// Opens a place of another process by its [`address`](Place::address). A store that takes a clock is given
    /// one that was not moved.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being opened; `None` where a place cannot be opened by an address.
    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let _ = address;
        None
    }
}

/// One place where a store keeps its documents.
pub trait Place: Send + Sync {
    /// Opens the store here. Each call is an opening, or a connection, of its own with the same documents.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being opened.
    fn open(&self) -> Result<Box<dyn CheckpointStore>>;

    /// By what another process opens this place ([`Harness::connect`]): a path, an URL. A store that promises
    /// [`excludes_processes`](crate::store::Capabilities::excludes_processes) must have one, for else nothing
    /// proves it.
    fn address(&self) -> Option<String> {
        None
    }

    /// The keys there are, where the store has fixed ones. Empty where any key will do.
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    /// Puts what is no document in the place of the one under `key`, behind the store's back. `false` where
    /// that cannot be done. A store that promises [`recovery`](crate::store::Capabilities::recovery) must be
    /// shown something to recover, unless its places [cannot be damaged](Place::can_be_damaged).
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being done.
    fn damage(&self, key: &Key) -> Result<bool> {
        let _ = key;
        Ok(false)
    }

    /// Whether anything but a document can be in this place. `false` for what keeps read documents in memory.
    fn can_be_damaged(&self) -> bool {
        true
    }

    /// The clock that the stores of this place take their time from, where they take one.
    fn clock(&self) -> Option<MovableClock> {
        None
    }

    /// How many earlier states the store keeps of each key, where it has such a bound; one or more. With fewer
    /// than five, the rule on pinned states is skipped, and the others look at so many.
    fn keeps(&self) -> Option<usize> {
        None
    }

    /// How finely the store tells when a claim runs out; a second where it keeps whole seconds. Only asked
    /// where there is no [`clock`](Place::clock): then the kit waits until a claim must have run out.
    fn claim_resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// The size in bytes beyond which documents are refused, where there is one; choose a small one.
    fn max_bytes(&self) -> Option<u64> {
        None
    }

    /// Calls `run` while call number `number`, from 0, that the store makes to what is beneath it (a file
    /// system, a database) fails. Says whether `run` came to that call; `None` where there is no such seam.
    ///
    /// A store that keeps its documents in a [`FileStore`](crate::store::FileStore) has one already:
    /// [`fail_call`](super::seam::fail_call).
    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        let _ = (number, run);
        None
    }
}
