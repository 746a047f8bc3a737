//! Why an agent's work ends before its task is done.

/// Why an agent stops although its task is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// The work failed with an error or a panic. The failure is a blocker until it is resolved.
    Failed(String),
    /// The agent was asked to stop, for example by a signal. Nothing is wrong, so the next agent can go on at once.
    Stopped(String),
}

impl Interruption {
    /// The reason as text.
    #[must_use]
    pub fn because(&self) -> &str {
        match self {
            Interruption::Failed(because) | Interruption::Stopped(because) => because,
        }
    }
}
