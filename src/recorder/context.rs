//! What an agent gets to know of its context.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, ContextLevel, ContextUse, Error, Operation, Result};

/// What a context that fills up asks for.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum ContextAdvice {
    /// Go on: there is enough left, or the warning was given and its checkpoint made.
    Continue,
    /// The context is used by 75 % or more, for the first time: the checkpoint is made, for safety, and the work
    /// can go on.
    Warn(Recorded),
    /// The context is used by 90 % or more: the last checkpoint is made, at the first such call; stop. A new
    /// session goes on.
    Stop(Option<Recorded>),
}

impl ContextAdvice {
    /// The message for the agent; nothing where it goes on.
    #[must_use]
    pub fn message(&self) -> Option<&'static str> {
        match self {
            ContextAdvice::Continue => ContextLevel::Enough.message(),
            ContextAdvice::Warn(_) => ContextLevel::Approaching.message(),
            ContextAdvice::Stop(_) => ContextLevel::Reached.message(),
        }
    }
}

impl<C: Checkpoint> Recorder<C> {
    /// How much of its context the agent has used, as a fraction: 0.78 for 78 %. Source of the thresholds: the
    /// builder-state protocol.
    ///
    /// Each threshold is heeded once for each time that it is crossed: after the context was emptied, as by a
    /// compaction, the next crossing counts again.
    ///
    /// # Errors
    ///
    /// As every call; [`ErrorKind::Refused`](crate::ErrorKind::Refused) for what is no fraction of a context.
    pub fn context_used(&self, fraction: f64) -> Result<ContextAdvice> {
        let used = ContextUse::new(fraction).ok_or_else(|| {
            Error::refused("a part of the context is a fraction, such as 0.78 for 78 %")
        })?;
        let operation = Operation::Context { used };
        if !C::OPERATIONS.contains(&operation.name()) {
            return Err(Error::unsupported(&operation, C::OPERATIONS).with_key(&self.key));
        }
        let mut state = self.state();
        let level = used.level();
        let recorded = if level > state.level {
            Some(
                self.change_in(&mut state, None, &mut |checkpoint, context| {
                    checkpoint.apply(&operation, context)
                })?,
            )
        } else {
            None
        };
        state.level = level;
        Ok(match (level, recorded) {
            (ContextLevel::Reached, recorded) => ContextAdvice::Stop(recorded),
            (ContextLevel::Approaching, Some(recorded)) => ContextAdvice::Warn(recorded),
            _ => ContextAdvice::Continue,
        })
    }
}
