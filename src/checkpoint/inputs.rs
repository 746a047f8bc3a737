//! What the rules of a format take from outside the checkpoint.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

/// Values from outside a checkpoint that the rules of its format take, at most one of each type: such as the
/// [`ExecutionSpec`](crate::formats::build_pipeline::ExecutionSpec) of a build. Each format defines the types of its own,
/// and ignores those of the others. What is not given is not judged.
///
/// ```
/// use agent_checkpoint::formats::{Inputs, story_pipeline::StoryState};
///
/// let inputs = Inputs::of(StoryState::Paused);
/// assert_eq!(inputs.get::<StoryState>(), Some(&StoryState::Paused));
/// assert_eq!(inputs.get::<u64>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Inputs {
    values: Vec<(&'static str, Arc<dyn Any + Send + Sync>)>,
    notes: Vec<String>,
}

impl Inputs {
    /// One value.
    pub fn of<T: Any + Send + Sync>(value: T) -> Self {
        Inputs::default().with(value)
    }

    /// With this value, in place of one of the same type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.values.retain(|(_, old)| !old.is::<T>());
        self.values.push((type_name::<T>(), Arc::new(value)));
        self
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// With something to tell the user about what was given.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Notes for the user about what was given.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.values
            .iter()
            .find_map(|(_, value)| value.downcast_ref())
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.values.iter().map(|(name, _)| name))
            .finish()
    }
}
