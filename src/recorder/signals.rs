//! A checkpoint before a signal ends the process.
//!
//! The handler itself does nothing but note the signal: a thread that waits for it makes the checkpoint, and then
//! has the signal do what it does by default. Outside of scopes that action is the handler's own, so that a
//! process that once had a scope ends by a signal like any other.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::{Broken, Recorder};
use crate::checkpoint::{Checkpoint, Error, ErrorKind, Interruption, Result};

/// The signals that ask a process to end.
const SIGNALS: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];

/// Whether a signal ends the process at once: while no scope is there to make a checkpoint first.
struct DefaultAction {
    acts: Arc<AtomicBool>,
    scopes: Mutex<usize>,
}

/// Registered once for the process: what is taken away from a signal can not be given back to it.
fn default_action() -> Result<&'static DefaultAction> {
    static DEFAULT: OnceLock<std::result::Result<DefaultAction, std::io::ErrorKind>> =
        OnceLock::new();
    let default = DEFAULT.get_or_init(|| {
        // Until a listener is there it acts, or a signal that comes just now would be lost.
        let acts = Arc::new(AtomicBool::new(true));
        for signal in SIGNALS {
            flag::register_conditional_default(signal, Arc::clone(&acts))
                .map_err(|error| error.kind())?;
        }
        Ok(DefaultAction {
            acts,
            scopes: Mutex::new(0),
        })
    });
    default
        .as_ref()
        .map_err(|kind| Error::new(ErrorKind::Io).with_source(std::io::Error::from(*kind)))
}

/// A scope that waits for signals.
struct Waiting(&'static DefaultAction);

impl Waiting {
    fn begin(default: &'static DefaultAction) -> Waiting {
        let mut scopes = default
            .scopes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *scopes += 1;
        default.acts.store(false, Ordering::SeqCst);
        Waiting(default)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        *scopes -= 1;
        self.0.acts.store(*scopes == 0, Ordering::SeqCst);
    }
}

impl<C: Checkpoint> Recorder<C> {
    /// As [`scope`](Recorder::scope), and a SIGTERM, SIGINT or SIGHUP that comes while `work` is done makes a
    /// checkpoint before it ends the process, as that signal does by default. A second signal ends it at once.
    ///
    /// For programs that leave these signals alone otherwise: one that has handlers of its own calls
    /// [`interrupted`](Recorder::interrupted) from its own way to end. SIGKILL leaves no time for anything, and
    /// needs none: what was recorded is on disk.
    ///
    /// # Errors
    ///
    /// The outer result: [`ErrorKind::Io`] when the signals cannot be had; the work is then not begun. The inner
    /// one: as [`scope`](Recorder::scope).
    pub fn scope_with_signals<T, E: fmt::Display>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<Result<T, Broken<E>>> {
        let io = |error: std::io::Error| Error::new(ErrorKind::Io).with_source(error);
        // The default action is asked first and the thread notified after it: else the thread, which has the
        // action back before it writes, could be faster than the handler that asks.
        let default = default_action()?;
        let mut signals = Signals::new(SIGNALS).map_err(io)?;
        let handle = signals.handle();
        let waiting = Waiting::begin(default);
        Ok(thread::scope(|threads| {
            threads.spawn(|| {
                for signal in signals.forever() {
                    self.end_by(signal, default);
                }
            });
            // Dropped also when the work panics, in this order: the default action is back before the thread
            // ends that would have heard a signal.
            let _closed = Closing(&handle);
            let _waiting = waiting;
            self.scope(work)
        }))
    }

    fn end_by(&self, signal: i32, default: &DefaultAction) {
        // A caller that asks again does not want to wait.
        default.acts.store(true, Ordering::SeqCst);
        let name = signal_name(signal).unwrap_or("a signal");
        let stopped = Interruption::Stopped(format!("stopped by {name}"));
        if let Err(error) = self.interrupted(&stopped) {
            tracing::error!(key = %self.key, %error, "no checkpoint could be made at the end");
        }
        if let Err(error) = emulate_default_handler(signal) {
            tracing::error!(%error, name, "the signal does not end the process");
        }
    }
}

/// Ends the thread that waits for signals.
struct Closing<'h>(&'h signal_hook::iterator::Handle);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
