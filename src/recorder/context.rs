//! What an agent is told about its context.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, ContextLevel, ContextUse, Error, Operation, Result};

/// What an agent should do as its context fills up.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum ContextAdvice {
    /// Go on: enough context is left, or the warning was already given and its checkpoint made.
    Continue,
    /// The context is 75 % full or more, for the first time. A checkpoint was made for safety, and the work can
    /// go on.
    Warn(Recorded),
    /// The context is 90 % full or more. The last checkpoint was made at the first such call. Stop; a new
    /// session carries on.
    Stop(Option<Recorded>),
}

impl ContextAdvice {
    /// The message for the agent; `None` if it can go on.
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
    /// Reports how much of its context the agent has used, as a fraction: 0.78 for 78 %. Source of the
    /// thresholds: the builder-state protocol.
    ///
    /// Each threshold causes one checkpoint each time it is crossed: after the context shrank, for example by a
    /// compaction, the next crossing counts again.
    ///
    /// # Errors
    ///
    /// As every call; [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a number that is not a fraction of
    /// a context.
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
