//! Begins, resumes, takes over and restarts an agent's work.

use chrono::{DateTime, TimeDelta, Utc};

use super::operations::stage_name;
use super::{AgentCheckpoint, AgentStatus, AgentType, layout};
use crate::checkpoint::{Checkpoint, Detail, Error, Key, OperationContext, Result};
use crate::is_blank;

/// Work shorter than this is not worth resuming: the feature restarts from scratch.
pub const RESTART_BELOW: TimeDelta = TimeDelta::minutes(30);

/// The stage that every feature begins in.
pub(super) const FIRST_STAGE: &str = "S2.P1";

impl AgentCheckpoint {
    /// The checkpoint of an agent that begins a feature with this plan, in the first stage.
    pub fn begin(
        agent_id: impl Into<String>,
        session_id: impl Into<String>,
        feature: impl Into<String>,
        plan: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Self {
        let agent_id = agent_id.into();
        let name = stage_name(FIRST_STAGE);
        let mut agent = AgentCheckpoint {
            agent_type: Some(AgentType::of(&agent_id)),
            agent_id: Some(agent_id),
            session_id: Some(session_id.into()),
            feature: Some(feature.into()),
            stage: Some(FIRST_STAGE.to_owned()),
            phase: Some(format!("{name} - Starting")),
            status: Some(AgentStatus::InProgress),
            can_resume: Some(true),
            recovery_instructions: Some(format!(
                "Just started {FIRST_STAGE}. No work done yet. Start from beginning of \
                 {FIRST_STAGE} {name} guide."
            )),
            next_steps: plan.into_iter().map(Into::into).collect(),
            ..AgentCheckpoint::default()
        };
        agent.stamp(now);
        let whole = Detail {
            unread: Some(0),
            overview: true,
            status_file: true,
            ..Detail::default()
        };
        agent.takes_part(&whole, now);
        agent
    }

    /// Why this checkpoint cannot be resumed; `None` if it can.
    pub(super) fn why_not_resumable(&self) -> Option<String> {
        let id = self.agent_id.as_deref().unwrap_or("the agent");
        let status = self.status.as_ref().and_then(AgentStatus::meaning);
        if status == Some(AgentStatus::Complete) {
            Some(format!("{id} is complete; there is nothing to resume"))
        } else if self.can_resume == Some(false) {
            Some(format!(
                "{id} says that work cannot be resumed from this checkpoint (can_resume is false)"
            ))
        } else {
            None
        }
    }

    /// Resumes the same agent, in its session or in a fresh one. Agent, feature and stage stay; in a fresh session the
    /// status becomes in progress and a sync point is passed. Blockers stay listed until the agent is unblocked.
    pub(super) fn taken_up(&mut self, context: &OperationContext<'_>) -> Result<()> {
        let own = self.agent_id.as_deref();
        if let (Some(agent), Some(own)) = (context.agent, own)
            && !layout::same_agent(agent, own)
        {
            return Err(Error::refused(format!(
                "the file is named after {own}, so only {own} can resume in it; {agent} takes over into a checkpoint \
                 of its own (agent_session::take_over)"
            )));
        }
        self.check_resumable()?;
        let session = context.session.unwrap_or_default();
        if session.is_empty() || self.session_id.as_deref() != Some(session) {
            self.check_fresh(session)?;
            self.session_id = Some(session.to_owned());
            self.go_on();
        }
        Ok(())
    }

    pub(super) fn check_fresh(&self, session_id: &str) -> Result<()> {
        if is_blank(session_id) || self.session_id.as_deref() == Some(session_id) {
            return Err(Error::refused(
                "resuming and restarting need a fresh session; give a new session id",
            ));
        }
        Ok(())
    }

    fn check_resumable(&self) -> Result<()> {
        self.why_not_resumable()
            .map_or(Ok(()), |why| Err(Error::refused(why)))
    }

    /// The checkpoint of another agent that takes this work over, at the same feature and stage.
    ///
    /// Put it under the key of the new id. With the id of [`take_over_id`](super::take_over_id) that is the file
    /// `{stem}_new.json` beside the old one. Or archive the old file as crashed first; then the new agent can have the
    /// old id. Blockers stay. The state of coordination is left empty, for the new agent to report.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the work is complete or cannot be
    /// resumed, and when the session is not a fresh one;
    /// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the new
    /// id.
    pub fn taken_over(
        &self,
        agent_id: impl Into<String>,
        session_id: impl Into<String>,
        notes: impl Into<String>,
        now: DateTime<Utc>,
    ) -> Result<AgentCheckpoint> {
        let (agent_id, session_id) = (agent_id.into(), session_id.into());
        self.check_resumable()?;
        self.check_fresh(&session_id)?;
        layout::file_name(&Key::new(agent_id.as_str())?)?;
        let mut next = self.clone();
        if AgentType::of(&agent_id) == AgentType::Primary {
            next.agent_type = Some(AgentType::Primary);
        }
        next.agent_id = Some(agent_id);
        next.session_id = Some(session_id);
        next.coordination_state = None;
        let status = self.status.as_ref().and_then(AgentStatus::meaning);
        if status != Some(AgentStatus::Blocked) {
            next.go_on();
        }
        next.previous_agent.clone_from(&self.agent_id);
        next.recovery_notes = Some(notes.into());
        next.stamp(now);
        Ok(next)
    }

    /// The checkpoint of the same agent and feature from scratch, in the first stage. Of the old checkpoint it states
    /// only the reason for the restart.
    pub(super) fn restarted(
        &self,
        because: &str,
        session_id: Option<String>,
        now: DateTime<Utc>,
    ) -> AgentCheckpoint {
        let plan = [format!("Read {FIRST_STAGE} guide")];
        let mut next = AgentCheckpoint::begin("", "", "", plan, now);
        next.agent_id.clone_from(&self.agent_id);
        next.agent_type.clone_from(&self.agent_type);
        next.session_id = session_id;
        next.feature.clone_from(&self.feature);
        next.recovery_notes = Some(format!("Restarted from scratch: {because}"));
        next
    }
}
