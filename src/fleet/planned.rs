//! What should be there and is not: planned tasks, and agents without a checkpoint.

use std::collections::HashSet;

use super::{FleetOptions, Place, Planned, Row, RowState};
use crate::checkpoint::{Checkpoint, Key};
use crate::formats::AgentCheckpoint;

pub(super) fn missing(rows: &[Row], options: &FleetOptions) -> Vec<Row> {
    let mut missing = Vec::new();
    if !options.planned.is_empty() {
        let begun: HashSet<(&str, Option<&str>)> = rows
            .iter()
            .filter_map(|row| Some((row.task.as_deref()?, row.agent.as_deref())))
            .collect();
        let tasks: HashSet<&str> = begun.iter().map(|(task, _)| *task).collect();
        let is_begun = |planned: &Planned| match planned.agent.as_deref() {
            Some(agent) => begun.contains(&(planned.task.as_str(), Some(agent))),
            None => tasks.contains(planned.task.as_str()),
        };
        missing.extend(
            options
                .planned
                .iter()
                .filter(|planned| !is_begun(planned))
                .map(not_started),
        );
    }
    if !options.expected.is_empty() {
        let mut there = HashSet::new();
        for row in rows {
            there.extend(row.agent.as_deref().map(plain));
            // A corrupt file of that name is the agent's too; it is a row of its own.
            let name = row.place.file.as_ref().and_then(|file| file.file_name());
            there.extend(name.and_then(|name| name.to_str()).map(str::to_owned));
        }
        let is_there = |agent: &&String| there.contains(&plain(agent));
        missing.extend(
            options
                .expected
                .iter()
                .filter(|agent| !is_there(agent))
                .map(|agent| {
                    let mut row = Row::new(Place::default(), RowState::Missing);
                    row.agent = super::bounded::said(Some(agent));
                    row
                }),
        );
    }
    missing
}

fn not_started(planned: &Planned) -> Row {
    let mut row = Row::new(Place::default(), RowState::NotStarted);
    row.task = super::bounded::said(Some(&planned.task));
    row.agent = super::bounded::said(planned.agent.as_deref());
    row
}

/// The name of an agent's file, by which all spellings of its id are one.
fn plain(agent: &str) -> String {
    let key = Key::new(agent).ok();
    let name = key.and_then(|key| (AgentCheckpoint::layout().file_name)(&key).ok());
    name.unwrap_or_else(|| agent.to_lowercase())
}
