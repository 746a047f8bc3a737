//! Heartbeats during the work.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Recorded, Recorder};
use crate::CheckpointStoreExt;
use crate::checkpoint::{Checkpoint, Error, Operation, Result};

impl<C: Checkpoint> Recorder<C> {
    /// Reports that the agent is alive.
    ///
    /// If the checkpoint or its store [keeps heartbeats apart](Recorder::has_heartbeat) from progress, the time of the
    /// last change stays. In other formats a heartbeat is a new stamp of the checkpoint itself; in an `agent-session`
    /// the next report is expected 15 minutes after it.
    ///
    /// # Errors
    ///
    /// As every call.
    pub fn heartbeat(&self) -> Result<Recorded> {
        let store = self.checkpoints.store();
        let operation = Operation::Heartbeat;
        if store.heartbeat().is_none() {
            return self.report(operation);
        }
        // The host file has one heartbeat for the whole session.
        let mut state = self.state();
        let unchanged = self.change_in(&mut state, None, &mut |_, _| Ok(()))?;
        let beat = store.beat(&self.key, self.checkpoints.now(), state.hold.fence())?;
        Ok(Recorded {
            saved: beat,
            ..unchanged
        })
    }

    /// Whether the checkpoint or its store keeps a heartbeat apart from progress.
    #[must_use]
    pub fn has_heartbeat(&self) -> bool {
        C::HAS_HEARTBEAT || self.checkpoints.store().heartbeat().is_some()
    }

    /// Runs `work` while a thread reports at this interval that the agent is alive. The thread ends with the
    /// work, even if the work panics.
    ///
    /// This is only possible if the heartbeat is separate from progress, as in the host of a `builder-state`,
    /// in `sitebuilder` and in `story-pipeline-state`. Otherwise it would vouch for work that no agent does. A
    /// failed heartbeat is logged and the next one tried; they stop once another owner has the task.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if there is no heartbeat at all;
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if a heartbeat is a report of the agent itself, as in
    /// an `agent-session` or a `task` (use [`heartbeat`](Recorder::heartbeat)), and for an interval of zero.
    /// The work is then not begun.
    pub fn beating<T>(&self, every: Duration, work: impl FnOnce() -> T) -> Result<T> {
        if !self.has_heartbeat() {
            let operation = Operation::Heartbeat;
            if !C::OPERATIONS.contains(&operation.name()) {
                return Err(Error::unsupported(&operation, C::OPERATIONS).with_key(&self.key));
            }
            return Err(Error::refused(format!(
                "a heartbeat of {} is a report of its agent, so the recorder sends none in the background; have the \
                 agent report `heartbeat` itself",
                C::FORMAT
            ))
            .with_key(&self.key));
        }
        if every.is_zero() {
            return Err(Error::refused(
                "the time between heartbeats must be more than zero",
            ));
        }
        let end = End::default();
        Ok(thread::scope(|scope| {
            scope.spawn(|| self.beat_until(&end, every));
            let _ended = Ended(&end);
            work()
        }))
    }

    fn beat_until(&self, end: &End, every: Duration) {
        loop {
            match self.heartbeat() {
                Err(error) if error.is_taken_over() => {
                    tracing::warn!(key = %self.key, %error, "no more beats");
                    return;
                }
                Err(error) => tracing::warn!(key = %self.key, %error, "a beat failed"),
                Ok(_) => {}
            }
            if end.comes_within(every) {
                return;
            }
        }
    }
}

/// Signals that the work is over.
#[derive(Default)]
struct End {
    over: Mutex<bool>,
    changed: Condvar,
}

impl End {
    fn comes_within(&self, time: Duration) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(over, time, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Signals the end when it is dropped, however the work ends.
struct Ended<'e>(&'e End);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
