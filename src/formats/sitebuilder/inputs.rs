//! The inputs that the command takes for a first checkpoint.

use std::collections::HashSet;

use super::SitebuilderCheckpoint;
use crate::checkpoint::{Checkpoint, Error, Input, InputKind, Result, Start};
use crate::quoted;

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
    let given = start.given;
    let [agent, task] = start.needs(
        SitebuilderCheckpoint::FORMAT,
        [
            (start.agent, "an agent (--agent)"),
            (given.text("task"), "a task id (--task)"),
        ],
    )?;
    let mut ids = HashSet::new();
    if let Some(twice) = start.plan.iter().find(|id| !ids.insert(*id)) {
        return Err(Error::wrong_input(format!(
            "the plan has the subtask {} twice; an id stands for one",
            quoted(twice)
        )));
    }
    let mut checkpoint = SitebuilderCheckpoint::begin(agent, task, start.plan, start.now)
        .with_criteria(given.texts("criteria"));
    let total = given.number("total").map(u32::try_from);
    if let Some(Ok(total)) = total {
        checkpoint = checkpoint.with_total(total);
    }
    checkpoint.agent_name = given.text("agent-name").map(str::to_owned);
    checkpoint.task_title = given.text("title").map(str::to_owned);
    Ok(checkpoint)
}
