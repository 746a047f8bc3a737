//! The messages that agents, the primary and the user send each other about a checkpoint.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;

use super::operations::{next_stage, stage_name};
use super::recovery::FIRST_STAGE;
use super::{AgentCheckpoint, take_over_id};
#[cfg(feature = "template")]
use crate::checkpoint::Result;
use crate::checkpoint::{Checkpoint, FUTURE_TOLERANCE, Key, Status};
#[cfg(feature = "template")]
use crate::template::message;

/// How long an agent has to answer a status check.
pub const TIME_TO_ANSWER: TimeDelta = TimeDelta::minutes(15);

/// The age at which an agent gets a status check.
pub const STATUS_CHECK_AT: TimeDelta = TimeDelta::minutes(30);

/// The age at which an agent counts as crashed and the user decides.
pub const ESCALATION_AT: TimeDelta = TimeDelta::minutes(60);

fn id(agent: &AgentCheckpoint) -> &str {
    agent.agent_id.as_deref().unwrap_or("the agent")
}

fn feature(agent: &AgentCheckpoint) -> &str {
    agent.feature.as_deref().unwrap_or("its feature")
}

/// The path of an agent's file, relative to the project's root.
fn file(id: &str) -> String {
    let name = Key::new(id).and_then(|key| super::layout::file_name(&key));
    let name = name.unwrap_or_else(|_| "{agent_id}.json".to_owned());
    format!("agent_checkpoints/{name}")
}

/// The stage with its phase: `S2.P2 Specification Phase`.
pub(super) fn place(agent: &AgentCheckpoint) -> Option<String> {
    let phase = agent.named_phase().map(|phase| {
        let name = phase.split(" - ").next().unwrap_or(phase);
        if name.ends_with("Phase") {
            name.to_owned()
        } else {
            format!("{name} Phase")
        }
    });
    match (agent.named_stage(), phase) {
        (Some(stage), Some(phase)) => Some(format!("{stage} {phase}")),
        (stage, phase) => stage.map(str::to_owned).or(phase),
    }
}

fn place_or_unknown(agent: &AgentCheckpoint) -> String {
    place(agent).unwrap_or_else(|| "an unknown stage".to_owned())
}

/// The whole minutes of an age; 0 for a stamp that is ahead of the clock.
fn minutes(age: TimeDelta) -> i64 {
    age.num_minutes().max(0)
}

/// When the checkpoint was written and how long ago: `14:30 (45 minutes ago)`.
fn last_update(agent: &AgentCheckpoint, now: DateTime<Utc>, format: &str) -> String {
    let last = agent.last_checkpoint.as_ref();
    match (last.and_then(|last| last.time()), agent.age(now)) {
        (Some(time), Some(age)) => {
            let at = time.to_utc().format(format);
            if age < -FUTURE_TOLERANCE {
                format!("{at} (ahead of the clock here)")
            } else {
                format!("{at} ({} minutes ago)", minutes(age))
            }
        }
        _ => "at an unknown time".to_owned(),
    }
}

/// The templates of the protocol's own messages, by name.
#[cfg(feature = "template")]
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    (
        "agent-session/resumed",
        include_str!("templates/resumed.md"),
    ),
    (
        "agent-session/take-over",
        include_str!("templates/take-over.md"),
    ),
    (
        "agent-session/handoff-note",
        include_str!("templates/handoff-note.md"),
    ),
    (
        "agent-session/fresh-handoff",
        include_str!("templates/fresh-handoff.md"),
    ),
    (
        "agent-session/status-check",
        include_str!("templates/status-check.md"),
    ),
    (
        "agent-session/escalation",
        include_str!("templates/escalation.md"),
    ),
    (
        "agent-session/update-guide",
        include_str!("templates/update-guide.md"),
    ),
    (
        "agent-session/transition-guide",
        include_str!("templates/transition-guide.md"),
    ),
];

