//! The rules of the format.

use super::{AgentCheckpoint, AgentStatus, CoordinationState, layout};
use crate::checkpoint::{Inspection, Key};
use crate::json::Code;
use crate::{is_blank, quoted};

impl AgentCheckpoint {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["agent_id", "last_checkpoint", "status"];
}

pub(super) fn inspect(agent: &AgentCheckpoint, inspection: &mut Inspection<'_>) {
    inspection.require_all(AgentCheckpoint::REQUIRED);
    if let Some(id) = &agent.agent_id {
        agent_id(id, inspection);
    }
    inspection.known("/agent_type", agent.agent_type.as_ref());
    inspection.timestamp("/last_checkpoint", agent.last_checkpoint.as_ref());
    let next = agent.next_checkpoint_expected.as_ref();
    inspection.expected_timestamp("/next_checkpoint_expected", next);
    inspection.known("/status", agent.status.as_ref());
    if agent.status == Some(AgentStatus::Blocked)
        && !has_blocker(agent)
        && inspection.is_whole("/blockers")
    {
        inspection.report(
            "/blockers",
            Code::STATUS_RULE,
            "a blocked agent must name a blocker",
        );
    }
    if let Some(state) = &agent.coordination_state {
        inspection.within("coordination_state", |inspection| {
            coordination(state, inspection);
        });
    }
}

/// Whether at least one blocker has a text.
pub(super) fn has_blocker(agent: &AgentCheckpoint) -> bool {
    agent.blockers.iter().any(|text| !is_blank(text))
}

fn agent_id(id: &str, inspection: &mut Inspection<'_>) {
    let own = Key::new(id).and_then(|key| layout::file_name(&key));
    match (own, inspection.context().key) {
        (Err(error), _) => {
            // An id can be valid and yet too long for a file name; then no key fits it.
            let code = match layout::is_agent_id(id) {
                true => Code::KEY_MISMATCH,
                false => Code::BAD_ID,
            };
            let message = format!("no file can be named after {id}: {error}", id = quoted(id));
            inspection.report("/agent_id", code, message);
        }
        (Ok(name), Some(key)) if !layout::fits(&name, key) => {
            let message = format!(
                "{id} is stored under {key}, but belongs in the file {name}",
                id = quoted(id)
            );
            inspection.report("/agent_id", Code::KEY_MISMATCH, message);
        }
        _ => {}
    }
}

fn coordination(state: &CoordinationState, inspection: &mut Inspection<'_>) {
    inspection.timestamp("/last_inbox_check", state.last_inbox_check.as_ref());
    if let Some(unread) = state.unread_messages.filter(|unread| *unread < 0.0) {
        let message = format!("{unread} is not a number of unread messages");
        inspection.report("/unread_messages", Code::OUT_OF_RANGE, message);
    }
    let overview = state.last_epic_readme_update.as_ref();
    inspection.timestamp("/last_epic_readme_update", overview);
    inspection.timestamp("/last_status_update", state.last_status_update.as_ref());
}
