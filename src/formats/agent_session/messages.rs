//! The texts that agents, the primary and the user send each other about a checkpoint.

use chrono::{DateTime, TimeDelta, Utc};

use super::AgentCheckpoint;
use super::operations::stage_name;
use super::recovery::FIRST_STAGE;
use crate::checkpoint::{Checkpoint, FUTURE_TOLERANCE, Key, Result};

/// How long an agent has to answer a status check.
pub const TIME_TO_ANSWER: TimeDelta = TimeDelta::minutes(15);

/// The age at which an agent gets a status check.
pub const STATUS_CHECK_AT: TimeDelta = TimeDelta::minutes(30);

/// The age at which an agent is taken for crashed and the user decides.
pub const ESCALATION_AT: TimeDelta = TimeDelta::minutes(60);

fn id(agent: &AgentCheckpoint) -> &str {
    agent.agent_id.as_deref().unwrap_or("the agent")
}

fn feature(agent: &AgentCheckpoint) -> &str {
    agent.feature.as_deref().unwrap_or("its feature")
}

/// The file of an agent, from the project's root.
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

/// The whole minutes of an age; of a stamp that is ahead of the clock none have passed.
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

fn bullets<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let lines: Vec<String> = texts.into_iter().map(|text| format!("- {text}")).collect();
    if lines.is_empty() {
        "- none".to_owned()
    } else {
        lines.join("\n")
    }
}

/// What an agent says that found its checkpoint and goes on. Times are in UTC.
#[must_use]
pub fn resume(agent: &AgentCheckpoint, now: DateTime<Utc>) -> String {
    let steps: Vec<String> = agent
        .next_steps
        .iter()
        .zip(1..)
        .map(|(step, number)| format!("{number}. {step}"))
        .collect();
    let status = agent.status.as_ref().map_or("unknown", |s| s.as_str());
    let handoff = agent.handoff();
    format!(
        "✅ Checkpoint found! Resuming work...\n\n\
         **Previous Session:**\n- Stage: {}\n- Last Update: {}\n- Status: {status}\n\n\
         **Current State:**\n- {}\n\n**Modified files, to be read first:**\n{}\n\n\
         **Resuming from:** {}\n\n**Next Steps:**\n{}\n",
        place_or_unknown(agent),
        last_update(agent, now, "%H:%M"),
        agent
            .recovery_instructions
            .as_deref()
            .unwrap_or("No recovery instructions were left"),
        bullets(agent.files()),
        handoff.start_at().unwrap_or("the beginning of the stage"),
        if steps.is_empty() {
            "none".to_owned()
        } else {
            steps.join("\n")
        },
    )
}

/// The note in the handoff package of an agent that takes over, with the file that the old agent's
/// checkpoint is in: where it was archived first, [`handoff_note_from`] names the archive.
#[must_use]
pub fn handoff_note(agent: &AgentCheckpoint) -> String {
    handoff_note_from(agent, &file(id(agent)))
}

/// As [`handoff_note`], with the checkpoint in this file, such as
/// `agent_checkpoints/secondary_a_crashed_1768489200.json`.
#[must_use]
pub fn handoff_note_from(agent: &AgentCheckpoint, file: &str) -> String {
    format!(
        "Resuming work from crashed agent {}.\nFeature: {}\nCheckpoint File: {file}\n\
         Resume from: {}\n",
        id(agent),
        feature(agent),
        place_or_unknown(agent),
    )
}

/// The handoff package of an agent that begins the feature anew, after a restart from scratch: it says
/// nothing of what was done before.
#[must_use]
pub fn fresh_handoff(agent: &AgentCheckpoint, new_id: &str) -> String {
    let name = stage_name(FIRST_STAGE);
    format!(
        "I'm starting {} from scratch.\n\nMy Agent ID: {new_id}\nStart from: {FIRST_STAGE} {name}\n\n\
         1. Create my checkpoint file: {}, with a fresh session_id.\n\
         2. Start from the beginning of the {FIRST_STAGE} {name} guide.\n\
         3. Update the checkpoint every {} minutes.\n",
        feature(agent),
        file(new_id),
        super::INTERVAL.num_minutes(),
    )
}

/// What the user gives an agent, called `new_id`, that takes over from one that crashed, whose file is
/// in its place; where it was archived first, [`take_over_from`] names the archive.
#[must_use]
pub fn take_over(agent: &AgentCheckpoint, new_id: &str) -> String {
    let old = file(id(agent));
    let new = file(new_id);
    let own = if new == old {
        format!("Rename {old} to its archive and create a NEW checkpoint file of that name")
    } else {
        format!("Create a NEW checkpoint file: {new}")
    };
    taking_over(agent, new_id, &old, &own)
}

/// As [`take_over`], with the old agent's checkpoint in this file, such as
/// `agent_checkpoints/secondary_a_crashed_1768489200.json`; so the new agent can have the old id.
#[must_use]
pub fn take_over_from(agent: &AgentCheckpoint, new_id: &str, file: &str) -> String {
    let own = format!("Create a NEW checkpoint file: {}", self::file(new_id));
    taking_over(agent, new_id, file, &own)
}

