//! What ends an agent's work before its task is done.

/// Why an agent stops although its task is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// Its work failed: an error or a panic. The failure is a blocker until it is resolved.
    Failed(String),
    /// It was asked to stop, as by a signal, and nothing is wrong: the next agent goes on at once.
    Stopped(String),
}

impl Interruption {
    /// Why, in words.
    #[must_use]
    pub fn because(&self) -> &str {
        match self {
            Interruption::Failed(because) | Interruption::Stopped(because) => because,
        }
    }
}
