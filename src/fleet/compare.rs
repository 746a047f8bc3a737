//! Rows against each other: checkpoints of one task or one agent, work that was taken over, and files that several
//! agents changed.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::{Finding, PlanSummary, Row, RowState, bounded};
use crate::checkpoint::{Handoff, Key, ResumeDecision};
use crate::registry::{Format, Formats};

// ---------------------------------------------------------------------------------------------------------------------
// Checkpoints of one task or one agent

/// A file that is the same in every checkout of a repository: the repository, the path in it, and the slot of a host
/// file.
pub(super) type CheckoutFile = (PathBuf, PathBuf, String);

/// What tells whether two checkpoints are of one task.
pub(super) struct Identity<'c> {
    pub(super) project: usize,
    /// The number of its row.
    pub(super) row: usize,
    pub(super) format: &'c Format,
    /// The id in the document.
    pub(super) id: Option<&'c Key>,
    /// The key that its place gives.
    pub(super) key: Option<&'c Key>,
    pub(super) copy: Option<&'c CheckoutFile>,
    pub(super) text: &'c str,
    pub(super) handoff: &'c Handoff,
}

/// An id: its project, its format, and the name of the file for it.
type Id = (usize, &'static str, String);

/// The checkpoints by what makes two of them one task.
#[derive(Default)]
pub(super) struct Copies {
    by_id: BTreeMap<Id, Holders>,
    by_checkout: BTreeMap<CheckoutFile, Vec<InCheckout>>,
    /// Hashes of what only copies of one task have in common, each with its row.
    traces: Vec<(u64, usize)>,
}

/// The checkpoints that have one id.
struct Holders {
    id: String,
    /// Whether the id is that of the agent: then the checkpoint belongs to its agent.
    is_agent: bool,
    rows: Vec<usize>,
}

/// A checkpoint in one checkout of a repository.
struct InCheckout {
    project: usize,
    has_id: bool,
    row: usize,
}

impl Copies {
    pub(super) fn add(&mut self, of: &Identity<'_>) {
        if let Some(copy) = of.copy {
            let copies = self.by_checkout.entry(copy.clone()).or_default();
            copies.push(InCheckout {
                project: of.project,
                has_id: of.id.is_some(),
                row: of.row,
            });
        }
        if let Some(key) = of.id.or(of.key) {
            let traces = traces(key, of).into_iter();
            self.traces.extend(traces.map(|trace| (trace, of.row)));
        }
        let Some(id) = of.id else { return };
        // All spellings of an id have one file.
        let file = (of.format.layout().file_name)(id);
        let name = file.unwrap_or_else(|_| id.to_string());
        let is_agent = of.handoff.agent.as_deref() == Some(id.as_str());
        let holders = self.by_id.entry((of.project, of.format.name(), name));
        let holders = holders.or_insert_with(|| Holders {
            id: bounded::text(id.as_str()),
            is_agent,
            rows: Vec::new(),
        });
        holders.is_agent |= is_agent;
        holders.rows.push(of.row);
    }

    /// A finding for each group of checkpoints of one task or one agent.
    pub(super) fn findings(&self, rows: &[Row]) -> Vec<Finding> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut findings = Vec::new();
        let several = self.by_id.values().filter(|holders| holders.rows.len() > 1);
        for holders in several {
            let id = holders.id.clone();
            let places = places(&holders.rows, rows);
            findings.push(if holders.is_agent {
                Finding::SameAgent { agent: id, places }
            } else {
                Finding::SameKey { key: id, places }
            });
            groups.push(holders.rows.clone());
        }
        let of_checkouts = self.of_checkouts(rows);
        for group in of_checkouts.into_iter().chain(self.of_traces(rows)) {
            // Copies have several traces in common, and often an id or a checkout as well.
            let is_part_of = |known: &Vec<usize>| group.iter().all(|row| known.contains(row));
            if groups.iter().any(is_part_of) {
                continue;
            }
            let Some(row) = rows.get(group[0]) else {
                continue;
            };
            let task = row.task.clone().or_else(|| row.agent.clone());
            findings.push(Finding::SameKey {
                key: task.unwrap_or_else(|| row.place.to_string()),
                places: places(&group, rows),
            });
            groups.push(group);
        }
        findings
    }

    /// Tasks in the main checkout and in a worktree: one of the two is old, and an agent that goes on from it repeats
    /// steps. A task that is finished everywhere has a copy in each checkout.
    fn of_checkouts(&self, rows: &[Row]) -> Vec<Vec<usize>> {
        let groups = self.by_checkout.values().filter_map(|copies| {
            let group: Vec<usize> = copies.iter().map(|copy| copy.row).collect();
            let first = copies.first()?.project;
            // Those are compared by their id.
            let have_id = copies.iter().all(|it| it.has_id && it.project == first);
            let is_single = copies.len() < 2 || have_id;
            (!is_single && !are_finished(&group, rows)).then_some(group)
        });
        groups.collect()
    }

    /// Tasks in a folder and in a copy of that folder, those with the most places first.
    fn of_traces(&self, rows: &[Row]) -> Vec<Vec<usize>> {
        let mut traces = self.traces.clone();
        traces.sort_unstable();
        traces.dedup();
        let groups = traces.chunk_by(|one, other| one.0 == other.0);
        let mut groups: Vec<Vec<usize>> = groups
            .filter(|group| group.len() > 1)
            .map(|group| group.iter().map(|(_, row)| *row).collect())
            .filter(|group: &Vec<usize>| !are_finished(group, rows))
            .collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group.clone()));
        groups.dedup();
        groups
    }

    /// Marks the checkpoints whose work another agent took over, as the checkpoint of that agent states.
    pub(super) fn mark_taken_over(&self, rows: &mut [Row], formats: &Formats) -> Vec<Finding> {
        let newest = self.newest_successors(rows, formats);
        let mut findings = Vec::new();
        for (id, holders) in self.by_id.iter().filter(|(_, it)| it.is_agent) {
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
                old.next = Some(PlanSummary {
                    decision: ResumeDecision::Refuse,
                    start_at: None,
                    message: format!("{by} took the work over"),
                });
                old.state = RowState::TakenOver { by };
            }
        }
        findings
    }

    /// For each agent from which others took over, the row of those that changed last.
    fn newest_successors(&self, rows: &[Row], formats: &Formats) -> BTreeMap<Id, usize> {
        let mut newest: BTreeMap<Id, usize> = BTreeMap::new();
        for ((project, format, name), holders) in &self.by_id {
            let Ok(format) = formats.get(format) else {
                continue;
            };
            let file_of = |agent: &String| {
                let key = Key::new(agent.as_str()).ok()?;
                (format.layout().file_name)(&key).ok()
            };
            for number in &holders.rows {
                let Some(row) = rows.get(*number) else {
                    continue;
                };
                let before = row.previous_agents.iter().filter_map(file_of);
                for file in before.filter(|file| file != name) {
                    let last = newest.entry((*project, format.name(), file));
                    let last = last.or_insert(*number);
                    if rows.get(*last).is_none_or(|last| time(row) >= time(last)) {
                        *last = *number;
                    }
                }
            }
        }
        newest
    }
}

