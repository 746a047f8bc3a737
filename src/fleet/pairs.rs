//! One id in two checkpoints, and one checkpoint in two checkouts of a repository.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::survey::Found;
use super::{Finding, FleetOptions, Next, Row, RowState, bounded};
use crate::checkpoint::{Handoff, Key, ResumeDecision};

/// By what a checkpoint is known in every checkout of its repository: that, its file in it, and its slot.
pub(super) type Copy = (PathBuf, PathBuf, String);

/// Which checkpoints have which id, by project, format and the file that the id has.
#[derive(Default)]
pub(super) struct Pairs {
    ids: BTreeMap<(usize, &'static str, String), Holders>,
    /// The projects and rows of one file in several checkouts; and whether an id inside already tells.
    copies: BTreeMap<Copy, Vec<(usize, bool, usize)>>,
}

struct Holders {
    id: String,
    /// Whether the id is that of the agent: then the checkpoint belongs to its agent.
    is_agent: bool,
    rows: Vec<usize>,
}

impl Pairs {
    pub(super) fn add(
        &mut self,
        project: usize,
        number: usize,
        found: &Found<'_>,
        handoff: &Handoff,
    ) {
        if let Some(copy) = found.copy.clone() {
            let copies = self.copies.entry(copy).or_default();
            copies.push((project, found.id.is_some(), number));
        }
        let Some(id) = &found.id else { return };
        // Spellings of one id have one file.
        let file = ((found.format.layout)().file_name)(id);
        let name = file.unwrap_or_else(|_| id.to_string());
        let holders = self
            .ids
            .entry((project, found.format.name, name))
            .or_insert_with(|| Holders {
                id: bounded::text(id.as_str()),
                is_agent: handoff.agent.as_deref() == Some(id.as_str()),
                rows: Vec::new(),
            });
        holders.rows.push(number);
    }

    pub(super) fn findings(&self, rows: &[Row]) -> Vec<Finding> {
        let several = self.ids.values().filter(|holders| holders.rows.len() > 1);
        let ids = several.map(|holders| {
            let id = holders.id.clone();
            let places = places(&holders.rows, rows);
            if holders.is_agent {
                Finding::SameAgent { agent: id, places }
            } else {
                Finding::SameKey { key: id, places }
            }
        });
        ids.chain(self.of_copies(rows)).collect()
    }

    /// A task in the main checkout and in a worktree: one of them is old, and going on from that does its steps
    /// again. Of one that is finished everywhere a checkout has each its copy.
    fn of_copies(&self, rows: &[Row]) -> impl Iterator<Item = Finding> {
        self.copies.values().filter_map(|copies| {
            let numbers: Vec<usize> = copies.iter().map(|(_, _, number)| *number).collect();
            let is_told =
                |(project, has_id, _): &(usize, bool, usize)| *has_id && *project == copies[0].0;
            let is_over = |number: &usize| rows.get(*number).is_some_and(is_finished);
            if copies.len() < 2 || copies.iter().all(is_told) || numbers.iter().all(is_over) {
                return None;
            }
            let row = rows.get(numbers[0])?;
            let task = row.task.clone().or_else(|| row.agent.clone());
            Some(Finding::SameKey {
                key: task.unwrap_or_else(|| row.place.to_string()),
                places: places(&numbers, rows),
            })
        })
    }

    /// Marks the checkpoints whose work another agent took over into one of its own, as the newer one says.
    pub(super) fn mark_taken_over(&self, rows: &mut [Row], options: &FleetOptions) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((project, format, name), holders) in self.ids.iter().filter(|(_, it)| it.is_agent) {
            let Ok(format) = options.formats.get(format) else {
                continue;
            };
            let file_of = |agent: &String| {
                let key = Key::new(agent.as_str()).ok()?;
                ((format.layout)().file_name)(&key).ok()
            };
            let of_format = self.ids.range((*project, format.name, String::new())..);
            let of_format =
                of_format.take_while(|((of, has, _), _)| (of, *has) == (project, format.name));
            let others: Vec<usize> = of_format
                .filter(|((_, _, other), _)| other != name)
                .flat_map(|(_, other)| other.rows.iter().copied())
                .collect();
            for number in &holders.rows {
                let Some(old) = rows.get(*number).filter(|row| !is_finished(row)) else {
                    continue;
                };
                let time = |row: &Row| row.updated_at.as_ref().and_then(|stamp| stamp.time());
                let follows = |row: &&Row| {
                    let mut before = row.previous_agents.iter().filter_map(file_of);
                    time(row) >= time(old) && before.any(|file| file == *name)
                };
                let next = others.iter().filter_map(|other| rows.get(*other));
                let Some(next) = next.filter(follows).max_by_key(|row| time(row)) else {
                    continue;
                };
                let by = next.agent.clone().unwrap_or_else(|| next.place.to_string());
                findings.push(Finding::TakenOver {
                    place: old.place.to_string(),
                    agent: holders.id.clone(),
                    by: by.clone(),
                    now_in: next.place.to_string(),
                });
                let old = &mut rows[*number];
                old.message = None;
                old.progress.rest = None;
                old.next = Some(Next {
                    decision: ResumeDecision::Refuse,
                    start_at: None,
                    message: format!("{by} took the work over"),
                });
                old.state = RowState::TakenOver { by };
            }
        }
        findings
    }
}

fn is_finished(row: &Row) -> bool {
    row.result() == "finished"
}

/// Where these rows are, that which changed last first.
fn places(numbers: &[usize], rows: &[Row]) -> Vec<String> {
    let mut rows: Vec<&Row> = numbers
        .iter()
        .filter_map(|number| rows.get(*number))
        .collect();
    rows.sort_by_key(|row| {
        std::cmp::Reverse(row.updated_at.as_ref().and_then(|stamp| stamp.time()))
    });
    rows.iter().map(|row| row.place.to_string()).collect()
}
