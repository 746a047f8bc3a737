//! What the command takes for a first checkpoint.

use super::SitebuilderCheckpoint;
use crate::checkpoint::{Checkpoint, Input, InputKind, Result, Start};

const START: &[&str] = &["start"];

pub(super) const INPUTS: &[Input] = &[
    Input::new("task", InputKind::Text, "The task id", START),
    Input::new("title", InputKind::Text, "What the task is called", START),
    Input::new(
        "agent-name",
        InputKind::Text,
        "What the agent is called, such as Riley",
        START,
    ),
    Input::new(
        "criteria",
        InputKind::Texts,
        "The acceptance criteria, none of which is met yet",
        START,
    ),
    Input::new(
        "total",
        InputKind::Number(0, u32::MAX as u64),
        "How many subtasks there are, where --plan does not list all of them",
        START,
    ),
];

pub(super) fn start(start: &Start<'_>) -> Result<SitebuilderCheckpoint> {
    let needs = |value, what: &str| start.needs(value, SitebuilderCheckpoint::FORMAT, what);
    let given = start.given;
    let agent = needs(start.agent, "an agent: name it with --agent")?;
    let task = needs(given.text("task"), "a task id: name it with --task")?;
    let mut checkpoint = SitebuilderCheckpoint::begin(agent, task, start.plan, start.now)
        .with_criteria(given.texts("criteria"));
    if let Some(name) = given.text("agent-name") {
        checkpoint = checkpoint.with_agent_name(name);
    }
    if let Some(total) = given
        .number("total")
        .and_then(|total| u32::try_from(total).ok())
    {
        checkpoint = checkpoint.with_total(total);
    }
    if let Some(title) = given.text("title") {
        checkpoint = checkpoint.with_title(title);
    }
    Ok(checkpoint)
}
