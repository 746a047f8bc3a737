//! Work that leaves a checkpoint however it ends.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Error, Interruption, Limits, Result};

/// The most characters of an error that go into a checkpoint, which should stay small. The caller gets the
/// whole error.
const LONGEST_REASON: usize = 200;

/// The failure of work in a [scope](Recorder::scope), with its checkpoint.
#[derive(Debug)]
#[non_exhaustive]
pub struct Broken<E> {
    /// The error of the work.
    pub error: E,
    /// The checkpoint that was made of the failure, or why there is none.
    pub checkpoint: Result<Box<Recorded>>,
}

impl<E: fmt::Display> fmt::Display for Broken<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match &self.checkpoint {
            Ok(_) => Ok(()),
            Err(error) => write!(
                f,
                "; the failure could not be recorded in the checkpoint either: {error}"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> StdError for Broken<E> {}

impl<C: Checkpoint> Recorder<C> {
    /// Runs `work`, and makes a checkpoint before its error or panic reaches the caller. So the checkpoint is
    /// on disk before anything else reacts to the failure.
    ///
    /// The failure is recorded as by [`interrupted`](Recorder::interrupted). Work that succeeds does not change
    /// the checkpoint.
    ///
    /// # Panics
    ///
    /// As `work` does. If panics abort the process, nothing is recorded.
    ///
    /// # Errors
    ///
    /// Those of `work`, with the checkpoint that was made of the failure, or why there is none.
    pub fn scope<T, E: fmt::Display>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, Broken<E>> {
        // As without the scope, the caller must check state that the work shares with others after a panic.
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                let checkpoint = self.interrupted(&Interruption::Failed(error.to_string()));
                Err(Broken {
                    error,
                    checkpoint: checkpoint.map(Box::new),
                })
            }
            Err(panic) => {
                let because = format!("panicked: {}", words_of(panic.as_ref()));
                if let Err(error) = self.interrupted(&Interruption::Failed(because)) {
                    tracing::error!(key = %self.key, %error, "no checkpoint could be made of a panic");
                }
                resume_unwind(panic)
            }
        }
    }

    /// Makes a full checkpoint of work that stops before the task is done. Call it when an agent ends in a way
    /// that no [scope](Recorder::scope) notices.
    ///
    /// A failure becomes a blocker, in the terms of the format: a failure with its blocker, an error, or a
    /// note. Of a long text only the first line is recorded, cut to 200 characters.
    ///
    /// # Errors
    ///
    /// As every call.
    pub fn interrupted(&self, interruption: &Interruption) -> Result<Recorded> {
        let interruption = match interruption {
            Interruption::Failed(because) => Interruption::Failed(first_line(because)),
            stopped => stopped.clone(),
        };
        let recorded =
            self.change(&mut |checkpoint, context| checkpoint.interrupt(&interruption, context))?;
        if let Interruption::Failed(because) = &interruption {
            self.count_failure(because);
        }
        Ok(recorded)
    }
}

impl<C: Checkpoint> Recorder<C> {
    /// Counts failed work as an attempt of an owner with a claim. The failure is already in the checkpoint, so
    /// not being able to count it is only logged.
    fn count_failure(&self, because: &str) {
        if self.fence().is_none() {
            return;
        }
        let counted = self.as_owner(|checkpoints| {
            let left = checkpoints.stored_handoff(&self.key)?;
            let because = checkpoints.redacted(because);
            self.own_ledger(checkpoints).count_failure(&left, &because)
        });
        if let Err(error) = counted {
            tracing::warn!(key = %self.key, %error, "an attempt that failed is not counted");
        }
    }
}

impl<E> Broken<E> {
    /// Whether the checkpoint could not be made because another owner has the task.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        self.checkpoint.as_ref().is_err_and(Error::is_taken_over)
    }
}

fn first_line(because: &str) -> String {
    let line = because.trim().lines().next().unwrap_or_default().trim();
    let line = if line.is_empty() {
        "no reason was given"
    } else {
        line
    };
    let cut = Limits::default().cut(line, LONGEST_REASON);
    cut.unwrap_or_else(|| line.to_owned())
}

/// The message of a panic.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}