/// Hashes of what a checkpoint has in common only with copies of its file: its key with a step and the time when that
/// was finished, or its whole text. Two tasks that have only their key in common are two.
fn traces(key: &Key, of: &Identity<'_>) -> Vec<u64> {
    // The state of a pipeline is no task.
    if !of.format.is_task() {
        return Vec::new();
    }
    let trace = |with: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        (of.format.name(), key.as_str()).hash(&mut hasher);
        with(&mut hasher);
        hasher.finish()
    };
    let steps = of.handoff.done.iter().filter_map(|step| {
        let at = step.at.as_ref()?.time()?;
        Some(trace(&|hasher| (&step.text, at).hash(hasher)))
    });
    let whole = trace(&|hasher| of.text.hash(hasher));
    steps.chain([whole]).collect()
}

fn are_finished(group: &[usize], rows: &[Row]) -> bool {
    let mut rows = group.iter().map(|row| rows.get(*row));
    rows.all(|row| row.is_some_and(is_finished))
}

fn is_finished(row: &Row) -> bool {
    row.result() == "finished"
}

fn time(row: &Row) -> Option<chrono::DateTime<chrono::FixedOffset>> {
    row.updated_at.as_ref()?.time()
}

/// Where these rows are, the one that changed last first.
fn places(group: &[usize], rows: &[Row]) -> Vec<String> {
    let mut rows: Vec<&Row> = group.iter().filter_map(|row| rows.get(*row)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(time(row)));
    rows.iter().map(|row| row.place.to_string()).collect()
}

// ---------------------------------------------------------------------------------------------------------------------
// Files that several agents changed

