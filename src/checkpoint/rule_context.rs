//! What a rule of a format may need from outside the checkpoint.

use std::any::Any;

use chrono::{DateTime, Utc};

use super::{Inputs, Key, UnreadableItem};

/// What the rules of a format may need from outside the checkpoint. A rule whose value is missing is not checked.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RuleContext<'a> {
    /// The present time, to find stamps in the future.
    pub now: Option<DateTime<Utc>>,
    /// The key of the checkpoint, to check the id inside it.
    pub key: Option<&'a Key>,
    /// Further inputs of the format.
    pub inputs: Option<&'a Inputs>,
    /// The unreadable items of the checkpoint. An item that may be open keeps the checkpoint from being complete.
    pub unreadable: &'a [UnreadableItem],
}

impl<'a> RuleContext<'a> {
    /// An empty context.
    #[must_use]
    pub fn none() -> Self {
        RuleContext::default()
    }

    /// Sets the present time.
    #[must_use]
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.now = Some(now);
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: &'a Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the further inputs of the format.
    #[must_use]
    pub fn with_inputs(mut self, inputs: &'a Inputs) -> Self {
        self.inputs = Some(inputs);
        self
    }

    /// The input of this type, if there is one.
    #[must_use]
    pub fn input<T: Any>(&self) -> Option<&'a T> {
        self.inputs?.get()
    }

    /// Sets the items of the checkpoint that could not be read.
    #[must_use]
    pub fn with_unreadable(mut self, unreadable: &'a [UnreadableItem]) -> Self {
        self.unreadable = unreadable;
        self
    }
}