fn taking_over(agent: &AgentCheckpoint, new_id: &str, file: &str, own: &str) -> String {
    let old = id(agent);
    let begin = agent.handoff();
    format!(
        "I'm taking over {} from crashed {old}.\n\n\
         Checkpoint File: {file}\nResume from: {}\nMy Agent ID: {new_id}\n\n\
         1. Read the checkpoint and the files it names as modified.\n\
         2. {own}, with previous_agent \"{old}\", recovery_notes and a fresh session_id.\n\
         3. Continue from: {}\n4. Confirm the takeover to the primary.\n\n\
         Recovery instructions: {}\n",
        feature(agent),
        place_or_unknown(agent),
        begin.start_at().unwrap_or("the beginning of the stage"),
        agent
            .recovery_instructions
            .as_deref()
            .unwrap_or("none were left"),
    )
}

/// The message that the primary sends an agent that is late (30 minutes), as message `number` of its
/// inbox file. The agent has 15 minutes to answer. Times are in UTC.
#[must_use]
pub fn status_check(agent: &AgentCheckpoint, number: u32, now: DateTime<Utc>) -> String {
    let minutes = minutes(agent.age(now).unwrap_or(STATUS_CHECK_AT));
    format!(
        "## Message {number} ({}) ⏳ UNREAD\n\
         **Subject:** CHECKPOINT WARNING - No Update in {minutes} Minutes\n\
         **Action:** Please update your checkpoint and confirm you're still working\n\
         **Details:** Your last checkpoint was at {}, in {}.\n\
         A checkpoint is expected every {} minutes. Are you still actively working?\n\n\
         Do one of these:\n\
         1. Still working: update the checkpoint now, reply \"Still working\" and carry on.\n\
         2. Blocked: record the blocker in the checkpoint and describe it in your reply.\n\
         3. Done or waiting: set the status to COMPLETE or WAITING and say so.\n\n\
         **Next:** Reply and update the checkpoint as soon as possible\n\
         **Acknowledge:** Reply within {} minutes, by {}\n",
        now.format("%Y-%m-%d %H:%M"),
        last_update(agent, now, "%H:%M"),
        place_or_unknown(agent),
        super::INTERVAL.num_minutes(),
        TIME_TO_ANSWER.num_minutes(),
        (now + TIME_TO_ANSWER).format("%H:%M"),
    )
}

/// The message that tells the user of an agent that is taken for crashed (60 minutes), with the three
/// ways to go on. Times are in UTC.
#[must_use]
pub fn escalation(agent: &AgentCheckpoint, now: DateTime<Utc>) -> String {
    let id = id(agent);
    let feature = feature(agent);
    let place = place_or_unknown(agent);
    let minutes = minutes(agent.age(now).unwrap_or(ESCALATION_AT));
    format!(
        "🚨 STALE AGENT: {}\n\n\
         - Agent: {id}\n- Feature: {feature}\n- Last checkpoint: {}\n- Last known stage: {place}\n\
         - Checkpoint file: {}\n\n\
         Its session has likely crashed or lost its context, and {feature} is stalled. A status check \
         is to be answered within {} minutes.\n\n\
         **Option 1: The same agent resumes.** Restart {id}; it reads its checkpoint and continues in a \
         fresh session. For a session that will come back.\n\
         **Option 2: A new agent takes over.** It reads the checkpoint and continues {feature} from \
         {place}. For an agent that will not come back.\n\
         **Option 3: The primary takes over {feature}**, now or in a later wave: slower, but it needs no \
         new agent.\n\n\
         Which one?\n",
        user_notice(id, minutes),
        last_update(agent, now, "%Y-%m-%d %H:%M"),
        file(id),
        TIME_TO_ANSWER.num_minutes(),
    )
}

/// The sentence that tells the user how long an agent was silent.
#[must_use]
pub fn user_notice(agent_id: &str, minutes: i64) -> String {
    format!("{agent_id} hasn't updated checkpoint in {minutes} minutes")
}

/// The line of the group's overview, `EPIC_README.md`, for an agent that is taken for crashed.
#[must_use]
pub fn overview_line(agent_id: &str) -> String {
    format!("{agent_id}: STALE (likely crashed)")
}

/// The step of a guide that has an agent update its checkpoint every 15 minutes.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the agent.
pub fn update_guide(agent: &Key) -> Result<String> {
    let name = super::layout::file_name(agent)?;
    Ok(format!(
        "### Update Checkpoint (every {0} minutes, at phase transitions, when blocked, at sync points)\n\n\
         1. Update `agent_checkpoints/{name}`:\n   \
         - `last_checkpoint`: now\n   - `next_checkpoint_expected`: +{0} minutes\n   \
         - `stage`: where you are\n   - `current_step`: what you are working on right now\n   \
         - `completed_steps`: add what is newly completed\n   \
         - `files_modified`: add what you edited\n   \
         - `recovery_instructions`: how to resume from here\n\
         2. Verify that it is valid: `ckpt validate agent_checkpoints/{name}`\n\
         3. Reset the {0}-minute timer. (A backup is made with every update through this library.)\n",
        super::INTERVAL.num_minutes(),
    ))
}

/// The step of a guide that has an agent go from one stage to the next.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) when no file can be named after the agent.
pub fn transition_guide(agent: &Key, from: &str, to: &str) -> Result<String> {
    let name = super::layout::file_name(agent)?;
    Ok(format!(
        "### Complete {from} (transition to {to})\n\n\
         1. Final checkpoint update:\n   - `stage`: \"{to}\"\n   - `phase`: \"{} - Starting\"\n   \
         - `completed_steps`: add \"{from} complete\"\n   - `next_steps`: the tasks of {to}\n   \
         - `recovery_instructions`: \"Resume from beginning of {to}\"\n\
         2. Verify that it was saved: `ckpt show agent_checkpoints/{name}` says {to}.\n\
         3. Proceed to {to}.\n",
        stage_name(to),
    ))
}
