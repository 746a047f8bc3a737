//! A checkpoint before a signal ends the process.
//!
//! The handler only notes the signal. A thread that waits for it makes the checkpoint and then runs the default
//! action of the signal. Outside of scopes the handler runs the default action itself, so that a process that
//! once had a scope ends by a signal like any other.

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

/// Whether a signal ends the process at once, which it does while no scope would make a checkpoint first.
struct DefaultAction {
    acts: Arc<AtomicBool>,
    scopes: Mutex<usize>,
}

/// Registers the handlers once for the process, because the original disposition of a signal cannot be restored.
fn default_action() -> Result<&'static DefaultAction> {
    static DEFAULT: OnceLock<std::result::Result<DefaultAction, std::io::ErrorKind>> =
        OnceLock::new();
    let default = DEFAULT.get_or_init(|| {
        // The default action is active until a listener exists, or a signal that arrives now would be lost.
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
    /// As [`scope`](Recorder::scope). In addition, a SIGTERM, SIGINT or SIGHUP during `work` makes a checkpoint
    /// before it ends the process, as that signal does by default. A second signal ends the process at once.
    ///
    /// This is for programs that do not handle these signals otherwise. A program with its own handlers calls
    /// [`interrupted`](Recorder::interrupted) from its own shutdown. SIGKILL leaves no time for a checkpoint
    /// and needs none: what was recorded is on disk.
    ///
    /// # Errors
    ///
    /// The outer result: [`ErrorKind::Io`] when the handlers cannot be registered; the work is then not begun.
    /// The inner result: as [`scope`](Recorder::scope).
    pub fn scope_with_signals<T, E: fmt::Display>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<Result<T, Broken<E>>> {
        let io = |error: std::io::Error| Error::new(ErrorKind::Io).with_source(error);
        // The handler that checks the default action must be registered before the one that notifies the thread.
        // Otherwise the thread, which restores the default action before it writes, could be faster than that check.
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
            // These are dropped in this order, even if the work panics: the default action is restored before
            // the thread ends that would have received a signal.
            let _closed = Closing(&handle);
            let _waiting = waiting;
            self.scope(work)
        }))
    }

    fn end_by(&self, signal: i32, default: &DefaultAction) {
        // A user who sends a second signal does not want to wait.
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
