//! Work that leaves a checkpoint however it ends.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Error, Interruption, Limits, Result};

/// The most characters of an error that go into a checkpoint, which is to stay small; the caller has the whole.
const LONGEST_REASON: usize = 200;

/// Work in a [scope](Recorder::scope) that failed, and what became of its checkpoint.
#[derive(Debug)]
#[non_exhaustive]
pub struct Broken<E> {
    /// What the work failed with.
    pub error: E,
    /// The checkpoint that was made of it before this was returned, or why there is none.
    pub checkpoint: Result<Box<Recorded>>,
}

impl<E: fmt::Display> fmt::Display for Broken<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match &self.checkpoint {
            Ok(_) => Ok(()),
            Err(error) => write!(f, "; and no checkpoint could be made of it: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> StdError for Broken<E> {}

impl<C: Checkpoint> Recorder<C> {
    /// Does `work`, and makes a checkpoint before an error or a panic of it goes on: so whatever is done about
    /// that, the checkpoint is on disk before it.
    ///
    /// What failed is recorded as [`interrupted`](Recorder::interrupted) does. Work that ends well leaves the
    /// checkpoint as it is.
    ///
    /// # Panics
    ///
    /// As `work` does. Where panics abort the process, nothing is recorded.
    ///
    /// # Errors
    ///
    /// Those of `work`, with what became of the checkpoint.
    pub fn scope<T, E: fmt::Display>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, Broken<E>> {
        // What the work shares with others is the caller's to look at, as it would be without the scope.
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

    /// Makes a full checkpoint of work that stops before the task is done: for what ends an agent and no
    /// [scope](Recorder::scope) sees.
    ///
    /// What failed is in the way afterwards, in the words of the format: a failure with its blocker, an error, a
    /// note. Of a long text the first line goes in, cut to 200 characters.
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
    /// Counts work that failed as an attempt, of an owner that has a claim. The failure is in the checkpoint already, so
    /// what keeps this from being written is no error.
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
    /// Whether another owner has the task, which is why there is no checkpoint.
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

/// What a panic says.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}