/// The most files of one checkpoint that are compared.
const MOST_FILES: usize = 1000;
/// The longest path that is compared, in bytes.
const LONGEST: usize = 1024;

/// The files of all checkpoints whose agents may be at work: one text, and where each path is in it.
#[derive(Default)]
pub(super) struct SharedFiles {
    text: String,
    uses: Vec<Use>,
}

/// One file that the agent of one row changed.
struct Use {
    project: usize,
    start: usize,
    length: usize,
    row: usize,
}

impl SharedFiles {
    pub(super) fn add(&mut self, project: usize, row: usize, files: &[String]) {
        for file in files.iter().filter(|f| f.len() <= LONGEST).take(MOST_FILES) {
            let start = self.text.len();
            push_normalized(&mut self.text, file);
            let length = self.text.len() - start;
            if length == 0 {
                continue;
            }
            // An absolute path is the same file in all projects.
            let is_absolute = file.starts_with('/');
            self.uses.push(Use {
                project: if is_absolute { usize::MAX } else { project },
                start,
                length,
                row,
            });
        }
    }

    fn path(&self, of: &Use) -> &str {
        &self.text[of.start..of.start + of.length]
    }

    /// A finding for each group of agents, with all files that they share.
    pub(super) fn findings(mut self, rows: &[Row]) -> Vec<Finding> {
        let mut uses = std::mem::take(&mut self.uses);
        let key = |it: &Use| (it.project, self.path(it), it.row);
        uses.sort_by(|one, other| key(one).cmp(&key(other)));
        let mut groups: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        let same = |one: &Use, other: &Use| {
            one.project == other.project && self.path(one) == self.path(other)
        };
        for users in uses.chunk_by(same) {
            let mut group: Vec<usize> = users.iter().map(|user| user.row).collect();
            group.dedup();
            if group.len() > 1 && are_several(&group, rows) {
                let path = bounded::text(self.path(&users[0]));
                groups.entry(group).or_default().push(path);
            }
        }
        let finding = |(group, paths): (Vec<usize>, Vec<String>)| {
            let rows = || group.iter().filter_map(|row| rows.get(*row));
            let mut agents: Vec<String> = rows().map(name).collect();
            agents.sort();
            agents.dedup();
            Finding::SharedPaths {
                agents,
                places: rows().map(|row| row.place.to_string()).collect(),
                paths,
            }
        };
        groups.into_iter().map(finding).collect()
    }
}

/// Whether these are several agents. One agent may have several tasks, and an agent that took over has the files of the
/// one before.
fn are_several(group: &[usize], rows: &[Row]) -> bool {
    let mut rows = group.iter().filter_map(|row| rows.get(*row));
    let Some(first) = rows.next() else {
        return false;
    };
    let follows = |one: &Row, other: &Row| {
        let agent = other.agent.as_ref();
        agent.is_some_and(|agent| one.previous_agents.contains(agent))
    };
    rows.any(|it| name(first) != name(it) && !follows(first, it) && !follows(it, first))
}

/// The agent of a row.
fn name(row: &Row) -> String {
    if row.agent_is_role
        && let (Some(agent), Some(task)) = (&row.agent, &row.task)
    {
        return format!("{agent} ({task})");
    }
    let name = row.agent.as_ref().or(row.task.as_ref());
    name.cloned().unwrap_or_else(|| row.place.to_string())
}

/// Adds a path as all agents would write it: `./src//a.rs` and `src\a.rs` are `src/a.rs`.
fn push_normalized(text: &mut String, path: &str) {
    let start = text.len();
    if path.starts_with('/') {
        text.push('/');
    }
    let mut is_first = true;
    for part in path.split(['/', '\\']) {
        if part.is_empty() || part == "." {
            continue;
        }
        if !is_first {
            text.push('/');
        }
        is_first = false;
        text.push_str(part);
    }
    if is_first {
        text.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;
    use crate::checkpoint::Timestamp;

    #[test]
    fn successors_are_found_in_linear_time() {
        const AGENTS: usize = 4_000;
        let mut copies = Copies::default();
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
            let id = (0, "task", format!("{id}.json"));
            copies.by_id.insert(id, holders);
        }
        let began = std::time::Instant::now();
        let found = copies.mark_taken_over(&mut rows, &Formats::default());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
        // All but the last, and those whose successor changed before them: the clock of this test has 24 hours.
        assert_eq!(found.len(), AGENTS - 1 - AGENTS / (24 * 60));
    }
}
