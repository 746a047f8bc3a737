//! Compares rows with each other: finds checkpoints of one task or one agent, work that was taken over, and files that
//! several agents changed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::kept::{Files, InRepository, Kept};
use super::{Finding, PlanSummary, Row, RowState, bounded};
use crate::checkpoint::{Handoff, Key, ResumeDecision};
use crate::registry::{Format, Formats};

// ---------------------------------------------------------------------------------------------------------------------
// Checkpoints of one task or one agent

/// A file as it is found in every checkout of a repository: its folder, its name, and the slot in a host file.
type CheckoutFile<'r> = (&'r Arc<InRepository>, &'r OsStr, &'r str);

/// An id: the index of its project, its format, and the file name for the id.
type Id = (usize, &'static str, String);

/// The id of an agent and its task at that time; the agent may have another task by now.
type Work = (Id, Option<String>);

/// Groups of checkpoints that belong to one task or agent.
pub(super) struct Copies {
    by_id: BTreeMap<Id, Holders>,
    /// Tasks found in several checkouts of a repository.
    of_checkouts: Vec<Vec<usize>>,
    /// Tasks found in a folder and in a copy of that folder.
    of_traces: Vec<Vec<usize>>,
}

/// The checkpoints with one id.
struct Holders {
    id: String,
    /// Whether the id is the agent's, so that the checkpoint belongs to an agent and not to a task.
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
    pub(super) fn of(rows: &[Row], formats: &Formats) -> Copies {
        let mut by_id: BTreeMap<Id, Holders> = BTreeMap::new();
        let mut in_checkouts: Vec<(CheckoutFile<'_>, InCheckout)> = Vec::new();
        let kept = || kept(rows);
        let count = kept().map(|(_, _, kept)| kept.traces.len()).sum();
        let mut repeated = Repeated::new(count);
        for (number, row, kept) in kept() {
            kept.traces.iter().for_each(|trace| repeated.add(*trace));
            let name = row.place.file.as_ref().and_then(|file| file.file_name());
            if let (Some(folder), Some(name)) = (&kept.checkout, name) {
                let slot = row.place.slot.as_deref().unwrap_or_default();
                let copy = InCheckout {
                    project: kept.project,
                    has_id: kept.id.is_some(),
                    row: number,
                };
                in_checkouts.push(((folder, name, slot), copy));
            }
            let format = row.format.and_then(|name| formats.get(name).ok());
            let (Some(id), Some(format)) = (&kept.id, format) else {
                continue;
            };
            // All spellings of an id have the same file name.
            let file = (format.layout().file_name)(id);
            let name = file.unwrap_or_else(|_| id.to_string());
            let holders = by_id.entry((kept.project, format.name(), name));
            let holders = holders.or_insert_with(|| Holders {
                id: bounded::text(id.as_str()),
                is_agent: false,
                rows: Vec::new(),
            });
            holders.is_agent |= kept.is_agent;
            holders.rows.push(number);
        }
        let traces = kept().flat_map(|(row, _, kept)| kept.traces.iter().map(move |it| (*it, row)));
        let traces = traces.filter(|(trace, _)| repeated.has(*trace));
        Copies {
            of_checkouts: of_checkouts(in_checkouts, rows),
            of_traces: of_traces(traces.collect(), rows),
            by_id,
        }
    }

    /// A finding for each group of checkpoints of one task or one agent.
    pub(super) fn findings(&self, rows: &[Row]) -> Vec<Finding> {
        // The groups of each row, so that a group is compared only with those that share a row.
        let mut groups: HashMap<usize, Vec<&[usize]>> = HashMap::new();
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
            for row in &holders.rows {
                groups.entry(*row).or_default().push(&holders.rows);
            }
        }
        for group in self.of_checkouts.iter().chain(&self.of_traces) {
            // Copies share several traces, and often an id or a checkout as well.
            let is_part_of = |known: &&[usize]| {
                let mut rows = group.iter();
                rows.all(|row| known.binary_search(row).is_ok())
            };
            let known = groups.get(&group[0]);
            if known.is_some_and(|known| known.iter().any(is_part_of)) {
                continue;
            }
            let Some(row) = rows.get(group[0]) else {
                continue;
            };
            let task = row.task.clone().or_else(|| row.agent.clone());
            findings.push(Finding::SameKey {
                key: task.unwrap_or_else(|| row.place.to_string()),
                places: places(group, rows),
            });
            for row in group {
                groups.entry(*row).or_default().push(group);
            }
        }
        findings
    }

    /// Marks the checkpoints whose work another agent took over, as that agent's checkpoint states.
    pub(super) fn mark_taken_over(&self, rows: &mut [Row], formats: &Formats) -> Vec<Finding> {
        let newest = self.newest_successors(rows, formats);
        let mut findings = Vec::new();
        for (id, holders) in self.by_id.iter().filter(|(_, it)| it.is_agent) {
            for number in &holders.rows {
                let Some(old) = rows.get(*number).filter(|row| !is_finished(row)) else {
                    continue;
                };
                let next = newest.get(&(id.clone(), old.task.clone()));
                let next = next.and_then(|next| rows.get(*next));
                let went_on = |next: &&Row| time(old).is_some_and(|old| time(next) >= Some(old));
                let Some(next) = next.filter(went_on) else {
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
                    poisoned: false,
                });
                old.state = RowState::TakenOver { by };
                // The row no longer describes its own checkpoint, so its data is dropped.
                old.kept = None;
            }
        }
        findings
    }

    /// For each agent and task that others took over, the row of the successor that changed last.
    fn newest_successors(&self, rows: &[Row], formats: &Formats) -> BTreeMap<Work, usize> {
        let mut newest: BTreeMap<Work, usize> = BTreeMap::new();
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
                    let of = (*project, format.name(), file);
                    let last = newest.entry((of, row.task.clone()));
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

/// The rows of checkpoints with their indexes and their data.
fn kept(rows: &[Row]) -> impl Iterator<Item = (usize, &Row, &Kept)> {
    let rows = rows.iter().enumerate();
    rows.filter_map(|(number, row)| Some((number, row, row.kept.as_deref()?)))
}

/// Finds tasks in several checkouts of a repository. All but one are old, and an agent that resumes from an old one
/// repeats steps. A task that is finished in all of them is no finding: every checkout has a copy of the file.
fn of_checkouts(mut copies: Vec<(CheckoutFile<'_>, InCheckout)>, rows: &[Row]) -> Vec<Vec<usize>> {
    // A scan reads a folder in this order, so most of them are sorted already.
    copies.sort_by(|one, other| one.0.cmp(&other.0));
    let groups = copies.chunk_by(|one, other| one.0 == other.0);
    let groups = groups
        .filter(|copies| copies.len() > 1)
        .filter_map(|copies| {
            let group: Vec<usize> = copies.iter().map(|(_, copy)| copy.row).collect();
            let first = copies[0].1.project;
            // Checkpoints with ids in one project are compared by their ids.
            let mut copies = copies.iter().map(|(_, copy)| copy);
            let have_id = copies.all(|copy| copy.has_id && copy.project == first);
            (!have_id && !are_finished(&group, rows)).then_some(group)
        });
    groups.collect()
}

/// Finds tasks in a folder and in a copy of that folder; those in the most places come first.
fn of_traces(mut traces: Vec<(u64, usize)>, rows: &[Row]) -> Vec<Vec<usize>> {
    traces.sort_unstable();
    traces.dedup();
    let groups = traces.chunk_by(|one, other| one.0 == other.0);
    let mut groups: Vec<Vec<usize>> = groups
        .filter(|group| group.len() > 1)
        .map(|group| group.iter().map(|(_, row)| *row).collect())
        .filter(|group: &Vec<usize>| !are_finished(group, rows))
        .collect();
    groups.sort_unstable_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
    groups.dedup();
    groups
}

/// Hashes of what only copies of a checkpoint share: the key with a finished step and its time, and the whole text. Two
/// checkpoints that share only a key are two tasks.
pub(super) fn traces(
    format: &Format,
    key: &Key,
    handoff: &Handoff,
    whole: &impl Hash,
) -> Box<[u64]> {
    // The state of a pipeline is no task.
    if !format.is_task() {
        return Box::default();
    }
    let trace = |with: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        (format.name(), key.as_str()).hash(&mut hasher);
        with(&mut hasher);
        hasher.finish()
    };
    let steps = handoff.done.iter().filter_map(|step| {
        let at = step.at.as_ref()?.time()?;
        Some(trace(&|hasher| (&step.text, at).hash(hasher)))
    });
    let whole = trace(&|hasher| whole.hash(hasher));
    steps.chain([whole]).collect()
}

/// Finds in two passes which of many hashes may occur more than once. Most occur once and need not be sorted.
struct Repeated {
    once: Vec<u64>,
    twice: Vec<u64>,
}

impl Repeated {
    /// For `count` hashes. About one in twenty hashes that occur once is reported as repeated.
    fn new(count: usize) -> Repeated {
        let words = (count / 4).next_power_of_two().max(16);
        Repeated {
            once: vec![0; words],
            twice: vec![0; words],
        }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let word = usize::try_from(hash >> 6).unwrap_or(usize::MAX) & (self.once.len() - 1);
        (word, 1 << (hash & 63))
    }

    fn add(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        self.twice[word] |= self.once[word] & bit;
        self.once[word] |= bit;
    }

    fn has(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.twice[word] & bit != 0
    }
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

/// The places of these rows, the one that changed last first.
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

/// The files of a checkpoint that are compared with other checkpoints of this project.
pub(super) fn compared_files(project: usize, files: &[String]) -> Files {
    let files = files.iter().filter(|file| file.len() <= LONGEST);
    Files::of(files.take(MOST_FILES), push_normalized, |path| {
        let mut hasher = DefaultHasher::new();
        (project_of(path, project), path).hash(&mut hasher);
        // 32 bits distinguish enough paths.
        hasher.finish() as u32
    })
}

/// The project of a path. An absolute path is the same file in all projects.
fn project_of(path: &str, project: usize) -> usize {
    match path.starts_with('/') {
        true => usize::MAX,
        false => project,
    }
}

/// Files named by several checkpoints whose agents may be working, with the indexes of their rows.
pub(super) struct SharedFiles(Vec<(String, Vec<usize>)>);

impl SharedFiles {
    pub(super) fn of(rows: &[Row]) -> SharedFiles {
        let is_over = |row: &Row| matches!(row.result(), "finished" | "stalled");
        let at_work = || kept(rows).filter(|(_, row, _)| !is_over(row));
        let hashes = || at_work().flat_map(|(_, _, kept)| kept.files.iter().map(|(_, hash)| hash));
        let mut repeated = Repeated::new(hashes().count());
        hashes().for_each(|hash| repeated.add(hash.into()));
        let mut uses = Vec::new();
        for (row, _, kept) in at_work() {
            let files = kept.files.iter();
            let files = files.filter(|(_, hash)| repeated.has((*hash).into()));
            uses.extend(files.map(|(path, _)| (project_of(path, kept.project), path, row)));
        }
        uses.sort_unstable();
        uses.dedup();
        let files = uses.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1));
        let files = files.filter(|users| users.len() > 1).map(|users| {
            let rows = users.iter().map(|(.., row)| *row).collect();
            (users[0].1.to_owned(), rows)
        });
        SharedFiles(files.collect())
    }

    /// One finding for each group of agents, with all files that they share.
    pub(super) fn findings(self, rows: &[Row]) -> Vec<Finding> {
        let mut groups: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        for (path, group) in self.0 {
            if are_several(&group, rows) {
                groups.entry(group).or_default().push(bounded::text(&path));
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

/// Whether these rows belong to different agents. One agent may have several tasks, and a successor has the files of
/// its predecessor.
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

/// The name of the agent of a row.
fn name(row: &Row) -> String {
    if row.agent_is_role
        && let (Some(agent), Some(task)) = (&row.agent, &row.task)
    {
        return format!("{agent} ({task})");
    }
    let name = row.agent.as_ref().or(row.task.as_ref());
    name.cloned().unwrap_or_else(|| row.place.to_string())
}

/// Appends a normalized path: `./src//a.rs` and `src\a.rs` become `src/a.rs`.
fn push_normalized(text: &mut String, path: &str) {
    let start = text.len();
    if path.starts_with('/') {
        text.push('/');
    }
    let mut is_first = true;
    let mut at = 0;
    for part in path.as_bytes().split(|byte| b"/\\".contains(byte)) {
        let part = path.get(at..at + part.len()).unwrap_or_default();
        at += part.len() + 1;
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
            row.set_format(Formats::default().get("task").ok());
            row.kept = Some(Arc::new(Kept {
                id: Key::new(id).ok(),
                is_agent: true,
                ..Kept::default()
            }));
            rows.push(row);
        }
        let copies = Copies::of(&rows, &Formats::default());
        let began = std::time::Instant::now();
        let found = copies.mark_taken_over(&mut rows, &Formats::default());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
        // All but the last, and those whose successor has an earlier stamp: the stamps of this test wrap after 24
        // hours.
        assert_eq!(found.len(), AGENTS - 1 - AGENTS / (24 * 60));
    }
}
