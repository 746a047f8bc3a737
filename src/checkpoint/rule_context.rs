//! What a rule of a format may take from outside the checkpoint.

use std::any::Any;

use chrono::{DateTime, Utc};

use super::{Inputs, Key, UnreadableItem};

/// What the rules of a format may take from outside the checkpoint. What is not given is not judged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RuleContext<'a> {
    /// The present time: judges stamps in the future.
    pub now: Option<DateTime<Utc>>,
    /// The key the checkpoint is kept under: judges the id inside.
    pub key: Option<&'a Key>,
    /// What the format takes besides.
    pub inputs: Option<&'a Inputs>,
    /// The items of the checkpoint that could not be read: what they may be keeps it from being complete.
    pub unreadable: &'a [UnreadableItem],
}

impl<'a> RuleContext<'a> {
    /// Nothing is given.
    #[must_use]
    pub fn none() -> Self {
        RuleContext::default()
    }

    /// With the present time.
    #[must_use]
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.now = Some(now);
        self
    }

    /// With the key.
    #[must_use]
    pub fn with_key(mut self, key: &'a Key) -> Self {
        self.key = Some(key);
        self
    }

    /// With what the format takes besides.
    #[must_use]
    pub fn with_inputs(mut self, inputs: &'a Inputs) -> Self {
        self.inputs = Some(inputs);
        self
    }

    /// The input of this type, where it is given.
    #[must_use]
    pub fn input<T: Any>(&self) -> Option<&'a T> {
        self.inputs?.get()
    }

    /// With the items of the checkpoint that could not be read.
    #[must_use]
    pub fn with_unreadable(mut self, unreadable: &'a [UnreadableItem]) -> Self {
        self.unreadable = unreadable;
        self
    }
}