/// The values that the messages are rendered from. The field names are the names that templates use.
#[derive(Debug, Serialize)]
struct Facts {
    agent: String,
    feature: String,
    file: String,
    place: String,
    status: String,
    /// Whether the agent stopped in the middle of its work. An agent that waits or is blocked has not crashed.
    crashed: bool,
    /// What an agent that has not crashed is doing instead.
    stopped: Option<&'static str>,
    start_at: String,
    files: Vec<String>,
    next_steps: Vec<String>,
    recovery_instructions: Option<String>,
    last_update: String,
    last_update_with_day: String,
    late_minutes: i64,
    stalled_minutes: i64,
    number: u32,
    now: String,
    answer_by: String,
    interval: i64,
    time_to_answer: i64,
    new_id: String,
    new_file: String,
    first_stage: &'static str,
    first_stage_name: &'static str,
    from: String,
    to: String,
    phase: String,
}

impl Facts {
    fn of(agent: &AgentCheckpoint, now: DateTime<Utc>) -> Facts {
        let handoff = agent.handoff();
        let age = agent.age(now);
        let new_id = take_over_id(id(agent));
        let status = agent.status.as_ref().map_or("unknown", |s| s.as_str());
        let from = agent.named_stage().unwrap_or(FIRST_STAGE);
        let to = next_stage(from);
        Facts {
            agent: id(agent).to_owned(),
            feature: feature(agent).to_owned(),
            file: file(id(agent)),
            place: place_or_unknown(agent),
            status: status.to_owned(),
            crashed: agent.status() == Status::InProgress,
            stopped: match agent.status() {
                Status::Paused => Some("waits"),
                Status::Blocked => Some("is blocked"),
                Status::Complete => Some("is complete"),
                _ => None,
            },
            start_at: handoff
                .start_at()
                .unwrap_or("the beginning of the stage")
                .to_owned(),
            files: handoff.files,
            next_steps: agent.next_steps.clone(),
            recovery_instructions: agent.recovery_instructions.clone(),
            last_update: last_update(agent, now, "%H:%M"),
            last_update_with_day: last_update(agent, now, "%Y-%m-%d %H:%M"),
            late_minutes: minutes(age.unwrap_or(STATUS_CHECK_AT)),
            stalled_minutes: minutes(age.unwrap_or(ESCALATION_AT)),
            number: 1,
            now: now.format("%Y-%m-%d %H:%M").to_string(),
            answer_by: (now + TIME_TO_ANSWER).format("%H:%M").to_string(),
            interval: super::INTERVAL.num_minutes(),
            time_to_answer: TIME_TO_ANSWER.num_minutes(),
            new_file: file(&new_id),
            new_id,
            first_stage: FIRST_STAGE,
            first_stage_name: stage_name(FIRST_STAGE),
            from: from.to_owned(),
            to: to.to_owned(),
            phase: stage_name(to).to_owned(),
        }
    }

    #[cfg(feature = "template")]
    fn kept_in(mut self, archive: Option<&str>) -> Facts {
        self.file = archive.map_or(self.file, str::to_owned);
        self
    }

    #[cfg(feature = "template")]
    fn by(mut self, new_id: &str) -> Facts {
        new_id.clone_into(&mut self.new_id);
        self.new_file = file(new_id);
        self
    }
}

/// The values that templates see as `own`.
pub(super) fn values(agent: &AgentCheckpoint, now: DateTime<Utc>) -> Value {
    serde_json::to_value(Facts::of(agent, now)).unwrap_or_default()
}

/// The values for messages that state no age.
#[cfg(feature = "template")]
fn timeless(agent: &AgentCheckpoint) -> Facts {
    let last = agent.last_checkpoint.as_ref().and_then(|last| last.time());
    Facts::of(agent, last.map(|time| time.to_utc()).unwrap_or_default())
}

/// The message of an agent that found its checkpoint and resumes. Times are in UTC.
#[cfg(feature = "template")]
#[must_use]
pub fn resume(agent: &AgentCheckpoint, now: DateTime<Utc>) -> String {
    message(TEMPLATES, "agent-session/resumed", &Facts::of(agent, now))
}

