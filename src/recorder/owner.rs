//! The owner of a task.

use std::fmt;

use crate::checkpoint::random_name;

/// The owner of a task: an agent and its session. Two sessions of one agent are two owners.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: String,
}

impl Owner {
    /// An agent in a new session with a unique name.
    pub fn new(agent: impl Into<String>) -> Self {
        Owner {
            agent: agent.into(),
            session: random_name(),
        }
    }

    /// Names the session. An agent that continues the same session, for example after a restart of its program,
    /// is the same owner.
    #[must_use]
    pub fn in_session(mut self, session: impl Into<String>) -> Self {
        self.session = session.into();
        self
    }
}

impl From<&str> for Owner {
    fn from(agent: &str) -> Owner {
        Owner::new(agent)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, session {}", self.agent, self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::Owner;

    #[test]
    fn every_session_is_a_fresh_one_unless_it_is_named() {
        let [one, other] = [Owner::new("dev"), Owner::new("dev")];
        assert_ne!(one, other);
        assert_eq!(one.session.len(), 16);
        let named = [one.in_session("s1"), other.in_session("s1")];
        assert_eq!(named[0], named[1]);
        assert_eq!(named[0].to_string(), "dev, session s1");
    }
}
