//! The values from outside a checkpoint that the rules of a format need.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

/// Values from outside a checkpoint that the rules of its format need, at most one of each type, such as the
/// [`ExecutionSpec`](crate::formats::build_pipeline::ExecutionSpec) of a build. Each format defines its own
/// types and ignores all others. A rule whose value is missing is not checked.
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
    /// Inputs with one value.
    pub fn of<T: Any + Send + Sync>(value: T) -> Self {
        Inputs::default().with(value)
    }

    /// Adds this value, replacing one of the same type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.values.retain(|(_, old)| !old.is::<T>());
        self.values.push((type_name::<T>(), Arc::new(value)));
        self
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a note for the user about the inputs.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The notes for the user about the inputs.
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
