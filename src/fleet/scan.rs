//! A scan in progress: the rows and findings so far, and rows for checkpoints that should exist and do not.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::compare::{Copies, SharedFiles};
use super::options::Planned;
use super::{
    Finding, Fleet, FleetOptions, Place, Row, RowState, SkipReason, Skipped, Totals, bounded,
};
use crate::checkpoint::{Error, ErrorKind};
use crate::json::Document;
use crate::registry::Format;
use crate::store::FileOptions;

/// The rows of an earlier scan, by file or by key.
pub(super) struct Before<'f> {
    pub(super) files: HashMap<&'f OsStr, &'f Row>,
    /// By the index of the store among the sources, and the key.
    pub(super) keys: HashMap<(usize, &'f str), &'f Row>,
}

impl<'f> Before<'f> {
    pub(super) fn of(fleet: &'f Fleet) -> Before<'f> {
        let mut before = Before {
            files: HashMap::with_capacity(fleet.rows.len()),
            keys: HashMap::new(),
        };
        for row in &fleet.rows {
            let Some(kept) = row.kept.as_ref().filter(|kept| kept.again.is_some()) else {
                continue;
            };
            if let Some(file) = &row.place.file {
                before.files.insert(file.as_os_str(), row);
            } else if let Some(key) = &row.place.key {
                before.keys.insert((kept.project, key), row);
            }
        }
        before
    }
}

/// A scan in progress, or a part of one.
pub(super) struct Scan<'o> {
    pub(super) options: &'o FleetOptions,
    pub(super) now: DateTime<Utc>,
    /// The index of the source that is being read.
    pub(super) project: usize,
    /// The options with which the store of each file is opened.
    pub(super) files: Arc<FileOptions>,
    /// The rows of an earlier scan.
    pub(super) before: Option<&'o Before<'o>>,
    pub(super) findings: Vec<Finding>,
    pub(super) rows: Vec<Row>,
    skipped: Vec<Skipped>,
}

impl<'o> Scan<'o> {
    pub(super) fn new(
        options: &'o FleetOptions,
        now: DateTime<Utc>,
        before: Option<&'o Before<'o>>,
    ) -> Scan<'o> {
        Scan {
            options,
            now,
            project: 0,
            files: Arc::new(FileOptions::read_only()),
            before,
            findings: Vec::new(),
            rows: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// An empty scan for other files of the same source.
    pub(super) fn part(&self) -> Scan<'o> {
        Scan {
            options: self.options,
            now: self.now,
            project: self.project,
            files: self.files.clone(),
            before: self.before,
            findings: Vec::new(),
            rows: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Adds the results of a part.
    pub(super) fn append(&mut self, part: Scan<'_>) {
        self.findings.extend(part.findings);
        self.rows.extend(part.rows);
        self.skipped.extend(part.skipped);
    }

    pub(super) fn push(&mut self, row: Row) {
        // The slots of a host file are adjacent, so its name is reported once.
        let last = self.rows.last().and_then(|last| last.place.file.as_ref());
        if let Some(file) = &row.place.file
            && file.to_str().is_none()
            && last != Some(file)
        {
            let place = file.display().to_string();
            self.findings.push(Finding::NameNotUtf8 { place });
        }
        self.rows.push(row);
    }

    /// Adds a row for a checkpoint that could not be read.
    pub(super) fn push_unreadable(&mut self, place: Place, format: Option<&Format>, error: &Error) {
        let reason = bounded::text(&error.to_string());
        let state = match error.kind() {
            ErrorKind::Corrupt(_) | ErrorKind::TooLarge { .. } => RowState::Corrupt { reason },
            _ => RowState::Unreadable { reason },
        };
        let mut row = Row::new(place, state);
        row.set_format(format);
        self.push(row);
    }

    pub(super) fn skip(&mut self, what: impl ToString, why: SkipReason) {
        let what = what.to_string();
        self.skipped.push(Skipped { what, why });
    }

    /// The format of a document: the one that the caller set, else the detected one.
    pub(super) fn format_of(
        &self,
        path: &Path,
        document: Option<&Document>,
    ) -> Result<Format, Error> {
        let formats = &self.options.formats;
        match &self.options.format {
            Some(name) => formats.get(name).copied(),
            None => Ok(formats.detect(path, document)?.format),
        }
    }

    /// Compares the rows, and adds rows for planned tasks and missing agents.
    pub(super) fn finish(mut self) -> Fleet {
        let formats = &self.options.formats;
        let copies = Copies::of(&self.rows, formats);
        let shared = SharedFiles::of(&self.rows);
        let taken_over = copies.mark_taken_over(&mut self.rows, formats);
        self.findings.extend(taken_over);
        self.findings.extend(copies.findings(&self.rows));
        self.findings.extend(shared.findings(&self.rows));
        self.rows.sort_by(|one, other| one.place.cmp(&other.place));
        let planned = not_started(&self.rows, &self.options.planned);
        let expected = missing(&self.rows, &self.options.expected);
        self.rows.extend(planned);
        self.rows.extend(expected);
        Fleet {
            now: self.now,
            totals: Totals::of(&self.rows),
            rows: self.rows,
            findings: self.findings,
            skipped: self.skipped,
            options: self.options.clone(),
        }
    }
}

/// The planned tasks without a row.
fn not_started(rows: &[Row], planned: &[Planned]) -> Vec<Row> {
    if planned.is_empty() {
        return Vec::new();
    }
    let begun = rows
        .iter()
        .filter_map(|row| Some((row.task.as_deref()?, row.agent.as_deref())));
    let begun: HashSet<(&str, Option<&str>)> = begun.collect();
    let tasks: HashSet<&str> = begun.iter().map(|(task, _)| *task).collect();
    let is_begun = |planned: &&Planned| match planned.agent.as_deref() {
        Some(agent) => begun.contains(&(planned.task.as_str(), Some(agent))),
        None => tasks.contains(planned.task.as_str()),
    };
    let not_begun = planned.iter().filter(|planned| !is_begun(planned));
    let row = |planned: &Planned| {
        let mut row = Row::new(Place::default(), RowState::NotStarted);
        row.task = bounded::said(Some(&planned.task));
        row.agent = bounded::said(planned.agent.as_deref());
        row
    };
    not_begun.map(row).collect()
}

/// The expected agents without a row.
fn missing(rows: &[Row], expected: &[String]) -> Vec<Row> {
    if expected.is_empty() {
        return Vec::new();
    }
    let mut present = HashSet::new();
    for row in rows {
        present.extend(row.agent.as_deref().map(file_of_agent));
        // A corrupt file with the agent's name is the agent's, and already a row.
        let name = row.place.file.as_ref().and_then(|file| file.file_name());
        present.extend(name.and_then(|name| name.to_str()).map(str::to_owned));
    }
    let missing = expected
        .iter()
        .filter(|agent| !present.contains(&file_of_agent(agent)));
    let row = |agent: &String| {
        let mut row = Row::new(Place::default(), RowState::Missing);
        row.agent = bounded::said(Some(agent));
        row
    };
    missing.map(row).collect()
}

/// The file name of an agent, the same for all spellings of its id: `a.json` for `Agent-A`.
fn file_of_agent(agent: &str) -> String {
    let plain = agent.to_lowercase().replace('-', "_");
    format!("{}.json", plain.strip_prefix("agent_").unwrap_or(&plain))
}
