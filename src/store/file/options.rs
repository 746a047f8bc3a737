//! How a store of files behaves.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::fsio::{self, Durability};

/// How a store of files behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// The largest file that is read, in bytes. Default 16 MiB.
    pub max_bytes: u64,
    /// How long a save waits for the lock. Default 10 s.
    pub lock_timeout: Duration,
    /// Whether a save waits until the disk has it. Default full.
    pub durability: Durability,
    /// Reads only: every write is refused, and nothing is created. Default false.
    pub read_only: bool,
    /// Who is writing, for those who wait for the lock. Default the process id.
    pub holder: String,
    /// Whether the folder was swept.
    swept: Swept,
}

/// Whether the folder was swept; each clone sweeps anew.
#[derive(Debug, Default)]
struct Swept(AtomicBool);

impl Clone for Swept {
    fn clone(&self) -> Self {
        Swept::default()
    }
}

impl PartialEq for Swept {
    fn eq(&self, _: &Swept) -> bool {
        true
    }
}

impl Eq for Swept {}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            max_bytes: 16 * 1024 * 1024,
            lock_timeout: Duration::from_secs(10),
            durability: Durability::Full,
            read_only: false,
            holder: format!("process {}", std::process::id()),
            swept: Swept::default(),
        }
    }
}

impl FileOptions {
    /// Reads only.
    #[must_use]
    pub fn read_only() -> Self {
        FileOptions {
            read_only: true,
            ..FileOptions::default()
        }
    }

    /// Names who is writing, for those who wait for the lock.
    #[must_use]
    pub fn with_holder(mut self, agent: &str) -> Self {
        self.holder = format!("{agent} (process {})", std::process::id());
        self
    }

    /// Sets the largest file that is read, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long a save waits for the lock.
    #[must_use]
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets whether a save waits until the disk has it.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Removes what killed writers left in these folders, once for these options: when the first save comes.
    pub(crate) fn sweep_once(&self, folders: &[&Path]) {
        if !self.swept.0.swap(true, Ordering::Relaxed) {
            for folder in folders {
                fsio::sweep(folder, fsio::ABANDONED_AFTER);
            }
        }
    }
}
