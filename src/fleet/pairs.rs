//! One id in two checkpoints, and one checkpoint in two checkouts of a repository or in a copy of its folder.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::survey::Found;
use super::{Finding, FleetOptions, Next, Row, RowState, bounded};
use crate::checkpoint::{Checkpoint, Handoff, Key, ResumeDecision};
use crate::formats::PipelineState;

/// By what a checkpoint is known in every checkout of its repository: that, its file in it, and its slot.
pub(super) type Copy = (PathBuf, PathBuf, String);

/// An id: its project, its format and the file that it has.
type Id = (usize, &'static str, String);

/// Which checkpoints have which id.
#[derive(Default)]
pub(super) struct Pairs {
    ids: BTreeMap<Id, Holders>,
    /// The projects and rows of one file in several checkouts; and whether an id inside already tells.
    copies: BTreeMap<Copy, Vec<(usize, bool, usize)>>,
    /// Hashes of what only copies of one task have in common, each with its row.
    traces: Vec<(u64, usize)>,
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
        if let Some(key) = found.id.as_ref().or(found.key.as_ref()) {
            let traces = traces(key, found, handoff);
            self.traces
                .extend(traces.into_iter().map(|trace| (trace, number)));
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
        holders.is_agent |= handoff.agent.as_deref() == Some(id.as_str());
        holders.rows.push(number);
    }

    pub(super) fn findings(&self, rows: &[Row]) -> Vec<Finding> {
        let several = self.ids.values().filter(|holders| holders.rows.len() > 1);
        let mut told: Vec<Vec<usize>> = Vec::new();
        let mut findings = Vec::new();
        for holders in several {
            let id = holders.id.clone();
            let places = places(&holders.rows, rows);
            findings.push(if holders.is_agent {
                Finding::SameAgent { agent: id, places }
            } else {
                Finding::SameKey { key: id, places }
            });
            told.push(holders.rows.clone());
        }
        let of_paths: Vec<Vec<usize>> = self.of_copies(rows).collect();
        for numbers in of_paths.into_iter().chain(self.of_traces(rows)) {
            // One checkpoint may have several traces.
            let is_told = |of: &Vec<usize>| numbers.iter().all(|number| of.contains(number));
            if told.iter().any(is_told) {
                continue;
            }
            let Some(row) = rows.get(numbers[0]) else {
                continue;
            };
            let task = row.task.clone().or_else(|| row.agent.clone());
            findings.push(Finding::SameKey {
                key: task.unwrap_or_else(|| row.place.to_string()),
                places: places(&numbers, rows),
            });
            told.push(numbers);
        }
        findings
    }

    /// A task in the main checkout and in a worktree: one of them is old, and going on from that does its steps
    /// again. Of one that is finished everywhere a checkout has each its copy.
    fn of_copies(&self, rows: &[Row]) -> impl Iterator<Item = Vec<usize>> {
        self.copies.values().filter_map(|copies| {
            let numbers: Vec<usize> = copies.iter().map(|(_, _, number)| *number).collect();
            let is_told =
                |(project, has_id, _): &(usize, bool, usize)| *has_id && *project == copies[0].0;
            let is_alone = copies.len() < 2 || copies.iter().all(is_told);
            (!is_alone && !are_finished(&numbers, rows)).then_some(numbers)
        })
    }

    /// A task in a folder and in a copy of that, the most places first.
    fn of_traces(&self, rows: &[Row]) -> Vec<Vec<usize>> {
        let mut traces = self.traces.clone();
        traces.sort_unstable();
        traces.dedup();
        let several = traces.chunk_by(|one, other| one.0 == other.0);
        let mut several: Vec<Vec<usize>> = several
            .filter(|alike| alike.len() > 1)
            .map(|alike| alike.iter().map(|(_, number)| *number).collect())
            .filter(|numbers: &Vec<usize>| !are_finished(numbers, rows))
            .collect();
        several.sort_by_key(|numbers| (std::cmp::Reverse(numbers.len()), numbers.clone()));
        several.dedup();
        several
    }

    /// Marks the checkpoints whose work another agent took over into one of its own, as the newer one says.
    pub(super) fn mark_taken_over(&self, rows: &mut [Row], options: &FleetOptions) -> Vec<Finding> {
        let mut findings = Vec::new();
        let time = |row: &Row| row.updated_at.as_ref().and_then(|stamp| stamp.time());
        // For each agent from which others took over, the one of those that changed last.
        let mut newest: BTreeMap<Id, usize> = BTreeMap::new();
        for ((project, format, name), holders) in &self.ids {
            let Ok(format) = options.formats.get(format) else {
                continue;
            };
            let file_name = (format.layout)().file_name;
            for number in &holders.rows {
                let Some(row) = rows.get(*number) else {
                    continue;
                };
                let before = row.previous_agents.iter();
                let before =
                    before.filter_map(|agent| file_name(&Key::new(agent.as_str()).ok()?).ok());
                for file in before.filter(|file| file != name) {
                    let last = newest
                        .entry((*project, format.name, file))
                        .or_insert(*number);
                    if rows.get(*last).is_none_or(|last| time(row) >= time(last)) {
                        *last = *number;
                    }
                }
            }
        }
        for (id, holders) in self.ids.iter().filter(|(_, it)| it.is_agent) {
            for number in &holders.rows {
                let Some(old) = rows.get(*number).filter(|row| !is_finished(row)) else {
                    continue;
                };
                let next = newest.get(id).and_then(|next| rows.get(*next));
                let Some(next) = next.filter(|next| time(next) >= time(old)) else {
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

/// What a checkpoint has in common with copies of its file only, hashed: its key and a step with the time when that was
/// finished, or its whole text. Two tasks that have only their key in common are two.
fn traces(key: &Key, found: &Found<'_>, handoff: &Handoff) -> Vec<u64> {
    // It is beside the tasks, and none itself.
    if found.format.name == PipelineState::FORMAT {
        return Vec::new();
    }
    let trace = |of: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        (found.format.name, key.as_str()).hash(&mut hasher);
        of(&mut hasher);
        hasher.finish()
    };
    let steps = handoff.done.iter().filter_map(|step| {
        let at = step.at.as_ref()?.time()?;
        Some(trace(&|hasher| (&step.text, at).hash(hasher)))
    });
    let whole = trace(&|hasher| found.document.text().hash(hasher));
    steps.chain([whole]).collect()
}

fn are_finished(numbers: &[usize], rows: &[Row]) -> bool {
    let mut rows = numbers.iter().map(|number| rows.get(*number));
    rows.all(|row| row.is_some_and(is_finished))
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

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;
    use crate::checkpoint::Timestamp;

    #[test]
    fn who_took_over_from_whom_is_found_in_linear_time() {
        const AGENTS: usize = 4_000;
        let mut pairs = Pairs::default();
        let mut rows = Vec::new();
        for number in 0..AGENTS {
            let id = format!("agent-{number}");
            let mut row = Row::new(Place::file(&id), RowState::Claimed);
            row.agent = Some(id.clone());
            row.updated_at = Some(Timestamp::parse(format!(
                "2026-01-01T{:02}:{:02}:00Z",
                number / 60 % 24,
                number % 60
            )));
            if let Some(before) = number.checked_sub(1) {
                row.previous_agents = vec![format!("agent-{before}")];
            }
            rows.push(row);
            let holders = Holders {
                id: id.clone(),
                is_agent: true,
                rows: vec![number],
            };
            pairs.ids.insert((0, "task", format!("{id}.json")), holders);
        }
        let began = std::time::Instant::now();
        let found = pairs.mark_taken_over(&mut rows, &FleetOptions::new());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
        // All but the last, and those whose follower changed before them: the clock of this test has 24 hours.
        assert_eq!(found.len(), AGENTS - 1 - AGENTS / (24 * 60));
    }
}
