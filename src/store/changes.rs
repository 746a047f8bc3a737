//! Notifications of writes, for watchers that would otherwise have to list again and again.

use std::time::Duration;

use crate::checkpoint::{Key, Result};

/// A store that reports which keys are written, by any process.
pub trait Changes {
    /// Listens for writes from now on.
    ///
    /// # Errors
    ///
    /// When the store cannot be listened to. List the keys again and again in that case.
    fn listen(&self) -> Result<Box<dyn Listener>>;
}

/// The keys that are written from a moment on.
///
/// A notification says when to look, not what is there. One write may cause several, and not every writer of a
/// store need cause one. So read everything once after starting to listen, again after an error, and from time
/// to time anyway.
pub trait Listener: Send {
    /// Waits for the next key that was written; `None` if there was none within `timeout`.
    ///
    /// # Errors
    ///
    /// When the connection broke: listen again, then read everything.
    fn next(&mut self, timeout: Duration) -> Result<Option<Key>>;
}
