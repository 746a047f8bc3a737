//! Notices of writes, for watchers that would else list again and again.

use std::time::Duration;

use crate::checkpoint::{Key, Result};

/// A store that reports which keys are written, by whatever process.
pub trait Changes {
    /// Listens for writes from now on.
    ///
    /// # Errors
    ///
    /// When the store cannot be listened to; look for changes by listing then.
    fn listen(&self) -> Result<Box<dyn Listener>>;
}

/// The keys that are written from a moment on.
///
/// They tell when to look, not what is there: several may come for one write, and not every writer of a store need report its
/// writes. Look at everything once it listens, again after an error, and now and then without any.
pub trait Listener: Send {
    /// The next key that was written; `None` where there was none for so long.
    ///
    /// # Errors
    ///
    /// When the connection broke: listen anew, then look at everything.
    fn next(&mut self, timeout: Duration) -> Result<Option<Key>>;
}
