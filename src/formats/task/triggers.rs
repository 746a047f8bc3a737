//! Why a checkpoint is made besides finished steps and decisions: the agent stops, or may have to.

use chrono::{DateTime, Utc};

use super::{Reason, TaskCheckpoint};
use crate::checkpoint::{Checkpoint, ContextLevel, ContextUse, Error, Interruption, Result};
use crate::formats::steps::says;

impl TaskCheckpoint {
    /// Makes this a full checkpoint for a reason, as of now.
    ///
    /// It is saved even where nothing else changed.
    pub fn record(&mut self, reason: Reason, now: DateTime<Utc>) {
        self.metadata.reason = Some(reason);
        self.stamp(now);
    }

    /// Records that the model's service asked to wait, with how far the current step is; where none is, the first
    /// planned one begins with it.
    ///
    /// # Errors
    ///
    /// Refused when there is a note, and no step is in progress or planned that it could be of.
    pub fn rate_limited(&mut self, note: Option<&str>, now: DateTime<Utc>) -> Result<()> {
        if let Some(note) = note.filter(|note| !note.trim().is_empty()) {
            self.worked_on(now)?.partial_work = Some(note.to_owned());
        }
        self.stops(Reason::RateLimit, now);
        Ok(())
    }

    /// Records how full the agent's context is, and says what that asks for: from 75 % on this is a full
    /// checkpoint, below it changes nothing.
    pub fn use_context(&mut self, used: ContextUse, now: DateTime<Utc>) -> ContextLevel {
        let level = used.level();
        if level >= ContextLevel::Approaching {
            self.stops(Reason::ContextLimit, now);
        }
        level
    }

    /// Makes this a full checkpoint of an agent that has to stop: what failed before has failed all the same.
    fn stops(&mut self, reason: Reason, now: DateTime<Utc>) {
        let failed = self.metadata.reason == Some(Reason::Failure);
        self.record(if failed { Reason::Failure } else { reason }, now);
    }

    /// Records that the task failed: the reason joins what is in the way.
    ///
    /// # Errors
    ///
    /// Refused when the reason says nothing.
    pub fn fail(&mut self, because: impl Into<String>) -> Result<()> {
        let because = because.into();
        says(&because, "say why the task failed")?;
        self.is_blocked_by(because);
        self.metadata.reason = Some(Reason::Failure);
        Ok(())
    }

    /// Makes this a full checkpoint of an agent that stops before the task is done. What failed is in the
    /// way; an agent that was only asked to stop leaves no blocker.
    pub fn interrupted(&mut self, interruption: &Interruption, now: DateTime<Utc>) {
        match interruption {
            Interruption::Failed(because) => {
                // Whatever it says: an agent that dies has no second word.
                self.is_blocked_by(because.clone());
                self.record(Reason::Failure, now);
            }
            Interruption::Stopped(_) => self.stops(Reason::Manual, now),
        }
    }

    /// Prepares for another agent, not yet known: the one that made the checkpoint joins those that
    /// worked on it.
    pub fn reassign(&mut self) {
        self.metadata.reason = Some(Reason::Reassignment);
        if let Some(agent) = self.metadata.created_by.clone()
            && self.metadata.previous_agents.last() != Some(&agent)
        {
            self.metadata.previous_agents.push(agent);
        }
    }

    /// Prepares for another agent: the one before joins those that worked on the task. The checkpoint stays that of
    /// the agent that made it, until the other one reports or [takes it over](TaskCheckpoint::take_over).
    ///
    /// # Errors
    ///
    /// Refused when no agent is named.
    pub fn reassign_to(&mut self, agent: &str) -> Result<()> {
        if agent.trim().is_empty() {
            return Err(Error::refused("name the agent that goes on with the task"));
        }
        if self.metadata.created_by.as_deref() != Some(agent) {
            self.reassign();
        }
        Ok(())
    }

    /// Takes the task over, whether or not the agent before could still reassign it. `agent` is the
    /// checkpoint's maker from now on; the one before joins those that worked on it.
    ///
    /// The agent that has the task already changes nothing.
    pub fn take_over(&mut self, agent: impl Into<String>) {
        let agent = agent.into();
        if self.metadata.created_by.as_ref() != Some(&agent) {
            self.reassign();
            self.metadata.created_by = Some(agent);
        }
    }

    /// The agent that left the checkpoint to the next one: its maker, or while nothing was done since it was
    /// reassigned the agent before.
    #[must_use]
    pub fn left_by(&self) -> Option<&str> {
        let metadata = &self.metadata;
        let before = metadata.previous_agents.last();
        let was_reassigned = metadata.reason == Some(Reason::Reassignment);
        let left = before.filter(|_| was_reassigned);
        left.or(metadata.created_by.as_ref()).map(String::as_str)
    }
}