/// The note in the handoff package of an agent that takes over. It names the file with the old agent's checkpoint: its
/// own, or `archive`, such as `agent_checkpoints/secondary_a_crashed_1768489200.json`.
#[cfg(feature = "template")]
#[must_use]
pub fn handoff_note(agent: &AgentCheckpoint, archive: Option<&str>) -> String {
    let facts = timeless(agent).kept_in(archive);
    message(TEMPLATES, "agent-session/handoff-note", &facts)
}

/// The handoff package of an agent that restarts the feature from scratch. It does not mention earlier work.
#[cfg(feature = "template")]
#[must_use]
pub fn fresh_handoff(agent: &AgentCheckpoint, new_id: &str) -> String {
    message(
        TEMPLATES,
        "agent-session/fresh-handoff",
        &timeless(agent).by(new_id),
    )
}

/// The prompt that the user gives an agent, called `new_id`, that takes over from a crashed one. When the old
/// checkpoint was archived (see [`handoff_note`]), the new agent can have the old id.
#[cfg(feature = "template")]
#[must_use]
pub fn take_over(agent: &AgentCheckpoint, new_id: &str, archive: Option<&str>) -> String {
    let facts = timeless(agent).by(new_id).kept_in(archive);
    message(TEMPLATES, "agent-session/take-over", &facts)
}

/// The message that the primary sends to an agent that is late (30 minutes), as message `number` of its inbox file. The
/// agent has 15 minutes to answer. Times are in UTC.
#[cfg(feature = "template")]
#[must_use]
pub fn status_check(agent: &AgentCheckpoint, number: u32, now: DateTime<Utc>) -> String {
    let mut facts = Facts::of(agent, now);
    facts.number = number;
    message(TEMPLATES, "agent-session/status-check", &facts)
}

/// The message to the user about an agent that counts as crashed (60 minutes), with the three ways to continue. Times
/// are in UTC.
#[cfg(feature = "template")]
#[must_use]
pub fn escalation(agent: &AgentCheckpoint, now: DateTime<Utc>) -> String {
    message(
        TEMPLATES,
        "agent-session/escalation",
        &Facts::of(agent, now),
    )
}

/// The sentence that tells the user how long an agent was silent.
#[must_use]
pub fn user_notice(agent_id: &str, minutes: i64) -> String {
    format!("{agent_id} hasn't updated checkpoint in {minutes} minutes")
}

/// The line in the group's overview, `EPIC_README.md`, for an agent that counts as crashed.
#[must_use]
pub fn overview_line(agent_id: &str) -> String {
    format!("{agent_id}: STALE (likely crashed)")
}

/// The values that the steps of a guide are rendered from.
#[cfg(feature = "template")]
#[derive(Serialize)]
struct Guide<'g> {
    file: String,
    interval: i64,
    from: &'g str,
    to: &'g str,
    phase: &'g str,
}

#[cfg(feature = "template")]
impl<'g> Guide<'g> {
    fn of(agent: &Key, from: &'g str, to: &'g str) -> Result<Guide<'g>> {
        Ok(Guide {
            file: format!("agent_checkpoints/{}", super::layout::file_name(agent)?),
            interval: super::INTERVAL.num_minutes(),
            from,
            to,
            phase: stage_name(to),
        })
    }
}

/// The step of a guide that tells an agent to update its checkpoint every 15 minutes.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the agent.
#[cfg(feature = "template")]
pub fn update_guide(agent: &Key) -> Result<String> {
    Ok(message(
        TEMPLATES,
        "agent-session/update-guide",
        &Guide::of(agent, "", "")?,
    ))
}

/// The step of a guide that tells an agent to move from one stage to the next.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the agent.
#[cfg(feature = "template")]
pub fn transition_guide(agent: &Key, from: &str, to: &str) -> Result<String> {
    Ok(message(
        TEMPLATES,
        "agent-session/transition-guide",
        &Guide::of(agent, from, to)?,
    ))
}
