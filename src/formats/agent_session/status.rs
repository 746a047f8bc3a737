//! The type and the status of an agent.

use crate::checkpoint::open_enum;

open_enum! {
    /// Whether an agent coordinates the others.
    AgentType {
        /// It coordinates the others.
        Primary = "primary",
        /// It is one of the others.
        Secondary = "secondary",
    }
}

open_enum! {
    /// What an agent is doing.
    AgentStatus {
        /// It works.
        InProgress = "IN_PROGRESS",
        /// It waits for others or for a decision.
        Waiting = "WAITING",
        /// Something is in the way.
        Blocked = "BLOCKED",
        /// Its work is done.
        Complete = "COMPLETE",
    }
}

impl AgentStatus {
    /// The listed status that the text means; `None` if it means none.
    ///
    /// Agents have been seen to write `WAITING_FOR_SYNC` and `PAUSED`, which mean waiting, and the
    /// listed words in lower case, with `-` or a space for `_`, or as `COMPLETED` or `DONE`.
    #[must_use]
    pub fn meaning(&self) -> Option<AgentStatus> {
        let AgentStatus::Other(text) = self else {
            return Some(self.clone());
        };
        let word = text.trim().to_uppercase().replace(['-', ' '], "_");
        match word.as_str() {
            "WAITING_FOR_SYNC" | "PAUSED" => Some(AgentStatus::Waiting),
            "COMPLETED" | "DONE" => Some(AgentStatus::Complete),
            word => match AgentStatus::from(word) {
                AgentStatus::Other(_) => None,
                known => Some(known),
            },
        }
    }

    /// Whether the agent waits and so need not report.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.meaning() == Some(AgentStatus::Waiting)
    }
}

impl AgentType {
    /// The type that an agent's id implies: `Agent-Primary` is the primary, every other a secondary.
    #[must_use]
    pub fn of(agent_id: &str) -> AgentType {
        let id = agent_id.to_lowercase().replace('-', "_");
        match id.strip_prefix("agent_").unwrap_or(&id) {
            "primary" => AgentType::Primary,
            _ => AgentType::Secondary,
        }
    }
}
