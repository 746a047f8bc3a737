//! Files that several agents changed.

use std::collections::BTreeMap;

use super::{Finding, Row, bounded};
use crate::checkpoint::Checkpoint;
use crate::formats::SitebuilderCheckpoint;

/// The most files of one checkpoint that are compared.
const MOST_FILES: usize = 1000;
/// The longest path that is compared, in bytes.
const LONGEST: usize = 1024;

/// The files of all checkpoints whose agents may be at work: one text, and where each path is in it.
#[derive(Default)]
pub(super) struct SharedPaths {
    text: String,
    entries: Vec<Entry>,
}

struct Entry {
    project: usize,
    start: usize,
    length: usize,
    row: usize,
}

impl SharedPaths {
    pub(super) fn add(&mut self, project: usize, row: usize, files: &[String]) {
        for file in files.iter().filter(|f| f.len() <= LONGEST).take(MOST_FILES) {
            let start = self.text.len();
            push_plain(&mut self.text, file);
            let length = self.text.len() - start;
            if length > 0 {
                // An absolute path is the same file in all projects.
                let project = if file.starts_with('/') {
                    usize::MAX
                } else {
                    project
                };
                self.entries.push(Entry {
                    project,
                    start,
                    length,
                    row,
                });
            }
        }
    }

    fn path(&self, entry: &Entry) -> &str {
        &self.text[entry.start..entry.start + entry.length]
    }

    /// A finding for each group of agents, with all files that they share.
    pub(super) fn findings(mut self, rows: &[Row]) -> Vec<Finding> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|one, other| {
            let by_project = one.project.cmp(&other.project);
            let by_path = by_project.then_with(|| self.path(one).cmp(self.path(other)));
            by_path.then(one.row.cmp(&other.row))
        });
        let mut groups: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        let same = |one: &Entry, other: &Entry| {
            one.project == other.project && self.path(one) == self.path(other)
        };
        for users in entries.chunk_by(same) {
            let mut numbers: Vec<usize> = users.iter().map(|entry| entry.row).collect();
            numbers.dedup();
            if numbers.len() > 1 && are_several(&numbers, rows) {
                let path = bounded::text(self.path(&users[0]));
                groups.entry(numbers).or_default().push(path);
            }
        }
        groups
            .into_iter()
            .map(|(numbers, paths)| {
                let rows = || numbers.iter().filter_map(|number| rows.get(*number));
                let mut agents: Vec<String> = rows().map(name).collect();
                agents.sort();
                agents.dedup();
                Finding::SharedPaths {
                    agents,
                    places: rows().map(|row| row.place.to_string()).collect(),
                    paths,
                }
            })
            .collect()
    }
}

/// Whether these are several agents: one may have several tasks, and who took over from another has its
/// files. A sitebuilder's agent is a kind of agent, of which each task has one.
fn are_several(numbers: &[usize], rows: &[Row]) -> bool {
    let rows: Vec<&Row> = numbers
        .iter()
        .filter_map(|number| rows.get(*number))
        .collect();
    let Some((first, others)) = rows.split_first() else {
        return false;
    };
    let follows = |one: &Row, other: &Row| {
        let agent = other.agent.as_ref();
        agent.is_some_and(|agent| one.previous_agents.contains(agent))
    };
    others
        .iter()
        .any(|other| name(first) != name(other) && !follows(first, other) && !follows(other, first))
}

fn name(row: &Row) -> String {
    if row.format == Some(SitebuilderCheckpoint::FORMAT)
        && let (Some(agent), Some(task)) = (&row.agent, &row.task)
    {
        return format!("{agent} ({task})");
    }
    let name = row.agent.as_ref().or(row.task.as_ref());
    name.cloned().unwrap_or_else(|| row.place.to_string())
}

/// A path as all agents would write it: `./src//a.rs` and `src\a.rs` are `src/a.rs`.
fn push_plain(text: &mut String, path: &str) {
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
